"""Phase and harmonics: three questions about rotation, feed-forwards and aligned phases, each with its control.

1. *Oscillation* (:mod:`gnomon.study.phase_oscillation`, claim P1): with constant content, do queries, keys, logits and the stream move at the
   rotary frequencies?
2. *Harmonics* (:mod:`gnomon.study.phase_harmonics`, P2): does a periodic content come out of the feed-forwards with harmonics that their tangents
   do not make?
3. *Alignment* (:mod:`gnomon.study.phase_alignment`, P3): what does an imposed phase difference between queries and keys do to attention
   and activations, against turning other planes of the same features?

The definitions are ours: the publication states the claims in words. Sequences (tokens, pairs of tokens, texts) are the unit of replication.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.corpus import Windows
from gnomon.dims import CONDITION, HEAD, LAYER, SEQUENCE
from gnomon.errors import ConfigError
from gnomon.measure.averaged import Averages, nan_mean
from gnomon.model import PositionModel
from gnomon.statistics import Estimate, estimate_mean
from gnomon.study import phase_alignment, phase_harmonics, phase_oscillation
from gnomon.study.experiment import Arrays, Context, Experiment

Floats = NDArray[np.floating]
LENGTH = 256
TEXT_LENGTH = 128
_HEAD = (LAYER, HEAD)
_OSCILLATION = {
    "query_line": "share of the motion of query pairs at their own rotary frequency",
    "key_line": "share of the motion of key pairs at their own rotary frequency",
    "logit_contrast": "power of the logits on rotary frequencies against between them",
    "stream_contrast": "power of the residual stream on rotary frequencies against between them",
    "stream_variation": "change of the residual stream along position over its size",
}
_RESPONSES = {
    "entropy": ("entropy of the rows", "nats"),
    "peak": ("largest weight of the rows", "1"),
    "norm": ("norm of the head's output", "1"),
}


@dataclass(frozen=True, kw_only=True)
class Phase(Experiment):
    """Oscillation, harmonics and alignment.

    Attributes:
        num_tokens: constant contents of the first part.
        num_pairs: pairs of tokens of the second.
        num_texts: texts of the third.
    """

    name: ClassVar[str] = "phase"
    title: ClassVar[str] = "oscillation at rotary frequencies, harmonics, and aligned against opposed phases"
    claims: ClassVar[tuple[str, ...]] = ("P1", "P2", "P3")

    num_tokens: int = 12
    num_pairs: int = 12
    num_texts: int = 8

    def __post_init__(self) -> None:
        for name in ("num_tokens", "num_pairs", "num_texts"):
            if getattr(self, name) < 3:
                raise ConfigError(f"`{name}` must be at least 3, got {getattr(self, name)}; fewer give no interval.")

    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """The three parts, one stage each."""
        common = {"batch_size": context.batch_size, "seed": context.seed}
        texts = _texts(windows, self.num_texts)
        parts = {
            "oscillation": partial(
                phase_oscillation.oscillation, model, windows, num_tokens=self.num_tokens, length=LENGTH, **common
            ),
            "harmonics": partial(phase_harmonics.harmonics, model, windows, num_pairs=self.num_pairs, **common),
            "alignment": partial(phase_alignment.alignment, model, texts, **common),
        }
        found: dict[str, Arrays] = {}
        for index, (name, work) in enumerate(parts.items()):
            context.progress(index, len(parts))
            found[name] = context.stage(name, work)
        context.progress(len(parts), len(parts))
        out = Averages(context.seed)
        _add_oscillation(out, found["oscillation"])
        _add_harmonics(out, found["harmonics"]["power"])
        _add_alignment(out, found["alignment"])
        rotates = any(model.scheme.rope_layers)
        attrs = {"rotates": rotates, "frequencies": "the model's own" if rotates else "assumed, base 10000: a control"}
        coords = {
            CONDITION: list(phase_oscillation.CONDITIONS),
            "period": list(phase_harmonics.PERIODS),
            "harmonic": list(range(1, phase_harmonics.NUM_HARMONICS + 1)),
            "phase": ("phase", list(phase_alignment.PHASES), {"long_name": "imposed phase difference", "units": "radians"}),
        }
        return out.dataset(attrs, coords)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """``oscillation/*``, ``harmonics/*`` and ``alignment/*``; ``entropy_contrast`` is opposed less aligned, each layer by itself."""
        return {**dict(_oscillation(dataset)), **dict(_harmonics(dataset)), **dict(_alignment(dataset))}


def _texts(windows: Windows, count: int) -> Windows:
    """The first texts, cut to a length at which a dozen passes are cheap."""
    chosen = windows.take(np.argsort(-windows.lengths, kind="stable")[:count])
    width = min(TEXT_LENGTH, chosen.length)
    return Windows(
        tokens=chosen.tokens[:, :width],
        lengths=np.minimum(chosen.lengths, width),
        special=chosen.special[:, :width],
        document=chosen.document,
        start=chosen.start,
        source=chosen.source,
        seed=chosen.seed,
        first_token=chosen.first_token,
        pad_id=chosen.pad_id,
    )


def _add_oscillation(out: Averages, found: Arrays) -> None:
    for name, label in _OSCILLATION.items():
        out.mean(name, found[name], (CONDITION, LAYER), label)
        out.add(f"{name}_by_token", nan_mean(found[name], 2), ("token", CONDITION), f"{label}, mean over layers")


def _add_harmonics(out: Averages, power: Floats) -> None:
    """Power relative to the fundamental, and distortion, by site."""
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = power / power[..., :1]
        above = np.where(np.isfinite(power[..., 0]), np.nansum(power[..., 1:], -1), np.nan)
        distortion = np.sqrt(above / power[..., 0])
    for place, site in enumerate(phase_harmonics.SITES):
        label = f"at the feed-forward's {site.replace('_', ', ')}"
        dims = (LAYER, "period")
        out.mean(f"harmonics_{site}", relative[..., place, :], (*dims, "harmonic"), f"power relative to the fundamental {label}")
        out.mean(f"distortion_{site}", distortion[..., place], dims, f"total harmonic distortion {label}")
        out.add(f"distortion_{site}_by_pair", nan_mean(distortion[..., place], (1, 2)), ("pair",), f"distortion {label}, mean")


def _add_alignment(out: Averages, found: Arrays) -> None:
    for place, (name, (label, units)) in enumerate(_RESPONSES.items()):
        for kind, planes in enumerate(phase_alignment.PLANES):
            values = found["local"][:, :, :, place, kind]
            what = f"{label}, {planes} planes of the queries turned in this layer alone"
            out.mean(f"local_{name}_{planes}", values, (*_HEAD, "phase"), what, units)
            out.add(f"local_{name}_{planes}_by_text", nan_mean(values, (1, 2)), (SEQUENCE, "phase"), f"{what}, mean", units)
        values = found["global"][:, :, :, place]
        what = f"{label}, rotary planes of the queries turned in every layer"
        out.mean(f"global_{name}", values, (*_HEAD, "phase"), what, units)
        out.add(f"global_{name}_by_text", nan_mean(values, (1, 2)), (SEQUENCE, "phase"), f"{what}, mean", units)
    label = "norm of what the feed-forward adds, rotary planes of the queries turned in every layer"
    out.mean("global_feed_forward", found["feed_forward"], (LAYER, "phase"), label)
    out.add("global_feed_forward_by_text", nan_mean(found["feed_forward"], 1), (SEQUENCE, "phase"), f"{label}, mean over layers")


def _oscillation(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    reasons = {
        "stream_contrast": "the stream does not move beyond rounding, or no rotary frequency is resolved",
        "logit_contrast": "no rotary frequency is resolved at this length",
    }
    for condition in phase_oscillation.CONDITIONS:
        for name in _OSCILLATION:
            values = dataset[f"{name}_by_token"].sel(condition=condition).values
            yield f"oscillation/{name}_{condition}", estimate_mean(values, reason=reasons.get(name, "no pair turns twice"))


def _harmonics(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    reason = "this family has no such module to observe"
    for site in phase_harmonics.SITES:
        yield f"harmonics/distortion_{site}", estimate_mean(dataset[f"distortion_{site}_by_pair"].values, reason=reason)
    for site in ("post", "output"):
        added = dataset[f"distortion_{site}_by_pair"].values - dataset[f"distortion_{site}_linear_by_pair"].values
        yield f"harmonics/added_{site}", estimate_mean(added, reason=reason)


def _alignment(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    """Aligned less opposed, and aligned less a quarter turn with what other planes give; norms as logarithms of ratios."""
    reason = "texts are too short"
    half, quarter = phase_alignment.OPPOSED, phase_alignment.QUARTER
    opposed = _contrast(dataset["local_entropy_rotary_by_text"], half, "entropy")
    yield "entropy_contrast", estimate_mean(-opposed, reason=reason)
    for name in _RESPONSES:
        for where, variable in (("local", f"local_{name}_rotary_by_text"), ("global", f"global_{name}_by_text")):
            yield f"alignment/{where}_{name}_opposed", estimate_mean(_contrast(dataset[variable], half, name), reason=reason)
            yield f"alignment/{where}_{name}_quarter", estimate_mean(_contrast(dataset[variable], quarter, name), reason=reason)
        rotary, other = (_contrast(dataset[f"local_{name}_{planes}_by_text"], quarter, name) for planes in phase_alignment.PLANES)
        yield f"alignment/local_{name}_quarter_other", estimate_mean(other, reason=reason)
        yield f"alignment/local_{name}_quarter_beyond_other", estimate_mean(rotary - other, reason=reason)
    for place, label in ((half, "opposed"), (quarter, "quarter")):
        values = _contrast(dataset["global_feed_forward_by_text"], place, "norm")
        yield f"alignment/global_feed_forward_{label}", estimate_mean(values, reason="this family has no feed-forward module")


def _contrast(values: xr.DataArray, places: tuple[int, ...], name: str) -> Floats:
    """What phase 0 has more of than the mean of phases ``places``, per text; for norms the logarithm of their ratio."""
    array = np.asarray(values.transpose(SEQUENCE, "phase").values, dtype=np.float64)
    if name == "norm":
        array = np.log(array)
    return np.asarray(array[:, 0] - array[:, list(places)].mean(1))

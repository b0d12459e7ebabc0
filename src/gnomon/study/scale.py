"""Scale sensitivity: how the wavelet picture of attention changes when text is shortened (claim C4).

What is compared with what, and why there are two conventions, is said in :mod:`gnomon.measure.scale`. An experiment, since shortened texts
need forward passes of their own: per share alpha one pass over prefixes, one over random subsets of the tokens, and one over subsets of
*other* texts cut to the same length. Sequences are the unit of replication; the partner of a text is the next longer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray

from gnomon.capture import AttentionView, capture_pass
from gnomon.corpus import Windows
from gnomon.dims import HEAD, LAYER, SEQUENCE
from gnomon.errors import ConfigError
from gnomon.kernels.quantities import Needs
from gnomon.measure.averaged import Averages, nan_mean
from gnomon.measure.scale import ALPHAS, coefficient_distance, shortest_signal
from gnomon.model import PositionModel
from gnomon.statistics import Estimate, bootstrap, estimate_mean
from gnomon.study.experiment import Arrays, Context, Experiment

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]
ALPHA = "alpha"
TOO_SHORT = f"no shortened text has {shortest_signal() + 1} tokens"
PARTS = ("paper", "subset", "unrelated")


@dataclass(frozen=True, kw_only=True)
class Scale(Experiment):
    """Scale sensitivity by both conventions.

    Attributes:
        alphas: which shares of a text to keep.
    """

    name: ClassVar[str] = "scale"
    title: ClassVar[str] = "scale sensitivity: attention to a shortened text against the whole"
    claims: ClassVar[tuple[str, ...]] = ("C4",)

    alphas: tuple[float, ...] = ALPHAS

    def __post_init__(self) -> None:
        if not self.alphas or not all(0 < alpha < 1 for alpha in self.alphas):
            raise ConfigError(f"`alphas` must be shares between 0 and 1, got {self.alphas}; use 0.5 and 0.25.")

    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """All passes, one stage per batch."""
        partner = partners(windows.lengths)
        batches = list(windows.batches(context.batch_size))
        shape = (len(windows), model.anatomy.num_layers, model.anatomy.num_heads, len(self.alphas))
        values = {part: np.full(shape, np.nan, dtype=np.float32) for part in PARTS}
        for index, chosen in enumerate(batches):
            context.progress(index, len(batches))
            work = partial(self._batch, model, windows, chosen, partner, context.seed)
            found = context.stage(f"batch-{index:05d}", work)
            for part in PARTS:
                values[part][chosen] = found[part]
        context.progress(len(batches), len(batches))
        return self._dataset(values, windows, context.seed)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """``paper/0.5``, ``calibrated/0.5`` and the like; ratios of means over texts for the calibrated convention."""
        return dict(_headline(dataset))

    def _batch(self, model: PositionModel, windows: Windows, chosen: Ints, partner: Ints, seed: int) -> Arrays:
        lengths = windows.lengths[chosen]
        whole = _signals(model, windows.take(chosen))
        out: dict[str, list[Floats]] = {part: [] for part in PARTS}
        for alpha in self.alphas:
            kept = np.floor(alpha * lengths).astype(int)
            prefixes = [np.arange(count) for count in kept]
            subsets = [
                random_subset(length, count, seed, index) for length, count, index in zip(lengths, kept, chosen, strict=True)
            ]
            others = [
                random_subset(int(windows.lengths[partner[index]]), count, seed, -1 - index)
                for count, index in zip(kept, chosen, strict=True)
            ]
            for part, source, places in (
                ("paper", chosen, prefixes),
                ("subset", chosen, subsets),
                ("unrelated", partner[chosen], others),
            ):
                reference = prefixes if part == "paper" else subsets
                shortened = _signals(model, _shortened(windows.take(source), places))
                distances = [
                    _distance(whole[row], reference[row], shortened[row], len(places[row])) for row in range(len(chosen))
                ]
                out[part].append(np.stack(distances))
        return {part: np.stack(columns, -1) for part, columns in out.items()}

    def _dataset(self, values: dict[str, Floats], windows: Windows, seed: int) -> xr.Dataset:
        out = Averages(seed)
        labels = {
            "paper": "distance between text and prefix (paper convention)",
            "subset": "distance between text and random subset (calibrated convention, not yet divided)",
            "unrelated": "the same to an unrelated text of equal length",
        }
        for part in PARTS:
            out.mean(f"{part}_distance", values[part], (LAYER, HEAD, ALPHA), labels[part])
            out.add(
                f"{part}_distance_by_text", nan_mean(values[part], (1, 2)), (SEQUENCE, ALPHA), f"{labels[part]}, mean over heads"
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = nan_mean(values["subset"], 0) / nan_mean(values["unrelated"], 0)
        out.add("calibrated_sensitivity", ratio, (LAYER, HEAD, ALPHA), "distance to the subset over distance to unrelated text")
        short = [int((np.floor(alpha * windows.lengths) < shortest_signal() + 1).sum()) for alpha in self.alphas]
        reasons = [
            f"{count} of {len(windows)} texts are too short at {alpha}"
            for alpha, count in zip(self.alphas, short, strict=True)
            if count
        ]
        return out.dataset({"missing": "; ".join(reasons), "shortest_signal": shortest_signal()}, {ALPHA: list(self.alphas)})


def partners(lengths: Ints) -> Ints:
    """For each text the next longer one; for the longest the one before it."""
    order = np.argsort(lengths, kind="stable")
    partner = np.empty(len(lengths), dtype=np.int64)
    partner[order[:-1]] = order[1:]
    partner[order[-1]] = order[-2] if len(order) > 1 else order[-1]
    return partner


def random_subset(length: int, count: int, seed: int, index: int) -> Ints:
    """``count`` places of a text in order, always with place 0; all places of a text that has no more."""
    generator = np.random.default_rng([seed, index % (1 << 32)])
    drawn = generator.choice(np.arange(1, length), size=max(0, min(count, length) - 1), replace=False)
    return np.concatenate([[0], np.sort(drawn)]).astype(np.int64)


def _shortened(windows: Windows, places: list[Ints]) -> Windows:
    """The chosen places of each text, as windows."""
    width = max(len(row) for row in places)
    tokens = np.full((len(windows), width), windows.pad_id, dtype=np.int64)
    special = np.zeros((len(windows), width), dtype=bool)
    for row, chosen in enumerate(places):
        tokens[row, : len(chosen)] = windows.tokens[row, chosen]
        special[row, : len(chosen)] = windows.special[row, chosen]
    lengths = np.array([len(row) for row in places])
    return Windows(
        tokens=tokens,
        lengths=lengths,
        special=special,
        document=windows.document,
        start=windows.start,
        source=f"{windows.source}, shortened",
        seed=windows.seed,
        first_token=windows.first_token,
        pad_id=windows.pad_id,
    )


def _signals(model: PositionModel, windows: Windows) -> Floats:
    """Mean attention received, ``[sequence, layer, head, position]``, NaN on padding."""
    batch = windows.trimmed()
    lengths = torch.from_numpy(batch.lengths.copy())
    received: list[NDArray[np.float64]] = []

    def keep(view: AttentionView) -> None:
        received.append((view.received.double().cpu() / lengths[:, None, None]).numpy())

    capture_pass(
        model,
        torch.from_numpy(batch.tokens.copy()),
        lengths,
        torch.from_numpy(batch.special.copy()),
        Needs(received=True),
        keep,
    )
    return np.stack(received, 1)


def _distance(whole: Floats, places: Ints, shortened: Floats, count: int) -> Floats:
    """Distance of one text's signal at ``places`` from a shortened signal, position 0 dropped, ``[layer, head]``."""
    count = min(count, len(places))
    first = torch.from_numpy(np.ascontiguousarray(whole[..., places[1:count]]))
    second = torch.from_numpy(np.ascontiguousarray(shortened[..., 1:count]))
    return coefficient_distance(first, second).numpy()


def _headline(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    for alpha in dataset[ALPHA].values.tolist():
        by_text = {part: dataset[f"{part}_distance_by_text"].sel(alpha=alpha).values.astype(float) for part in PARTS}
        yield f"paper/{alpha}", estimate_mean(by_text["paper"], reason=TOO_SHORT)
        yield f"calibrated/{alpha}", _ratio(by_text["subset"], by_text["unrelated"])


def _ratio(above: Floats, below: Floats) -> Estimate:
    """Ratio of means over texts, resampling texts."""
    both = np.isfinite(above) & np.isfinite(below)
    if not both.any():
        return Estimate.missing(TOO_SHORT)
    above, below = above[both], below[both]
    interval = bootstrap(lambda weights: np.asarray(weights @ above / (weights @ below)), len(above))
    return Estimate(float(interval.value), float(interval.low), float(interval.high), len(above))

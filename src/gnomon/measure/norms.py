"""How large states, keys and values are, by position; massive activations.

**Quantities**:

- ``hidden_norm``: L2 norm of the residual stream at each level (0 the embedding, l + 1 the output of layer l) by octave of position;
- ``key_norm``, ``value_norm``: L2 norms of keys (after rotation, which keeps them) and values per layer and key/value head, by octave of
  position. The first octave is position 0 alone;
- ``*_ratio``: norm at position 0 over the mean norm at the other positions, per sequence, then averaged. Sinks show as a large ratio of
  states, a small ratio of values and often an unusual one of keys;
- **massive activations** (Sun et al., 2024): the three largest ``|h|`` of a sequence at each level, where they stand (position and
  feature), and the median ``|h|`` (the lower one of an even count) over all real positions and features. An entry is massive when it is
  above 100 and at least 1000 times the median; both bounds can be set.

**Range**: norms 0 upwards, in the model's own units; ratios have their zero point at 1.

**What it cannot show.** Norms depend on the scale a model happens to use: compare ratios between models, not norms. Small models and
models whose stream is scaled down may have outliers of a thousand medians below 100: look at ``largest_over_median`` too.

Claims served: B6; A5 and A9 in outline (what position 0 holds).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.view import AttentionView, StateView
from gnomon.dims import KV_HEAD, LAYER, LEVEL, POSITION_BAND, RANK, SEQUENCE
from gnomon.kernels.quantities import Needs
from gnomon.measure.averaged import Averages
from gnomon.measure.bands import POSITION_EDGES, mean_over, position_members, real_positions
from gnomon.measure.overall import add_overall, read_overall
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

Floats = NDArray[np.floating]
RANKS: Final = 3
BLOCK: Final = 1024
SHORT: Final = "no sequence has a token beside the one at position 0"


@dataclass(frozen=True, kw_only=True)
class Norms(Measure):
    """Norms by position, and massive activations.

    Attributes:
        massive_above: a massive activation is larger than this.
        massive_ratio: and at least so many times the median.
    """

    name: ClassVar[str] = "norms"
    title: ClassVar[str] = "Norms and massive activations"
    claims: ClassVar[tuple[str, ...]] = ("B6", "A5", "A9")

    massive_above: float = 100.0
    massive_ratio: float = 1000.0

    def __post_init__(self) -> None:
        if self.massive_above < 0 or self.massive_ratio <= 0:
            raise ValueError(
                f"`massive_above` must be at least 0 and `massive_ratio` above 0, got {self.massive_above} and {self.massive_ratio}."
            )

    def needs(self, subject: Subject) -> Needs:
        """The residual stream; keys and values are in every view."""
        return Needs(states=True)

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Norms of keys and values by octave of position, and their ratios."""
        real = real_positions(view.mask, view.problem.length)
        kept: dict[str, Tensor] = {}
        for name, vectors in (("key", view.problem.key), ("value", view.problem.value)):
            kept |= _by_position(name, _norm(vectors), real)
        return kept

    def observe_states(self, view: StateView) -> Mapping[str, Tensor]:
        """Norms of one level by octave of position, and its largest and median magnitudes."""
        real = torch.arange(view.hidden.shape[1], device=view.hidden.device)[None] < view.lengths[:, None]
        return {**_by_position("hidden", _norm(view.hidden), real), **largest_and_median(view.hidden, view.lengths)}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means with intervals; the largest magnitudes per sequence, as they are."""
        out, windows = Averages(observed.subject.seed), observed.subject.windows
        octaves = [edge for edge in POSITION_EDGES if edge < windows.length]
        for name, kept, dims in (
            ("hidden", observed.states, (LEVEL,)),
            ("key", observed.layers, (LAYER, KV_HEAD)),
            ("value", observed.layers, (LAYER, KV_HEAD)),
        ):
            norm, ratio = kept[f"{name}_norm"][..., : len(octaves)], kept[f"{name}_ratio"]
            what = {"hidden": "states", "key": "keys after rotation", "value": "values"}[name]
            out.mean(f"{name}_norm", norm, (*dims, POSITION_BAND), f"mean L2 norm of {what} by octave of position")
            out.mean(f"{name}_ratio", ratio, dims, f"norm of {what} at position 0 over the mean at other positions")
            between = "levels between embedding and output" if name == "hidden" else "layers and heads"
            add_overall(out, f"{name}_ratio", _inner(ratio) if name == "hidden" else ratio, f"{name}_ratio, mean over {between}")
        _add_massive(out, observed.states, self.massive_above, self.massive_ratio)
        return out.dataset(
            attrs={
                "missing": f"{SHORT}, or no position in this octave",
                "length": windows.length,
                "sequences": len(windows),
                "massive": f"above {self.massive_above:g} and at least {self.massive_ratio:g} times the median",
            },
            coords={
                RANK: list(range(1, RANKS + 1)),
                POSITION_BAND: (POSITION_BAND, octaves, {"long_name": "first position of the octave", "units": "tokens"}),
            },
        )

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Ratios of position 0, and what there is of massive activations."""
        none = "no sequence gave a value"
        return {
            **{f"{name}_ratio": read_overall(dataset, f"{name}_ratio", SHORT) for name in ("hidden", "key", "value")},
            "massive_levels": read_overall(dataset, "massive_levels", none),
            "massive_at_position_0": read_overall(dataset, "massive_at_position_0", "no level has a massive activation"),
            "largest_activation": read_overall(dataset, "largest_activation", none),
            "largest_over_median": read_overall(dataset, "largest_over_median", "every median is zero"),
        }


def largest_and_median(hidden_BTE: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """The largest magnitudes of each sequence, where they are, and the (lower) median magnitude, over real positions.

    Sequences of one length are taken together, so that padding never enters.
    """
    magnitude = hidden_BTE.abs().to(torch.promote_types(hidden_BTE.dtype, torch.float32))
    batch, _, width = magnitude.shape
    largest = torch.full((batch, RANKS), torch.nan, dtype=torch.float32, device=magnitude.device)
    place = torch.full((batch, RANKS), -1, dtype=torch.int64, device=magnitude.device)
    median = torch.full((batch,), torch.nan, dtype=torch.float32, device=magnitude.device)
    for length in sorted(set(lengths.tolist())):
        rows = torch.nonzero(lengths == length)[:, 0].to(magnitude.device)
        real = magnitude[rows, :length].flatten(1)
        values, indices = _largest(real)
        ranks = values.shape[1]
        largest[rows, :ranks] = values.float()
        place[rows, :ranks] = indices
        median[rows] = _lower_median(real).float()
    return {
        "largest": largest,
        "largest_position": torch.where(place < 0, -1, place // width).int(),
        "largest_feature": torch.where(place < 0, -1, place % width).int(),
        "median": median,
    }


def _largest(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The largest ``RANKS`` entries of each row and where they are.

    They lie in the blocks with the largest maxima, so that one pass of maxima and a selection among a few blocks finds them.
    """
    count = rows.shape[1]
    blocks = -(-count // BLOCK)
    if blocks <= RANKS:
        values, places = rows.topk(min(RANKS, count), dim=1)
        return values, places
    padded = torch.nn.functional.pad(rows, (0, blocks * BLOCK - count), value=-1.0).view(len(rows), blocks, BLOCK)
    chosen = padded.amax(2).topk(RANKS, dim=1).indices
    among = padded.gather(1, chosen[..., None].expand(-1, -1, BLOCK)).flatten(1)
    values, inside = among.topk(RANKS, dim=1)
    return values, chosen.gather(1, inside // BLOCK) * BLOCK + inside % BLOCK


def _lower_median(rows: Tensor) -> Tensor:
    """Lower median of each row; numpy's selection is many times faster than torch's where the data is on the CPU."""
    if rows.device.type != "cpu":
        return rows.median(dim=1).values
    middle = (rows.shape[1] - 1) // 2
    found = torch.from_numpy(np.partition(rows.numpy(), middle, axis=1)[:, middle])
    return found.masked_fill(rows.isnan().any(1), torch.nan)


def _norm(vectors: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(vectors, dim=-1, dtype=torch.promote_types(vectors.dtype, torch.float32))
    return norm


def _by_position(name: str, norm: Tensor, real: Tensor) -> dict[str, Tensor]:
    """Mean norm by octave of position, and the ratio of position 0 to the others' mean; ``norm`` is ``[B, T]`` or ``[B, G, T]``."""
    length = norm.shape[-1]
    others = (torch.arange(length, device=norm.device) > 0)[:, None]
    rest = mean_over(norm, real, others)[..., 0]
    return {
        f"{name}_norm": mean_over(norm, real, position_members(length, device=norm.device)),
        f"{name}_ratio": torch.where(rest > 0, norm[..., 0] / rest, torch.nan),
    }


def _inner(ratio: Floats) -> Floats:
    """Levels between embedding and output, where there are any: a sink's state is built up and taken down again."""
    return ratio[:, 1:-1] if ratio.shape[1] > 2 else ratio


def _add_massive(out: Averages, states: Mapping[str, NDArray[Any]], above: float, ratio: float) -> None:
    largest, median = states["largest"], states["median"]
    position, feature = states["largest_position"], states["largest_feature"]
    massive = (largest > above) & (largest >= ratio * median[..., None])
    with np.errstate(invalid="ignore", divide="ignore"):
        over_median: Floats = np.asarray(np.where(median > 0, largest[..., 0] / median, np.nan))
    dims = (SEQUENCE, LEVEL)
    out.add("largest_magnitude", largest, (*dims, RANK), "largest magnitudes |h|")
    out.add("largest_position", position.astype(np.int32), (*dims, RANK), "position of the largest magnitudes", "tokens")
    out.add("largest_feature", feature.astype(np.int32), (*dims, RANK), "feature of the largest magnitudes")
    out.add("median_magnitude", median, dims, "median magnitude |h|")
    out.add("massive", massive, (*dims, RANK), "whether it is a massive activation")
    out.mean("largest_activation", np.asarray(largest[..., 0]), (LEVEL,), "largest magnitude |h|")
    out.mean("largest_over_median", over_median, (LEVEL,), "largest magnitude over the median")
    some: NDArray[np.bool_] = np.asarray(massive.any(-1))
    out.mean("massive_share", some.astype(np.float64), (LEVEL,), "share of sequences with a massive activation")
    at_first: Floats = np.where(some, (massive & (position == 0)).sum(-1) / np.maximum(massive.sum(-1), 1), np.nan)
    out.mean("massive_at_position_0", at_first, (LEVEL,), "share of the massive activations that stand at position 0")
    add_overall(out, "massive_levels", some, "share of levels that have a massive activation")
    add_overall(
        out, "massive_at_position_0", at_first, "share of massive activations at position 0, mean over levels that have any"
    )
    add_overall(out, "largest_activation", _largest_level(largest[..., 0]), "largest magnitude of all levels")
    add_overall(
        out, "largest_over_median", _largest_level(over_median), "largest ratio of a magnitude to the median of its level"
    )


def _largest_level(values: Floats) -> Floats:
    """Largest over levels, NaN where no level has a value."""
    filled: Floats = np.where(np.isfinite(values), values, -np.inf).max(axis=1)
    return np.where(np.isfinite(filled), filled, np.nan)

"""Rows of the attention matrix, a few of each head: what a head looks at, seen directly.

**Quantities**, per layer and head, for about eight queries spaced by ratios over the positions that at least half of the sequences have:

- ``row``: mean over sequences of the query's weights, summed within bins of keys; ``row_sd``: standard deviation over sequences; ``row_example``: the row in one
  sequence, the first of the longest, whose token ids are ``example_token``;
- ``likeness`` of a head: how alike its rows are in two different texts. Two rows p and q of the same query, each scaled to sum to one, have
  ``sum_b sqrt(p_b q_b)`` (Bhattacharyya's coefficient); this is averaged over late queries (from 32 on; the last one in shorter text) and over all pairs of
  sequences. 1: the row is the same whatever the text says; 0: no bin is shared;
- ``likeness_other_heads``, per layer: the same for rows of two different heads in two different texts. What exceeds it is a head's own and not the layer's habit.

**Bins** (:mod:`gnomon.measure.row_bins`): every key by itself up to 64 tokens; beyond, the first eight keys and the last eight offsets by themselves and the keys between
in bins of about equal ratio. A bin's value is the *sum* of its weights, so that a row sums to one (less what learned sink logits take). NaN: the query sees
no key of the bin, or no sequence reaches the query.

**Intervals** of likeness are delete-one jackknife over sequences, since it is a mean over pairs.

**It cannot show** that position decides a row: uniform attention, and a head that reads position 0 alone, are as alike as rows can be. Bins that hold many keys hide which of
them is read and make rows more alike; eight queries are a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import HEAD, LAYER, POSITION, QUERY
from gnomon.kernels.quantities import Needs
from gnomon.measure.averaged import Averages, read_estimate
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.measure.row_bins import RowBins, row_bins
from gnomon.statistics import Estimate
from gnomon.statistics.jackknife import Jackknifed, nan_mean
from gnomon.statistics.values_only import wants_values_only

Floats = NDArray[np.floating]
KEY_BIN: Final = "key_bin"
LATE: Final = 32
TOO_FEW: Final = "fewer than two sequences reach the same late query"
ONE_HEAD: Final = "every layer has one head only, or fewer than two sequences reach the same late query"


class Rows(Measure):
    """A few rows of every head, and how alike they are over texts."""

    name: ClassVar[str] = "rows"
    title: ClassVar[str] = "Rows of every head"

    def __init__(self) -> None:
        self._bins: RowBins | None = None

    def needs(self, subject: Subject) -> Needs:
        """Nothing beyond log-denominators, which are always there; fixes queries and bins for these windows."""
        self._bins = _bins_of(subject)
        return Needs()

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Binned rows of one layer, ``[B, H, query, bin]``."""
        if self._bins is None:
            raise ValueError("`needs` must be called before `observe`: it fixes queries and bins")
        length, device = view.problem.length, view.lse.device
        bins = self._bins
        reached = torch.from_numpy(bins.queries[bins.queries < length]).to(device)
        rows = view.rows(reached).float()
        seen = view.mask.visible(reached, torch.arange(length, device=device))[:, None].float()
        binned = bins.sums(rows, reached).masked_fill(bins.sums(seen, reached) == 0, torch.nan)
        return {"row": torch.nn.functional.pad(binned, (0, 0, 0, len(bins.queries) - len(reached)), value=torch.nan)}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means and spreads of the rows, one example, and likeness with its interval."""
        rows, subject = observed.layers["row"], observed.subject
        bins = _bins_of(subject)
        out = Averages(subject.seed)
        _add_likeness(out, rows, bins.queries)
        if not wants_values_only():
            _add_rows(out, rows, subject)
        first, last, offset = bins.described()
        out.add("bin_first", first, (KEY_BIN,), "first key of the bin; none where the bin is an offset", "tokens")
        out.add("bin_last", last, (KEY_BIN,), "last key of the bin; none where the bin is an offset", "tokens")
        out.add(
            "bin_offset", offset, (KEY_BIN,), "offset that the bin holds, query - key; none where the bin holds keys", "tokens"
        )
        attrs = {
            "bins": bins.text(),
            "length": bins.length,
            "sequences": len(subject.windows),
            "missing": "the query sees no key of the bin, or no sequence reaches the query",
        }
        coords = {
            QUERY: (QUERY, bins.queries, {"long_name": "query position", "units": "tokens"}),
            KEY_BIN: np.arange(bins.count),
        }
        return out.dataset(attrs, coords)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """How alike rows are over texts: of the same head, and of different heads of a layer."""
        reasons = {"likeness": TOO_FEW, "likeness_other_heads": ONE_HEAD}
        return {
            name: read_estimate(dataset, f"overall_{name}", int(dataset[f"overall_{name}"].attrs["sequences"]), reason)
            for name, reason in reasons.items()
        }


def _bins_of(subject: Subject) -> RowBins:
    anatomy = subject.anatomy
    return row_bins(subject.laid_out, causal=anatomy.causal, num_heads=anatomy.num_layers * anatomy.num_heads)


def _add_rows(out: Averages, rows: Floats, subject: Subject) -> None:
    """Mean, spread and example, one layer at a time to keep memory small."""
    windows = subject.windows
    example = int(np.argmax(windows.lengths))
    dims = (LAYER, HEAD, QUERY, KEY_BIN)
    mean, spread = (np.empty(rows.shape[1:], dtype=np.float32) for _ in range(2))
    for layer in range(rows.shape[1]):
        values = rows[:, layer].astype(np.float64)
        count = np.isfinite(values).sum(0)
        mean[layer] = nan_mean(values, (0,))
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.nansum((values - mean[layer]) ** 2, 0)
            spread[layer] = np.where(count > 1, np.sqrt(squares / (count - 1)), np.nan)
    out.add("row", mean, dims, "weight of the query on the bin, mean over sequences")
    out.add("row_sd", spread, dims, "weight of the query on the bin, standard deviation over sequences")
    out.add("row_example", rows[example], dims, "weight of the query on the bin in one sequence", sequence=example)
    tokens = windows.tokens[example, : windows.lengths[example]]
    out.add("example_token", tokens, (POSITION,), "token ids of that sequence", sequence=example)


def _add_likeness(out: Averages, rows: Floats, queries: NDArray[np.int64]) -> None:
    """Likeness per head, of different heads per layer, and their means."""
    late = np.flatnonzero(queries >= LATE) if (queries >= LATE).any() else np.array([len(queries) - 1])
    roots = _roots(rows[:, :, :, late])
    reached = np.isfinite(roots).all(-1).reshape(len(roots), -1).any(1)
    roots = roots[reached]
    own, other = _likeness(roots)
    for name, found, dims, label in (
        ("likeness", own, (LAYER, HEAD), "likeness of a head's late rows in two texts"),
        ("likeness_other_heads", other, (LAYER,), "likeness of late rows of two heads of a layer in two texts"),
    ):
        _add(out, name, found, dims, label)
        cells = tuple(range(-len(dims), 0))
        _add(out, f"overall_{name}", found.mean(cells), (), f"{label}, mean over {' and '.join(f'{dim}s' for dim in dims)}")


def _add(out: Averages, name: str, found: Jackknifed, dims: tuple[str, ...], label: str) -> None:
    value, low, high = found.interval()
    out.add(name, value, dims, label, sequences=found.num_sequences)
    out.add(f"{name}_low", np.clip(low, 0, 1), dims, f"{label}, lower bound of the 95 % interval")
    out.add(f"{name}_high", np.clip(high, 0, 1), dims, f"{label}, upper bound of the 95 % interval")


def _roots(rows: Floats) -> Floats:
    """Square roots of rows scaled to sum to one; a row without weight, or beyond its sequence, is NaN throughout."""
    filled = np.nan_to_num(rows)
    total = filled.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(np.where(total > 0, filled / total, np.nan)))


def _likeness(roots: Floats) -> tuple[Jackknifed, Jackknifed]:
    """Likeness of each head ``[L, H]`` and of different heads ``[L]``, from ``roots [sequence, layer, head, query, bin]``."""
    number = len(roots)
    own: list[Jackknifed] = []
    others: list[Jackknifed] = []
    for layer in range(roots.shape[1]):
        part = np.swapaxes(roots[:, layer], 0, 1)  # head, sequence, query, bin
        there = np.isfinite(part).all(-1).astype(np.float32)
        filled = np.nan_to_num(part).reshape(len(part), number, -1)
        alike, pairs = filled @ np.swapaxes(filled, 1, 2), there @ np.swapaxes(there, 1, 2)
        every, counted = filled.sum(0), there.sum(0)
        own.append(_over_pairs(alike, pairs))
        others.append(_over_pairs(every @ every.T - alike.sum(0), np.round(counted @ counted.T - pairs.sum(0))))
    return _over_layers(own), _over_layers(others)


def _over_layers(found: list[Jackknifed]) -> Jackknifed:
    return Jackknifed(np.stack([one.value for one in found]), np.stack([one.without for one in found], 1))


def _over_pairs(alike: Floats, pairs: Floats) -> Jackknifed:
    """Sum of ``alike [..., S, S]`` over different sequences by the sum of ``pairs``, and both without each sequence in turn."""
    sums, counts = (_without(np.asarray(matrix, dtype=np.float64)) for matrix in (alike, pairs))
    return Jackknifed(sums[0], sums[1]) / Jackknifed(counts[0], counts[1])


def _without(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum over different sequences, and the same without each, sequence first."""
    different: NDArray[np.float64] = matrix * (1 - np.eye(matrix.shape[-1]))
    total = different.sum((-2, -1))
    mine = np.moveaxis(different.sum(-1) + different.sum(-2), -1, 0)
    return total, total - mine

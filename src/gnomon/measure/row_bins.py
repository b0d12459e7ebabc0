"""Which queries a row is shown of, and into which bins its keys fall.

A row of thousands of weights can neither be kept for every head nor be read. Up to 64 tokens every key has a bin of its own. Beyond, from left to right:

1. the first eight keys, each by itself: where sinks are;
2. the keys from 8 on, in bins whose edges grow by equal ratios (each at least one key wide), the same for every query, so that a key that many queries look at is a column;
3. the last eight offsets, 7 down to 0, each by itself: previous-token heads and their kind. In a bidirectional model, offsets 4 to -4, negative ones ahead of the query.

A key falls into one bin only: among the first eight it stays there, otherwise a near offset goes before the bins of keys. In a bidirectional model the last place of the window, where a
closing special token stands, is a bin by itself.

Queries are spaced by equal ratios from 3 to the last position that at least half of the sequences have, closing special tokens aside. Models of more than 2048 heads in all
keep 4 queries and 32 bins instead of 8 and 64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.corpus import Windows
from gnomon.measure.leakage_grid import usable_length

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
FIRST_QUERY: Final = 3
FIRST_KEYS: Final = 8
NEAR: Final = {True: tuple(range(7, -1, -1)), False: tuple(range(4, -5, -1))}
MANY_HEADS: Final = 2048
QUERIES: Final = (8, 4)
BINS: Final = (64, 32)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowBins:
    """Queries and bins of keys, common to all sequences, layers and heads.

    Attributes:
        queries: positions that attend, ascending.
        edges: first key of each bin of keys, ascending from 0.
        offsets: offsets with a bin of their own, after those of keys; none where every key has one.
        length: width of the windows.
    """

    queries: Ints
    edges: Ints
    offsets: Ints
    length: int

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.edges) + len(self.offsets)

    def sums(self, rows: Tensor, queries: Tensor) -> Tensor:
        """Sums of ``rows [..., query, key]`` of the given queries within each bin, ``[..., query, bin]``; each key is counted once."""
        keys = torch.arange(rows.shape[-1], device=rows.device)
        edges, offsets = (torch.from_numpy(array).to(rows.device) for array in (self.edges, self.offsets))
        place = torch.bucketize(keys, edges, right=True) - 1
        member = (place[:, None] == torch.arange(len(edges), device=rows.device)).to(rows.dtype)
        if not len(offsets):
            return rows @ member
        near_QR = queries[:, None] - offsets
        inside = (near_QR >= FIRST_KEYS) & (near_QR < rows.shape[-1])
        index = near_QR.clamp(0, rows.shape[-1] - 1).expand(*rows.shape[:-1], -1)
        near = rows.gather(-1, index).masked_fill(~inside, 0.0)
        apart = queries[:, None] - keys
        taken = (apart <= offsets.max()) & (apart >= offsets.min()) & (keys >= FIRST_KEYS)
        return torch.cat([rows.masked_fill(taken, 0.0) @ member, near], -1)

    def described(self) -> tuple[Floats, Floats, Floats]:
        """First key, last key and offset of each bin, NaN where it has none."""
        first, last, offset = np.full((3, self.count), np.nan)
        first[: len(self.edges)] = self.edges
        last[: len(self.edges)] = np.append(self.edges[1:], self.length) - 1
        offset[len(self.edges) :] = self.offsets
        return first, last, offset

    def text(self) -> str:
        """The bins in words."""
        if not len(self.offsets):
            return "every key by itself"
        between = len(self.edges) - FIRST_KEYS
        return (
            f"keys 0 to {FIRST_KEYS - 1} by themselves; later keys in {between} bins of about equal ratio; "
            f"offsets {self.offsets[0]} to {self.offsets[-1]} by themselves, unless the key is among the first {FIRST_KEYS}"
        )


def row_bins(windows: Windows, *, causal: bool, num_heads: int) -> RowBins:
    """Queries and bins for these windows and a model of so many heads in all layers."""
    many = num_heads > MANY_HEADS
    length, last = windows.length, usable_length(windows) - 1
    first = min(FIRST_QUERY, last)
    queries = np.unique(np.geomspace(max(first, 1), max(last, 1), QUERIES[many]).round().astype(np.int64))
    offsets = np.asarray(NEAR[causal], dtype=np.int64)
    if length <= BINS[many]:
        edges, offsets = np.arange(length), offsets[:0]
    else:
        room = BINS[many] - FIRST_KEYS - len(offsets) - (not causal)
        ratios = _edges(FIRST_KEYS, length - (not causal), room)
        edges = np.concatenate([np.arange(FIRST_KEYS), ratios, [length - 1] * (not causal)])
    return RowBins(queries=queries.clip(0, max(last, 0)), edges=edges.astype(np.int64), offsets=offsets, length=length)


def _edges(start: int, stop: int, count: int) -> Ints:
    """First keys of at most ``count`` bins of ``range(start, stop)``, of equal ratio but at least one key wide."""
    edges = [start]
    while len(edges) < count and edges[-1] + 1 < stop:
        ratio = (stop / edges[-1]) ** (1 / (count - len(edges) + 1))
        edges.append(max(edges[-1] + 1, round(edges[-1] * ratio)))
    return np.asarray(edges, dtype=np.int64)

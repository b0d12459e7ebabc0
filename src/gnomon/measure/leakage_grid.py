"""Where leakage is looked for: a grid of query positions, evenly spaced within three bands, and of offsets.

A variance over positions means nothing without saying which positions: here every position of a band counts the same.
The bands are 2-32 (early; every position), 32-128 (middle; every fourth) and from 128 to the end (late; 24
positions); they are spaced by ratios, since position fades by ratios (a denominator grows like ``log i``). Offsets
are powers of two; an offset counts at a position when the key lies at position 1 or later: the token at position 0 is
an anchor, not content, its logits are unlike any other key's, and reading it is another measure's affair
(:mod:`gnomon.measure.reads`).

The grid ends where half of the sequences still have a token that is not a closing special one, less a few positions kept
back as the reference of the counterfactual (:mod:`gnomon.measure.leakage_logits`). Sequences that end before a band's last
position do not count in that band. Claims A2 to A4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnomon.corpus import Windows

Ints = NDArray[np.int64]

BANDS = ("early", "middle", "late")
BAND_EDGES = (2, 32, 128)
OFFSETS = (1, 2, 4, 8, 16, 32)
POSITIONS_PER_BAND = (30, 24, 24)
NUM_REFERENCES = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class LeakageGrid:
    """Positions and offsets.

    Attributes:
        queries: positions that attend, ascending, ``[query]``.
        band: index of each query's band, ``[query]``.
        offsets: distances back to the key, ``[offset]``.
        limit: positions below it are within at least half of the sequences.
    """

    queries: Ints
    band: Ints
    offsets: Ints
    limit: int

    def of_band(self, band: int) -> Ints:
        """Indices into ``queries`` of one band."""
        return np.flatnonzero(self.band == band)

    @property
    def references(self) -> int:
        """How many positions are kept back as the reference."""
        return _num_references(self.limit)


def leakage_grid(windows: Windows) -> LeakageGrid:
    """The grid for these windows; a band beyond their length has no queries."""
    return grid_of_length(usable_length(windows))


def grid_of_length(limit: int) -> LeakageGrid:
    """The grid for sequences of ``limit`` usable positions."""
    last = max(limit - _num_references(limit), BAND_EDGES[0] + 1)
    queries, bands = [], []
    highs = (*BAND_EDGES[1:], max(last, BAND_EDGES[-1]))
    for index, (low, high, most) in enumerate(zip(BAND_EDGES, highs, POSITIONS_PER_BAND, strict=True)):
        stop = min(high, last)
        if stop > low:
            places = np.unique(low + np.arange(most) * (stop - low) // most)
            queries.append(places)
            bands.append(np.full(len(places), index, dtype=np.int64))
    empty = np.zeros(0, dtype=np.int64)
    return LeakageGrid(
        queries=np.concatenate([empty, *queries]),
        band=np.concatenate([empty, *bands]),
        offsets=np.asarray(OFFSETS, dtype=np.int64),
        limit=limit,
    )


def usable_length(windows: Windows) -> int:
    """The number of positions, closing special tokens aside, that at least half of the sequences have."""
    ordinary = ~windows.special & (np.arange(windows.length) < windows.lengths[:, None])
    ordinary[:, 0] = True
    ends = windows.length - np.argmax(ordinary[:, ::-1], axis=1)
    return int(np.sort(ends)[::-1][(len(ends) - 1) // 2])


def _num_references(limit: int) -> int:
    return max(1, min(NUM_REFERENCES, limit // 8))

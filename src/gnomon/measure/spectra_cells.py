"""Spectra and scalograms on a fixed small grid, so that texts of different length can be averaged and kept.

A spectrum of any number of bins is carried over to ``NUM_FREQUENCIES`` cells between 0 and Nyquist, a scale of any number of wavelet
coefficients to ``NUM_PLACES`` cells between the first and the last token: each bin or coefficient is an interval of the axis, and what it
holds is shared among the cells by overlap, so that sums are kept exactly. These are pictures for a report; statistics are computed before.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.measure.spectra_paper import DEEPEST_LEVEL, deepest_level, power_spectrum
from gnomon.measure.wavelets import decompose

NUM_FREQUENCIES = 32
NUM_PLACES = 16


def compact_spectrum(signal: Tensor) -> Tensor:
    """Share of the power in each cell of frequency, ``[..., NUM_FREQUENCIES]``, by the ``paper`` convention."""
    power = power_spectrum(signal)
    num_bins = power.shape[-1]
    edges = np.clip((np.arange(num_bins + 1) - 0.5) / (num_bins - 1), 0, 1)
    cells = power @ _overlap(tuple(edges), NUM_FREQUENCIES).to(power)
    return cells / cells.sum(-1, keepdim=True)


def compact_scalogram(signal: Tensor) -> Tensor:
    """Share of the energy of all details in each scale D1.. and cell of position, ``[..., DEEPEST_LEVEL, NUM_PLACES]``.

    NaN for scales that the length does not allow.
    """
    level = deepest_level(signal.shape[-1])
    out = signal.new_full((*signal.shape[:-1], DEEPEST_LEVEL, NUM_PLACES), torch.nan)
    for scale, detail in enumerate(reversed(decompose(signal, level)[1:])):
        edges = np.linspace(0, 1, detail.shape[-1] + 1)
        out[..., scale, :] = detail.square() @ _overlap(tuple(edges), NUM_PLACES).to(detail)
    return out / out.nansum((-2, -1), keepdim=True)


@lru_cache(maxsize=256)
def _overlap(edges: tuple[float, ...], num_cells: int) -> Tensor:
    """Which part of each interval between ``edges`` falls into each of ``num_cells`` equal cells of 0..1, ``[interval, cell]``."""
    low, high = np.asarray(edges[:-1])[:, None], np.asarray(edges[1:])[:, None]
    grid = np.linspace(0, 1, num_cells + 1)
    shared: NDArray[np.float64] = np.minimum(high, grid[None, 1:]) - np.maximum(low, grid[None, :-1])
    return torch.from_numpy(np.clip(shared, 0, None) / (high - low))

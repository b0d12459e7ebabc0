"""Discrete wavelet transforms of many signals at once.

A wavelet transform splits a signal into an approximation and details of ever coarser scale: ``cA_L, cD_L, ..., cD_1``, where ``cD_1``
holds the finest. One level is a pair of filters (low-pass, high-pass) followed by dropping every other sample; the inverse puts zeros
back and filters again. Heads times texts are many short signals, so everything here works along the last axis of a tensor of any shape.

Two engines give the same numbers to rounding: PyWavelets for tensors on the CPU, and strided sums over the filter's taps in torch for tensors
on an accelerator. The boundary follows PyWavelets: ``symmetric`` mirrors the signal (half-sample) and returns a few extra coefficients;
``periodization`` treats it as periodic, so that a signal whose length is a multiple of ``2 ** level`` is transformed by an orthogonal
matrix, whose energies add up to the signal's. With ``symmetric`` they do not: edge samples are counted more than once.

Energies and entropies of coefficients say how unevenly a signal's variation is spread over scale and place. They cannot say that
something acts like a wavelet: every signal whatever has such a transform and is rebuilt from it exactly (claim C6).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pywt
import torch
from numpy.typing import NDArray
from torch import Tensor

Mode = Literal["symmetric", "periodization"]
WAVELET = "db2"


class Filters(NamedTuple):
    """The four filters of a wavelet: decomposition and reconstruction, low-pass and high-pass."""

    decompose_low: NDArray[np.float64]
    decompose_high: NDArray[np.float64]
    rebuild_low: NDArray[np.float64]
    rebuild_high: NDArray[np.float64]


@lru_cache
def filters(wavelet: str = WAVELET) -> Filters:
    """Filters of a wavelet by its PyWavelets name."""
    return Filters(*(np.asarray(taps, dtype=np.float64) for taps in pywt.Wavelet(wavelet).filter_bank))


def max_level(length: int, wavelet: str = WAVELET) -> int:
    """Deepest level at which at least one coefficient is free of the boundary: ``floor(log2(n / (taps - 1)))``."""
    return int(pywt.dwt_max_level(length, len(filters(wavelet).decompose_low)))


def decompose(signal: Tensor, level: int, mode: Mode = "symmetric", wavelet: str = WAVELET) -> list[Tensor]:
    """Coefficients ``[cA_level, cD_level, ..., cD_1]`` along the last axis, in the dtype and on the device of the signal.

    Args:
        signal: real signals along the last axis, of at least two samples.
        level: how many times the approximation is split; beyond :func:`max_level` every coefficient feels the boundary.
        mode: what stands beyond the ends.
        wavelet: PyWavelets name.
    """
    if signal.device.type == "cpu":
        coefficients = pywt.wavedec(signal.numpy(), wavelet, mode=mode, level=level, axis=-1)
        return [torch.from_numpy(np.ascontiguousarray(c)) for c in coefficients]
    return decompose_torch(signal, level, mode, wavelet)


def rebuild(coefficients: list[Tensor], mode: Mode = "symmetric", wavelet: str = WAVELET) -> Tensor:
    """The inverse of :func:`decompose`; a signal of odd length comes back with one sample too many, to be cropped."""
    if coefficients[0].device.type == "cpu":
        signal = pywt.waverec([c.numpy() for c in coefficients], wavelet, mode=mode, axis=-1)
        return torch.from_numpy(np.ascontiguousarray(signal))
    return rebuild_torch(coefficients, mode, wavelet)


def decompose_torch(signal: Tensor, level: int, mode: Mode = "symmetric", wavelet: str = WAVELET) -> list[Tensor]:
    """:func:`decompose` in torch alone, on any device."""
    bank = filters(wavelet)
    approximation, details = signal, []
    for _ in range(level):
        extended = approximation[..., _extension(approximation, len(bank.decompose_low), mode)]
        details.append(_filtered(extended, bank.decompose_high))
        approximation = _filtered(extended, bank.decompose_low)
    return [approximation, *details[::-1]]


def rebuild_torch(coefficients: list[Tensor], mode: Mode = "symmetric", wavelet: str = WAVELET) -> Tensor:
    """:func:`rebuild` in torch alone, on any device."""
    bank = filters(wavelet)
    taps = len(bank.rebuild_low)
    approximation = coefficients[0]
    for detail in coefficients[1:]:
        spread = _spread(approximation[..., : detail.shape[-1]], bank.rebuild_low) + _spread(detail, bank.rebuild_high)
        periodic = mode == "periodization"
        approximation = (
            _wrap(spread, 2 * detail.shape[-1], taps) if periodic else spread[..., taps - 2 : spread.shape[-1] - taps + 2]
        )
    return approximation


@lru_cache
def transform_matrix(length: int, level: int, wavelet: str = WAVELET) -> NDArray[np.float64]:
    """The orthogonal matrix of the periodized transform: ``coefficients = matrix @ signal``, ordered cA_level, cD_level, ..., cD_1."""
    if length % 2**level:
        raise ValueError(
            f"`length` must be a multiple of 2 ** level = {2**level}, got {length}; crop the signal or lower the level"
        )
    columns = pywt.wavedec(np.eye(length), wavelet, mode="periodization", level=level, axis=0)
    return np.concatenate(columns, axis=0)


def scale_slices(length: int, level: int) -> dict[str, slice]:
    """Where each scale lies in the rows of :func:`transform_matrix`: ``A3, D3, D2, D1`` for level 3."""
    sizes = [length >> level, *(length >> depth for depth in range(level, 0, -1))]
    ends = np.cumsum(sizes)
    names = [f"A{level}", *(f"D{depth}" for depth in range(level, 0, -1))]
    return {name: slice(int(end - size), int(end)) for name, size, end in zip(names, sizes, ends, strict=True)}


def energy_entropy(coefficients: Tensor) -> Tensor:
    """Entropy in nats of the energy of coefficients along the last axis, normalised to one; NaN where there is no energy."""
    energy = coefficients.square()
    share = energy / energy.sum(-1, keepdim=True)
    terms: Tensor = torch.special.entr(share)
    return terms.sum(-1)


def _filtered(extended: Tensor, taps: NDArray[np.float64]) -> Tensor:
    """Convolution with ``taps``, every other sample: a sum over the taps, which no device rounds more coarsely than the dtype says."""
    count = (extended.shape[-1] - len(taps)) // 2 + 1
    parts = [float(tap) * extended[..., place : place + 2 * count - 1 : 2] for place, tap in enumerate(taps[::-1])]
    return torch.stack(parts).sum(0)


def _spread(coefficients: Tensor, taps: NDArray[np.float64]) -> Tensor:
    """Each coefficient spread over the taps, two samples apart from its neighbours': the transpose of :func:`_filtered` but for the taps' order."""
    count = coefficients.shape[-1]
    out = coefficients.new_zeros((*coefficients.shape[:-1], 2 * (count - 1) + len(taps)))
    for place, tap in enumerate(taps):
        out[..., place : place + 2 * count - 1 : 2] += float(tap) * coefficients
    return out


def _extension(signal: Tensor, taps: int, mode: Mode) -> Tensor:
    """Indices that extend a signal beyond its ends so that a strided convolution gives PyWavelets' coefficients."""
    length = signal.shape[-1]
    if mode == "periodization":
        even = length + length % 2
        index = torch.arange(1 - taps // 2, even + taps // 2 - 1, device=signal.device) % even
        return index.clamp_max(length - 1)
    index = torch.arange(2 - taps, length + taps - 1 + length % 2, device=signal.device)
    folded = index % (2 * length)
    return torch.where(folded < length, folded, 2 * length - 1 - folded)


def _wrap(spread: Tensor, length: int, taps: int) -> Tensor:
    """Fold the overhang of a periodic reconstruction back onto its other end."""
    start = taps // 2 - 1
    index = (torch.arange(spread.shape[-1], device=spread.device) - start) % length
    whole = spread.new_zeros((*spread.shape[:-1], length))
    return whole.index_add_(-1, index, spread)

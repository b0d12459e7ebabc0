"""Lines and harmonics in signals along position.

- ``line_share``: how much of a complex signal is one tone, ``|sum w z e^{-i f t}|^2 / (sum w * sum w |z|^2)`` under a Hann window w: 1 for that
  tone alone, ``sum w^2 / (sum w)^2`` (about 1.5 / T) for white noise;
- ``line_contrast``: power of real signals at given frequencies against the geometric mean of the powers half-way (geometrically) to the
  neighbours below and above, ``(on - off) / (on + off)``: 1 for lines alone, 0 for a smooth spectrum, also one that falls like a power;
- ``harmonic_power``: power at f, 2f, 3f, ... over a whole number of periods, where the transform is exact and nothing leaks;
- ``distortion``: total harmonic distortion, ``sqrt(power at 2f, 3f, ... / power at f)``: 0 for a linear map of a tone.

A harmonic shows that something is not linear. It does not show that a model uses it. Claims P1 and P2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

RESOLUTION = 4.0
FINITE_STEP = 1e-2


def line_share(signal: Tensor, frequency: Tensor) -> Tensor:
    """Share of one tone in complex signals along the last axis.

    Args:
        signal: complex, ``[..., T]``.
        frequency: radians per token, broadcastable to ``[...]``.
    """
    length = signal.shape[-1]
    window = _hann(signal)
    time = torch.arange(length, device=signal.device, dtype=window.dtype)
    tone = torch.polar(torch.ones_like(time), -frequency.to(window)[..., None] * time)
    found: Tensor = (window * signal * tone).sum(-1).abs().square()
    return found / (window.sum() * (window * signal.abs().square()).sum(-1))


def line_power(signal: Tensor, frequencies: Tensor) -> Tensor:
    """Power of real signals at each frequency, mean removed, under a Hann window, ``[..., frequency]``."""
    window = _hann(signal)
    time = torch.arange(signal.shape[-1], device=signal.device, dtype=window.dtype)
    phase = frequencies.to(window)[:, None] * time
    centred = (signal - signal.mean(-1, keepdim=True)) * window
    return (centred @ torch.cos(phase).T).square() + (centred @ torch.sin(phase).T).square()


def resolved_frequencies(frequencies: Sequence[float], length: int) -> tuple[Tensor, Tensor]:
    """The frequencies that a window of ``length`` tells apart from their neighbours and from 0, and the places around them.

    A frequency counts when its distance to the next lower one is at least ``RESOLUTION`` bins of ``2 pi / length``. Places are half-way, geometrically,
    to the next lower frequency and as far above.

    Returns:
        Frequencies ``[F]`` and places ``[2, F]``, below and above.
    """
    bin_width = 2 * math.pi / length
    ordered = sorted((f for f in frequencies if 0 < f <= math.pi), reverse=True)
    lines, steps = [], []
    for index, frequency in enumerate(ordered):
        below = ordered[index + 1] if index + 1 < len(ordered) else frequency / 2
        if frequency - below < RESOLUTION * bin_width:
            break
        lines.append(frequency)
        steps.append(math.sqrt(frequency / below))
    found, step = torch.tensor(lines, dtype=torch.float64), torch.tensor(steps, dtype=torch.float64)
    return found, torch.stack([found / step, found * step])


def line_contrast(signal: Tensor, lines: Tensor, around: Tensor, flattest: float = 1e-5) -> Tensor:
    """Contrast of power on lines against around them, ``[...]`` for signals ``[..., feature, T]`` summed over features.

    NaN where there are no lines, or where the signals vary by less than ``flattest`` of their size (rounding).
    """
    if not len(lines):
        return torch.full_like(signal[..., 0, 0], torch.nan)
    on, below, above = (line_power(signal, places).sum(-2) for places in (lines, *around))
    on, off = on.sum(-1), torch.sqrt(below * above).sum(-1)
    return torch.where(relative_variation(signal) > flattest, (on - off) / (on + off), torch.nan)


def relative_variation(signal: Tensor) -> Tensor:
    """Root mean square change along position over root mean square size, of signals ``[..., feature, T]``."""
    change = (signal - signal.mean(-1, keepdim=True)).square().sum((-2, -1))
    return torch.sqrt(change / signal.square().sum((-2, -1)))


def harmonic_power(signal: Tensor, period: int, num_harmonics: int) -> Tensor:
    """Power at the first harmonics of ``2 pi / period``, summed over features, ``[..., num_harmonics]``; NaN beyond Nyquist.

    Args:
        signal: ``[..., T, feature]`` with T a multiple of ``period``.
        period: tokens per period.
        num_harmonics: how many, the fundamental included.
    """
    length = signal.shape[-2]
    if length % period:
        raise ValueError(f"`signal` must span whole periods of {period}, got {length} positions; crop it")
    power = torch.fft.rfft(signal.double(), dim=-2).abs().square().sum(-1)
    out: Tensor = power.new_full((*power.shape[:-1], num_harmonics), torch.nan)
    for harmonic in range(1, num_harmonics + 1):
        place = harmonic * (length // period)
        if place < power.shape[-1]:
            out[..., harmonic - 1] = power[..., place]
    return out


def distortion(power: Tensor) -> Tensor:
    """Total harmonic distortion of powers by harmonic along the last axis."""
    above = power[..., 1:].nansum(-1)
    return torch.sqrt(above / power[..., 0])


def linearised(function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """``function`` replaced by its tangent at the mean over positions (axis -2) of ``values``, by central differences."""
    centre = values.mean(-2, keepdim=True).expand_as(values).contiguous()
    change = values - centre
    ahead, behind = function(centre + FINITE_STEP * change), function(centre - FINITE_STEP * change)
    return function(centre) + (ahead - behind) / (2 * FINITE_STEP)


def rotate(vectors: Tensor, pairs: Tensor, angle: float) -> Tensor:
    """Turn each pair of features of ``vectors [..., D]`` by ``angle``; ``pairs [P, 2]`` names the features, others stay."""
    turned = vectors.clone()
    first, second = vectors[..., pairs[:, 0]], vectors[..., pairs[:, 1]]
    turned[..., pairs[:, 0]] = first * math.cos(angle) - second * math.sin(angle)
    turned[..., pairs[:, 1]] = first * math.sin(angle) + second * math.cos(angle)
    return turned


def _hann(signal: Tensor) -> Tensor:
    dtype = signal.real.dtype
    return torch.hann_window(signal.shape[-1], periodic=True, dtype=dtype, device=signal.device)

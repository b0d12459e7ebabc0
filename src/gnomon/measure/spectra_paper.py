"""The ``paper`` convention: spectral and wavelet figures of attention as published tables have them.

The signal of a head on one text of n tokens is ``a(t) = (1/n) * sum over queries q of a_qt``, the attention that key t receives. (The
mean over the keys of a query is 1/n whatever the head does.) It adds up to one, unless a learned sink takes a share.

- power P: Hann window (symmetric), zeros to the next power of two, one-sided ``|rfft|^2`` with DC, nothing removed;
- low, mid and high share of the sum of P: up to 0.25 of Nyquist, up to 0.75, and beyond, the edges belonging to the lower band;
- selectivity: ``max P / (sum P - max P)``, from 0 up;
- spectral entropy: of ``P / sum P`` in nats, at most ln of the number of bins;
- positional entropy: of ``a / sum a`` in nats, at most ln n;
- wavelet entropy: db2, symmetric boundary; per scale, entropy in nats of the squared coefficients normalised within the scale;
- reconstruction error: ``|a - rebuilt| / |a|`` at the deepest level the text allows, up to 5: rounding, for every signal whatever;
- window entropy: entropy of a within each window of 16, 32 or 64 positions, renormalised, over ln of the window, 0 to 1; their mean;
- variation: standard deviation over mean of a under the window, which is the signal that the spectrum sees.

What they cannot show. Selectivity and spectral entropy mostly restate how uneven the signal is. A peaked signal has a flat spectrum, so
positional and spectral entropy are negatively related in every null too. The window is zero at position 0, so the spectrum never sees the
sink, which positional entropy does. Everything depends on n, and selectivity on n relative to the padded length, so lengths are never
pooled without saying so. What is published leaves conventions open; those above reproduce the published relations between metrics.
Claims C1, C2, C3, C6, C7.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gnomon.measure.wavelets import decompose, energy_entropy, max_level, rebuild

WINDOWS = (16, 32, 64)
BAND_EDGES = (0.25, 0.75)
DEEPEST_LEVEL = 5
SCALARS = (
    "spectral_entropy",
    "selectivity",
    "low_share",
    "mid_share",
    "high_share",
    "positional_entropy",
    "variation",
)


def power_spectrum(signal: Tensor) -> Tensor:
    """One-sided power of Hann-windowed, zero-padded signals along the last axis, DC included."""
    spectrum: Tensor = torch.fft.rfft(_windowed(signal), n=padded_length(signal.shape[-1]))
    return spectrum.abs().square()


def _windowed(signal: Tensor) -> Tensor:
    window: Tensor = torch.hann_window(signal.shape[-1], periodic=False, dtype=signal.dtype, device=signal.device)
    return signal * window


def padded_length(length: int) -> int:
    """The next power of two, the length itself if it is one."""
    return 1 << (length - 1).bit_length()


def band_shares(power: Tensor) -> Tensor:
    """Shares of low, mid and high frequencies, ``[..., 3]``, adding up to one; NaN where there is no power."""
    frequency = torch.linspace(0, 1, power.shape[-1], dtype=power.dtype, device=power.device)
    low, high = BAND_EDGES
    bands = torch.stack([frequency <= low, (frequency > low) & (frequency <= high), frequency > high], -1)
    return power @ bands.to(power) / power.sum(-1, keepdim=True)


def selectivity(power: Tensor) -> Tensor:
    """The largest bin against all others, ``max / (sum - max)``; NaN where there is no power, infinite for a single bin."""
    largest = power.amax(-1)
    return largest / (power.sum(-1) - largest)


def entropy(weights: Tensor) -> Tensor:
    """Entropy in nats of non-negative weights along the last axis, normalised to one; NaN where they are all zero."""
    terms: Tensor = torch.special.entr(weights / weights.sum(-1, keepdim=True))
    return terms.sum(-1)


def window_entropy(signal: Tensor, width: int) -> Tensor:
    """Mean over all windows of ``width`` samples of the entropy within, as a share of ln width; windows without weight are left out."""
    if signal.shape[-1] < width:
        return torch.full_like(signal[..., 0], torch.nan)
    total = signal.unfold(-1, width, 1).sum(-1)
    plogp = torch.special.entr(signal).unfold(-1, width, 1).sum(-1)
    within = (plogp / total + total.log()) / math.log(width)
    return torch.where(total > 0, within, torch.nan).nanmean(-1)


def reconstruction_error(signal: Tensor) -> Tensor:
    """Relative Euclidean error of transforming and rebuilding at the deepest level, in the dtype of ``signal``."""
    rebuilt = rebuild(decompose(signal, deepest_level(signal.shape[-1])))[..., : signal.shape[-1]]
    error: Tensor = torch.linalg.vector_norm(signal - rebuilt, dim=-1) / torch.linalg.vector_norm(signal, dim=-1)
    return error


def deepest_level(length: int) -> int:
    """How deep signals of this length are transformed, at most ``DEEPEST_LEVEL``."""
    return min(DEEPEST_LEVEL, max_level(length))


def wavelet_entropies(signal: Tensor) -> Tensor:
    """Entropy per scale for every possible depth, ``[..., 2, DEEPEST_LEVEL]``: first the details D1.., then the approximations A1..

    Details do not depend on the depth of the transform, approximations do; keeping both lets the depth be fixed afterwards from the
    shortest text. Scales deeper than the signal allows are NaN.
    """
    out = signal.new_full((*signal.shape[:-1], 2, DEEPEST_LEVEL), torch.nan)
    approximation = signal
    for level in range(deepest_level(signal.shape[-1])):
        approximation, detail = decompose(approximation, 1)
        out[..., 0, level] = energy_entropy(detail)
        out[..., 1, level] = energy_entropy(approximation)
    return out


def describe(signal: Tensor) -> dict[str, Tensor]:
    """Every figure of the convention for signals along the last axis, one text length at a time.

    Args:
        signal: attention received per key over the number of queries, ``[..., n]``, cropped to the real tokens, float64.

    Returns:
        ``SCALARS``, ``window_entropy [..., 3]``, ``wavelet_entropy [..., 2, 5]`` and the
        ``reconstruction_error`` in single and in double precision. Signals without weight give NaN throughout.
    """
    power, windowed = power_spectrum(signal), _windowed(signal)
    shares = band_shares(power)
    return {
        "spectral_entropy": entropy(power),
        "selectivity": selectivity(power),
        "low_share": shares[..., 0],
        "mid_share": shares[..., 1],
        "high_share": shares[..., 2],
        "positional_entropy": entropy(signal),
        "variation": windowed.std(-1, unbiased=False) / windowed.mean(-1),
        "window_entropy": torch.stack([window_entropy(signal, width) for width in WINDOWS], -1),
        "wavelet_entropy": wavelet_entropies(signal),
        "reconstruction_error": reconstruction_error(signal.float()).double(),
        "reconstruction_error_float64": reconstruction_error(signal),
    }

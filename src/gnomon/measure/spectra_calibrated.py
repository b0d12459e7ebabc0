"""The ``calibrated`` convention: what the frequencies and scales of attention say beyond a null.

The signal is taken from the mask-free rectangle of the attention matrix: ``a(t) = mean over the last quarter of the queries of a_qt`` for
the keys ``1 <= t <= K``, renormalised to one. Every one of these keys is visible to every one of these queries, so the staircase of the
causal mask is out; so are the sink at position 0 and the local diagonal. K is 64 (any multiple of 8 will do) in every text, however long,
so that texts of different length can be averaged; a text needs ``n >= 2 K`` tokens.

Statistics of one signal: power under a periodic Hann window after the mean is removed, not padded, as shares of low, mid and high
frequencies (below 0.25, to 0.75, and from 0.75 of Nyquist), spectral entropy and selectivity; energy shares of the mean-removed signal in
the scales A3, D3, D2, D1 of the periodized db2 transform, which is orthogonal, so that they add up to one.

The null shuffles the K keys. One permutation serves every head and every text of a draw: the hypothesis is that the keys are exchangeable
*jointly* over texts and heads, which holds for position-free attention even when a fixed embedding of each position makes texts alike, and the
draws of all heads belong together, so that the largest deviation over heads gives a family-wise p-value. Reported are value, null, their
difference with its standard error over texts, p-values per head, and the amplitude (coefficient of variation of a): shares ignore
amplitude, and a head may be far from its null at an amplitude of no consequence. Claims C1, C2, C3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.kernels.problem import MaskStructure
from gnomon.measure.spectra_paper import band_shares, entropy, selectivity
from gnomon.measure.wavelets import scale_slices, transform_matrix
from gnomon.statistics import benjamini_hochberg, holm, permutation_p

NUM_KEYS = 64
LEVEL = 3
NUM_PERMUTATIONS = 199
SPECTRAL = ("low_share", "mid_share", "high_share", "spectral_entropy", "selectivity")
SCALES = ("A3", "D3", "D2", "D1")
STATISTICS = (*SPECTRAL, *SCALES)
# Weights come in float32: a signal whose variation is below this share of its mean is rounding.
FLATTEST = 1e-6
_CHUNK = 1 << 22


@dataclass(frozen=True, kw_only=True)
class PermutationTest:
    """Values and their permutation null; the first axis of each array is the statistic, in the order of ``STATISTICS``.

    Attributes:
        value: per text and head, ``[statistic, sequence, layer, head]``.
        null: mean over permutations, the same shape.
        p: two-sided, of the mean over texts, ``[statistic, layer, head]``.
        p_holm, p_bh: corrected over all heads (Holm; Benjamini-Hochberg).
        p_family: chance that the largest standardised deviation over all heads is as large.
    """

    value: NDArray[np.float64]
    null: NDArray[np.float64]
    p: NDArray[np.float64]
    p_holm: NDArray[np.float64]
    p_bh: NDArray[np.float64]
    p_family: NDArray[np.float64]


def late_queries(lengths: Tensor, num_keys: int, limit: int) -> Tensor:
    """The queries of the last quarters of all texts long enough, thinned evenly to at most about ``limit`` per text.

    Args:
        lengths: real tokens of each text of the batch.
        num_keys: K; texts shorter than ``2 * num_keys`` are passed over.
        limit: how many queries of a text are enough.
    """
    wanted: set[int] = set()
    for length in {int(n) for n in lengths.tolist() if n >= 2 * num_keys}:
        first = first_late_query(length)
        wanted.update(range(first, length, max(1, (length - first) // limit)))
    return torch.tensor(sorted(wanted), dtype=torch.long)


def first_late_query(length: int) -> int:
    """Where the last quarter of the queries begins: ``q >= 3 n / 4``."""
    return -(-3 * length // 4)


def rectangle_signal(rows: Tensor, queries: Tensor, mask: MaskStructure, num_keys: int) -> Tensor:
    """Mean-over-queries signal of the mask-free rectangle, renormalised, ``[B, H, num_keys]``.

    NaN for texts that are too short, that have a key hidden from one of the queries, or whose weights there are all zero.

    Args:
        rows: weights of ``queries`` over all keys, ``[B, H, R, T]``.
        queries: positions of the rows.
        mask: which keys a query sees.
        num_keys: K.
    """
    lengths = mask.lengths.to(rows.device)
    start = torch.div(3 * lengths + 3, 4, rounding_mode="floor")
    late_BR = (queries[None] >= start[:, None]) & (queries[None] < lengths[:, None])
    first, _ = mask.key_range(queries)
    whole_B = ((first[None] <= 1) | ~late_BR).all(1) & late_BR.any(1) & (lengths >= 2 * num_keys)
    block = torch.where(late_BR[:, None, :, None], rows[..., 1 : num_keys + 1], 0.0)
    signal = block.double().sum(2)
    signal = signal / signal.sum(-1, keepdim=True)
    return torch.where(whole_B[:, None, None], signal, torch.nan)


def statistics_of(signal: Tensor) -> Tensor:
    """Every statistic of signals along the last axis, ``[..., statistic]``; NaN for a signal without variation."""
    length = signal.shape[-1]
    centred = signal - signal.mean(-1, keepdim=True)
    power = calibrated_power(signal)
    spectral = [*band_shares(power).unbind(-1), entropy(power), selectivity(power)]
    energy = (centred @ torch.from_numpy(transform_matrix(length, LEVEL)).to(centred).T).square()
    total = energy.sum(-1)
    scales = [energy[..., where].sum(-1) / total for where in scale_slices(length, LEVEL).values()]
    return torch.stack([*spectral, *scales], -1)


def calibrated_power(signal: Tensor) -> Tensor:
    """One-sided power of the mean-removed signal under a periodic Hann window, not padded."""
    window = torch.hann_window(signal.shape[-1], periodic=True, dtype=signal.dtype, device=signal.device)
    spectrum: Tensor = torch.fft.rfft((signal - signal.mean(-1, keepdim=True)) * window)
    return spectrum.abs().square()


def amplitude(signal: Tensor) -> Tensor:
    """Coefficient of variation of a signal along the last axis; 0 for a flat one."""
    return signal.std(-1, unbiased=False) / signal.mean(-1)


def permutation_test(
    signals: NDArray[np.floating], *, num_permutations: int = NUM_PERMUTATIONS, seed: int = 0
) -> PermutationTest:
    """Test every head's signals against shuffled keys.

    Args:
        signals: ``[sequence, layer, head, K]``, NaN where a text has none.
        num_permutations: draws of the null; 199 allow a two-sided p of 0.01.
        seed: of the permutations.
    """
    shape = signals.shape[:-1]
    signal = torch.from_numpy(np.ascontiguousarray(signals, dtype=np.float32))
    usable = torch.isfinite(signal).all(-1) & (amplitude(signal) > FLATTEST)
    signal = torch.where(usable[..., None], signal, torch.nan)
    generator = torch.Generator().manual_seed(seed)
    orders = torch.stack([torch.randperm(signal.shape[-1], generator=generator) for _ in range(num_permutations)])
    value = statistics_of(signal.double())
    draws = np.empty((num_permutations, len(STATISTICS), *shape[1:]))
    null = torch.zeros((*shape, len(STATISTICS)), dtype=torch.float64)
    step = max(1, _CHUNK // max(1, math.prod(signal.shape[1:])))
    for text in range(0, len(orders), step):
        shuffled = signal[..., orders[text : text + step]]  # sequence layer head draw K
        drawn = statistics_of(shuffled)
        null += drawn.double().sum(-2)
        draws[text : text + step] = drawn.double().nanmean(0).permute(2, 3, 0, 1).numpy()
    return _tested(value.movedim(-1, 0).numpy(), (null / num_permutations).movedim(-1, 0).numpy(), draws)


def _tested(value: NDArray[np.float64], null: NDArray[np.float64], draws: NDArray[np.float64]) -> PermutationTest:
    """P-values of text means against the draws of the same means."""
    with np.errstate(invalid="ignore"):
        count = np.isfinite(value).sum(1)
        observed = np.where(count > 0, np.nansum(value, 1) / np.maximum(count, 1), np.nan)
        p = np.asarray(permutation_p(observed, draws, tail="both"), dtype=np.float64)
        pooled = np.concatenate([draws, observed[None]])
        centre, spread = pooled.mean(0), pooled.std(0)
        deviation, deviations = np.abs(observed - centre) / spread, np.abs(draws - centre) / spread
    largest = np.nanmax(np.where(np.isfinite(deviations), deviations, 0.0), axis=(2, 3))  # draw, statistic
    family = (1 + (largest[:, :, None, None] >= deviation[None]).sum(0)) / (1 + len(draws))
    return PermutationTest(
        value=value,
        null=null,
        p=p,
        p_holm=np.stack([np.asarray(holm(row), float) for row in p]),
        p_bh=np.stack([np.asarray(benjamini_hochberg(row), float) for row in p]),
        p_family=np.where(np.isfinite(observed), family, np.nan),
    )

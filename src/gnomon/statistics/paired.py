"""Paired differences: at equal values of a covariate, and over a family of cells.

The **adjusted mean** of paired differences is what is left of them where a covariate's difference is zero: the intercept of their least-squares
line on it. It assumes the line; pairs matched by design need no such assumption.

The **sign-flip test** asks whether differences lie to one side: under the null that each pair's difference is as likely to have
either sign, all signs of a pair (over all cells) are flipped together, and the largest |t| of the family gives the corrected p-value.

Rows are pairs (axis 0) and the unit of resampling. Claims served: D2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics.bootstrap import MIN_SEQUENCES, Interval, resample_counts
from gnomon.statistics.multiple import max_statistic_p

Floats = NDArray[np.floating[Any]]


def adjusted_mean(values: Floats, covariate: Floats, *, seed: int = 0, num_resamples: int = 1000) -> Interval:
    """Mean of ``values [N, ...]`` at ``covariate [N]`` zero, by least squares, with a percentile interval over resampled rows.

    Rows with a missing value anywhere do not count; fewer than ``MIN_SEQUENCES`` rows, or a constant covariate, give NaN.
    """
    values, covariate = np.asarray(values, dtype=np.float64), np.asarray(covariate, dtype=np.float64)
    flat = values.reshape(len(values), -1)
    rows = np.isfinite(flat).all(axis=1) & np.isfinite(covariate)
    flat, covariate = flat[rows], covariate[rows]
    if len(flat) < MIN_SEQUENCES or np.ptp(covariate) == 0:
        missing = np.full(values.shape[1:], np.nan)
        return Interval(missing, missing, missing)
    weights = resample_counts(len(flat), num_resamples=num_resamples, seed=seed)
    weights = np.concatenate([np.ones((1, len(flat))), weights])
    square, first, total = weights @ covariate**2, weights @ covariate, weights.sum(1)
    determinant = total * square - first**2
    with np.errstate(invalid="ignore", divide="ignore"):
        inverse = np.where(determinant > 1e-9 * total * square, 1 / determinant, np.nan)
    intercept = ((square * inverse)[:, None] * (weights @ flat)) - (first * inverse)[:, None] * (
        weights @ (covariate[:, None] * flat)
    )
    low, high = np.nanpercentile(intercept[1:], [2.5, 97.5], axis=0)
    shape = values.shape[1:]
    return Interval(intercept[0].reshape(shape), low.reshape(shape), high.reshape(shape))


def sign_flip_p(values: Floats, *, draws: int = 1000, seed: int = 0) -> Floats:
    """Family-wise two-sided p-value of every cell of ``values [N, ...]`` against a mean of zero.

    Rows with a missing value anywhere do not count; cells without spread, or fewer than ``MIN_SEQUENCES`` rows, give NaN.
    """
    values = np.asarray(values, dtype=np.float64)
    flat = values.reshape(len(values), -1)
    flat = flat[np.isfinite(flat).all(axis=1)]
    if len(flat) < MIN_SEQUENCES:
        return np.full(values.shape[1:], np.nan)
    generator = np.random.default_rng(seed)
    signs = generator.integers(0, 2, size=(draws, len(flat))) * 2.0 - 1.0
    observed = _t(flat.mean(0), flat)
    null = _t(signs @ flat / len(flat), flat)
    return np.asarray(max_statistic_p(observed, null)).reshape(values.shape[1:])


def _t(mean: Floats, flat: Floats) -> Floats:
    """The t statistic of cells with these means; flipping signs does not change the sum of squares."""
    spread = (flat**2).mean(0) - mean**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(spread > 0, mean / np.sqrt(spread / (len(flat) - 1)), np.nan))

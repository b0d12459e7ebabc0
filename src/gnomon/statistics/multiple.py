"""Correction where many heads or layers are searched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def permutation_p(observed: Floats, null: Floats, *, tail: str = "upper") -> Floats:
    """P-value of each cell against draws of its null (axis 0), never zero: ``(1 + exceeding) / (1 + draws)``.

    ``tail`` is ``upper``, ``lower`` or ``both``. NaN stays NaN.
    """
    observed, null = np.asarray(observed, float), np.asarray(null, float)
    draws = len(null)
    upper = (1 + (null >= observed).sum(0)) / (1 + draws)
    lower = (1 + (null <= observed).sum(0)) / (1 + draws)
    p = {"upper": upper, "lower": lower, "both": np.minimum(1.0, 2 * np.minimum(upper, lower))}[tail]
    return np.where(np.isfinite(observed), p, np.nan)


def max_statistic_p(observed: Floats, null: Floats) -> Floats:
    """Family-wise p-values: each cell against the largest |statistic| over the whole family in each draw (axis 0)."""
    observed, null = np.abs(np.asarray(observed, float)), np.abs(np.asarray(null, float))
    largest = np.nanmax(null.reshape(len(null), -1), axis=1)
    exceed = (largest[:, None] >= observed.reshape(1, -1)).sum(0)
    p = ((1 + exceed) / (1 + len(largest))).reshape(observed.shape)
    return np.where(np.isfinite(observed), p, np.nan)


def holm(p: Floats) -> Floats:
    """Holm's step-down correction over all finite cells."""
    flat = np.asarray(p, float).ravel()
    out = np.full_like(flat, np.nan)
    finite = np.flatnonzero(np.isfinite(flat))
    order = finite[np.argsort(flat[finite], kind="stable")]
    scaled = flat[order] * (len(order) - np.arange(len(order)))
    out[order] = np.minimum(1.0, np.maximum.accumulate(scaled)) if len(order) else scaled
    return out.reshape(np.shape(p))


def benjamini_hochberg(p: Floats) -> Floats:
    """False-discovery-rate adjusted p-values over all finite cells."""
    flat = np.asarray(p, float).ravel()
    out = np.full_like(flat, np.nan)
    finite = np.flatnonzero(np.isfinite(flat))
    order = finite[np.argsort(flat[finite], kind="stable")]
    ranks = np.arange(1, len(order) + 1)
    scaled = flat[order] * len(order) / ranks
    out[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1]) if len(order) else scaled
    return out.reshape(np.shape(p))

"""Intervals by resampling whole sequences.

The sequence is the unit of replication: heads and positions of one text are not independent, so nothing here ever resamples
over them. Weights of a resample are drawn once (``resample_counts``) and applied as a matrix product, so that ten thousand
resamples of a hundred thousand cells cost one multiplication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics.estimate import Estimate
from gnomon.statistics.values_only import wants_values_only

Floats = NDArray[np.floating]
NUM_RESAMPLES = 1000
CONFIDENCE = 0.95
MIN_SEQUENCES = 3
CELLS_AT_ONCE = 4096


class Interval(NamedTuple):
    """Value and bounds, each of the same shape."""

    value: Floats
    low: Floats
    high: Floats


def resample_counts(num_sequences: int, *, num_resamples: int = NUM_RESAMPLES, seed: int = 0) -> NDArray[np.float64]:
    """How often each sequence is drawn in each resample: ``[num_resamples, num_sequences]``, rows summing to the number."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(num_sequences, np.full(num_sequences, 1 / num_sequences), size=num_resamples).astype(np.float64)


def bootstrap_mean(values: Floats, *, seed: int = 0, num_resamples: int = NUM_RESAMPLES) -> Interval:
    """Mean over sequences (axis 0) with a percentile interval, cell by cell, ignoring NaN.

    A cell with fewer than ``MIN_SEQUENCES`` finite sequences keeps its mean and gets NaN bounds.
    """
    values = np.asarray(values, dtype=np.float64)
    shape = values.shape[1:]
    flat = values.reshape(len(values), -1)
    finite = np.isfinite(flat)
    filled = np.where(finite, flat, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(0) / finite.sum(0)
    if wants_values_only():
        missing = np.full(shape, np.nan)
        return Interval(mean.reshape(shape), missing, missing)
    counts = resample_counts(len(flat), num_resamples=num_resamples, seed=seed)
    low, high = np.empty_like(mean), np.empty_like(mean)
    for start in range(0, flat.shape[1], CELLS_AT_ONCE):
        cells = slice(start, start + CELLS_AT_ONCE)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (counts @ filled[:, cells]) / (counts @ finite[:, cells].astype(np.float64))
        low[cells], high[cells] = _percentiles(means)
    few = finite.sum(0) < MIN_SEQUENCES
    low, high = np.where(few, np.nan, low), np.where(few, np.nan, high)
    return Interval(mean.reshape(shape), low.reshape(shape), high.reshape(shape))


def bootstrap(
    statistic: Callable[[NDArray[np.float64]], Floats], num_sequences: int, *, seed: int = 0, num_resamples: int = NUM_RESAMPLES
) -> Interval:
    """Percentile interval of any statistic of a weighted sample.

    Args:
        statistic: maps weights ``[num_sequences]`` (how often each sequence counts; all ones for the sample itself) to an array.
        num_sequences: how many sequences there are.
        seed: of the resampling.
        num_resamples: how many resamples.
    """
    value = np.asarray(statistic(np.ones(num_sequences)), dtype=np.float64)
    if num_sequences < MIN_SEQUENCES or wants_values_only():
        missing = np.full_like(value, np.nan)
        return Interval(value, missing, missing)
    counts = resample_counts(num_sequences, num_resamples=num_resamples, seed=seed)
    low, high = _percentiles(np.stack([np.asarray(statistic(row), dtype=np.float64) for row in counts]))
    return Interval(value, low, high)


def estimate_mean(values: Floats, *, seed: int = 0, reason: str = "no sequence gave a value") -> Estimate:
    """Mean of one number per sequence, as an :class:`Estimate`."""
    values = np.asarray(values, dtype=np.float64)
    n = int(np.isfinite(values).sum())
    if n == 0:
        return Estimate.missing(reason)
    interval = bootstrap_mean(values, seed=seed)
    return Estimate(float(interval.value), float(interval.low), float(interval.high), n)


def _percentiles(samples: Floats) -> tuple[Floats, Floats]:
    """Lower and upper bound of each cell over the draws on axis 0 that are finite; NaN where none is."""
    tail = (1 - CONFIDENCE) / 2
    ordered = np.sort(np.where(np.isfinite(samples), samples, np.nan), axis=0)  # NaN last
    count = np.isfinite(ordered).sum(0)
    return _quantile(ordered, count, tail), _quantile(ordered, count, 1 - tail)


def _quantile(ordered: Floats, count: NDArray[np.int64], level: float) -> Floats:
    """The ``level`` quantile of the first ``count`` entries of sorted columns, by linear interpolation."""
    place = np.maximum(count - 1, 0) * level
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    low = np.take_along_axis(ordered, below[None], axis=0)[0]
    high = np.take_along_axis(ordered, above[None], axis=0)[0]
    between: Floats = low + (place - below) * (high - low)
    return between

"""When something appears in a series of checkpoints: the step at which a quantity has gone half of its way.

**Emergence.** The monotone (isotonic) least-squares fit of the quantity over checkpoints, rising or falling as its last value lies above or below its first, passes
halfway between its two ends at some place between two checkpoints; there it is interpolated linearly in ``log(1 + step)``. The fit needs no shape to be assumed, and
one noisy checkpoint does not move it far. **Turning point**: the inner checkpoint that lies farthest outside both ends, for what comes and goes, such as an exploratory phase.

**Intervals.** All checkpoints saw the same sequences, so a resample draws groups of sequences once for all of them. From leave-one-group-out values ``v_k`` of a value ``v``, the
pseudo-values ``v - (K - 1)(v_k - mean v_k)`` are K numbers of the same mean and spread as the group's own; their resampled means give curves, each curve a step, and 2.5 % to 97.5 % of the steps
the interval. The checkpoints on either side bound the step from outside: no resampling sees between them.

A step is only given where first and last value differ with confidence after correction; that is for the caller to judge. What it cannot show: anything of another seed or order of the data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics.bootstrap import NUM_RESAMPLES, resample_counts

Floats = NDArray[np.float64]


class Emergence(NamedTuple):
    """A step with its interval and the checkpoints around it.

    Attributes:
        step: where half of the way is done.
        low, high: 95 % of resamples; NaN without replicates.
        after, before: steps of the checkpoints between which it lies.
        resampled: the step in each resample, for questions about order.
    """

    step: float
    low: float
    high: float
    after: float
    before: float
    resampled: Floats


class Turning(NamedTuple):
    """The inner checkpoint farthest outside both ends: its place, how far beyond the nearer end, and 95 % of resampled steps."""

    place: int
    excess: float
    low: float
    high: float


def monotone_fit(values: Floats) -> Floats:
    """Least-squares non-decreasing fit along the last axis, by ``max_{a <= i} min_{b >= i} mean(values[a..b])``."""
    values = np.asarray(values, dtype=np.float64)
    size = values.shape[-1]
    sums = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, -1)], -1)
    start, stop = np.arange(size)[:, None], np.arange(size)[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (sums[..., None, 1:] - sums[..., :-1, None]) / (stop - start + 1)
    means = np.where(stop >= start, means, np.inf)
    from_here_on = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
    fit: Floats = np.where(stop >= start, from_here_on, -np.inf).max(-2)
    return fit


def half_way(steps: Floats, values: Floats, *, falling: bool) -> Floats:
    """The step at which the monotone fit of ``values [..., checkpoint]`` is halfway, ``[...]``; NaN where the fit is flat."""
    fit = monotone_fit(-values if falling else values)
    level = (fit[..., :1] + fit[..., -1:]) / 2
    place = np.log1p(steps)
    after = np.argmax(fit >= level, axis=-1)
    before = np.maximum(after - 1, 0)
    high, low = (np.take_along_axis(fit, index[..., None], -1)[..., 0] for index in (after, before))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (level[..., 0] - low) / (high - low)
    step = np.expm1(place[before] + share * (place[after] - place[before]))
    return np.asarray(np.where(fit[..., -1] > fit[..., 0], step, np.nan))


def emergence(steps: Floats, values: Floats, without: Floats | None = None, *, seed: int = 0) -> Emergence:
    """When ``values`` went half of their way.

    Args:
        steps: of the checkpoints, ascending, ``[checkpoint]``.
        values: of the quantity, ``[checkpoint]``.
        without: the same with each group of sequences left out, ``[group, checkpoint]``.
        seed: of the resampling; the same seed draws the same groups for every quantity.
    """
    falling = bool(values[-1] < values[0])
    step = float(half_way(steps, values, falling=falling))
    curves = resampled_curves(values, without, seed=seed) if without is not None else np.empty((0, len(values)))
    drawn = half_way(steps, curves, falling=falling) if len(curves) else np.empty(0)
    low, high = _bounds(drawn)
    index = int(np.searchsorted(steps, step, side="left")) if np.isfinite(step) else 0
    around = (
        (float(steps[max(index - 1, 0)]), float(steps[min(index, len(steps) - 1)])) if np.isfinite(step) else (np.nan, np.nan)
    )
    return Emergence(step, low, high, *around, drawn)


def turning_point(steps: Floats, values: Floats, without: Floats | None = None, *, seed: int = 0) -> Turning | None:
    """The inner checkpoint farthest outside both ends; ``None`` where none is outside."""
    if len(values) < 3:
        return None
    outside, index = _farthest(values[None])
    if not outside[0] > 0:
        return None
    drawn = np.empty(0)
    if without is not None:
        beyond, places = _farthest(resampled_curves(values, without, seed=seed))
        drawn = np.where(beyond > 0, steps[places], np.nan)
    return Turning(int(index[0]), _signed_excess(values, int(index[0])), *_bounds(drawn))


def resampled_curves(values: Floats, without: Floats, *, seed: int = 0, num_resamples: int = NUM_RESAMPLES) -> Floats:
    """Curves over checkpoints from resampled groups of sequences, ``[resample, checkpoint]``."""
    groups = len(without)
    pseudo = values - (groups - 1) * (without - without.mean(0))
    curves: Floats = resample_counts(groups, num_resamples=num_resamples, seed=seed) @ pseudo / groups
    return curves


def share_before(first: Floats, second: Floats) -> float:
    """Share of resamples in which the first step came before the second; NaN without resamples."""
    both = np.isfinite(first) & np.isfinite(second)
    return float((first[both] < second[both]).mean()) if both.any() else float("nan")


def _farthest(curves: Floats) -> tuple[Floats, NDArray[np.int64]]:
    ends = curves[:, [0, -1]]
    inner = curves[:, 1:-1]
    beyond = np.maximum(inner - ends.max(1, keepdims=True), ends.min(1, keepdims=True) - inner)
    index = beyond.argmax(1)
    return np.take_along_axis(beyond, index[:, None], 1)[:, 0], index + 1


def _signed_excess(values: Floats, index: int) -> float:
    high, low = max(values[0], values[-1]), min(values[0], values[-1])
    return float(values[index] - high) if values[index] > high else float(values[index] - low)


def _bounds(drawn: Floats) -> tuple[float, float]:
    finite = drawn[np.isfinite(drawn)]
    if len(finite) < 0.5 * max(len(drawn), 1):
        return float("nan"), float("nan")
    low, high = np.percentile(finite, [2.5, 97.5])
    return float(low), float(high)

"""Rank correlation of one variable with many, and its interval.

**Spearman's rho** is the correlation of ranks, ties sharing their mean rank: 1 for any rising relation, -1 for any falling one,
0 for none that is monotone. **Partial** rank correlation takes the ranks of the controls out of both ranks by least squares
first; it removes what is linear in those ranks and nothing else. Neither says which way an effect runs.

Ranks are found once per column. The interval comes from influence values: what each sentence contributes, its share in every
rank transform included. Their spread is the standard error of the infinitesimal jackknife; the interval is symmetric on Fisher's
scale, so that it stays within -1 and 1. :func:`spearman_bootstrap` resamples sentences and ranks them anew each time: exact, dear,
and what the quick interval is tested against.

Rows are sentences (axis 0); every function takes ``x [N]`` and ``y [N, ...]`` and works over all cells of ``y`` at once. A row in
which ``x``, a control or the cell is not finite does not count for that cell; a cell with fewer than ``MIN_ROWS`` rows is NaN.

Claims served: D1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics.bootstrap import Interval, resample_counts

Bools = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]
MIN_ROWS = 10
NORMAL_QUANTILE = 1.959963984540054
EXHAUSTED = 1e-9


class Correlation(NamedTuple):
    """Correlations and what stands behind them.

    Attributes:
        value: of every cell.
        influence: of every row on every cell, ``[N, ...]``, zero where a row does not count.
        rows: rows that count, per cell.
    """

    value: Floats
    influence: Floats
    rows: NDArray[np.int64]

    def standard_error(self) -> Floats:
        """Spread of the estimates: root of the summed squared influence values, over the number of rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt((self.influence**2).sum(0) / (self.rows * (self.rows - 1.0))))

    def interval(self) -> Interval:
        """Values with 95 % intervals."""
        return fisher_interval(self.value, self.standard_error())


def ranks(values: Floats) -> Floats:
    """Ranks along axis 0 from 1, ties sharing their mean rank; NaN stays NaN and does not count."""
    values = np.asarray(values, dtype=np.float64)
    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=0, kind="stable")  # NaN comes last
    ordered = np.take_along_axis(flat, order, axis=0)
    first, last = _tie_bounds(ordered)
    shared = np.where(np.isfinite(ordered), (first + last) / 2 + 1, np.nan)
    out = np.empty_like(shared)
    np.put_along_axis(out, order, shared, axis=0)
    return out.reshape(values.shape)


def spearman(x: Floats, y: Floats) -> Correlation:
    """Spearman's rho of ``x`` with every cell of ``y``, with influence values."""
    return partial_spearman(x, y, np.empty((len(x), 0)))


def partial_spearman(x: Floats, y: Floats, controls: Floats) -> Correlation:
    """Rank correlation of ``x`` with every cell of ``y`` after taking out the ranks of ``controls [N, C]``."""
    x, y, controls = (np.asarray(array, dtype=np.float64) for array in (x, y, controls))
    flat = y.reshape(len(y), -1)
    value = np.full(flat.shape[1], np.nan)
    influence = np.zeros_like(flat)
    count = np.zeros(flat.shape[1], dtype=np.int64)
    usable = np.isfinite(x) & np.isfinite(controls).all(axis=1)
    for rows, cells in row_patterns(np.isfinite(flat) & usable[:, None]):
        count[cells] = rows.sum()
        if rows.sum() >= MIN_ROWS:
            where = np.ix_(rows, cells)
            value[cells], influence[where] = _complete(x[rows], flat[where], controls[rows])
    influence[:, ~np.isfinite(value)] = np.nan
    return Correlation(value.reshape(y.shape[1:]), influence.reshape(y.shape), count.reshape(y.shape[1:]))


def fisher_interval(value: Floats, standard_error: Floats) -> Interval:
    """A 95 % interval around correlations, symmetric on the scale of ``atanh``."""
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.clip(value, -1 + 1e-12, 1 - 1e-12)
        reach = NORMAL_QUANTILE * standard_error / (1 - inside**2)
        return Interval(value, np.tanh(np.arctanh(inside) - reach), np.tanh(np.arctanh(inside) + reach))


def spearman_bootstrap(x: Floats, y: Floats, *, seed: int = 0, num_resamples: int = 1000) -> Interval:
    """Spearman's rho with a percentile interval over resampled rows, ranked anew in every resample.

    Args:
        x: ``[N]``.
        y: ``[N, ...]``; meant for few cells.
        seed: of the resampling.
        num_resamples: how many resamples.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    flat = y.reshape(len(y), -1)
    out = np.full((3, flat.shape[1]), np.nan)
    for cell in range(flat.shape[1]):
        rows = np.isfinite(x) & np.isfinite(flat[:, cell])
        if rows.sum() < MIN_ROWS:
            continue
        drawn = resample_counts(int(rows.sum()), num_resamples=num_resamples, seed=seed)
        weights = np.concatenate([np.ones((1, drawn.shape[1])), drawn])
        rho = _weighted_pearson(_weighted_ranks(x[rows], weights), _weighted_ranks(flat[rows, cell], weights), weights)
        out[:, cell] = rho[0], *np.nanpercentile(rho[1:], [2.5, 97.5])
    value, low, high = out.reshape(3, *y.shape[1:])
    return Interval(value, low, high)


def row_patterns(finite: Bools) -> list[tuple[Bools, NDArray[np.int64]]]:
    """Cells of ``finite [N, cells]`` grouped by which rows they have: pairs of rows ``[N]`` and indices of cells."""
    if not finite.shape[1]:
        return []
    _, which = np.unique(np.packbits(finite, axis=0), axis=1, return_inverse=True)
    groups = [np.flatnonzero(which.reshape(-1) == group) for group in range(int(which.max()) + 1)]
    return [(finite[:, cells[0]], cells) for cells in groups]


def _complete(x: Floats, y: Floats, controls: Floats) -> tuple[Floats, Floats]:
    """Partial rho and its influence values where no value is missing.

    With u the centred mid-distribution transform of a variable, rho is the correlation of the residuals ``a = u_x - b_x u_c`` and
    ``b = u_y - b_y u_c``. A row adds to their covariance its own product and, through each transform, the mean deviation above it.
    """
    u_x, u_y, u_c = _scores(x)[:, None], _scores(y), _scores(controls)
    slopes_x, slopes_y = (
        np.linalg.lstsq(u_c, u, rcond=None)[0] if u_c.shape[1] else np.empty((0, u.shape[1])) for u in (u_x, u_y)
    )
    a, b = u_x - u_c @ slopes_x, u_y - u_c @ slopes_y

    d_cov = a * b + _mean_above(x, b) + _mean_above(y, np.broadcast_to(a, b.shape))
    d_a = a * a + 2 * _mean_above(x, a)
    d_b = b * b + 2 * _mean_above(y, b)
    for control, slope_x, slope_y in zip(controls.T, slopes_x, slopes_y, strict=True):
        above_a, above_b = _mean_above(control, a), _mean_above(control, b)
        d_cov -= slope_x * above_b + slope_y * above_a
        d_a -= 2 * slope_x * above_a
        d_b -= 2 * slope_y * above_b
    var_a, var_b = (a * a).mean(0), (b * b).mean(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        norm = np.sqrt(var_a * var_b)
        rho = (a * b).mean(0) / norm
        influence = _centred(d_cov) / norm - rho / 2 * (_centred(d_a) / var_a + _centred(d_b) / var_b)
    exhausted = (var_a <= EXHAUSTED * u_x.var()) | (var_b <= EXHAUSTED * u_y.var(0))
    return np.where(exhausted, np.nan, rho), influence


def _slopes(controls: Floats, columns: Floats) -> Floats:
    return np.linalg.lstsq(controls, columns, rcond=None)[0] if controls.shape[1] else np.empty((0, columns.shape[1]))


def _scores(values: Floats) -> Floats:
    """Ranks as deviations from the middle, in units of the number of rows."""
    return np.asarray((ranks(values) - (len(values) + 1) / 2) / len(values))


def _centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean(0))


def _tie_bounds(ordered: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last index of the run of equal values that each entry of sorted columns belongs to."""
    index = np.arange(len(ordered))[:, None]
    opens = np.ones(ordered.shape, dtype=bool)
    opens[1:] = ordered[1:] != ordered[:-1]
    closes = np.ones(ordered.shape, dtype=bool)
    closes[:-1] = opens[1:]
    first = np.maximum.accumulate(np.where(opens, index, 0), axis=0)
    last = np.minimum.accumulate(np.where(closes, index, len(ordered))[::-1], axis=0)[::-1]
    return first, last


def _mean_above(values: Floats, deviations: Floats) -> Floats:
    """For each row, the mean over all rows j of ``deviations_j`` where ``values_j`` is larger, and half of it where equal.

    ``values`` is ``[N]`` or shaped like ``deviations [N, cells]``.
    """
    columns = values.reshape(len(values), -1)
    order = np.argsort(columns, axis=0, kind="stable")
    first, last = _tie_bounds(np.take_along_axis(columns, order, axis=0))
    if columns.shape[1] == 1:
        running = np.cumsum(deviations[order[:, 0]], axis=0)
        padded = np.concatenate([np.zeros((1, running.shape[1])), running])
        out = np.empty_like(running)
        out[order[:, 0]] = running[-1] - (padded[first[:, 0]] + padded[last[:, 0] + 1]) / 2
        return out / len(values)
    running = np.cumsum(np.take_along_axis(deviations, order, axis=0), axis=0)
    padded = np.concatenate([np.zeros((1, running.shape[1])), running])
    above = running[-1] - (np.take_along_axis(padded, first, axis=0) + np.take_along_axis(padded, last + 1, axis=0)) / 2
    out = np.empty_like(above)
    np.put_along_axis(out, order, above, axis=0)
    return out / len(values)


def _weighted_ranks(values: Floats, weights: Floats) -> Floats:
    """Mid-ranks of ``values [N]`` in each weighted sample ``weights [R, N]``."""
    _, which = np.unique(values, return_inverse=True)
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(which[order]) > 0])
    groups = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(groups, axis=1) - groups / 2
    return np.asarray(middle[:, which])


def _weighted_pearson(a: Floats, b: Floats, weights: Floats) -> Floats:
    total = weights.sum(1, keepdims=True)
    a = a - (weights * a).sum(1, keepdims=True) / total
    b = b - (weights * b).sum(1, keepdims=True) / total
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weights * a * b).sum(1) / np.sqrt((weights * a * a).sum(1) * (weights * b * b).sum(1)))

"""What a search over many correlations finds when there is nothing to find.

Where the best of many layers, heads or ways of looking is reported, the largest of many correlations is large by chance.
:func:`search_null` shuffles the sentences of one side, all columns together, so that a family-wise p-value
(:func:`gnomon.statistics.max_statistic_p`) respects how the columns hang together. Beside the corrected p-value stands
:func:`held_out`: the best cell chosen on one half of the sentences and measured on the other, which no search can inflate.

A small p-value says that some dependence was found, not that it is direct: a common cause such as position makes two things
dependent, and shuffling does not know it. The shuffle with ``controls`` does.

Claims served: D1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics.correlation import (
    MIN_ROWS,
    Bools,
    Correlation,
    Floats,
    fisher_interval,
    partial_spearman,
    ranks,
    row_patterns,
)
from gnomon.statistics.estimate import Estimate


class SearchNull(NamedTuple):
    """Correlations as found, ``[A, ...]``, and as found after each shuffle, ``[draws, A, ...]``."""

    observed: Floats
    null: Floats


def search_null(x: Floats, y: Floats, *, controls: Floats | None = None, draws: int = 1000, seed: int = 0) -> SearchNull:
    """Rank correlations of every column of ``x [N, A]`` with every cell of ``y [N, ...]``, as found and with ``x`` shuffled.

    ``x`` is ranked once, over all rows; ``y`` over the rows that a cell has. With ``controls [N, C]`` both are residuals of
    ranks, and it is the residuals of ``x`` that are shuffled. What is observed is computed as the shuffled tables are, so that
    under independence it is one more draw of them.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    controls = np.empty((len(x), 0)) if controls is None else np.asarray(controls, dtype=np.float64)
    keep = np.isfinite(x).all(axis=1) & np.isfinite(controls).all(axis=1)
    flat, controls = y.reshape(len(y), -1)[keep], controls[keep]
    columns = _residual(ranks(x[keep]), _basis(controls))
    groups = [
        _Group.make(flat, controls, rows, cells) for rows, cells in row_patterns(np.isfinite(flat)) if rows.sum() >= MIN_ROWS
    ]
    generator = np.random.default_rng(seed)
    table = np.full((draws + 1, columns.shape[1], flat.shape[1]), np.nan)
    for draw in range(draws + 1):
        shuffled = columns if draw == 0 else columns[generator.permutation(len(columns))]
        for group in groups:
            table[draw][:, group.cells] = group.correlate(shuffled)
    table = table.reshape(draws + 1, columns.shape[1], *y.shape[1:])
    return SearchNull(table[0], table[1:])


def held_out(x: Floats, y: Floats, controls: Floats | None = None, *, seed: int = 0) -> Estimate:
    """Correlation of the best cell of ``y``, chosen on one half of the rows and measured on the other, both ways.

    The best cell is the one with the largest absolute correlation; the value is the mean of the two halves' (as Fisher's z).
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64).reshape(len(x), -1)
    controls = np.empty((len(x), 0)) if controls is None else np.asarray(controls, dtype=np.float64)
    order = np.random.default_rng(seed).permutation(len(x))
    halves = [np.sort(order[::2]), np.sort(order[1::2])]
    found = [partial_spearman(x[half], y[half], controls[half]) for half in halves]
    if not all(np.isfinite(one.value).any() for one in found):
        return Estimate.missing(f"fewer than {MIN_ROWS} sentences in each half", len(x))
    best = [int(np.nanargmax(np.abs(one.value))) for one in found]
    value, error = _mean_of_halves(found[0], best[1], found[1], best[0])
    if not np.isfinite(value):
        return Estimate.missing("the best cell of one half has no value in the other", len(x))
    interval = fisher_interval(np.array(value), np.array(error))
    return Estimate(value, float(interval.low), float(interval.high), int(found[0].rows[best[1]] + found[1].rows[best[0]]))


def _mean_of_halves(first: Correlation, cell: int, second: Correlation, other: int) -> tuple[float, float]:
    rho = np.clip([first.value[cell], second.value[other]], -1 + 1e-12, 1 - 1e-12)
    errors = np.array([first.standard_error()[cell], second.standard_error()[other]]) / (1 - rho**2)
    mean = float(np.tanh(np.arctanh(rho).mean()))
    return mean, float(np.sqrt((errors**2).sum()) / 2 * (1 - mean**2))


class _Group(NamedTuple):
    """Cells that have the same rows: their standardised residual ranks, and the basis of the controls over those rows."""

    rows: Bools
    cells: NDArray[np.int64]
    standardised: Floats
    basis: Floats

    @classmethod
    def make(cls, flat: Floats, controls: Floats, rows: Bools, cells: NDArray[np.int64]) -> _Group:
        basis = _basis(controls[rows])
        residual = _residual(ranks(flat[np.ix_(rows, cells)]), basis)
        norm = np.sqrt((residual**2).sum(0))
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(rows, cells, np.where(norm > 0, residual / norm, np.nan), basis)

    def correlate(self, columns: Floats) -> Floats:
        own = _residual(columns[self.rows], self.basis)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((own.T @ self.standardised) / np.sqrt((own**2).sum(0))[:, None])


def _basis(controls: Floats) -> Floats:
    """Orthonormal basis of the constant and the ranks of the controls; a control that is constant or repeated adds nothing."""
    ranked = ranks(controls)
    design = np.concatenate([np.ones((len(controls), 1)), ranked - ranked.mean(0)], axis=1)
    left, sizes, _ = np.linalg.svd(design, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-10 * sizes[0]])


def _residual(columns: Floats, basis: Floats) -> Floats:
    return np.asarray(columns - basis @ (basis.T @ columns))

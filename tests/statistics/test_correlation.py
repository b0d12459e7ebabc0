"""Rank correlation against scipy, intervals against exact resampling and against the truth, corrected p-values against uniformity."""

import numpy as np
import pytest
from scipy import stats

from gnomon.statistics import max_statistic_p
from gnomon.statistics.correlation import MIN_ROWS, partial_spearman, ranks, spearman, spearman_bootstrap
from gnomon.statistics.search import held_out, search_null


def correlated_normals(rows, rho, seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=rows)
    return x, rho * x + np.sqrt(1 - rho**2) * generator.normal(size=rows)


def true_spearman(rho):
    return 6 / np.pi * np.arcsin(rho / 2)


def test_ranks_share_ties_and_skip_missing():
    values = np.array([[3.0, 1.0], [1.0, np.nan], [3.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(ranks(values), [[3.5, 2.5], [1, np.nan], [3.5, 2.5], [2, 1]])


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_equals_scipy_in_every_cell(ties):
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=60), generator.normal(size=(60, 3, 4))
    y += x[:, None, None] * np.linspace(-1, 1, 12).reshape(3, 4)
    if ties:
        x, y = np.round(x), np.round(y)
    y[5, 1, 2] = np.nan
    found = spearman(x, y)
    for cell in np.ndindex(3, 4):
        expected = stats.spearmanr(x, y[(slice(None), *cell)], nan_policy="omit").statistic
        assert found.value[cell] == pytest.approx(expected, abs=1e-12)
    assert found.rows[1, 2] == 59
    assert found.rows[0, 0] == 60


def test_monotone_relations_reach_the_ends_and_constants_have_no_value():
    x = np.arange(30.0)
    y = np.stack([np.exp(x / 5), -(x**3), np.ones(30)], axis=1)
    found = spearman(x, y)
    np.testing.assert_allclose(found.value[:2], [1, -1], atol=1e-12)
    assert np.isnan(found.value[2])
    assert np.isnan(found.interval().low[2])


def test_partial_equals_correlation_of_residual_ranks_and_removes_a_common_cause():
    generator = np.random.default_rng(2)
    cause = generator.normal(size=(400, 2))
    x = cause @ [1.0, 0.5] + 0.5 * generator.normal(size=400)
    y = cause @ [0.7, -1.0] + 0.5 * generator.normal(size=400)
    found = partial_spearman(x, y[:, None], cause)
    design = np.column_stack([np.ones(400), stats.rankdata(cause[:, 0]), stats.rankdata(cause[:, 1])])
    left = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (stats.rankdata(x), stats.rankdata(y))]
    assert found.value[0] == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-10)
    common = cause[:, 0]
    x, y = common + 0.3 * generator.normal(size=400), common + 0.3 * generator.normal(size=400)
    assert spearman(x, y[:, None]).value[0] > 0.8
    assert abs(partial_spearman(x, y[:, None], common[:, None]).value[0]) < 0.15


def test_a_control_that_is_the_variable_leaves_nothing():
    x, y = correlated_normals(50, 0.5, 3)
    assert np.isnan(partial_spearman(x, y[:, None], x[:, None]).value[0])


def test_influence_values_are_the_derivative_with_respect_to_the_weights():
    x, y = correlated_normals(40, 0.6, 4)
    control = np.random.default_rng(5).normal(size=(40, 1)) + 0.5 * x[:, None]
    for controls in (np.empty((40, 0)), control):
        found = partial_spearman(x, y[:, None], controls)
        step = 1e-5
        for row in (0, 7, 31):
            weights = np.ones((1, 40))
            weights[0, row] += step * 40
            moved = _weighted_partial(x, y, controls, weights / (1 + step))
            assert (moved - found.value[0]) / step == pytest.approx(found.influence[row, 0], rel=0.02, abs=0.02)


def _weighted_partial(x, y, controls, weights):
    from gnomon.statistics.correlation import _weighted_ranks

    columns = [_weighted_ranks(v, weights)[0] for v in (x, y, *controls.T)]
    w = weights[0] / weights.sum()
    columns = [c - w @ c for c in columns]
    gram = np.array([[(w * a * b).sum() for a in columns] for b in columns])
    inverse = np.linalg.inv(gram)
    return -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_quick_interval_agrees_with_exact_resampling(rho):
    x, y = correlated_normals(400, rho, 6)
    quick, exact = spearman(x, y[:, None]).interval(), spearman_bootstrap(x, y[:, None], num_resamples=2000)
    assert quick.value[0] == pytest.approx(exact.value[0], abs=1e-12)
    width = exact.high[0] - exact.low[0]
    assert quick.low[0] == pytest.approx(exact.low[0], abs=0.1 * width)
    assert quick.high[0] == pytest.approx(exact.high[0], abs=0.1 * width)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_intervals_cover_the_known_correlation(rho):
    covered = 0
    for seed in range(400):
        x, y = correlated_normals(120, rho, 100 + seed)
        interval = spearman(x, y[:, None]).interval()
        covered += interval.low[0] <= true_spearman(rho) <= interval.high[0]
    assert 0.92 <= covered / 400 <= 0.98


def test_partial_interval_covers_its_known_value():
    covered, generator = 0, np.random.default_rng(7)
    big_x, big_y, big_c = _partial_sample(200_000, np.random.default_rng(8))
    truth = partial_spearman(big_x, big_y[:, None], big_c).value[0]
    for _ in range(300):
        x, y, control = _partial_sample(150, generator)
        interval = partial_spearman(x, y[:, None], control).interval()
        covered += interval.low[0] <= truth <= interval.high[0]
    assert 0.91 <= covered / 300 <= 0.985


def _partial_sample(rows, generator):
    control = generator.normal(size=(rows, 1))
    x = control[:, 0] + generator.normal(size=rows)
    return x, control[:, 0] + 0.8 * x + generator.normal(size=rows), control


def test_corrected_p_values_are_uniform_under_the_null():
    """The smallest family-wise p over a search of 24 dependent columns, two of them with missing rows, over 200 null data sets."""
    smallest = []
    for seed in range(200):
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(50, 2))
        y = generator.normal(size=(50, 1)) + 0.5 * generator.normal(size=(50, 12))
        y[:7, 3:5] = np.nan
        found = search_null(x, y, draws=99, seed=seed)
        smallest.append(np.nanmin(max_statistic_p(found.observed, found.null)))
    assert stats.kstest(smallest, "uniform").pvalue > 0.01
    assert np.mean(np.array(smallest) <= 0.05) <= 0.09


def test_uncorrected_search_would_not_be_uniform():
    """What the correction is for: without it the best of 24 independent columns is nearly always significant somewhere."""
    generator = np.random.default_rng(9)
    hits = [
        min(stats.spearmanr(generator.normal(size=50), generator.normal(size=50)).pvalue for _ in range(24)) < 0.05
        for _ in range(60)
    ]
    assert np.mean(hits) > 0.5


def test_partial_search_is_calibrated_when_only_the_control_binds_the_two():
    smallest, plain = [], []
    for seed in range(120):
        generator = np.random.default_rng(seed)
        control = generator.normal(size=(80, 1))
        x = control + generator.normal(size=(80, 1))
        y = control + generator.normal(size=(80, 6))
        found = search_null(x, y, controls=control, draws=99, seed=seed)
        smallest.append(np.nanmin(max_statistic_p(found.observed, found.null)))
        found = search_null(x, y, draws=99, seed=seed)
        plain.append(np.nanmin(max_statistic_p(found.observed, found.null)))
    assert np.mean(np.array(smallest) <= 0.1) <= 0.2
    assert np.mean(np.array(plain) <= 0.1) > 0.9


def test_search_finds_a_planted_cell():
    generator = np.random.default_rng(10)
    x, y = generator.normal(size=(200, 1)), generator.normal(size=(200, 5, 4))
    y[:, 3, 1] += 0.6 * x[:, 0]
    found = search_null(x, y, draws=199)
    p = max_statistic_p(found.observed, found.null)
    assert np.unravel_index(np.argmin(p), p.shape) == (0, 3, 1)
    assert p.min() == pytest.approx(1 / 200)
    np.testing.assert_allclose(found.observed[0], spearman(x[:, 0], y).value, atol=1e-10)


def test_held_out_is_not_inflated_by_the_search():
    inside, values = 0, []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        estimate = held_out(generator.normal(size=80), generator.normal(size=(80, 20)), seed=seed)
        inside += estimate.low <= 0 <= estimate.high
        values.append(estimate.value)
    assert abs(np.mean(values)) < 0.03
    assert inside / 150 > 0.88
    assert held_out(np.arange(12.0), np.arange(12.0)[:, None]).is_missing


def test_too_few_rows_give_no_number():
    found = spearman(np.arange(MIN_ROWS - 1.0), np.arange(MIN_ROWS - 1.0)[:, None])
    assert np.isnan(found.value[0])
    assert np.isnan(spearman_bootstrap(np.arange(5.0), np.arange(5.0)[:, None]).value[0])

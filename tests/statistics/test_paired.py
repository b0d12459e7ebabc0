"""Paired differences: the adjusted mean against known lines, sign flips against uniformity."""

import numpy as np
import pytest
from scipy import stats

from gnomon.statistics.paired import adjusted_mean, sign_flip_p


def test_adjusted_mean_is_the_intercept():
    generator = np.random.default_rng(0)
    covariate = generator.normal(2, 1, size=50)
    values = np.stack([3 + 2 * covariate, -1 + 0 * covariate], axis=1)
    found = adjusted_mean(values, covariate)
    np.testing.assert_allclose(found.value, [3, -1], atol=1e-12)
    np.testing.assert_allclose(found.low, [3, -1], atol=1e-9)


def test_adjusted_mean_covers_the_truth_and_ignores_incomplete_rows():
    covered = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        covariate = generator.normal(1, 1, size=60)
        values = 0.5 - covariate + generator.normal(size=60)
        values[3] = np.nan
        found = adjusted_mean(values, covariate, seed=seed, num_resamples=300)
        intercept = np.polyfit(np.delete(covariate, 3), np.delete(values, 3), 1)[1]
        assert found.value == pytest.approx(intercept, abs=1e-10)
        covered += found.low <= 0.5 <= found.high
    assert 0.9 <= covered / 200 <= 0.985


def test_no_adjusted_mean_without_spread_or_rows():
    assert np.isnan(adjusted_mean(np.arange(5.0), np.ones(5)).value)
    assert np.isnan(adjusted_mean(np.arange(2.0), np.arange(2.0)).value)
    assert np.isnan(sign_flip_p(np.ones((2, 3)))).all()


def test_sign_flip_p_is_uniform_under_the_null_and_small_for_a_shift():
    smallest = []
    for seed in range(200):
        generator = np.random.default_rng(seed)
        values = generator.standard_t(4, size=(40, 1)) * 0.5 + generator.standard_t(4, size=(40, 8))
        smallest.append(sign_flip_p(values, draws=99, seed=seed).min())
    assert stats.kstest(smallest, "uniform").pvalue > 0.01
    shifted = np.random.default_rng(1).normal(size=(60, 5))
    shifted[:, 2] += 1
    p = sign_flip_p(shifted, draws=199)
    assert np.argmin(p) == 2
    assert p[2] == pytest.approx(1 / 200)

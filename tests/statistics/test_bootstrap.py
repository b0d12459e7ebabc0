"""Intervals over sequences: coverage, agreement with numpy, and honesty about what is missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gnomon.statistics import (
    Estimate,
    benjamini_hochberg,
    bootstrap,
    bootstrap_mean,
    estimate_mean,
    holm,
    max_statistic_p,
    permutation_p,
)
from gnomon.statistics.bootstrap import _percentiles


def test_percentiles_are_numpy_s_with_and_without_missing_draws():
    generator = np.random.default_rng(0)
    samples = generator.normal(size=(200, 3, 4))
    low, high = _percentiles(samples)
    np.testing.assert_allclose([low, high], np.percentile(samples, [2.5, 97.5], axis=0))
    samples[generator.random(samples.shape) < 0.2] = np.nan
    samples[:, 0, 0] = np.nan
    low, high = _percentiles(samples)
    assert np.isnan(low[0, 0])
    np.testing.assert_allclose([low[1:], high[1:]], np.nanpercentile(samples[:, 1:], [2.5, 97.5], axis=0))


def test_the_interval_of_a_mean_covers_as_it_says():
    generator = np.random.default_rng(1)
    covered = 0
    for trial in range(300):
        interval = bootstrap_mean(generator.normal(2.0, 1.0, size=(40, 1)), seed=trial, num_resamples=400)
        covered += bool(interval.low[0] <= 2.0 <= interval.high[0])
    assert 0.90 <= covered / 300 <= 0.98


def test_cells_with_too_few_sequences_have_no_bounds():
    values = np.full((10, 2), np.nan)
    values[:2, 0], values[:, 1] = 1.0, 3.0
    interval = bootstrap_mean(values)
    assert interval.value.tolist() == [1.0, 3.0]
    assert np.isnan(interval.low[0])
    assert interval.low[1] == 3.0


def test_a_weighted_statistic_resamples_sequences():
    values = np.arange(20.0)
    interval = bootstrap(lambda weights: np.array([(weights * values).sum() / weights.sum()]), 20)
    mean = bootstrap_mean(values[:, None])
    np.testing.assert_allclose(interval.value, mean.value)
    np.testing.assert_allclose([interval.low, interval.high], [mean.low, mean.high])


def test_a_missing_estimate_survives_json():
    missing = Estimate.missing("too short", 3)
    assert missing.to_json() == {"value": None, "low": None, "high": None, "n": 3, "reason": "too short"}
    back = Estimate.from_json(missing.to_json())
    assert math.isnan(back.value)
    assert back.reason == "too short"
    assert Estimate.from_json(Estimate(1.0, 0.5, 1.5, 9).to_json()) == Estimate(1.0, 0.5, 1.5, 9)


def test_the_mean_of_nothing_is_missing():
    assert estimate_mean(np.full(4, np.nan), reason="no query sees it").reason == "no query sees it"


def test_corrections_have_their_known_values():
    p = np.array([0.01, 0.04, 0.03, np.nan])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, np.nan])
    np.testing.assert_allclose(benjamini_hochberg(p), [0.03, 0.04, 0.04, np.nan])


def test_permutation_p_is_never_zero_and_uniform_under_the_null():
    generator = np.random.default_rng(2)
    draws = generator.normal(size=(999, 400))
    p = permutation_p(generator.normal(size=400), draws, tail="both")
    assert p.min() > 0
    assert 0.02 < (p < 0.05).mean() < 0.09
    assert permutation_p(np.array([100.0]), draws[:, :1])[0] == pytest.approx(1 / 1000)


def test_the_max_statistic_holds_the_family_wise_rate():
    generator = np.random.default_rng(3)
    rejected = 0
    for _ in range(200):
        draws = generator.normal(size=(199, 30))
        rejected += bool(max_statistic_p(generator.normal(size=30), draws).min() < 0.05)
    assert rejected / 200 < 0.1

"""When something appears: monotone fits against a solver, planted change-points recovered within their intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from gnomon.statistics.emergence import emergence, half_way, monotone_fit, resampled_curves, share_before, turning_point

STEPS = np.array([0, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384], dtype=np.float64)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12))
def test_the_monotone_fit_is_isotonic_regression(values):
    np.testing.assert_allclose(monotone_fit(np.array(values)), isotonic_regression(values).x, atol=1e-9)


def test_many_fits_at_once_are_those_one_by_one():
    values = np.random.default_rng(0).normal(size=(5, 3, 9))
    together = monotone_fit(values)
    for index in np.ndindex(5, 3):
        np.testing.assert_allclose(together[index], isotonic_regression(values[index]).x, atol=1e-12)


def test_half_way_is_interpolated_in_the_logarithm_of_the_step():
    steps = np.array([0.0, 9.0, 99.0])
    assert half_way(steps, np.array([0.0, 0.0, 1.0]), falling=False) == pytest.approx(10**1.5 - 1)
    assert half_way(steps, np.array([1.0, 1.0, 0.0]), falling=True) == pytest.approx(10**1.5 - 1)
    assert half_way(steps, np.array([0.0, 1.0, 1.0]), falling=False) == pytest.approx(10**0.5 - 1)
    assert np.isnan(half_way(steps, np.zeros(3), falling=False))


def planted(middle: float, *, groups: int = 16, noise: float = 0.05, falling: bool = False, seed: int = 0):
    """Values and leave-one-group-out values of a sigmoid in the log step, with noise by group that is shared over checkpoints in part."""
    generator = np.random.default_rng(seed)
    curve = 1 / (1 + np.exp(-3 * (np.log1p(STEPS) - np.log1p(middle))))
    curve = 1 - curve if falling else curve
    by_group = curve + noise * (generator.normal(size=(groups, 1)) + generator.normal(size=(groups, len(STEPS))))
    return by_group.mean(0), (by_group.sum(0) - by_group) / (groups - 1)


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("middle", [200.0, 1500.0, 6000.0])
def test_a_planted_step_is_recovered(middle, falling):
    found = emergence(STEPS, *planted(middle, falling=falling))
    assert found.after < middle < found.before
    assert np.log(found.step) == pytest.approx(np.log(middle), abs=0.25)
    assert found.low <= found.step <= found.high
    assert len(found.resampled) == 1000


def test_intervals_cover_a_planted_step_as_often_as_they_say():
    truth = emergence(STEPS, planted(1500.0, noise=0.0)[0]).step
    hits = []
    for seed in range(150):
        found = emergence(STEPS, *planted(1500.0, noise=0.15, seed=seed))
        hits.append(found.low <= truth <= found.high)
    assert 0.86 <= np.mean(hits) <= 1.0


def test_without_replicates_there_is_a_step_and_no_interval():
    found = emergence(STEPS, planted(1500.0)[0])
    assert np.isfinite(found.step)
    assert np.isnan(found.low)
    assert not len(found.resampled)


def test_resampled_curves_have_the_mean_and_the_spread_of_the_groups():
    values, without = planted(1500.0, noise=0.2)
    curves = resampled_curves(values, without, num_resamples=20000)
    error = np.sqrt(15 / 16 * ((without - without.mean(0)) ** 2).sum(0))
    np.testing.assert_allclose(curves.mean(0), values, atol=0.003)
    np.testing.assert_allclose(curves.std(0), error * np.sqrt(15 / 16), rtol=0.03)


def test_a_peak_on_the_way_is_a_turning_point_and_a_slope_has_none():
    curve = np.array([0.2, 0.2, 0.3, 0.9, 0.5, 0.3, 0.25, 0.22, 0.21, 0.2])
    generator = np.random.default_rng(4)
    by_group = curve + 0.02 * generator.normal(size=(16, len(STEPS)))
    without = (by_group.sum(0) - by_group) / 15
    peak = turning_point(STEPS, by_group.mean(0), without)
    assert STEPS[peak.place] == 256
    assert peak.excess == pytest.approx(0.7, abs=0.05)
    assert peak.low == peak.high == 256
    trough = turning_point(STEPS, -by_group.mean(0), -without)
    assert trough.place == peak.place
    assert trough.excess == pytest.approx(-peak.excess)
    assert turning_point(STEPS, np.linspace(0, 1, len(STEPS))) is None
    assert turning_point(STEPS[:2], np.array([0.0, 1.0])) is None


def test_order_is_told_resample_by_resample():
    early, late = (emergence(STEPS, *planted(middle, seed=1)).resampled for middle in (300.0, 3000.0))
    assert share_before(early, late) == 1.0
    assert share_before(late, early) == 0.0
    assert np.isnan(share_before(np.empty(0), np.empty(0)))

"""Differences between runs: paired through groups left out, unpaired from intervals; known answers in float64."""

import math

import numpy as np
import pytest
from scipy import stats

from gnomon.statistics import Estimate
from gnomon.statistics.bootstrap import bootstrap, bootstrap_mean
from gnomon.statistics.difference import jackknife_p, paired_difference, unpaired_difference
from gnomon.statistics.jackknife import Jackknifed, jackknife_mean
from gnomon.statistics.values_only import values_only


def test_a_paired_difference_of_means_is_the_paired_t_test():
    generator = np.random.default_rng(0)
    text = generator.normal(size=12)
    one, two = text + 0.1 * generator.normal(size=12), text + 0.3 + 0.1 * generator.normal(size=12)
    found = paired_difference(jackknife_mean(one), jackknife_mean(two))
    expected = stats.ttest_rel(two, one)
    interval = expected.confidence_interval()
    assert found.value == pytest.approx((two - one).mean(), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.paired


def test_pairing_is_what_sees_a_difference_smaller_than_the_spread_of_texts():
    generator = np.random.default_rng(1)
    text = 5 * generator.normal(size=16)
    one, two = text + 0.05 * generator.normal(size=16), text + 0.2 + 0.05 * generator.normal(size=16)
    paired = paired_difference(jackknife_mean(one), jackknife_mean(two))
    estimates = [Estimate(float(v), float(low), float(high), 16) for v, low, high in map(bootstrap_mean, (one, two))]
    unpaired = unpaired_difference(*estimates)
    assert paired.p < 1e-6 < 0.5 < unpaired.p
    assert unpaired.high - unpaired.low > 20 * (paired.high - paired.low)
    assert not unpaired.paired


def test_an_unpaired_difference_keeps_the_asymmetry_of_its_intervals():
    found = unpaired_difference(Estimate(1.0, 0.9, 1.4), Estimate(2.0, 1.7, 2.1))
    assert found.value == 1.0
    assert found.low == pytest.approx(1 - math.hypot(0.3, 0.4))
    assert found.high == pytest.approx(1 + math.hypot(0.1, 0.1))
    assert found.p == pytest.approx(2 * stats.norm.sf(1.959964 * 1 / math.hypot(0.3, 0.4)), rel=1e-5)
    assert unpaired_difference(Estimate(2.0, 1.7, 2.1), Estimate(1.0, 0.9, 1.4)).p == pytest.approx(found.p)


def test_what_has_no_bounds_has_a_difference_and_no_test():
    found = unpaired_difference(Estimate(0.2), Estimate(0.5, 0.4, 0.6))
    assert found.value == pytest.approx(0.3)
    assert not found.has_bounds
    assert math.isnan(found.p)


def test_without_spread_the_sign_of_every_group_decides():
    constant = Jackknifed(np.array(1.0), np.ones(16))
    nothing = Jackknifed(np.array(0.0), np.zeros(16))
    assert paired_difference(nothing, constant).p == 2.0**-15
    assert math.isnan(paired_difference(constant, constant).p)
    assert paired_difference(constant, constant)[:3] == (0.0, 0.0, 0.0)
    assert math.isnan(jackknife_p(Jackknifed(np.array(1.0), np.ones(2))))
    assert math.isnan(jackknife_p(Jackknifed(np.array(1.0), np.array([1.0, np.nan, 1.0, 1.0]))))


def test_paired_p_values_are_uniform_when_there_is_no_difference():
    generator = np.random.default_rng(2)
    p = []
    for _ in range(2000):
        text = generator.normal(size=16)
        p.append(paired_difference(*(jackknife_mean(text + generator.normal(size=16)) for _ in range(2))).p)
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.03 < (np.array(p) < 0.05).mean() < 0.07


def test_values_only_leaves_bounds_out_and_values_alone():
    values = np.random.default_rng(3).normal(size=(10, 4))
    whole = bootstrap_mean(values)
    with values_only():
        quick = bootstrap_mean(values)
        assert np.isnan(bootstrap(lambda weights: weights @ values, 10).low).all()
    assert np.array_equal(quick.value, whole.value)
    assert np.isnan(quick.low).all()
    assert np.isfinite(bootstrap_mean(values).low).all()

"""The unbiased variance over positions: against its definition, for bias, coverage and size of its test."""

import numpy as np
import pytest

from gnomon.measure.leakage_variance import centred, position_covariance, random_signs, reflected_variances
from gnomon.statistics import permutation_p
from gnomon.statistics.jackknife import Jackknifed, jackknife_mean

POSITIONS = 10
USED = np.ones(POSITIONS, dtype=bool)


def autocorrelated(generator, number, rho=0.5):
    factor = np.linalg.cholesky(rho ** np.abs(np.subtract.outer(np.arange(POSITIONS), np.arange(POSITIONS))))
    return generator.standard_normal((number, POSITIONS)) @ factor.T + generator.standard_normal((number, 1))


def trend(variance):
    line = np.linspace(-1, 1, POSITIONS)
    return line * np.sqrt(variance / line.var())


def test_it_is_the_mean_over_pairs_of_different_sequences():
    generator = np.random.default_rng(0)
    first, second = generator.standard_normal((2, 6, 3, POSITIONS))
    used = np.ones((3, POSITIONS), dtype=bool)
    used[1, :4] = False
    got = position_covariance(centred(first, used), centred(second, used), used)

    def by_definition(sequences):
        out = np.zeros(3)
        for cell in range(3):
            keep = used[cell]
            pairs = [
                np.mean(
                    (first[n, cell, keep] - first[n, cell, keep].mean()) * (second[m, cell, keep] - second[m, cell, keep].mean())
                )
                for n in sequences
                for m in sequences
                if n != m
            ]
            out[cell] = np.mean(pairs)
        return out

    np.testing.assert_allclose(got.value, by_definition(range(6)), atol=1e-14)
    np.testing.assert_allclose(got.without[2], by_definition([0, 1, 3, 4, 5]), atol=1e-14)


def test_without_noise_it_is_the_plain_variance():
    profile = np.random.default_rng(1).standard_normal(POSITIONS)
    profiles = centred(np.tile(profile, (4, 1)), USED)
    got = position_covariance(profiles, profiles, USED)
    np.testing.assert_allclose(got.value, profile.var(), rtol=1e-12)
    np.testing.assert_allclose(got.interval().high - got.interval().low, 0.0, atol=1e-12)


def test_noise_does_not_add_to_it():
    generator = np.random.default_rng(2)
    values = []
    for _ in range(3000):
        profiles = centred(trend(0.1) + 3 * autocorrelated(generator, 4), USED)
        values.append(position_covariance(profiles, profiles, USED).value)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - 0.1) < 4 * error
    plain = np.mean([(trend(0.1) + 3 * autocorrelated(generator, 4)).mean(0).var() for _ in range(500)])
    assert plain > 0.5


@pytest.mark.parametrize("number", [8, 32])
@pytest.mark.parametrize("variance", [0.0, 0.1, 1.0])
def test_the_interval_covers_the_truth(number, variance):
    generator = np.random.default_rng(number)
    covered = []
    for _ in range(400):
        profiles = centred(trend(variance) + autocorrelated(generator, number), USED)
        interval = position_covariance(profiles, profiles, USED).interval()
        covered.append(interval.low <= variance <= interval.high)
    assert np.mean(covered) > 0.89


def test_the_null_has_its_size_where_neighbours_are_correlated():
    generator = np.random.default_rng(5)
    signs = random_signs(99, 24, seed=0)
    rejected = []
    for _ in range(400):
        profiles = centred(autocorrelated(generator, 24, rho=0.8), USED)
        observed = position_covariance(profiles, profiles, USED).value
        rejected.append(permutation_p(observed, reflected_variances(profiles, USED, signs)) <= 0.05)
    assert 0.02 < np.mean(rejected) < 0.085


def test_the_null_sees_a_trend():
    profiles = centred(trend(1.0) + autocorrelated(np.random.default_rng(6), 24), USED)
    observed = position_covariance(profiles, profiles, USED).value
    assert permutation_p(observed, reflected_variances(profiles, USED, random_signs(199, 24, seed=1))) == 1 / 200


def test_too_few_positions_or_sequences_give_nothing():
    profiles = np.random.default_rng(7).standard_normal((5, 2, POSITIONS))
    used = np.zeros((2, POSITIONS), dtype=bool)
    used[0, :2] = True
    used[1, :3] = True
    value = position_covariance(centred(profiles, used), centred(profiles, used), used).value
    assert np.isnan(value[0])
    assert np.isfinite(value[1])
    one = centred(profiles[:1], used)
    assert np.isnan(position_covariance(one, one, used).value).all()


def test_jackknife_of_a_ratio_covers_it():
    generator = np.random.default_rng(8)
    covered = []
    for _ in range(400):
        top, bottom = generator.normal(3, 1, 40), generator.normal(6, 1, 40)
        interval = (jackknife_mean(top) / jackknife_mean(bottom)).interval()
        covered.append(interval.low <= 0.5 <= interval.high)
    assert 0.92 < np.mean(covered) < 0.98


def test_jackknife_of_a_mean_is_the_textbook_interval():
    values = np.random.default_rng(9).standard_normal(12)
    interval = jackknife_mean(values).interval()
    half = 2.200985160082949 * values.std(ddof=1) / np.sqrt(12)
    np.testing.assert_allclose([interval.low, interval.high], [values.mean() - half, values.mean() + half], rtol=1e-10)


def test_missing_cells_are_left_out_of_a_mean():
    cells = Jackknifed(np.array([1.0, np.nan, 3.0]), np.array([[1.0, np.nan, 2.0], [1.0, np.nan, 4.0]]))
    assert cells.mean((-1,)).value == 2.0
    np.testing.assert_allclose(cells.mean((-1,)).without, [1.5, 2.5])

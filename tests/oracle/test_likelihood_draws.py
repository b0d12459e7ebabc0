"""Replacement tokens: bands, kinds of token, seeds, frequency matching."""

import numpy as np
import pytest

from gnomon.study.likelihood.perturbation import BANDS, DRAWN, MIN_CANDIDATES, Candidates, band_edges, draw, token_counts


class Vocabulary:
    """Half the tokens open a word, half continue one; a special token and a number besides."""

    all_special_ids = (0,)

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def convert_ids_to_tokens(self, ids):
        return ["<s>" if i == 0 else "Ġ12" if i == 1 else "Ġword" if i % 2 else "ing" for i in ids]


def candidates(size=2002, counts=None):
    return Candidates.of(Vocabulary(size), size + 6, np.zeros(size + 6, dtype=np.int64) if counts is None else counts)


def test_bands_are_equal_steps_of_log_rank():
    np.testing.assert_array_equal(band_edges(100_000), [0, 10, 100, 1000, 10_000, 100_000])
    assert (np.diff(band_edges(MIN_CANDIDATES)) > 0).all()


def test_candidates_are_letters_of_the_same_kind_and_not_the_token_itself():
    found = candidates()
    like = found.like(3)
    assert 3 not in like
    assert 0 not in like
    assert 1 not in like
    assert (like % 2 == 1).all()
    assert like.max() < 2002
    assert len(like) == 999
    assert (found.like(4) % 2 == 0).all()


def test_draws_lie_in_their_bands_and_cover_them_evenly():
    pool = candidates()
    log_probabilities = -np.arange(2008.0)
    like = pool.like(3)
    rank = {int(token): place for place, token in enumerate(like)}
    edges = band_edges(len(like))
    drawn = np.stack([draw(log_probabilities, 3, pool, np.random.default_rng([0, i])) for i in range(2000)])
    for column, band in enumerate(BANDS[::-1]):
        ranks = np.array([rank[int(token)] for token in drawn[:, DRAWN.index(band)]])
        low, high = edges[column], edges[column + 1]
        assert ((ranks >= low) & (ranks < high)).all()
        assert ranks.mean() == pytest.approx((low + high - 1) / 2, abs=4 * (high - low) / np.sqrt(12 * 2000))
        assert len(set(ranks)) > 0.8 * min(high - low, 700)


def test_draws_are_seeded_and_fresh_per_sentence():
    pool, log_probabilities = candidates(), np.random.default_rng(1).normal(size=2008)
    first, again, other = (draw(log_probabilities, 5, pool, np.random.default_rng([7, i])) for i in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_rounding_moves_hardly_any_draw():
    pool, generator = candidates(), np.random.default_rng(2)
    log_probabilities = generator.normal(size=2008)
    shaken = log_probabilities + 1e-5 * generator.normal(size=2008)
    pairs = [(draw(log_probabilities, 5, pool, np.random.default_rng([3, i])), draw(shaken, 5, pool, np.random.default_rng([3, i])))
             for i in range(300)]  # fmt: skip
    assert np.mean([(one[:5] == other[:5]).all() for one, other in pairs]) > 0.99


def test_matched_draws_have_the_frequency_of_the_likeliest():
    counts = np.random.default_rng(4).integers(0, 5, size=2008)
    pool = candidates(counts=counts)
    lowest, highest, matched = (DRAWN.index(name) for name in ("lowest", "highest", "lowest_matched"))
    log_probabilities = -np.arange(2008.0)
    like = pool.like(3)
    far = set(like[band_edges(len(like))[-2] :].tolist())
    for i in range(50):
        drawn = draw(log_probabilities, 3, pool, np.random.default_rng([5, i]))
        assert pool.log_frequency[drawn[matched]] == pool.log_frequency[drawn[highest]]
        assert int(drawn[matched]) in far
        assert int(drawn[lowest]) in far


def test_too_few_candidates_give_no_draw():
    assert draw(np.zeros(26), 3, candidates(20), np.random.default_rng(0)) is None


def test_counts_and_frequencies():
    counts = token_counts([np.array([1, 1, 2]), np.array([3, 99])], 5)
    np.testing.assert_array_equal(counts, [0, 2, 1, 1, 0])
    assert token_counts([], 3).sum() == 0
    found = Candidates.of(Vocabulary(5), 5, counts)
    np.testing.assert_allclose(np.exp(found.log_frequency), (counts + 0.5) / 6.5)
    assert np.exp(found.log_frequency).sum() == pytest.approx(1)

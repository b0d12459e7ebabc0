"""The likelihood study on constructed words: modes by hand, known correlations, nulls, planted contrasts."""

import numpy as np
import pytest
import torch
from scipy import stats

from gnomon.study.likelihood.attention import CONDITIONS, MODES, mean_over_pairs
from gnomon.study.likelihood.contrast import contrast
from gnomon.study.likelihood.perturbation import DRAWN
from gnomon.study.likelihood.relation import Words, relation

INNER = MODES.index("inner")


def causal_rows():
    rows = torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.6, 0.4, 0.0, 0.0, 0.0],
            [0.5, 0.2, 0.3, 0.0, 0.0],
            [0.4, 0.1, 0.2, 0.3, 0.0],
            [torch.nan] * 5,
        ],
        dtype=torch.float64,
    )
    visible = torch.ones(5, 5, dtype=torch.bool).tril()
    visible[4] = False
    return rows[None, None], visible[None]


def test_modes_by_hand():
    rows, visible = causal_rows()
    word = torch.tensor([[False, True, True, False, False]])
    sink = torch.tensor([[True, False, False, False, False]])
    found = mean_over_pairs(rows, visible, word, sink)[0, 0]
    expected = [
        [(0.4 + 0.2 + 0.3) / 3, (0.6 + 0.5) / 2, (0.1 + 0.2) / 2],
        [(1 + 0.2 / 0.5 + 0.3 / 0.5) / 3, float("nan"), (0.1 / 0.6 + 0.2 / 0.6) / 2],
    ]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), equal_nan=True)


def test_last_word_is_not_received_and_a_sink_has_no_second_condition():
    rows, visible = causal_rows()
    sink = torch.tensor([[True, False, False, False, False]])
    last = mean_over_pairs(rows, visible, torch.tensor([[False, False, False, True, False]]), sink)[0, 0]
    assert last[0, INNER] == pytest.approx(0.3)
    assert torch.isnan(last[:, MODES.index("received")]).all()
    first = mean_over_pairs(rows, visible, torch.tensor([[True, False, False, False, False]]), sink)[0, 0]
    assert first[0, INNER] == 1
    assert torch.isnan(first[CONDITIONS.index("sinks_excluded")]).all()


def test_uniform_attention_gives_one_over_the_number_of_keys_in_every_mode():
    rows = torch.full((1, 2, 6, 6), 1 / 6, dtype=torch.float64)
    visible = torch.ones(1, 6, 6, dtype=torch.bool)
    word = torch.tensor([[False, False, True, True, False, False]])
    sink = torch.tensor([[True, False, False, False, False, True]])
    found = mean_over_pairs(rows, visible, word, sink)
    torch.testing.assert_close(found[:, :, 0], torch.full((1, 2, 3), 1 / 6, dtype=torch.float64))
    torch.testing.assert_close(found[:, :, 1], torch.full((1, 2, 3), 1 / 4, dtype=torch.float64))


def words_with(attention, log_likelihood, controls=None, seed=0):
    """Words whose attention in all heads, conditions and modes of a layer is the column of that layer, plus a spread between heads."""
    rows, layers = attention.shape
    generator = np.random.default_rng(seed)
    spread = 0.01 * generator.normal(size=(1, layers, 2, 2, 3))
    controls = generator.normal(size=(rows, 4)) if controls is None else controls
    return Words(log_likelihood[:, None, None], attention[:, :, None, None, None] + spread, controls)


def test_known_rank_correlation_is_found_in_its_layer():
    generator = np.random.default_rng(2)
    log_likelihood = generator.normal(size=600)
    noise = generator.normal(size=(600, 3))
    pearson = np.array([0.0, -0.3, 0.8])
    attention = pearson * log_likelihood[:, None] + np.sqrt(1 - pearson**2) * noise
    found = relation(words_with(attention, log_likelihood), draws=199, seed=0)
    truth = 6 / np.pi * np.arcsin(pearson / 2)
    value, low, high = (found[f"correlation{end}"].values[0, 0, :, 0, INNER] for end in ("", "_low", "_high"))
    expected = [stats.spearmanr(log_likelihood, attention[:, layer]).statistic for layer in range(3)]
    np.testing.assert_allclose(value, expected, atol=1e-6)
    assert ((low <= truth) & (truth <= high)).all()
    p = found["correlation_p"].values[0, 0, :, 0, INNER]
    assert p[0] > 0.05
    assert p[1] == pytest.approx(0.005)
    assert p[2] == pytest.approx(0.005)
    assert float(found["correlation_held_out"].values[0, 0]) == pytest.approx(truth[2], abs=0.06)
    slope = float(found["correlation_trend"].values[0, 0, 0, INNER])
    assert slope == pytest.approx(value[2] - value[0], abs=1e-6)
    low, high = (float(found[f"correlation_trend_{end}"].values[0, 0, 0, INNER]) for end in ("low", "high"))
    assert low <= truth[2] - truth[0] <= high
    assert float(found["correlation_mean"].values[0, 0, 0, INNER]) == pytest.approx(value.mean(), abs=1e-6)


def test_what_position_makes_disappears_from_the_partial_correlation():
    generator = np.random.default_rng(2)
    position = generator.integers(1, 20, size=800).astype(float)
    log_likelihood = np.log(position) + generator.normal(size=800)
    attention = (1 / (position + 1))[:, None] * (1 + 0.2 * generator.normal(size=(800, 2)))
    controls = np.stack([position, generator.normal(size=800), generator.normal(size=800), generator.normal(size=800)], axis=1)
    found = relation(words_with(attention, log_likelihood, controls), draws=199, seed=0)
    assert found["correlation"].values[0, 0, 0, 0, INNER] < -0.4
    assert abs(found["partial"].values[0, 0, 0, 0, INNER]) < 0.1
    assert found["correlation_p"].values[0, 0, 0, 0, INNER] == pytest.approx(0.005)
    assert found["partial_p"].values[0, 0, 0, 0, INNER] > 0.02
    assert found["position_correlation"].values[0, 0, INNER] < -0.8


def test_corrected_p_values_of_a_constructed_null_are_uniform():
    smallest = []
    for seed in range(120):
        generator = np.random.default_rng(seed)
        shared = generator.normal(size=(40, 1))
        attention = shared + generator.normal(size=(40, 4))
        words = words_with(attention, generator.normal(size=40), seed=seed)
        smallest.append(relation(words, draws=99, seed=seed)["correlation_p"].values.min())
    assert stats.kstest(smallest, "uniform").pvalue > 0.01


def replaced_words(effect_by_layer, frequency_effect, rows=300, seed=0):
    """Inner attention of words and their replacements: an effect of likelihood by layer, and one of log frequency."""
    generator = np.random.default_rng(seed)
    original = generator.uniform(0.2, 0.6, size=(rows, len(effect_by_layer), 2, 2))
    likelihood = np.array([-1, -0.5, 0, 0.5, 1, -1.0])
    log_frequency = np.stack([-10 - generator.exponential(2, size=rows) + 3 * band for band in likelihood], axis=1)
    log_frequency[:, DRAWN.index("lowest_matched")] = log_frequency[:, DRAWN.index("highest")]
    change = (
        likelihood[None, :, None] * np.asarray(effect_by_layer)[None, None]
        + frequency_effect * (log_frequency[..., None] + 10)
        + 0.05 * generator.normal(size=(rows, 6, len(effect_by_layer)))
    )
    return original, original[:, None] + change[..., None, None], log_frequency


def test_planted_contrast_is_recovered_with_its_trend():
    effect = [0.0, 0.05, 0.1]
    found = contrast(*replaced_words(effect, 0.0), draws=199, seed=0)
    for control in range(3):
        low, high = (found[f"contrast_{end}"].values[control, :, 0] for end in ("low", "high"))
        truth = -2 * np.array(effect)
        assert ((low <= truth) & (truth <= high)).all()
    assert found["contrast_trend"].values[0, 0] == pytest.approx(-0.2, abs=0.02)
    assert found["contrast_mean"].values[0, 0] == pytest.approx(-0.1, abs=0.01)
    p = found["contrast_p"].values[0, :, 0]
    assert p[0] > 0.05
    assert p[2] == pytest.approx(0.005)
    band = found["inner_change"].values[:, 2, 0]
    np.testing.assert_allclose(band, [-0.1, -0.05, 0, 0.05, 0.1, -0.1], atol=0.015)


def test_an_effect_of_frequency_alone_is_removed_by_both_controls():
    found = contrast(*replaced_words([0.0, 0.0], 0.02), draws=99, seed=0)
    plain, matched, adjusted = found["contrast_mean"].values[:, 0]
    assert plain < -0.08
    assert abs(matched) < 0.01
    assert abs(adjusted) < 0.03
    low, high = (found[f"contrast_mean_{end}"].values[1:, 0] for end in ("low", "high"))
    assert ((low <= 0) & (high >= 0)).all()

"""Divergences and distances of rows with known answers."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from gnomon.measure.geometry import Geometry, layer_pairs
from tests.oracle.given import finished, star, view_of


def heads(*rows, batch=3):
    return np.broadcast_to(np.stack(rows), (batch, len(rows), *rows[0].shape))


def test_uniform_attention_is_at_zero():
    length = 10
    dataset = finished(Geometry(), [view_of(heads(star(length, 0.0), star(length, 0.0)), causal=True)])
    assert float(dataset["kl_visible"][0, 0]) == pytest.approx(0, abs=1e-6)
    assert float(dataset["rao_uniform"][0, 0]) == pytest.approx(0, abs=2e-3)
    assert float(dataset["js_heads"][0, 0, 1]) == pytest.approx(0, abs=1e-6)
    counts = np.arange(2, length + 1)
    assert float(dataset["kl_uniform"][0, 0]) == pytest.approx(np.mean(np.log(length / counts)), rel=1e-5)
    assert float(dataset["metric_trace"][0, 0]) == pytest.approx(np.mean(1 - 1 / counts), rel=1e-5)


def test_one_key_has_everything():
    length = 12
    first, second = star(length, 1.0, 0, causal=False), star(length, 1.0, 5, causal=False)
    dataset = finished(Geometry(), [view_of(heads(first, second), causal=False)], causal=False)
    assert float(dataset["kl_visible"][0, 0]) == pytest.approx(np.log(length), rel=1e-5)
    assert float(dataset["metric_trace"][0, 0]) == pytest.approx(0, abs=1e-6)
    assert float(dataset["js_heads"][0, 0, 1]) == pytest.approx(np.log(2), rel=1e-5)
    assert float(dataset["rao_heads"][0, 0, 1]) == pytest.approx(np.pi, rel=1e-5)
    assert float(dataset["rao_uniform"][0, 0]) == pytest.approx(2 * np.arccos(np.sqrt(1 / length)), rel=1e-5)


def test_divergence_between_heads_is_scipys():
    generator = np.random.default_rng(2)
    rows = generator.dirichlet(np.full(9, 0.5), (3, 4, 9))
    dataset = finished(Geometry(), [view_of(rows, causal=False)], causal=False)
    expected = np.mean(jensenshannon(rows[:, 1], rows[:, 3], axis=-1) ** 2)
    assert float(dataset["js_heads"][0, 1, 3]) == pytest.approx(expected, rel=1e-4)
    headline = Geometry().headline(dataset)
    assert headline["js_heads"].n == 3
    assert headline["js_heads"].low <= headline["js_heads"].value <= headline["js_heads"].high


def test_divergence_between_layers_from_kept_rows():
    generator = np.random.default_rng(4)
    # every query of a sequence has the same row, so that it does not matter which are kept
    rows = generator.dirichlet(np.full(16, 0.5), (2, 3, 1))[..., None, :].repeat(16, -2)
    views = [view_of(rows[layer], causal=False, layer=layer) for layer in range(2)]
    dataset = finished(Geometry(), views, causal=False)
    expected = np.mean(jensenshannon(rows[0, :, 0, 0], rows[1, :, 0, 0], axis=-1) ** 2)
    assert float(dataset["js_layers"][0, 1]) == pytest.approx(expected, rel=1e-4)
    assert float(dataset["js_layers"][1, 1]) == 0
    assert Geometry().headline(dataset)["js_layers"].value == pytest.approx(expected, rel=1e-4)


def test_long_rows_are_added_up_in_slots():
    rows = np.stack([star(200, 0.6), star(200, 0.2)])[:, None, None].repeat(3, 1)
    views = [view_of(rows[layer], causal=True, layer=layer) for layer in range(2)]
    dataset = finished(Geometry(), views)
    assert 0 < float(dataset["js_layers"][0, 1]) < np.log(2)


def test_single_heads_layers_and_tokens_are_missing_with_a_reason():
    dataset = finished(Geometry(), [view_of(heads(star(8, 0.5)), causal=True)])
    headline = Geometry().headline(dataset)
    assert headline["js_heads"].is_missing
    assert headline["js_layers"].is_missing
    assert not headline["kl_visible"].is_missing
    one = finished(Geometry(), [view_of(heads(np.ones((1, 1))), causal=True)])
    assert Geometry().headline(one)["kl_visible"].is_missing
    assert np.isnan(layer_pairs(np.full((1, 2, 4, 64), np.nan))).all()

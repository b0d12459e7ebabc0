"""Scale sensitivity: identical, proportional and unrelated signals, and what a causal model must give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gnomon.capture import capture_pass, install
from gnomon.errors import ConfigError
from gnomon.measure.scale import coefficient_distance, shortest_signal
from gnomon.model import PositionModel
from gnomon.study.experiment import Context
from gnomon.study.scale import Scale, partners, random_subset
from tests.families.configs import FAMILIES
from tests.oracle.given import windows_of


def test_distance_is_zero_up_to_a_factor_and_one_minus_cosine_otherwise():
    signal = torch.rand(3, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    np.testing.assert_allclose(coefficient_distance(signal, 3 * signal).numpy(), 0, atol=1e-12)
    np.testing.assert_allclose(coefficient_distance(signal, -signal).numpy(), 2, atol=1e-12)
    spikes = torch.zeros(2, 64).double()
    spikes[0, 10], spikes[1, 50] = 1, 1
    assert float(coefficient_distance(spikes[:1], spikes[1:])) == pytest.approx(1, abs=1e-9)


def test_short_and_empty_signals_are_missing():
    assert shortest_signal() == 24
    assert torch.isnan(coefficient_distance(torch.ones(2, 20), torch.ones(2, 20))).all()
    assert torch.isnan(coefficient_distance(torch.zeros(2, 30), torch.ones(2, 30))).all()


def test_partners_are_others_of_like_length():
    lengths = np.array([50, 200, 20, 100])
    assert partners(lengths).tolist() == [3, 3, 0, 1]


def test_subsets_keep_order_and_position_0_and_repeat():
    places = random_subset(50, 20, 0, 3)
    assert places[0] == 0
    assert len(places) == len(set(places.tolist())) == 20
    assert (np.diff(places) > 0).all()
    assert places.tolist() == random_subset(50, 20, 0, 3).tolist()
    assert places.tolist() != random_subset(50, 20, 0, 4).tolist()


def opened(name):
    family = FAMILIES[name]
    return install(PositionModel.of(family.build(), name=name, stack=family.stack))


def run(model, lengths):
    tokens = np.random.default_rng(0).integers(8, 264, size=(len(lengths), max(lengths)))
    windows, experiment = windows_of(lengths, max(lengths), tokens=tokens), Scale()
    dataset = experiment.run(model, windows, Context(batch_size=3))
    return windows, dataset, experiment.headline(dataset)


def test_in_a_causal_model_the_published_distance_compares_averages_of_the_same_rows():
    """Nothing but the number of queries averaged over differs between a text and its prefix: no second pass is needed to predict it."""
    model = opened("llama")
    windows, dataset, headline = run(model, [120, 110, 100])
    expected = []
    for text, length in enumerate([120, 110, 100]):
        rows = []
        tokens = torch.from_numpy(windows.tokens[text : text + 1, :length].copy())
        capture_pass(
            model,
            tokens,
            torch.tensor([length]),
            on_view=lambda view, n=length, rows=rows: rows.append(view.rows(torch.arange(n))[0]),
        )
        matrix, half = torch.stack(rows).double(), length // 2
        whole, prefix = matrix.mean(2)[..., 1:half], matrix[:, :, :half].mean(2)[..., 1:half]
        expected.append(coefficient_distance(whole, prefix).mean())
    np.testing.assert_allclose(dataset["paper_distance_by_text"].sel(alpha=0.5), torch.stack(expected).numpy(), rtol=1e-3)
    assert headline["paper/0.5"].value == pytest.approx(float(torch.stack(expected).mean()), rel=1e-3)


def test_a_subset_of_a_text_is_more_like_it_than_unrelated_text():
    _, dataset, headline = run(opened("bert"), [120, 110, 100, 130, 60])
    assert 0 < headline["calibrated/0.5"].value < 1
    assert (dataset["unrelated_distance"].sel(alpha=0.5) > 0).all()
    assert headline["calibrated/0.5"].low < headline["calibrated/0.5"].value < headline["calibrated/0.5"].high


def test_short_texts_are_missing_and_counted():
    _, dataset, headline = run(opened("llama"), [30, 28, 26, 29])
    assert headline["paper/0.5"].is_missing
    assert headline["calibrated/0.25"].reason is not None
    assert "4 of 4 texts are too short" in dataset.attrs["missing"]


def test_options_are_checked():
    with pytest.raises(ConfigError, match="alphas"):
        Scale(alphas=(1.5,))

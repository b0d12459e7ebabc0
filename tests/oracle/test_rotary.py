"""Rotary frequencies and shares: planted pairs, layouts, partial width, layers without rotation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gnomon.capture import capture_pass, install
from gnomon.kernels.problem import AttentionProblem, MaskStructure
from gnomon.measure.protocol import Observed, Subject
from gnomon.measure.rotary import Rotary
from gnomon.measure.rotary_pairs import feature_covariance, pair_features, sample_points
from gnomon.model import PositionModel
from tests.families.configs import FAMILIES
from tests.oracle.given import windows_of


def problem_of(query, key, lengths, *, causal=True, window=None):
    mask = MaskStructure(causal=causal, lengths=torch.tensor(lengths), window=window)
    return AttentionProblem(query=query, key=key, value=key, scaling=0.25, mask=mask)


def test_layouts():
    assert pair_features(3, interleaved=False).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert pair_features(3, interleaved=True).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_covariances_sum_to_the_variance_of_the_logits():
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(2, heads, 50, 8, generator=generator) for heads in (4, 2))
    problem = problem_of(query, key, [50, 30])
    queries, keys = sample_points(problem, 200, seed=1)
    found = feature_covariance(problem, queries, keys)
    whole = key.repeat_interleave(2, 1)
    for text in range(2):
        logits = 0.25 * (query[text][:, queries[text]] * whole[text][:, keys[text]]).sum(-1).double()
        seen = keys[text] >= 0
        np.testing.assert_allclose(found[text].sum(-1).numpy(), logits[:, seen].var(-1, unbiased=False).numpy(), rtol=1e-5)


def test_places_are_visible_and_leave_position_0_out():
    key = torch.randn(2, 1, 60, 4)
    for causal, window in ((True, None), (True, 5), (False, None), (False, 4)):
        problem = problem_of(key, key, [60, 20], causal=causal, window=window)
        queries, keys = sample_points(problem, 300, seed=0)
        for text, length in enumerate((60, 20)):
            query, chosen = queries[text], keys[text]
            assert (query < length).all()
            real = chosen >= 0
            assert (chosen[real] >= 1).all()
            visible = problem.mask.visible(torch.arange(60), torch.arange(60))[text]
            assert visible[query[real], chosen[real]].all()


def test_the_planted_pair_carries_the_variance():
    time = torch.arange(64).float()
    query, key = torch.zeros(3, 1, 64, 8), torch.zeros(3, 1, 64, 8)
    for vectors in (query, key):
        vectors[..., 2], vectors[..., 6] = torch.cos(0.7 * time), torch.sin(0.7 * time)
        vectors[..., 1] = 3.0  # large, but the same everywhere: no variance
    covariance = feature_covariance(problem_of(query, key, [64] * 3), *sample_points(problem_of(query, key, [64] * 3), 400, 0))
    share = (covariance / covariance.sum(-1, keepdim=True))[..., pair_features(4, interleaved=False)].sum(-1)
    np.testing.assert_allclose(share[:, 0].numpy(), [[0, 0, 1, 0]] * 3, atol=1e-9)


def surveyed(name, length=96):
    family = FAMILIES[name]
    model = install(PositionModel.of(family.build(), name=name, stack=family.stack))
    tokens = np.random.default_rng(0).integers(8, 264, size=(4, length))
    windows = windows_of([length] * 4, length, tokens=tokens)
    measure, layers = Rotary(), []
    subject = Subject(anatomy=model.anatomy, scheme=model.scheme, windows=windows)
    inputs = torch.from_numpy(windows.tokens.copy()), torch.tensor([length] * 4)
    capture_pass(model, *inputs, None, measure.needs(subject), lambda view: layers.append(measure.observe(view)))
    kept = {key: torch.stack([layer[key] for layer in layers], 1).numpy() for key in layers[0]}
    return model, measure, measure.finish(Observed(layers=kept, subject=subject))


@pytest.mark.parametrize("name", ["llama", "gpt-neox", "gpt-j", "smollm3", "gpt2", "modernbert"])
def test_shares_add_up_for_every_layout(name):
    model, _, dataset = surveyed(name)
    total = np.nansum(dataset["share"].values, -1) + dataset["unrotated_share"].values
    np.testing.assert_allclose(total, 1, atol=1e-4)
    unrotated = dataset["unrotated_share"].values
    for layer, rotates in enumerate(model.scheme.rope_layers):
        if not rotates:
            np.testing.assert_allclose(unrotated[layer], 1, atol=1e-6)


def test_frequencies_are_the_models_own():
    model, measure, dataset = surveyed("llama-llama3")
    frequency = np.array(model.scheme.inverse_frequencies[0])
    np.testing.assert_allclose(dataset["wavelength"].values[0], 2 * math.pi / frequency, rtol=1e-5)
    np.testing.assert_allclose(dataset["turns"].values[0], frequency * 96 / (2 * math.pi), rtol=1e-5)
    headline = measure.headline(dataset)
    assert headline["shortest_wavelength"].value == pytest.approx(2 * math.pi / frequency.max(), rel=1e-5)
    assert 0 < headline["pairs_turning"].value < 1


def test_models_without_rotation_say_so():
    _, measure, dataset = surveyed("gpt2")
    assert measure.headline(dataset)["turning_share"].reason == "no layer of this model rotates its queries and keys"

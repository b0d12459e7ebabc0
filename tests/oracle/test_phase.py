"""Lines, harmonics and imposed phases: signals with known answers, then what RoPE must do and models without it must not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gnomon.capture import install
from gnomon.errors import ConfigError
from gnomon.measure import oscillation
from gnomon.measure.rotary_pairs import pair_features
from gnomon.model import PositionModel
from gnomon.study.experiment import Context
from gnomon.study.phase import Phase
from gnomon.study.phase_harmonics import activation_of
from tests.families.configs import FAMILIES
from tests.oracle.given import windows_of

TIME = torch.arange(256).double()


def test_a_pure_tone_is_all_line_and_noise_is_almost_none():
    tone = torch.polar(torch.ones(256).double(), 0.37 * TIME + 1.0)
    frequency = torch.tensor([0.37, 1.5], dtype=torch.float64)
    found = oscillation.line_share(tone.expand(2, -1), frequency)
    assert float(found[0]) == pytest.approx(1)
    assert float(found[1]) < 1e-6
    noise = torch.randn(400, 256, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    assert float(oscillation.line_share(noise, torch.tensor(0.37)).mean()) == pytest.approx(1.5 / 256, rel=0.15)


def test_contrast_is_one_for_lines_zero_for_noise_and_missing_for_constants():
    lines, around = oscillation.resolved_frequencies([1.0, 0.5, 0.25, 0.125], 256)
    assert lines.tolist() == [1.0, 0.5, 0.25]
    comb = torch.stack([torch.cos(f * TIME) for f in lines.tolist()]).sum(0)
    assert float(oscillation.line_contrast(comb[None], lines, around)) > 0.99
    noise = torch.randn(300, 20, 256, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert abs(float(oscillation.line_contrast(noise, lines, around).mean())) < 0.02
    walk = noise.cumsum(-1)
    assert abs(float(oscillation.line_contrast(walk, lines, around).mean())) < 0.05
    assert math.isnan(float(oscillation.line_contrast(torch.ones(1, 256).double(), lines, around)))


def test_unresolved_frequencies_are_left_out():
    lines, _ = oscillation.resolved_frequencies([1.0, 0.99, 0.5], 64)
    assert len(lines) == 0
    lines, _ = oscillation.resolved_frequencies([1.0, 0.5, 0.45], 64)
    assert lines.tolist() == [1.0]


def test_a_square_makes_the_second_harmonic_and_a_cube_the_third():
    wave = torch.cos(2 * math.pi * TIME / 16)[:, None]
    square = oscillation.harmonic_power(wave**2 + wave, 16, 5)
    np.testing.assert_allclose((square / square[0]).numpy(), [1, 0.25, 0, 0, 0], atol=1e-12)
    cube = oscillation.harmonic_power(wave**3, 16, 5)  # 3/4 cos + 1/4 cos 3
    assert float(oscillation.distortion(cube)) == pytest.approx(1 / 3)
    assert torch.isnan(oscillation.harmonic_power(wave, 8, 5)[4])


def test_the_tangent_of_a_nonlinearity_distorts_nothing():
    wave = 0.8 * torch.cos(2 * math.pi * TIME / 16)[None, :, None]
    silu = torch.nn.functional.silu
    bent = oscillation.distortion(oscillation.harmonic_power(silu(wave), 16, 5))
    straight = oscillation.distortion(oscillation.harmonic_power(oscillation.linearised(silu, wave), 16, 5))
    assert float(bent) > 0.1
    assert float(straight) < 1e-4


def test_turning_pairs_is_a_rotation():
    vectors = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pairs = torch.from_numpy(pair_features(3, interleaved=False))
    turned = oscillation.rotate(vectors, pairs, 0.7)
    torch.testing.assert_close(turned.norm(dim=-1), vectors.norm(dim=-1))
    torch.testing.assert_close(turned[..., 6:], vectors[..., 6:])
    torch.testing.assert_close(oscillation.rotate(turned, pairs, -0.7), vectors)
    opposed = oscillation.rotate(vectors, pairs, math.pi)
    torch.testing.assert_close(opposed[..., :6], -vectors[..., :6])


def run(name):
    family = FAMILIES[name]
    model = install(PositionModel.of(family.build(), name=name, stack=family.stack))
    tokens = np.random.default_rng(0).integers(8, 264, size=(6, 64))
    windows = windows_of([64, 64, 64, 50, 40, 30], 64, tokens=tokens)
    experiment = Phase(num_tokens=4, num_pairs=4, num_texts=4)
    dataset = experiment.run(model, windows, Context(batch_size=4))
    return dataset, experiment.headline(dataset)


@pytest.fixture(scope="module")
def rope():
    return run("llama")


@pytest.fixture(scope="module")
def learned():
    return run("gpt2")


def test_rotation_turns_queries_and_keys_but_not_the_stream(rope):
    """Equal content gives equal states at every position, so the stream stands still while queries and keys are pure tones."""
    _, headline = rope
    assert headline["oscillation/query_line_bare"].value == pytest.approx(1, abs=1e-5)
    assert headline["oscillation/key_line_bare"].value == pytest.approx(1, abs=1e-5)
    assert headline["oscillation/stream_variation_bare"].value < 1e-5
    assert headline["oscillation/stream_contrast_bare"].is_missing
    assert headline["oscillation/logit_contrast_bare"].value > 0.9


def test_models_without_rotation_have_no_line_at_assumed_frequencies(learned):
    dataset, headline = learned
    assert headline["oscillation/query_line_bare"].value < 0.2
    assert dataset.attrs["rotates"] in (False, 0)
    assert "assumed" in dataset.attrs["frequencies"]


@pytest.mark.parametrize("which", ["rope", "learned"])
def test_activations_add_harmonics_that_their_tangents_do_not(which, request):
    _, headline = request.getfixturevalue(which)
    assert headline["harmonics/distortion_post"].value > headline["harmonics/distortion_post_linear"].value
    assert headline["harmonics/added_output"].value > 0


def test_phase_zero_is_the_model_itself_and_opposed_planes_are_one_map(rope):
    dataset, _ = rope
    zero = dataset["global_entropy_by_text"].isel(phase=0)
    assert np.isfinite(zero).all()
    rotary, other = (dataset[f"local_entropy_{planes}_by_text"] for planes in ("rotary", "other"))
    np.testing.assert_allclose(rotary.isel(phase=0), other.isel(phase=0), atol=1e-6)
    np.testing.assert_allclose(rotary.isel(phase=4), other.isel(phase=4), rtol=1e-4)
    assert float(abs(rotary - other).isel(phase=2).max()) > 1e-3


@pytest.mark.parametrize("name", ["llama", "gpt-neox", "gpt2", "bert", "phi", "t5-encoder"])
def test_activations_are_found(name):
    family = FAMILIES[name]
    model = PositionModel.of(family.build(), name=name, stack=family.stack)
    assert all(activation_of(model, layer) is not None for layer in range(model.anatomy.num_layers))


def test_options_are_checked():
    with pytest.raises(ConfigError, match="num_texts"):
        Phase(num_texts=1)

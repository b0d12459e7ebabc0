"""Wavelets against PyWavelets, against orthogonality, and against signals whose energies are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pywt
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.measure import wavelets

MODES = ("symmetric", "periodization")


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.filterwarnings("ignore:Level value")
@settings(deadline=None, max_examples=60)
@given(
    length=st.integers(2, 70),
    level=st.integers(1, 4),
    wavelet=st.sampled_from(["haar", "db2", "db4"]),
    mode=st.sampled_from(MODES),
)
def test_torch_engine_equals_pywavelets_both_ways(length: int, level: int, wavelet: str, mode: wavelets.Mode):
    signal = noise(2, 3, length, seed=length)
    expected = pywt.wavedec(signal.numpy(), wavelet, mode=mode, level=level, axis=-1)
    found = wavelets.decompose_torch(signal, level, mode, wavelet)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)
    rebuilt = wavelets.rebuild_torch(found, mode, wavelet)
    np.testing.assert_allclose(rebuilt.numpy(), pywt.waverec(expected, wavelet, mode=mode, axis=-1), atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("length", [16, 17, 96, 131])
def test_reconstruction_is_exact_to_rounding_in_float64(mode: wavelets.Mode, length: int):
    signal = noise(5, length)
    level = wavelets.max_level(length)
    rebuilt = wavelets.rebuild(wavelets.decompose(signal, level, mode), mode)[..., :length]
    assert (rebuilt - signal).norm() / signal.norm() < 2e-15


def test_depths_agree_with_pywavelets():
    assert [wavelets.max_level(n) for n in (16, 24, 96, 200)] == [2, 3, 5, 6]


def test_periodized_transform_is_an_orthogonal_matrix():
    matrix = wavelets.transform_matrix(64, 3)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(64), atol=1e-12)
    signal = noise(64)
    stacked = torch.cat(wavelets.decompose(signal, 3, "periodization"))
    np.testing.assert_allclose(matrix @ signal.numpy(), stacked.numpy(), atol=1e-12)


def test_transform_matrix_refuses_lengths_that_do_not_halve():
    with pytest.raises(ValueError, match="multiple of 2"):
        wavelets.transform_matrix(60, 3)


def test_planted_scale_holds_all_the_energy():
    """A signal built from one coefficient of one scale has its energy in that scale alone."""
    matrix = wavelets.transform_matrix(64, 3)
    for name, rows in wavelets.scale_slices(64, 3).items():
        signal = matrix[rows.start + 1]
        energy = {other: float(((matrix @ signal)[where] ** 2).sum()) for other, where in wavelets.scale_slices(64, 3).items()}
        assert energy[name] == pytest.approx(1, abs=1e-12)


def test_haar_step_has_known_energies():
    """A step from 0 to 1 in the middle, periodic Haar: mean energy in A3, nothing in any detail."""
    step = torch.cat([torch.zeros(32), torch.ones(32)]).double()
    approximation, *details = wavelets.decompose(step, 3, "periodization", "haar")
    assert float(approximation.square().sum()) == pytest.approx(32)
    assert all(float(detail.abs().max()) < 1e-12 for detail in details)


def test_alternating_signal_lies_in_the_finest_detail():
    signal = torch.tensor([1.0, -1.0]).double().repeat(32)
    _, _, _, finest = wavelets.decompose(signal, 3, "periodization")
    assert float(finest.square().sum()) == pytest.approx(64)


def test_energy_entropy_of_equal_single_and_absent_energy():
    equal, single, absent = torch.ones(8).double(), torch.eye(8).double()[3], torch.zeros(8).double()
    found = wavelets.energy_entropy(torch.stack([equal, single, absent]))
    assert float(found[0]) == pytest.approx(math.log(8))
    assert float(found[1]) == pytest.approx(0)
    assert math.isnan(float(found[2]))

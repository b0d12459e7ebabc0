"""Baselines of uniform attention equal the dense computation for every mask structure."""

import numpy as np
import pytest
import torch

from gnomon.kernels.quantities import DEFAULT_OFFSET_EDGES, Needs
from gnomon.measure import bands
from tests.oracle.dense import dense_view

STRUCTURES = {
    "causal": {},
    "bidirectional": {"causal": False},
    "window": {"window": 5},
    "two-sided window": {"causal": False, "window": 5},
    "chunk": {"chunk": 8},
    "window in chunk": {"causal": False, "window": 4, "chunk": 7},
}
NEEDS = Needs(first_keys=1, special=True, received=True, offset_edges=DEFAULT_OFFSET_EDGES)
LENGTHS = torch.tensor([20, 13, 1])


@pytest.fixture(params=STRUCTURES, ids=list(STRUCTURES))
def uniform(request):
    special = torch.zeros(3, 20, dtype=torch.bool)
    special[:, 0] = special[0, 19] = special[1, [6, 12]] = True
    return dense_view(torch.zeros(3, 2, 20, 20), NEEDS, lengths=LENGTHS, special=special, **STRUCTURES[request.param])


def close(found, wanted):
    torch.testing.assert_close(found.double(), wanted.double(), equal_nan=True, rtol=1e-5, atol=1e-6)


def test_uniform_baselines(uniform):
    mask = uniform.mask
    close(bands.uniform_received(mask, 20), uniform.received[:, 0].nan_to_num(0.0))
    close(bands.uniform_offset_mass(mask, 20, DEFAULT_OFFSET_EDGES), uniform.offset_mass[:, 0])
    weight = bands.uniform_weight(mask, 20)
    close(weight * bands.visible_special(mask, uniform.special), uniform.special_mass[:, 0])
    sees = bands.sees_position_0(mask, 20)
    close(torch.where(sees, weight, torch.nan), torch.where(sees, uniform.first[:, 0, :, 0], torch.nan))
    assert (uniform.first[:, 0, :, 0][bands.real_positions(mask, 20) & ~sees] == 0).all()


def test_viewers_are_counted(uniform):
    places = torch.arange(20)
    visible = uniform.mask.visible(places, places) & bands.real_positions(uniform.mask, 20)[..., None]
    assert torch.equal(bands.viewers(uniform.mask, 20), visible.sum(1))


def test_harmonic_baseline_of_position_0():
    view = dense_view(torch.zeros(1, 1, 64, 64), NEEDS)
    members = bands.band_members(64)
    found = bands.mean_over(view.first[..., 0], bands.sees_position_0(view.mask, 64), members)[0, 0]
    harmonic = np.cumsum(1 / np.arange(1, 65))
    assert found[bands.ALL].item() == pytest.approx((harmonic[63] - 1) / 63)
    assert found[bands.FROM_32].item() == pytest.approx((harmonic[63] - harmonic[31]) / 32)
    assert found[0].item() == pytest.approx((harmonic[31] - harmonic[1]) / 30)
    assert torch.isnan(found[list(bands.QUERY_BANDS).index("late")])


def test_octaves_cover_every_position_once():
    members = bands.position_members(300)
    assert (members.sum(1) == 1).all()
    assert members.sum(0)[:10].tolist() == [1, 1, 2, 4, 8, 16, 32, 64, 128, 44]


def test_means_keep_a_real_nan_and_ignore_padding():
    values = torch.tensor([[[1.0, 2.0, torch.nan]], [[1.0, torch.nan, 3.0]]])
    eligible = torch.tensor([[True, True, False], [True, True, True]])
    found = bands.mean_over(values, eligible, torch.ones(3, 1, dtype=torch.bool))[:, 0, 0]
    assert found[0] == 1.5
    assert torch.isnan(found[1])

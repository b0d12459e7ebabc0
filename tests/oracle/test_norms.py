"""Norms by position and massive activations with known answers."""

import numpy as np
import pytest
import torch

from gnomon.capture.view import StateView
from gnomon.kernels.quantities import Needs
from gnomon.measure.norms import Norms, largest_and_median
from tests.oracle.dense import dense_view, observed_of

MEASURE = Norms()
LENGTH, WIDTH = 20, 16


def layer_with(key_norms, value_norms, lengths=None):
    """A layer whose keys and values have the given norms by position."""
    batch = len(key_norms)
    direction = torch.randn(batch, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    unit = direction / direction.norm(dim=-1, keepdim=True)
    key, value = (unit * torch.as_tensor(norms)[:, None, :, None] for norms in (key_norms, value_norms))
    return dense_view(key.transpose(-1, -2), Needs(), lengths=lengths, value=value)


def states_with(hidden, lengths):
    special = torch.zeros(hidden.shape[:2], dtype=torch.bool)
    return StateView(level=0, hidden=hidden, lengths=lengths, special=special)


def test_norms_by_octave_and_ratio_of_position_0():
    keys = torch.full((3, LENGTH), 2.0, dtype=torch.float64)
    values = torch.arange(1, LENGTH + 1).double().repeat(3, 1)
    keys[:, 0], values[:, 0] = 6.0, 0.5
    lengths = torch.full((3,), LENGTH)
    hidden = torch.ones(3, LENGTH, WIDTH, dtype=torch.float64)
    hidden[:, 0] = 10.0
    states = [states_with(hidden, lengths)] * 4
    dataset = MEASURE.finish(observed_of(MEASURE, [layer_with(keys, values)], states))
    assert dataset["key_norm"].isel(layer=0, kv_head=0).values == pytest.approx([6, 2, 2, 2, 2, 2])
    assert dataset["value_norm"].isel(layer=0, kv_head=0).values == pytest.approx([0.5, 2, 3.5, 6.5, 12.5, 18.5])
    assert dataset["hidden_norm"].isel(level=0).values == pytest.approx([40, 4, 4, 4, 4, 4])
    headline = MEASURE.headline(dataset)
    assert headline["key_ratio"].value == pytest.approx(3.0)
    assert headline["value_ratio"].value == pytest.approx(0.5 / np.arange(2, LENGTH + 1).mean())
    assert headline["hidden_ratio"].value == pytest.approx(10.0)
    assert headline["massive_levels"].value == 0.0
    assert headline["massive_at_position_0"].is_missing
    assert headline["massive_at_position_0"].reason == "no level has a massive activation"


def test_planted_massive_activations_are_found_where_they_are():
    generator = torch.Generator().manual_seed(1)
    quiet = 0.1 * torch.randn(4, LENGTH, WIDTH, generator=generator)
    loud = quiet.clone()
    loud[:, 0, 7] = -900.0
    loud[:, 0, 3] = 500.0
    loud[:, 11, 7] = 300.0
    lengths = torch.full((4,), LENGTH)
    norms = torch.ones(4, LENGTH, dtype=torch.float64)
    states = [states_with(level, lengths) for level in (quiet, loud, loud, quiet)]
    dataset = MEASURE.finish(observed_of(MEASURE, [layer_with(norms, norms)] * 3, states))
    assert dataset["massive_share"].values.tolist() == [0, 1, 1, 0]
    assert dataset["largest_magnitude"].values[0, 1].tolist() == [900, 500, 300]
    assert dataset["largest_position"].values[2, 1].tolist() == [0, 0, 11]
    assert dataset["largest_feature"].values[2, 1].tolist() == [7, 3, 7]
    headline = MEASURE.headline(dataset)
    assert headline["massive_levels"].value == 0.5
    assert headline["massive_at_position_0"].value == pytest.approx(2 / 3)
    assert headline["largest_activation"].value == 900
    median = np.median(np.abs(loud.numpy()).reshape(4, -1), axis=1)
    assert headline["largest_over_median"].value == pytest.approx((900 / median).mean(), rel=0.02)
    milder = Norms(massive_above=600.0)
    dataset = milder.finish(observed_of(milder, [layer_with(norms, norms)] * 3, states))
    assert dataset["massive"].values[0, 1].tolist() == [True, False, False]


def test_padding_never_enters():
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(3, LENGTH, WIDTH, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([LENGTH, 9, 9])
    hidden[1, 9:] = 1e6
    found = largest_and_median(hidden, lengths)
    for row, length in enumerate(lengths.tolist()):
        magnitude = hidden[row, :length].abs().flatten()
        assert found["median"][row].item() == pytest.approx(magnitude.median().item())
        ordered = magnitude.sort(descending=True)
        assert found["largest"][row].tolist() == pytest.approx(ordered.values[:3].tolist())
        assert (found["largest_position"][row] * WIDTH + found["largest_feature"][row]).tolist() == ordered.indices[:3].tolist()
    norms = torch.ones(3, LENGTH, dtype=torch.float64)
    norms[1, 9:] = 1e6
    kept = MEASURE.observe(layer_with(norms, norms, lengths))
    assert kept["key_norm"][1, 0, :5].tolist() == pytest.approx([1.0] * 5)
    assert torch.isnan(kept["key_norm"][1, 0, 5:]).all()
    assert kept["key_ratio"][:, 0].tolist() == pytest.approx([1.0] * 3)


def test_half_precision_states_do_not_overflow():
    hidden = torch.full((3, 4, 64), 3.0e4, dtype=torch.float16)
    kept = MEASURE.observe_states(states_with(hidden, torch.full((3,), 4)))
    assert kept["hidden_norm"][0, 0].item() == pytest.approx(3.0e4 * 8, rel=1e-3)
    assert kept["largest"].dtype == torch.float32


def test_one_token_has_no_ratio():
    hidden = torch.ones(3, 1, WIDTH)
    kept = MEASURE.observe_states(states_with(hidden, torch.ones(3, dtype=torch.int64)))
    assert torch.isnan(kept["hidden_ratio"]).all()
    with pytest.raises(ValueError, match="`massive_above`"):
        Norms(massive_ratio=0)


def test_the_largest_of_many_blocks_are_found_where_they_are():
    generator = torch.Generator().manual_seed(5)
    hidden = torch.randn(2, 61, 97, generator=generator)
    hidden[0, 60, 96], hidden[0, 0, 0], hidden[0, 30, 5] = 50.0, -60.0, 40.0
    kept = largest_and_median(hidden, torch.tensor([61, 61]))
    expected = hidden.abs().flatten(1).topk(3)
    torch.testing.assert_close(kept["largest"], expected.values)
    assert kept["largest_position"][0].tolist() == [0, 60, 30]
    assert kept["largest_feature"][0].tolist() == [0, 96, 5]

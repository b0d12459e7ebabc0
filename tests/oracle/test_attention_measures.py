"""Concentration and reach of attention with known answers, in float64."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from gnomon.kernels.quantities import DEFAULT_OFFSET_EDGES
from gnomon.measure.attention import BY_BAND, Attention
from gnomon.measure.bands import QUERY_BANDS
from tests.oracle.dense import dense_view, observed_of, weights_of

MEASURE = Attention()
NEEDS = MEASURE.needs(None)
LENGTH = 48


def run(*views):
    dataset = MEASURE.finish(observed_of(MEASURE, list(views)))
    return dataset, MEASURE.headline(dataset)


def test_uniform_attention():
    dataset, headline = run(dense_view(torch.zeros(3, 2, LENGTH, LENGTH), NEEDS))
    counts = np.arange(2, LENGTH + 1)
    assert headline["entropy"].value == pytest.approx(np.log(counts).mean())
    assert headline["relative_entropy"].value == pytest.approx(1.0)
    assert headline["effective_keys"].value == pytest.approx(counts.mean())
    assert headline["peak"].value == pytest.approx((1 / counts).mean())
    assert headline["offset_mean"].value == pytest.approx(((counts - 1) / 2).mean())
    assert headline["offset_sd"].value == pytest.approx(np.sqrt((counts**2 - 1) / 12).mean())
    np.testing.assert_allclose(dataset["offset_mass"].mean("head"), dataset["offset_mass_uniform"], rtol=1e-5)
    np.testing.assert_allclose(dataset["received"].mean("head"), dataset["received_uniform"], rtol=1e-5)
    assert dataset["offset_mass_uniform"].sum().item() == pytest.approx(1.0)


def test_a_head_that_looks_back_by_five():
    logits = torch.full((3, 1, LENGTH, LENGTH), -500.0)
    for query in range(LENGTH):
        logits[:, 0, query, max(0, query - 5)] = 0.0
    dataset, headline = run(dense_view(logits, NEEDS))
    offsets = np.minimum(np.arange(1, LENGTH), 5)
    assert headline["entropy"].value == pytest.approx(0.0, abs=1e-9)
    assert headline["effective_keys"].value == pytest.approx(1.0)
    assert headline["peak"].value == pytest.approx(1.0)
    assert headline["offset_mean"].value == pytest.approx(offsets.mean())
    assert headline["offset_sd"].value == pytest.approx(0.0, abs=1e-6)
    assert headline["self_mass"].value == pytest.approx(0.0, abs=1e-9)
    mass = dataset["offset_mass"].isel(layer=0, head=0)
    assert mass.sel(offset_band=4).item() == pytest.approx((offsets >= 4).mean())
    # position 0 receives 1 from queries 0 to 5, of 48 that see it; the last octave nearly one per viewer that is five ahead
    assert dataset["received"].isel(layer=0, head=0).sel(position_band=0).item() == pytest.approx(6 / 48)


@pytest.mark.parametrize("structure", [{}, {"causal": False}, {"window": 7}, {"causal": False, "window": 6}, {"chunk": 16}])
def test_everything_equals_the_dense_computation(structure):
    generator = torch.Generator().manual_seed(2)
    logits = 2 * torch.randn(2, 3, LENGTH, LENGTH, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([LENGTH, 29])
    view = dense_view(logits, NEEDS, lengths=lengths, **structure)
    kept = {name: values.numpy() for name, values in MEASURE.observe(view).items()}
    dense_weights, places = weights_of(view).numpy(), torch.arange(LENGTH)
    visible = view.mask.visible(places, places).numpy()
    for row, length in enumerate(lengths.tolist()):
        weights, seen = dense_weights[row, :, :length, :length], visible[row, :length, :length]
        offset = np.abs(np.arange(length)[:, None] - np.arange(length)[None])
        logs = np.log(np.where(weights > 0, weights, 1.0))
        entropy = -(weights * logs).sum(-1)
        mean = (weights * offset).sum(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            wanted = {
                "entropy": entropy,
                "relative_entropy": entropy / np.log(seen.sum(1)),
                "effective_keys": np.exp(entropy),
                "peak": weights.max(-1),
                "self_mass": np.diagonal(weights, axis1=1, axis2=2),
                "offset_mean": mean,
                "offset_sd": np.sqrt((weights * (offset - mean[..., None]) ** 2).sum(-1)),
                "sequence_mass": weights.sum(-1),
            }
        for name, values in wanted.items():
            for index, (low, high) in enumerate(QUERY_BANDS.values()):
                at = [i for i in range(length) if low <= i < high and (name != "relative_entropy" or seen[i].sum() > 1)]
                mean_of = values[:, at].mean(1) if at else np.full(3, np.nan)
                np.testing.assert_allclose(kept[name][row, :, index], mean_of, rtol=1e-6, atol=1e-7, err_msg=name)
        bounds = [*DEFAULT_OFFSET_EDGES, np.inf]
        for index, (low, high) in enumerate(pairwise(bounds)):
            band, octave = (offset >= low) & (offset < high), (np.arange(length) >= low) & (np.arange(length) < high)
            np.testing.assert_allclose(kept["offset_mass"][row, :, index], (weights * band).sum(-1)[:, 1:].mean(1), atol=1e-12)
            uniform = (seen / seen.sum(1, keepdims=True) * band).sum(1)[1:].mean()
            np.testing.assert_allclose(kept["offset_uniform"][row, index], uniform, rtol=1e-5, atol=1e-7)
            if octave.any():
                pairs = seen[:, octave].sum()
                np.testing.assert_allclose(kept["received"][row, :, index], weights[..., octave].sum((1, 2)) / pairs)
                uniform = (seen / seen.sum(1, keepdims=True))[:, octave].sum() / pairs
                np.testing.assert_allclose(kept["received_uniform"][row, index], uniform, rtol=1e-5)
            else:
                assert np.isnan(kept["received"][row, :, index]).all()


def test_learned_sinks_take_mass_but_do_not_move_offsets():
    logits = torch.randn(2, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    _, plain = run(dense_view(logits, NEEDS))
    _, led = run(dense_view(logits, NEEDS, sinks=torch.tensor([4.0])))
    assert plain["sequence_mass"].value == pytest.approx(1.0)
    assert led["sequence_mass"].value < 0.7
    assert led["offset_mean"].value == pytest.approx(plain["offset_mean"].value)
    assert led["offset_sd"].value == pytest.approx(plain["offset_sd"].value)


def test_short_sequences_say_that_they_have_no_value():
    dataset, headline = run(dense_view(torch.zeros(3, 1, 1, 1), NEEDS))
    assert all(headline[name].is_missing and headline[name].reason for name in BY_BAND)
    dataset, headline = run(dense_view(torch.zeros(3, 1, 6, 6), NEEDS))
    assert np.isnan(dataset["entropy_by_band"].sel(query_band="late").values).all()
    assert dataset["offset_band"].values.tolist() == [0, 1, 2, 4]
    for variable in dataset.data_vars.values():
        assert variable.attrs["long_name"]
        assert variable.attrs["units"]

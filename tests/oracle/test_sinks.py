"""Sinks of attention with known answers, in float64."""

import numpy as np
import pytest
import torch

from gnomon.measure.bands import ALL, FROM_32, QUERY_BANDS
from gnomon.measure.sinks import Sinks
from tests.oracle.dense import dense_view, observed_of, weights_of

MEASURE = Sinks()
NEEDS = MEASURE.needs(None)
LENGTH = 80


def sink_logits(masses_BH, length=LENGTH):
    """Causal logits whose weight on position 0 is the given mass for every query from 1 on, the rest shared equally."""
    masses = torch.as_tensor(masses_BH, dtype=torch.float64)[..., None]
    others = torch.arange(length).clamp_min(1).double()
    logits = torch.zeros(*masses.shape[:2], length, length, dtype=torch.float64)
    logits[..., 0] = torch.log(masses * others / (1 - masses))
    return logits


def run(*views):
    observed = observed_of(MEASURE, list(views))
    dataset = MEASURE.finish(observed)
    return observed.layers, dataset, MEASURE.headline(dataset)


def test_a_pure_sink_has_mass_1():
    logits = torch.zeros(4, 3, LENGTH, LENGTH)
    logits[..., 0] = 200.0
    _, dataset, headline = run(dense_view(logits, NEEDS))
    for key in ("head_share_03", "sink_rate_03", "position_0_mass", "strongest_is_first"):
        assert headline[key].value == pytest.approx(1.0)
        assert headline[key].n == 4
    assert dataset["sink_rate"].values == pytest.approx(1.0)


def test_uniform_attention_has_the_mass_of_its_baseline_and_no_sink():
    _, dataset, headline = run(dense_view(torch.zeros(3, 2, LENGTH, LENGTH), NEEDS))
    harmonic = np.sum(1 / np.arange(2, LENGTH + 1)) / (LENGTH - 1)
    assert headline["position_0_mass"].value == pytest.approx(harmonic)
    assert headline["position_0_uniform"].value == pytest.approx(harmonic)
    assert headline["head_share_03"].value == 0.0
    assert headline["sink_rate_03"].value == 0.0
    np.testing.assert_allclose(
        dataset["position_0_mass_by_band"].mean("head"), dataset["position_0_uniform_by_band"], rtol=1e-6, equal_nan=True
    )


def test_share_of_heads_counts_means_over_sequences():
    """Head 2 is above the threshold in one sequence of three only, and its mean is below."""
    masses = [[0.9, 0.31, 0.5, 0.1], [0.9, 0.31, 0.1, 0.1], [0.9, 0.31, 0.1, 0.1]]
    _, dataset, headline = run(dense_view(sink_logits(masses), NEEDS))
    assert headline["head_share_03"].value == pytest.approx(0.5)
    assert dataset["head_share"].sel(depth="all", threshold=0.8).item() == pytest.approx(0.25)
    assert dataset["head_share"].sel(depth="all", threshold=0.9).item() == pytest.approx(0.0)
    # alpha_0 includes query 0, whose weight on itself is 1: rate over sequences and heads
    alpha = (np.array(masses) * (LENGTH - 1) + 1) / LENGTH
    assert headline["sink_rate_03"].value == pytest.approx((alpha > 0.3).mean())
    np.testing.assert_allclose(dataset["alpha_0"].values[0], alpha.mean(0), rtol=1e-6)
    low, high = (
        dataset["head_share_low"].sel(depth="all", threshold=0.3),
        dataset["head_share_high"].sel(depth="all", threshold=0.3),
    )
    assert (low.item(), high.item()) == (0.5, 0.75)


def test_thirds_of_the_depth():
    masses = [[[0.9, 0.9]] * 3, [[0.1, 0.1]] * 3, [[0.5, 0.1]] * 3]
    _, dataset, headline = run(*(dense_view(sink_logits(layer), NEEDS, layer=i) for i, layer in enumerate(masses)))
    found = [headline[f"head_share_03{part}"].value for part in ("", "_first_third", "_middle_third", "_last_third")]
    assert found == pytest.approx([0.5, 1.0, 0.0, 0.5])
    assert dataset["layer_head_share"].sel(threshold=0.3).values.tolist() == [1.0, 0.0, 0.5]
    np.testing.assert_allclose(dataset["layer_position_0_mass"].sel(query_band="all"), [0.9, 0.1, 0.3], rtol=1e-6)


def test_a_window_that_hides_position_0_has_no_value_rather_than_0():
    kept, dataset, headline = run(dense_view(sink_logits([[0.9]] * 3), NEEDS, window=16))
    assert np.isnan(kept["position_0_mass"][..., FROM_32]).all()
    assert np.isfinite(kept["position_0_mass"][..., 0]).all()
    assert np.isfinite(dataset["position_0_mass"].values).all()
    assert headline["head_share_03"].is_missing
    assert "sees position 0" in headline["head_share_03"].reason
    assert headline["position_0_mass"].value == pytest.approx(0.9)
    # a second layer that sees everything is counted by itself
    _, _, headline = run(
        dense_view(sink_logits([[0.9]] * 3), NEEDS, window=16), dense_view(sink_logits([[0.9]] * 3), NEEDS, layer=1)
    )
    assert headline["head_share_03"].value == 1.0
    assert headline["head_share_03_first_third"].is_missing


def test_padding_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(2, 3, LENGTH, LENGTH, generator=generator, dtype=torch.float64)
    special = torch.zeros(2, LENGTH, dtype=torch.bool)
    special[:, [0, 40]] = True
    padded = MEASURE.observe(dense_view(logits, NEEDS, lengths=torch.tensor([LENGTH, 50]), special=special))
    alone = MEASURE.observe(dense_view(logits[1:, :, :50, :50], NEEDS, special=special[1:, :50]))
    for name, values in alone.items():
        torch.testing.assert_close(padded[name][1:], values, equal_nan=True)


@pytest.mark.parametrize("structure", [{}, {"causal": False}, {"window": 20}, {"causal": False, "window": 9}, {"chunk": 16}])
def test_everything_equals_the_dense_computation(structure):
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(2, 3, LENGTH, LENGTH, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([LENGTH, 41])
    special = torch.zeros(2, LENGTH, dtype=torch.bool)
    special[:, 0] = special[0, 79] = special[1, 40] = special[0, 11] = True
    view = dense_view(logits, NEEDS, lengths=lengths, special=special, **structure)
    kept = {name: values.numpy() for name, values in MEASURE.observe(view).items()}
    weights, places = weights_of(view).numpy(), torch.arange(LENGTH)
    visible = view.mask.visible(places, places).numpy()
    for row, length in enumerate(lengths.tolist()):
        seen, marks = visible[row, :length, :length], special[row, :length].numpy()
        dense = weights[row, :, :length, :length]
        viewed = np.flatnonzero(seen[:, 0])
        np.testing.assert_allclose(kept["alpha_0"][row], dense[:, viewed, 0].mean(1))
        for index, (low, high) in enumerate(QUERY_BANDS.values()):
            queries = np.array([i for i in range(length) if low <= i < high], dtype=int)
            at = queries[seen[queries, 0]] if len(queries) else queries
            if len(at):
                np.testing.assert_allclose(kept["position_0_mass"][row, :, index], dense[:, at, 0].mean(1))
                np.testing.assert_allclose(kept["position_0_uniform"][row, index], (1 / seen[at].sum(1)).mean(), rtol=1e-6)
            else:
                assert np.isnan(kept["position_0_mass"][row, :, index]).all()
            counts = (seen & marks).sum(1)
            at = queries[counts[queries] > 0] if len(queries) else queries
            if len(at):
                np.testing.assert_allclose(kept["special_mass"][row, :, index], dense[:, at][..., marks].sum(-1).mean(1))
                uniform = (counts[at] / seen[at].sum(1)).mean()
                np.testing.assert_allclose(kept["special_uniform"][row, index], uniform, rtol=1e-6)
            else:
                assert np.isnan(kept["special_mass"][row, :, index]).all()
        rest = marks & (np.arange(length) > 0)
        at = [i for i in range(1, length) if (seen[i] & rest).any()]
        np.testing.assert_allclose(kept["other_special_mass"][row], dense[:, at][..., rest].sum(-1).mean(1), atol=1e-12)
        viewers = seen.sum(0)
        alpha = np.where(viewers >= 0.3 * length, dense.sum(1) / np.maximum(viewers, 1), -1)
        if (viewers >= 0.3 * length).any():
            np.testing.assert_allclose(kept["strongest_alpha"][row], alpha.max(-1))
            np.testing.assert_array_equal(kept["strongest_is_first"][row], alpha.argmax(-1) == 0)
            np.testing.assert_array_equal(kept["strongest_is_special"][row], marks[alpha.argmax(-1)])
        else:
            assert np.isnan(kept["strongest_alpha"][row]).all()


def test_special_mass_is_missing_where_there_are_no_special_tokens():
    _, dataset, headline = run(dense_view(sink_logits([[0.5]] * 3), NEEDS))
    assert headline["special_mass"].is_missing
    assert "no special token" in headline["special_mass"].reason
    assert np.isnan(dataset["special_mass"].values).all()
    assert np.isfinite(dataset["position_0_mass"].values).all()


def test_short_sequences_have_no_share_of_heads():
    _, dataset, headline = run(dense_view(sink_logits([[0.9]] * 3, 12), NEEDS))
    assert headline["head_share_03"].is_missing
    assert headline["position_0_mass"].value == pytest.approx(0.9)
    assert dataset["position_0_mass"].dims == ("layer", "head")
    _, _, headline = run(dense_view(torch.zeros(3, 1, 1, 1), NEEDS))
    assert headline["position_0_mass"].is_missing


def test_a_learned_sink_takes_from_position_0():
    view = dense_view(sink_logits([[0.5]] * 3), NEEDS, sinks=torch.tensor([200.0]))
    _, _, headline = run(view)
    assert headline["position_0_mass"].value == pytest.approx(0.0, abs=1e-12)


def test_datasets_are_labelled():
    _, dataset, _ = run(dense_view(sink_logits([[0.5]] * 3), NEEDS))
    for variable in dataset.data_vars.values():
        assert variable.attrs["long_name"]
        assert variable.attrs["units"] == "1"
    assert dataset.attrs["missing"]
    assert dataset.sizes["query_band"] == len(QUERY_BANDS)
    assert list(QUERY_BANDS)[ALL] == "all"
    with pytest.raises(ValueError, match=r"contain 0\.3"):
        Sinks(thresholds=(0.5,))

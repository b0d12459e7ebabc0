"""Anchors and kinds on attention of known kind, and the closed forms they are judged by."""

import numpy as np
import pytest
import torch

from gnomon.kernels import MaskStructure
from gnomon.measure.anchors import (
    AnchorRule,
    anchors,
    far_weight,
    sampled_queries,
    shuffled_rows,
    sink_shares,
    uniform_received,
    visible_rows,
)
from gnomon.measure.bands import viewers
from gnomon.measure.frames import Frames, layer_runs
from gnomon.measure.kinds import KINDS, KindRule, frame_features, kind_scores
from gnomon.measure.patterns import constructed, local_band, uniform
from tests.oracle.given import finished, star, view_of, windows_of


def scores_of(patterns):
    rows = torch.tensor(np.stack([pattern.rows for pattern in patterns]))[None]
    length, causal = rows.shape[-1], patterns[0].causal
    mask = MaskStructure(causal=causal, lengths=torch.tensor([length]))
    queries = sampled_queries(mask, length)
    visible = visible_rows(mask, queries, length)
    rule = AnchorRule()
    found = anchors(far_weight(rows[:, :, queries], visible, queries, mask, rule), mask.lengths, rule)
    return kind_scores(frame_features(found.weight_BHK, mask.lengths, causal=causal), mask.lengths, KindRule())[0]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("length", "accuracy"), [(12, 0.95), (16, 0.97), (32, 0.98), (128, 0.99), (256, 0.99)])
def test_constructed_patterns_get_their_kind(length, accuracy, causal):
    patterns = [pattern for seed in range(40) for pattern in constructed(length, seed, causal=causal)]
    scores = scores_of(patterns)
    assert torch.allclose(scores.sum(-1), torch.ones(len(patterns), dtype=scores.dtype))
    right = [KINDS[int(best)] == pattern.kind for best, pattern in zip(scores.argmax(-1), patterns, strict=True)]
    assert np.mean(right) >= accuracy


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [8, 12, 24, 64, 256])
def test_no_frame_where_there_is_none_over_eight_sequences(length, causal):
    draws = [constructed(length, seed, causal=causal) for seed in range(8)]
    scores = torch.stack([scores_of(draw) for draw in draws]).mean(0)
    frameless = [index for index, pattern in enumerate(draws[0]) if pattern.kind == "none"]
    assert len(frameless) == 7
    assert (scores[frameless].argmax(-1) == 0).all()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("length", [8, 17, 64, 200])
def test_uniform_and_local_attention_have_exactly_no_anchor(length, causal):
    rows = np.stack([uniform(length, causal=causal), local_band(length, max(2, length // 8), causal=causal)])
    dataset_rows = torch.tensor(rows)[None]
    mask = MaskStructure(causal=causal, lengths=torch.tensor([length]))
    queries = sampled_queries(mask, length)
    visible = visible_rows(mask, queries, length)
    rule = AnchorRule()
    found = anchors(far_weight(dataset_rows[:, :, queries], visible, queries, mask, rule), mask.lengths, rule)
    assert found.weight_BHK.sum() == 0


def test_anchor_weight_of_a_star_in_closed_form():
    length, mass, place = 40, 0.6, 3
    rows = torch.tensor(star(length, mass, place, causal=False))[None, None]
    mask = MaskStructure(causal=False, lengths=torch.tensor([length]))
    queries = sampled_queries(mask, length)
    visible = visible_rows(mask, queries, length)
    rule = AnchorRule()
    found = anchors(far_weight(rows[:, :, queries], visible, queries, mask, rule), mask.lengths, rule)
    weight = found.weight_BHK[0, 0]
    # mass + (1 - mass) / n at the anchor, less the 1 / n that chance gives
    assert weight[place] == pytest.approx(mass + (1 - mass) / length - 1 / length, abs=1e-12)
    assert (weight > 0).sum() == 1


def test_row_shuffled_null_has_the_closed_form_mean_and_variance():
    generator = np.random.default_rng(0)
    rows = torch.tensor(np.tril(generator.gamma(0.5, size=(20, 20))) / 3)[None, None]
    mask = MaskStructure(causal=True, lengths=torch.tensor([20]))
    queries = sampled_queries(mask, 20)
    visible = visible_rows(mask, queries, 20)
    rule = AnchorRule()
    far = far_weight(rows[:, :, queries], visible, queries, mask, rule)
    many = rows[:, :, queries].expand(1, 20000, -1, -1)
    drawn = far_weight(shuffled_rows(many, visible, 1), visible, queries, mask, rule).observed_BHK[0]
    assert torch.allclose(drawn.mean(0), far.expected_BHK[0, 0], atol=0.02)
    assert torch.allclose(drawn.var(0), far.variance_BHK[0, 0], rtol=0.08, atol=1e-3)


def test_shuffled_rows_keep_each_row_and_stay_among_visible_keys():
    rows = torch.tensor(uniform(9, causal=True)) * torch.linspace(0.5, 1.5, 9)[None]
    mask = MaskStructure(causal=True, lengths=torch.tensor([7]))
    visible = visible_rows(mask, torch.arange(9), 9)
    shuffled = shuffled_rows(rows[None, None], visible, 0)[0, 0]
    assert torch.allclose(shuffled[:7].sort(-1).values, torch.tril(rows)[:7].sort(-1).values)
    assert (shuffled[7:] == 0).all()
    assert (shuffled.triu(1) == 0).all()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 4])
def test_viewers_count_the_mask_column_by_column(causal, window):
    mask = MaskStructure(causal=causal, lengths=torch.tensor([11, 6]), window=window)
    positions = torch.arange(11)
    real = positions[None, :, None] < mask.lengths[:, None, None]
    dense = (mask.visible(positions, positions) & real).sum(1)
    assert torch.equal(viewers(mask, 11), dense)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 4])
def test_uniform_received_is_the_column_mean_of_uniform_rows(causal, window):
    mask = MaskStructure(causal=causal, lengths=torch.tensor([11, 6]), window=window)
    visible = visible_rows(mask, torch.arange(11), 11).double()
    rows = visible / visible.sum(-1, keepdim=True).clamp_min(1)
    expected = rows.sum(1) / visible.sum(1).clamp_min(1)
    torch.testing.assert_close(uniform_received(mask, 11).double(), expected, atol=1e-6, rtol=1e-6)


def test_published_criterion_finds_the_planted_sink_alone():
    rows = torch.tensor(star(30, 0.5, 4))[None, None]
    mask = MaskStructure(causal=True, lengths=torch.tensor([30]))
    queries = torch.arange(30)
    share, seen = sink_shares(rows, visible_rows(mask, queries, 30), (0.9,))
    sinks = (share[0, 0, 0] >= 0.4) & (seen[0] >= 0.3)
    assert sinks.nonzero().flatten().tolist() == [4]
    assert seen[0, 4] == pytest.approx(26 / 30)


def sequences(*heads, batch=4):
    return np.broadcast_to(np.stack(heads), (batch, len(heads), *heads[0].shape))


def test_dataset_of_a_causal_model_whose_frame_begins_at_layer_one():
    length = 24
    flat = sequences(uniform(length, causal=True), local_band(length, 3, causal=True))
    framed = sequences(star(length, 0.7), star(length, 0.6))
    views = [view_of(flat, causal=True), view_of(framed, causal=True, layer=1), view_of(framed, causal=True, layer=2)]
    measure = Frames()
    dataset = finished(measure, views)
    assert dataset.attrs["kind"] == "centralized"
    assert dataset.attrs["kinds_by_layer"] == ["none", "centralized", "centralized"]
    assert layer_runs(dataset) == [(0, 0, "none"), (1, 2, "centralized")]
    assert measure.labels(dataset) == {"kind": "centralized", "layers": "none 0; centralized 1-2"}
    headline = measure.headline(dataset)
    assert headline["share_centralized"].value == pytest.approx(4 / 6)
    assert headline["share_none"].value == pytest.approx(2 / 6)
    assert headline["depth_change"].value == 0
    assert headline["null_framed"].value < 0.05
    assert headline["same_position"].value == 1
    assert headline["score"].value > 0.9
    # position 0 gets its uniform share everywhere: the mean of 1 / (i + 1) over queries 1, 2, ...
    flat_mass = np.mean(1 / np.arange(2, length + 1))
    assert float(dataset["first_mass"][0, 0]) == pytest.approx(flat_mass, rel=1e-5)
    assert float(dataset["first_uniform"]) == pytest.approx(flat_mass, rel=1e-5)
    assert float(dataset["first_mass"][1, 0]) == pytest.approx(0.7 + 0.3 * flat_mass, rel=1e-5)
    assert float(dataset["received_effective"][0, 0]) == pytest.approx(float(dataset["received_effective_uniform"][0]), rel=1e-4)
    assert float(dataset["sink_first"][1, 0]) == 1


def test_two_ends_and_a_change_of_anchor_with_depth_in_an_encoder():
    length = 20
    first, last = star(length, 0.6, 0, causal=False), star(length, 0.6, length - 1, causal=False)
    views = [view_of(sequences(rows), causal=False, layer=index) for index, rows in enumerate([first, first, last, last])]
    dataset = finished(Frames(), views, causal=False)
    assert dataset.attrs["kinds_by_layer"] == ["centralized"] * 4
    assert dataset.attrs["kind"] == "bidirectional"
    assert float(dataset["depth_change"]) == pytest.approx(1 / 3)
    assert float(dataset["last_mass"][3, 0]) > 0.6
    both = (first + last) / 2
    dataset = finished(Frames(), [view_of(sequences(both), causal=False)], causal=False)
    assert dataset.attrs["kinds_by_layer"] == ["bidirectional"]
    assert np.isnan(float(dataset["depth_change"]))


def test_token_stability_tells_place_from_token():
    length, batch = 20, 6
    generator = np.random.default_rng(3)
    places = generator.integers(1, 6, size=batch)
    matrix = np.stack([star(length, 0.8, place)[None] for place in places])
    tokens = np.arange(length)[None] + 100 * np.arange(1, batch + 1)[:, None]
    tokens[np.arange(batch), places] = 7
    windows = windows_of(np.full(batch, length), length, tokens=tokens)
    dataset = finished(Frames(delimiters=(7,)), [view_of(matrix, causal=True)], windows)
    assert float(dataset["same_token"][0, 0]) == 1
    assert int(dataset["anchor_token"][0, 0]) == 7
    assert float(dataset["same_position"][0, 0]) == pytest.approx(np.bincount(places).max() / batch)
    assert float(dataset["delimiter_share"][0, 0]) == 1


def test_padding_changes_nothing():
    matrix = sequences(star(18, 0.5), uniform(18, causal=True))
    padded = np.zeros((4, 2, 25, 25))
    padded[:, :, :18, :18] = matrix
    padded[:, :, 18:, 0] = 1
    windows = windows_of(np.full(4, 18), 25)
    queries_agree = finished(Frames(), [view_of(matrix, causal=True)])
    wide = finished(Frames(), [view_of(padded, causal=True, lengths=[18] * 4)], windows)
    for name in ("first_mass", "received_effective"):
        np.testing.assert_allclose(wide[name], queries_agree[name], rtol=1e-5)
    assert wide.attrs["kinds_by_layer"] == queries_agree.attrs["kinds_by_layer"]


def test_short_sequences_are_missing_with_a_reason():
    dataset = finished(Frames(), [view_of(sequences(star(4, 0.9)), causal=True)])
    headline = Frames().headline(dataset)
    assert dataset.attrs["kind"] == "unknown"
    assert headline["score"].is_missing
    assert "too short" in headline["score"].reason
    assert headline["share_none"].is_missing


def test_windowed_layers_are_judged_on_their_window():
    length, window = 64, 16
    rows = local_band(length, window, causal=True)
    dataset = finished(Frames(), [view_of(sequences(rows), causal=True, window=window)])
    assert dataset.attrs["kinds_by_layer"] == ["none"]


@pytest.mark.parametrize("length", [24, 120, 300])
def test_shuffled_rows_of_a_strong_sink_have_no_frame(length):
    """A single row that gives one key nearly everything is far beyond chance for that key, and yet no anchor."""
    dataset = finished(Frames(), [view_of(sequences(*[star(length, 0.95)] * 4, batch=25), causal=True)])
    assert float(dataset["null_framed"][0]) < (0.1 if length < 100 else 0.02)
    assert dataset.attrs["kind"] == "centralized"

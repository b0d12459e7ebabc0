"""Rows of heads against the dense matrix, bins that lose no key, and likeness with known answers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gnomon.corpus import FirstToken, Windows
from gnomon.measure.protocol import Observed, Subject
from gnomon.measure.row_bins import row_bins
from gnomon.measure.rows import Rows
from gnomon.statistics.values_only import values_only
from tests.oracle.dense import dense_view, weights_of


def windows_of(lengths, width) -> Windows:
    lengths = np.asarray(lengths)
    real = np.arange(width) < lengths[:, None]
    nothing = FirstToken(policy="auto", placed=False, id=None, text=None, special=False, why="")
    return Windows(
        tokens=np.where(real, 5 + np.arange(width), 0),
        lengths=lengths,
        special=np.zeros_like(real),
        document=np.full(len(lengths), -1),
        start=np.zeros(len(lengths)),
        source="made",
        seed=0,
        first_token=nothing,
        pad_id=0,
    )


def subject_of(lengths, width, *, layers=1, heads=2, causal=True) -> Subject:
    anatomy = SimpleNamespace(causal=causal, num_layers=layers, num_heads=heads)
    return Subject(anatomy=anatomy, scheme=None, windows=windows_of(lengths, width))  # type: ignore[arg-type]


def measured(logits, lengths=None, **view):
    """The measure on one layer with these logits; the dataset, what was observed, and the dense weights."""
    batch, heads, width, _ = logits.shape
    lengths = [width] * batch if lengths is None else lengths
    subject = subject_of(lengths, width, heads=heads, causal=view.get("causal", True))
    measure = Rows()
    dense = dense_view(logits, measure.needs(subject), lengths=torch.tensor(lengths), **view)
    observed = Observed(layers={"row": measure.observe(dense)["row"][:, None].numpy()}, subject=subject)
    return measure, measure.finish(observed), observed, weights_of(dense).numpy()


def keys_of(dataset, query):
    """Key → bin for one query, by the description in the dataset alone."""
    first, last, offset = (dataset[f"bin_{name}"].values for name in ("first", "last", "offset"))
    out = {}
    for key in range(dataset.attrs["length"]):
        near = np.flatnonzero(offset == query - key)
        out[key] = int(near[0]) if len(near) and key >= 8 else int(np.flatnonzero((first <= key) & (key <= last))[0])
    return out


@pytest.mark.parametrize(("width", "causal", "window"), [(20, True, None), (100, True, None), (100, True, 20), (90, False, None)])
def test_bins_hold_the_sums_of_the_dense_rows(width, causal, window):
    logits = torch.randn(3, 2, width, width, generator=torch.Generator().manual_seed(0))
    _, dataset, observed, dense = measured(logits, causal=causal, window=window)
    for at, query in enumerate(dataset["query"].values):
        place = keys_of(dataset, query)
        expected = np.full((3, 2, dataset.sizes["key_bin"]), np.nan)
        for key, bin_ in place.items():
            seen = (key <= query or not causal) and (window is None or abs(query - key) < window)
            if seen:
                expected[..., bin_] = np.nan_to_num(expected[..., bin_]) + dense[:, :, query, key]
        np.testing.assert_allclose(observed.layers["row"][:, 0, :, at], expected, atol=1e-6)
        np.testing.assert_allclose(dataset["row"].values[0, :, at], expected.mean(0), atol=1e-6)
        np.testing.assert_allclose(dataset["row_sd"].values[0, :, at], expected.std(0, ddof=1), atol=1e-6)
        np.testing.assert_allclose(np.nansum(expected, -1), 1, atol=1e-6)


def test_likeness_is_the_mean_over_pairs_of_sequences_with_each_left_out_for_its_interval():
    logits = 2 * torch.randn(4, 3, 70, 70, generator=torch.Generator().manual_seed(1))
    _, dataset, observed, _ = measured(logits)
    late = dataset["query"].values >= 32
    rows = np.nan_to_num(observed.layers["row"][:, 0][:, :, late])

    def likeness(members, pair):
        values = [np.sqrt(rows[i, g] * rows[j, h]).sum(-1).mean() for i in members for j in members if i != j for g, h in pair]
        return np.mean(values)

    for head in range(3):
        value = likeness(range(4), [(head, head)])
        assert float(dataset["likeness"][0, head]) == pytest.approx(value, abs=1e-6)
        without = [likeness([i for i in range(4) if i != n], [(head, head)]) for n in range(4)]
        half = 3.1824463 * np.sqrt(3 / 4 * ((without - np.mean(without)) ** 2).sum())
        assert float(dataset["likeness_low"][0, head]) == pytest.approx(value - half, abs=1e-5)
    different = [(g, h) for g in range(3) for h in range(3) if g != h]
    assert float(dataset["likeness_other_heads"][0]) == pytest.approx(likeness(range(4), different), abs=1e-6)


def test_position_alone_gives_one_and_disjoint_rows_give_none():
    width = 40
    offset = torch.arange(width)[:, None] - torch.arange(width)
    previous = torch.where(offset == 1, 60.0, 0.0)
    first = torch.where(torch.arange(width) == 0, 60.0, 0.0).expand(width, width)
    logits = torch.stack([previous, first]).expand(3, 2, width, width)
    measure, dataset, _, _ = measured(logits)
    np.testing.assert_allclose(dataset["likeness"], 1, atol=1e-6)
    np.testing.assert_allclose(dataset["likeness_other_heads"], 0, atol=1e-6)
    numbers = measure.headline(dataset)
    assert numbers["likeness"].value == pytest.approx(1)
    assert numbers["likeness"].n == 3


def test_queries_that_few_reach_and_texts_too_few():
    logits = torch.zeros(3, 1, 50, 50)
    measure, dataset, observed, _ = measured(logits, lengths=[50, 50, 10])
    assert dataset["query"].values[-1] == 49
    assert np.isnan(observed.layers["row"][2, 0, 0, -1]).all()
    np.testing.assert_allclose(dataset["row"].values[0, 0, -1], 1 / 50, atol=1e-7)
    assert measure.headline(dataset)["likeness"].n == 2
    assert measure.headline(dataset)["likeness_other_heads"].is_missing
    alone, single, _, _ = measured(logits[:1])
    assert alone.headline(single)["likeness"].is_missing
    assert "two sequences" in str(alone.headline(single)["likeness"].reason)


def test_a_batch_narrower_than_the_windows_and_learned_sinks():
    subject = subject_of([50, 50, 12], 50, heads=1)
    measure = Rows()
    needs = measure.needs(subject)
    view = dense_view(torch.zeros(1, 1, 12, 12), needs, sinks=torch.zeros(1, dtype=torch.float64))
    row = measure.observe(view)["row"]
    queries = row_bins(subject.windows, causal=True, num_heads=1).queries
    assert row.shape == (1, 1, len(queries), 50)
    for at, query in enumerate(queries):
        if query < 12:
            np.testing.assert_allclose(row[0, 0, at, : query + 1], 1 / (query + 2), atol=1e-7)
            assert torch.isnan(row[0, 0, at, query + 1 :]).all()
        else:
            assert torch.isnan(row[0, 0, at]).all()


def test_the_example_is_the_first_of_the_longest():
    logits = torch.randn(3, 1, 30, 30, generator=torch.Generator().manual_seed(2))
    _, dataset, observed, _ = measured(logits, lengths=[20, 30, 30])
    assert dataset["row_example"].attrs["sequence"] == 1
    np.testing.assert_array_equal(dataset["row_example"].values[0], observed.layers["row"][1, 0])
    np.testing.assert_array_equal(dataset["example_token"], 5 + np.arange(30))


def test_part_of_the_sequences_keeps_the_bins_of_all():
    logits = torch.randn(4, 2, 70, 70, generator=torch.Generator().manual_seed(3))
    measure, whole, observed, _ = measured(logits, lengths=[70, 70, 70, 9])
    subject = replace(
        observed.subject, windows=observed.subject.windows.take(np.array([0, 1, 3])), layout=observed.subject.windows
    )
    with values_only():
        part = measure.finish(Observed(layers={"row": observed.layers["row"][[0, 1, 3]]}, subject=subject))
    np.testing.assert_array_equal(part["query"], whole["query"])
    assert "row" not in part
    assert np.isfinite(measure.headline(part)["likeness"].value)


@pytest.mark.parametrize("length", [1, 2, 3, 64, 65, 66, 129, 1024, 32768])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("heads", [1, 4000])
def test_every_key_has_one_bin_at_any_length(length, causal, heads):
    bins = row_bins(windows_of([length], length), causal=causal, num_heads=heads)
    assert bins.count <= (32 if heads > 2048 else 64)
    assert 1 <= len(bins.queries) <= (4 if heads > 2048 else 8)
    assert bins.queries[-1] == length - 1
    assert (np.diff(bins.edges) > 0).all()
    reached = torch.from_numpy(bins.queries)
    ones = bins.sums(torch.ones(len(reached), length), reached)
    np.testing.assert_allclose(ones.sum(-1), length)

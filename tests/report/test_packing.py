"""Numbers survive the way into the page, missing ones as missing; text of strangers does not survive as markup."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gnomon.report.figures import Axis, HeadCurve, HeadCurves, HeadRows
from gnomon.report.html.packing import EXACT, Packer, fitted, packed, script_json, unpacked
from gnomon.report.html.text import visible


@pytest.mark.parametrize("size", [1, EXACT, EXACT + 1, 50_000])
def test_values_come_back_within_a_hundred_thousandth_of_their_range_and_missing_ones_stay_missing(size):
    values = np.random.default_rng(size).normal(3, 10, size)
    values[::7] = np.nan
    back = unpacked(packed(values))
    np.testing.assert_array_equal(np.isnan(back), np.isnan(values))
    known = ~np.isnan(values)
    if known.any():
        assert np.abs(back - values)[known].max() <= 1e-5 * max(np.ptp(values[known]), 1)


def test_arrays_without_spread_or_without_numbers():
    np.testing.assert_allclose(unpacked(packed(np.full(EXACT + 1, 0.25))), 0.25)
    assert np.isnan(unpacked(packed(np.full(EXACT + 1, np.nan)))).all()
    assert np.isnan(unpacked(packed(np.array([np.inf, -np.inf, 1.0] * EXACT)))[:2]).sum() >= 2


def test_large_curves_lose_intervals_first_then_points_and_say_so():
    values = np.zeros((10, 10, 64))
    line = HeadCurve(name="a", values=values, low=values, high=values)
    axis = Axis(label="x")
    figure = HeadCurves(key="k", title="t", x=axis, y=axis, at=np.arange(64.0), lines=(line,))
    assert fitted(figure, 20_000) is figure
    bare = fitted(figure, 10_000)
    assert bare.lines[0].low is None
    assert bare.lines[0].values.shape == (10, 10, 64)
    assert "Intervals are left out" in bare.note
    thin = fitted(figure, 2_000)
    assert thin.lines[0].values.shape == (10, 10, 16)
    np.testing.assert_array_equal(thin.at, np.arange(0.0, 64, 4))
    assert "thinned" in thin.note


def test_json_cannot_leave_its_element():
    tree = {"a": "</script><!--\u2028&"}
    text = script_json(tree)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == tree
    with pytest.raises(ValueError, match="Out of range"):
        script_json({"a": float("nan")})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 漢字", "plain ünï 漢字"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200b\ufeffb", "a\\u200b\\ufeffb"),
        ("\x00\x1b[31m", "\\u0000\\u001b[31m"),
        ("two\nlines", "two lines"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_deceives_the_eye_is_written_out(text, shown):
    assert visible(text) == shown


def rows_figure(layers=10, heads=10):
    values = np.random.default_rng(0).random((layers, heads, 8, 64)) ** 4
    values[..., 60:] = np.nan
    first = np.where(np.arange(64) < 56, np.arange(64.0), np.nan)
    offset = np.where(np.arange(64) < 56, np.nan, 63.0 - np.arange(64))
    queries = np.arange(8.0)
    return HeadRows(
        key="k", title="t", queries=queries, first=first, last=first, offset=offset, values=values, example=values, tokens=("a",)
    )


def test_weights_of_rows_keep_small_ones_and_missing_ones():
    packer = Packer()
    tree = packer.figure(rows_figure())
    values, back = rows_figure().values.ravel(), unpacked(packer.arrays[tree["values"]])
    np.testing.assert_array_equal(np.isnan(back), np.isnan(values))
    error = np.abs(back - values)[np.isfinite(values)]
    assert (error <= np.sqrt(values[np.isfinite(values)]) / 254 + 1 / 254**2).all()
    assert tree["bins"][:2] + tree["bins"][-2:] == ["0", "1", "i−1", "i"]


def test_large_rows_lose_the_example_first_then_every_other_query_and_keep_the_last():
    figure = rows_figure()
    assert fitted(figure, 30_000) is figure
    bare = fitted(figure, 13_000)
    assert bare.example is None
    assert bare.tokens == ()
    assert "example is left out" in bare.note
    thin = fitted(figure, 5_000)
    np.testing.assert_array_equal(thin.queries, [3, 7])
    np.testing.assert_array_equal(thin.values, figure.values[:, :, [3, 7]])
    assert "Queries are left out" in thin.note

"""Figures say what the run says: the same numbers, intervals and labels, and nothing where there is nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from gnomon.errors import ConfigError
from gnomon.report.export import figure_svg
from gnomon.report.figures import Curves, HeadCurves, HeadMap, HeadRows, Intervals, figure_of, figures, main_figure
from gnomon.report.figures.colour import diverging, lightness, sequential
from gnomon.report.figures.evolution import evolution_figures
from gnomon.report.figures.kinds import HeadField
from gnomon.report.figures.rows import with_tokens
from gnomon.result import Survey
from gnomon.statistics import Estimate
from tests.report.made_up import make_run


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run") / "run")


def one_measure(dataset: xr.Dataset, name: str = "mine", headline=None) -> Survey:
    return Survey({}, {name: headline or {}}, {name: lambda: dataset})


def test_the_sink_map_shows_the_mass_of_late_queries_with_its_interval(survey):
    figure = main_figure(survey, "sinks")
    assert isinstance(figure, HeadMap)
    field = figure.fields[0]
    at = survey["sinks"].sel(query_band="from_32")
    np.testing.assert_array_equal(field.values, at["position_0_mass_by_band"])
    np.testing.assert_array_equal(field.low, at["position_0_mass_by_band_low"])
    np.testing.assert_array_equal(field.high, at["position_0_mass_by_band_high"])
    assert field.limits == (0.0, 1.0)


def test_curves_of_a_head_are_that_heads_and_the_reference_is_its_layers(survey):
    figure = figure_of(survey, "attention-offset")
    assert isinstance(figure, HeadCurves)
    mine, chance = figure.of(2, 5).lines
    np.testing.assert_array_equal(mine.values, survey["attention"]["offset_mass"].values[2, 5])
    np.testing.assert_array_equal(chance.values, survey["attention"]["offset_mass_uniform"].values[2])
    assert (mine.role, chance.role) == ("value", "chance")
    assert figure.x.log
    assert figure.x.text == "smallest offset of the octave (tokens)"


def test_a_band_that_no_text_reached_is_missing_with_a_reason_and_has_no_curve(survey):
    keys = [figure.key for figure in figures(survey, "leakage")]
    assert "leakage-early" in keys
    assert "leakage-late" not in keys
    bands = figure_of(survey, "leakage-bands")
    assert isinstance(bands, Intervals)
    late = [row for row in bands.rows if row.label.startswith("late")]
    assert len(late) == 3
    assert all(row.number.is_missing and row.number.reason for row in late)
    early = next(row for row in bands.rows if row.label.startswith("early: residual"))
    assert early.number.value == pytest.approx(float(survey["leakage"]["model_residual"][0]))


def test_kinds_of_frame_are_categories_with_names(survey):
    field = main_figure(survey, "frames").fields[0]
    assert field.palette == "categories"
    assert field.names == ("none", "centralized", "distributed", "bidirectional")


def test_an_unknown_measure_is_drawn_by_its_shape_with_its_nulls():
    rng = np.random.default_rng(0)
    dataset = xr.Dataset(
        {
            "reach": (("layer", "head"), rng.random((3, 2)), {"long_name": "reach", "units": "tokens"}),
            "reach_low": (("layer", "head"), np.zeros((3, 2))),
            "reach_high": (("layer", "head"), np.ones((3, 2))),
            "profile": (("layer", "head", "lag"), rng.random((3, 2, 9))),
            "profile_shuffled": (("layer", "lag"), rng.random((3, 9))),
            "depth": (("layer",), rng.random(3)),
            "empty": (("layer", "head"), np.full((3, 2), np.nan)),
            "by_text": (("sequence", "layer"), rng.random((4, 3))),
        },
        coords={"lag": np.arange(9)},
    )
    numbers = {"reach": Estimate(2.0, 1.0, 3.0, 4), "reach_shuffled": Estimate(0.5, 0.4, 0.6, 4), "alone": Estimate(1.0)}
    found = {figure.key: figure for figure in figures(one_measure(dataset, headline=numbers), "mine")}
    assert set(found) == {"mine-map", "mine-profile", "mine-depth", "mine-reach-null"}
    assert [field.key for field in found["mine-map"].fields] == ["reach"]
    assert [line.role for line in found["mine-profile"].lines] == ["value", "null"]
    assert [(row.label, row.number.value) for row in found["mine-reach-null"].rows] == [("measured", 2.0), ("shuffled", 0.5)]


def test_an_empty_dataset_has_no_figures_and_the_error_says_so():
    survey = one_measure(xr.Dataset())
    assert figures(survey, "mine") == []
    with pytest.raises(ConfigError, match="mine of this run has numbers only"):
        main_figure(survey, "mine")
    with pytest.raises(ConfigError, match="`figure` must be one of none"):
        figure_of(survey, "nothing")


def test_one_far_value_does_not_flatten_the_colours_of_the_rest():
    values = np.linspace(0, 1, 200).reshape(10, 20)
    values[0, 0] = 100.0
    low, high = HeadField(key="a", label="a", values=values).limits
    assert (low, high) == (pytest.approx(values[0, 1]), pytest.approx(np.quantile(values, 0.985)))
    assert HeadField(key="a", label="a", values=np.full((2, 2), np.nan)).limits == (0.0, 1.0)
    assert HeadField(key="a", label="a", values=np.array([[-1.0, 3.0]]), palette="diverging").limits == (-3.0, 3.0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lightness_changes_by_equal_steps_and_never_turns_back(theme):
    steps = np.diff([lightness(colour) for colour in sequential(theme)])
    assert (np.sign(steps) == np.sign(steps[0])).all()
    assert np.abs(steps).max() < 1.6 * np.abs(steps).min()
    table = [lightness(colour) for colour in diverging(theme)]
    middle = len(table) // 2
    np.testing.assert_allclose(table[:middle], table[:middle:-1], atol=0.02)


def test_trajectories_are_in_order_of_steps_with_what_emerged_first():
    dataset = xr.Dataset(
        {
            "value": (("quantity", "checkpoint"), [[0.5, 0.1, 0.3], [1.0, 1.0, 1.0]]),
            "low": (("quantity", "checkpoint"), [[0.4, 0.0, 0.2], [np.nan] * 3]),
            "high": (("quantity", "checkpoint"), [[0.6, 0.2, 0.4], [np.nan] * 3]),
            "emergence": (("quantity",), [300.0, np.nan]),
            "emergence_low": (("quantity",), [200.0, np.nan]),
            "emergence_high": (("quantity",), [400.0, np.nan]),
        },
        coords={
            "quantity": ["sinks/head_share_03", "attention/relative_entropy"],
            "checkpoint": ["c", "a", "b"],
            "step": ("checkpoint", [1000.0, 0.0, 10.0]),
        },
    )
    order, sinks, entropy = evolution_figures(dataset)
    assert isinstance(order, Intervals)
    assert [(row.label, row.number.low) for row in order.rows] == [("sinks/head_share_03", 200.0)]
    assert isinstance(sinks, Curves)
    np.testing.assert_array_equal(sinks.at, [0.0, 10.0, 1000.0])
    np.testing.assert_array_equal(sinks.lines[0].values, [0.1, 0.3, 0.5])
    assert entropy.lines[0].low is None
    assert sinks.x.log


def test_rows_are_those_of_the_run_with_tokens_of_the_same_sequence_only(survey):
    figure = main_figure(survey, "rows")
    assert isinstance(figure, HeadRows)
    np.testing.assert_array_equal(figure.values, survey["rows"]["row"])
    np.testing.assert_array_equal(figure.example, survey["rows"]["row_example"])
    assert figure.tokens[1] == "tok1"
    assert figure.bins[7:9] + figure.bins[-2:] == ("7", "8–9", "i−1", "i")
    for example in (None, "tokens", {"sequence": 0, "tokens": ["a"]}, {"sequence": 2, "tokens": "abc"}):
        assert with_tokens(replace(figure, tokens=()), {"corpus": {"example": example}}).tokens == ()


def test_rows_and_sticks_can_be_exported_and_plotted(survey, tmp_path):
    more = make_run(tmp_path / "more", measures=("rows", "spectra", "rotary"))
    svg = figure_svg(more, "rows-head", head=(1, 2))
    assert svg.count("<rect") == 1 + 8 * 64
    assert svg.count("url(#none)") == np.isnan(more["rows"]["row"].values[1, 2]).sum()
    assert "layer 1 head 2" in svg
    with pytest.raises(ConfigError, match="`head` must be a layer below 4"):
        figure_svg(more, "rows-head", head=(9, 0))
    heat = more.plot("rows-head", head=(1, 2)).data[0]
    np.testing.assert_allclose(np.square(heat.z.astype(float)), more["rows"]["row"].values[1, 2], rtol=1e-5)
    figure = figure_of(more, "spectra-rotary")
    assert isinstance(figure, HeadCurves)
    assert figure.x.log
    marks = figure.of(2, 1).marks
    frequency = more["rotary"]["rotary_frequency"].values[2]
    np.testing.assert_array_equal(marks.at, np.where(frequency >= np.pi / 32, frequency, np.nan))
    np.testing.assert_array_equal(marks.heights, more["rotary"]["share"].values[2, 1])
    assert figure_svg(more, "spectra-rotary", head=(2, 1)).count('opacity="0.75"') == np.isfinite(marks.at).sum()
    assert figure_svg(more, "spectra-rotary", head=(0, 1)).count('opacity="0.75"') == 0
    sticks = more.plot("spectra-rotary", head=(2, 1)).data[-1]
    assert len(sticks.x) == 3 * np.isfinite(marks.at).sum()
    assert len(more.plot("spectra-rotary", head=(0, 1)).data[-1].x) == 0

"""Files for papers: every figure as SVG with its numbers, tables in three formats, notebooks through Plotly."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

from gnomon.errors import ConfigError, ResourceError, RunError
from gnomon.report import export
from gnomon.report.export import figure_list, figure_svg, to_latex, write_figure, write_table
from gnomon.report.figures import Axis
from gnomon.report.html import write_report
from gnomon.report.scale import linear_ticks, scale_for
from gnomon.result import Survey
from tests.report.browser import find_chromium
from tests.report.made_up import HOSTILE, make_run


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run") / "run", hostile=True)


def test_every_figure_is_sound_svg_and_hostile_text_is_text(survey):
    keys = [key for key, _ in figure_list(survey)]
    assert len(keys) == len(set(keys)) > 10
    for key in keys:
        tree = ElementTree.fromstring(figure_svg(survey, key))
        assert {element.tag.rpartition("}")[2] for element in tree.iter()} <= {
            *("svg", "title", "rect", "text", "g", "defs", "pattern", "line", "polyline", "polygon", "circle", "path")
        }
        text = " ".join(tree.itertext())
        assert "nan" not in text.lower().split()


def test_a_map_has_a_cell_per_head_and_a_hatched_one_where_there_is_no_value(survey):
    svg = figure_svg(survey, "sinks-map", field="position_0_mass")
    cells = [element for element in ElementTree.fromstring(svg).iter() if element.get("fill", "") == "url(#none)"]
    assert len(cells) == 1
    assert HOSTILE.replace("\u202e", "")[:9] not in svg


def test_a_head_curve_is_of_the_head_that_was_asked_for(survey):
    assert "layer 1 head 2" in figure_svg(survey, "attention-offset", head=(1, 2))
    with pytest.raises(ConfigError, match=r"`head` must be a layer below 4 and a head below 6, got 4\.0"):
        figure_svg(survey, "attention-offset", head=(4, 0))
    with pytest.raises(ConfigError, match="`field` must be one of position_0_mass_by_band-from_32"):
        figure_svg(survey, "sinks", field="nothing")


@pytest.mark.parametrize("format", ["png", "pdf"])
def test_pictures_go_through_a_browser(survey, tmp_path, format):
    if find_chromium() is None:
        pytest.skip("no Chromium on the path")
    path = tmp_path / f"sinks.{format}"
    write_figure(survey, "sinks", path, format)
    assert path.read_bytes().startswith(b"\x89PNG" if format == "png" else b"%PDF")


def test_without_a_browser_one_sentence_says_what_to_do(survey, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_browser", lambda: None)
    with pytest.raises(ResourceError, match="use --format svg"):
        write_figure(survey, "sinks", tmp_path / "a.png", "png")
    monkeypatch.setattr(export, "find_browser", lambda: "/bin/true")
    with pytest.raises(ResourceError, match="wrote nothing"):
        write_figure(survey, "sinks", tmp_path / "a.png", "png")


def test_tables_keep_their_numbers(survey, tmp_path):
    for format, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        write_table(survey, "sinks", tmp_path / f"a.{format}", format)
        frame = read(tmp_path / f"a.{format}")
        np.testing.assert_allclose(frame["alpha_0"], survey["sinks"]["alpha_0"].values.ravel(), rtol=1e-6)
    write_table(survey, "headline", tmp_path / "a.tex", "latex")
    text = (tmp_path / "a.tex").read_text(encoding="utf-8")
    assert r"head\_share\_03 & 0.41 & 0.39 & 0.43 & 8" in text
    with pytest.raises(ConfigError, match="`table` must be headline or one of sinks"):
        write_table(survey, "nothing", tmp_path / "b.csv")


def test_latex_escapes_what_latex_would_read():
    frame = pd.DataFrame({"a_b": ["50 % & \\cmd{x}", None], "n": [1.0, np.nan]})
    assert to_latex(frame).splitlines()[2:6] == [
        r"a b & n \\",
        r"\midrule",
        r"50 \% \& \textbackslash{}cmd\{x\} & 1 \\",
        r"-- & -- \\",
    ]


def test_a_notebook_gets_the_same_numbers(survey):
    figure = survey.plot.sinks()
    np.testing.assert_allclose(figure.data[0].z, survey["sinks"]["position_0_mass_by_band"].sel(query_band="from_32"))
    assert set(survey.plot.figures) == {key for key, _ in figure_list(survey)}
    for key in survey.plot.figures:
        assert survey.plot(key, head=(0, 0)).data
    curve = survey.plot("attention-offset", head=(3, 1)).data[2]
    np.testing.assert_allclose(curve.y, survey["attention"]["offset_mass"].values[3, 1])
    with pytest.raises(AttributeError, match="this survey has no 'nothing' to plot; it has sinks"):
        survey.plot.nothing  # noqa: B018
    assert "sinks" in dir(survey.plot)


def test_ticks_are_round_and_zero_has_a_place_on_a_logarithmic_axis():
    assert linear_ticks(0.0, 1.0, 5) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert linear_ticks(0, 29, 6, whole=True) == [0, 5, 10, 15, 20, 25]
    scale = scale_for(Axis(label="offset", log=True), np.array([0.0, 1, 2, 4, 8, 16]), 0, 100)
    assert scale(0) == 0
    assert scale(16) == 100
    assert scale(1) == pytest.approx(20)
    assert scale.ticks(8) == [0, 1, 2, 4, 8, 16]


def test_a_survey_that_is_not_on_disk_needs_a_path(survey):
    memory = Survey(survey.info, survey.headline, {})
    with pytest.raises(RunError, match="`path` must be given"):
        write_report(memory)
    with pytest.raises(RunError, match="at least one run"):
        write_report([])

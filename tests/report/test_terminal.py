"""What is printed: the right cells, the same without colours, and nothing of a stranger's file taken for markup."""

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from gnomon.errors import ConfigError
from gnomon.report.headline_json import headline_json
from gnomon.report.terminal import SECTIONS, print_survey
from gnomon.report.terminal.colour import ANCHORS, MISSING, colours
from gnomon.report.terminal.head_map import UPPER_HALF, HeadMap, pool_heads
from gnomon.report.terminal.page import console_for
from gnomon.report.terminal.per_head import bounds, per_head, strongest
from gnomon.report.terminal.tables import plain
from gnomon.result import RunWriter
from gnomon.statistics import Estimate

MASS = np.array([[0.05, 0.35, np.nan], [0.99, 0.0, 0.5]])


def sinks() -> xr.Dataset:
    dims = ("layer", "head")
    return xr.Dataset(
        {"position_0_mass": (dims, MASS), "position_0_mass_low": (dims, MASS - 0.01), "position_0_mass_high": (dims, MASS + 0.01)}
    )


def norms() -> xr.Dataset:
    levels = np.arange(31.0)
    return xr.Dataset({"hidden_ratio": (("level",), levels * 1.5), "hidden_ratio_low": (("level",), levels)})


@pytest.fixture
def survey():
    info = {
        "model": {"name": "org/[bold]model\x1b[31m", "weights": "0123456789abcdef0123"},
        "scheme": {"kind": "rope", "description": "RoPE, base 10000"},
        "corpus": {
            "source": "prose",
            "sequences": 8,
            "length": 64,
            "first_token": {"placed": True, "text": "<s>", "id": 1, "why": "the tokenizer puts it there.", "warning": "look out"},
        },
    }
    headline = {"sinks": {"head_share_03": Estimate(0.5, 0.25, 0.75, 8)}, "odd": {"x": Estimate.missing("too few")}, "norms": {}}
    writer = RunWriter.start(None, {}, info)
    return writer.finish(
        {"sinks": sinks(), "odd": xr.Dataset(), "norms": norms()}, headline, {"labels": {"odd": {"kind": "none"}}}
    )


def printed(survey, only=None) -> str:
    stream = io.StringIO()
    print_survey(survey, only=only, stream=stream)
    return stream.getvalue()


def test_plain_page_says_everything(survey):
    page = printed(survey)
    assert page.isascii()
    assert "\x1b" not in page
    assert "org/[bold]model?[31m" in page
    assert "RoPE, base 10000" in page
    assert "'<s>' (id 1): the tokenizer puts it there" in page
    assert "! look out" in page
    assert "head_share_03  0.5 [0.25, 0.75]  n = 8" in page
    assert "missing: too few" in page
    assert "     0 03?" in page
    assert "     1 905" in page
    assert page.index("1.0 ") < page.index("1.2 ") < page.index("0.1 ")
    assert "[0.98, 1]" in page
    assert not any(line.endswith(" ") for line in page.splitlines())


def test_only_and_json(survey):
    assert "missing: too few" not in printed(survey, ["sinks"])
    assert '"head_share_03"' in headline_json(survey)
    assert headline_json(survey, ["odd"]).count("null") == 3
    with pytest.raises(ConfigError, match="one of sinks, odd, norms in this run, got nothing"):
        headline_json(survey, ["nothing"])


def test_norms_table_is_thinned_and_keeps_both_ends(survey):
    page = printed(survey, ["norms"])
    rows = [line.split() for line in page.splitlines() if line.strip() and line.split()[0].isdigit()]
    assert rows[0] == ["0", "0"]
    assert rows[-1] == ["30", "45"]
    assert len(rows) == 12
    assert "hidden_ratio_low" not in page


def test_every_listed_section_loads():
    for place in SECTIONS.values():
        module, _, name = place.partition(":")
        assert callable(getattr(__import__(module, fromlist=[name]), name))


def _coloured(renderable, width=60, colours_of="truecolor") -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system=colours_of, width=width, no_color=False)
    console.print(renderable)
    return stream.getvalue()


def test_head_map_in_colour_pairs_layers(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    drawn = _coloured(HeadMap(MASS, "mass", high=1.0))
    assert drawn.count(UPPER_HALF * 2) == 3
    assert "2;38;2" not in drawn, "colours must not be dimmed"
    top, bottom = colours(np.array([0.05, 0.99]), 0, 1)
    assert f"38;2;{top[0]};{top[1]};{top[2]};48;2;{bottom[0]};{bottom[1]};{bottom[2]}m" in drawn
    assert "grey: no value" in drawn


def test_head_map_pools_wide_models():
    wide = np.zeros((2, 130))
    wide[1, 129] = 0.75
    pooled, together = pool_heads(wide, 40)
    assert together == 4
    assert pooled.shape == (2, 33)
    assert pooled[1, 32] == 0.75
    stream = io.StringIO()
    console_for(stream).print(HeadMap(np.full((1, 500), np.nan), "x"))
    assert "a cell is the largest of 5 heads" in stream.getvalue()
    assert max(map(len, stream.getvalue().splitlines())) <= 110
    with pytest.raises(ValueError, match="layer by head"):
        HeadMap(np.zeros(3), "x")


def test_colours_run_from_dark_to_light_and_grey_is_missing():
    scale = colours(np.linspace(0, 1, 101), 0, 1).astype(float)
    luminance = scale @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) > 0).all()
    np.testing.assert_array_equal(scale[[0, -1]], ANCHORS[[0, -1]])
    np.testing.assert_array_equal(colours(np.array([np.nan, 9.0, -9.0]), 0, 1), [MISSING, ANCHORS[-1], ANCHORS[0]])


def test_strongest_and_bounds():
    name, values = per_head(sinks(), ["absent", "position_0_mass"])
    assert strongest(values, 3) == [(1, 0), (1, 2), (0, 1)]
    assert bounds(sinks(), name, 1, 2) == "[0.49, 0.51]"
    assert bounds(sinks(), name, 0, 2) == ""
    assert per_head(xr.Dataset({"x": (("layer",), np.zeros(2))}), ["x"]) is None


def test_no_color_is_honoured(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert console_for(Terminal()).color_system is None
    monkeypatch.delenv("NO_COLOR")
    assert console_for(Terminal()).color_system is not None


def test_plain_text_has_no_control_characters():
    assert plain("a\nb\x1b[0m\x00\u202e") == "a b?[0m??"


def test_sixteen_colours_are_too_few_for_a_scale(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert UPPER_HALF in _coloured(HeadMap(MASS, "mass", high=1.0), colours_of="256")
    drawn = _coloured(HeadMap(MASS, "mass", high=1.0), colours_of="standard")
    assert UPPER_HALF not in drawn
    assert "905" in drawn

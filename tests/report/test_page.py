"""The page in a real browser: it opens from disk, holds together at every width, links its pictures, and runs nothing of strangers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gnomon.report.html import write_report
from tests.report.made_up import make_run

OVERLAPS = """
(() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const boxes = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim()).map((t) => [t.textContent, t.getBoundingClientRect()]);
    for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
      const [a, b] = [boxes[i][1], boxes[j][1]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && tall > 4) found.push([boxes[i][0], boxes[j][0], svg.closest("figure")?.dataset.figure]);
    }
  }
  return found;
})()
"""
OUTSIDE = """
(() => [...document.querySelectorAll("svg text, h1, h2, p, figcaption, select, dd")].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width && !e.closest(".scroll") && !e.closest(".away") && !e.closest("details:not([open])") && !e.classList.contains("skip")
    && (box.left < -1 || box.right > document.documentElement.clientWidth + 1);
}).map((e) => e.textContent.slice(0, 60)))()
"""
CELL = """
(() => {
  const svg = document.querySelector('[data-figure="0/sinks-map"] svg.map');
  svg.scrollIntoView({block: "center", behavior: "instant"});
  const box = svg.querySelector("image").getBoundingClientRect();
  return {left: box.left, top: box.top, width: box.width, height: box.height};
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    return write_report(make_run(tmp_path_factory.mktemp("runs") / "plain"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    return write_report(make_run(tmp_path_factory.mktemp("runs") / "hostile", hostile=True))


def readouts(browser) -> dict[str, str]:
    return browser.run(
        "Object.fromEntries([...document.querySelectorAll('[data-figure]')].map((f) => [f.dataset.figure, f.querySelector('.readout')?.textContent || '']))"
    )


@pytest.mark.parametrize("width", [360, 1024, 1920])
@pytest.mark.parametrize("dark", [False, True])
def test_opens_from_disk_alone_and_nothing_overlaps(browser, page, width, dark):
    seconds = browser.open(page, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == []
    assert seconds < 2
    assert browser.run(OVERLAPS) == []
    assert browser.run(OUTSIDE) == []
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    drawn = browser.run(
        "[...document.querySelectorAll('[data-figure] .drawing')].map((d) => d.querySelectorAll('svg, .empty').length)"
    )
    assert drawn
    assert min(drawn) > 0


def test_a_click_chooses_the_head_everywhere_and_the_address_restores_it(browser, page):
    browser.open(page, width=1280)
    box = browser.run(CELL)
    browser.click(box["left"] + box["width"] * (4 + 0.5) / 6, box["top"] + box["height"] * (2 + 0.5) / 4)
    linked = {name: text for name, text in readouts(browser).items() if text.startswith("Layer")}
    assert {
        "0/sinks-map",
        "0/sinks-head",
        "0/attention-map",
        "0/attention-offset",
        "0/leakage-map",
        "0/frames-map",
        "0/frames-head",
    } <= set(linked)
    assert {text[: len("Layer 2, head 4")] for text in linked.values()} == {"Layer 2, head 4"}
    assert browser.run("document.getElementById('card-title').textContent") == "Layer 2, head 4"
    assert browser.run("location.hash") == "#head=2.4"
    assert "Layer 2, head 4" in browser.run("document.getElementById('said').textContent")
    before = readouts(browser)
    browser.open(page, fragment="#frames&head=2.4", width=1280)
    assert readouts(browser) == before
    assert browser.run("document.getElementById('layer').value + '.' + document.getElementById('head').value") == "2.4"


def test_arrow_keys_move_and_stop_at_the_edges(browser, page):
    browser.open(page, width=1280, fragment="#head=0.1")
    browser.run("document.querySelector('[data-figure=\"0/frames-map\"] svg.map').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        browser.key(key)
    assert browser.run("location.hash") == "#head=2.0"
    browser.key("End")
    browser.key("ArrowRight")
    assert browser.run("location.hash") == "#head=2.5"
    outline = browser.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_the_map_shows_the_numbers_of_the_run(browser, page, tmp_path):
    survey = make_run(tmp_path / "again")
    browser.open(page, width=1280, fragment="#head=1.3")
    value = float(survey["sinks"]["position_0_mass_by_band"].sel(query_band="from_32").values[1, 3])
    assert f"{value:.3g}" in readouts(browser)["0/sinks-map"]
    browser.run("document.querySelector('[data-figure=\"0/sinks-map\"] details').open = true")
    browser.run("new Promise((done) => setTimeout(done, 50))")
    cells = browser.run(
        "[...document.querySelectorAll('[data-figure=\"0/sinks-map\"] table td')].map((c) => Number(c.textContent))"
    )
    expected = survey["sinks"]["position_0_mass_by_band"].sel(query_band="from_32").values
    np.testing.assert_allclose(np.reshape(cells, expected.shape), expected, rtol=6e-3)


def test_landmarks_headings_and_names(browser, page):
    browser.open(page)
    assert browser.run("document.querySelectorAll('main').length") == 1
    assert browser.run("document.querySelectorAll('h1').length") == 1
    assert browser.run(
        "[...document.querySelectorAll('section')].every((s) => document.getElementById(s.getAttribute('aria-labelledby')))"
    )
    assert browser.run(
        "[...document.querySelectorAll('select, input, button, svg[tabindex]')].every((e) => e.getAttribute('aria-label') || e.labels?.length)"
    )
    assert browser.run("document.querySelector('a').textContent") == "Skip to the report"


def test_hostile_text_is_shown_and_runs_nothing(browser, hostile):
    browser.open(hostile)
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.run("typeof window.hacked") == "undefined"
    assert browser.run("document.querySelectorAll('main img').length") == 0
    text = browser.run("document.body.innerText")
    assert "</script><script>window.hacked=1</script>" in text
    assert "\\u202egnorw\\u200b" in text
    assert "\u202e" not in text
    assert browser.run("[...document.querySelectorAll('option')].every((o) => !o.textContent.includes('\\u202e'))")


def test_policy_stops_what_is_added(browser, page, tmp_path):
    text = page.read_text(encoding="utf-8")
    spoiled = tmp_path / "spoiled.html"
    spoiled.write_text(
        text.replace("</main>", "<script>window.hacked=1</script><img src='https://example.org/x.png'></main>"), encoding="utf-8"
    )
    browser.open(spoiled)
    assert browser.run("typeof window.hacked") == "undefined"
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())


def test_light_and_dark_by_system_and_by_choice(browser, page):
    background = "getComputedStyle(document.body).backgroundColor"
    browser.open(page)
    light = browser.run(background)
    browser.open(page, dark=True)
    dark = browser.run(background)
    assert light != dark
    browser.run("document.getElementById('theme').click()")
    assert browser.run(background) == light
    browser.run("document.getElementById('theme').click(); document.getElementById('theme').click()")


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (1, 7), (80, 128)])
def test_any_shape_holds(browser, tmp_path, layers, heads):
    page = write_report(make_run(tmp_path / "run", layers, heads))
    seconds = browser.open(page, width=360)
    assert seconds < 4
    assert browser.complaints() == []
    assert browser.run(OVERLAPS) == []
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_model_of_32_by_32_fits_in_five_megabytes_and_opens_in_two_seconds(browser, tmp_path):
    page = write_report(make_run(tmp_path / "run", 32, 32))
    assert page.stat().st_size < 5_000_000
    assert browser.open(page) < 2
    assert browser.complaints() == []


def test_what_was_not_measured_is_named_and_absent(browser, tmp_path):
    page = write_report(make_run(tmp_path / "run", measures=("leakage",)))
    browser.open(page)
    assert browser.complaints() == []
    assert browser.run("[...document.querySelectorAll('section')].map((s) => s.id)") == ["glance", "position", "provenance"]
    line = browser.run("document.querySelector('.unmeasured').textContent")
    assert "sinks" in line
    assert "gnomon survey made-up --measures all" in line


def test_checkpoints_side_by_side_draw_the_training(browser, tmp_path):
    surveys = [
        make_run(tmp_path / str(step), name="pythia", seed=step, more={"model": {"name": "pythia", "revision": f"step{step}"}})
        for step in (0, 512, 143000)
    ]
    rows = [{"quantity": "sinks/head_share_03", "a": 0.4, "b": 0.5, "difference": 0.1, "low": 0.05, "high": float("nan")}]
    page = write_report(surveys, tmp_path / "report.html", differences=rows)
    browser.open(page, width=1024)
    assert browser.complaints() == []
    assert browser.run(OVERLAPS) == []
    assert browser.run("document.querySelectorAll('#training .line').length") > 0
    assert browser.run("[...document.querySelectorAll('#sinks [data-figure$=\"sinks-map\"]')].length") == 3
    assert browser.run("[...document.querySelectorAll('#differences td')].map((c) => c.textContent)") == [
        "0.4",
        "0.5",
        "0.1",
        "0.05",
        "–",
    ]
    box = browser.run(CELL)
    browser.click(box["left"] + box["width"] * 0.5 / 6, box["top"] + box["height"] * 0.5 / 4)
    maps = [text for name, text in readouts(browser).items() if name.endswith("sinks-map")]
    assert all(text.startswith("Layer 0, head 0") for text in maps)


def test_the_data_are_strict_json(page):
    text = page.read_text(encoding="utf-8")
    data = text.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    tree = json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert tree["figures"]["0/sinks-map"]["fields"][0]["shape"] == [4, 6]


ROWS = "document.querySelector('[data-figure=\"0/rows-head\"]')"
STRIP = f"""
(() => {{
  const svg = {ROWS}.querySelector("svg.strip");
  svg.scrollIntoView({{block: "center", behavior: "instant"}});
  const box = svg.querySelector("image").getBoundingClientRect();
  return {{left: box.left, top: box.top, width: box.width, height: box.height}};
}})()
"""


def point(browser, row: int, column: int) -> str:
    """Moves the pointer over one cell of the strip and returns what the page says of it."""
    box = browser.run(STRIP)
    x, y = box["left"] + box["width"] * (column + 0.5) / 64, box["top"] + box["height"] * (row + 0.5) / 8
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    return browser.run(f"{ROWS}.querySelector('.readout').textContent")


def test_the_card_shows_the_rows_of_the_chosen_head(browser, page, tmp_path):
    survey = make_run(tmp_path / "again")
    browser.open(page, width=1280, fragment="#head=1.3")
    assert browser.run(f"Boolean({ROWS}.closest('.card'))")
    expected = survey["rows"]["row"].values[1, 3]
    said = point(browser, 7, 0)
    assert said.startswith("Layer 1, head 3 · query 127 → key 0: weight ")
    assert float(said.rsplit(" ", 1)[1]) == pytest.approx(expected[7, 0], rel=0.03)
    assert point(browser, 7, 60).startswith("Layer 1, head 3 · query 127 → key 124 (i−3): weight ")
    assert point(browser, 0, 30).endswith("cannot be seen")
    strongest = browser.run(f"[...{ROWS}.querySelectorAll('.strongest b')].map((b) => Number(b.textContent))")
    assert strongest == sorted(strongest, reverse=True)
    browser.run("document.getElementById('head').value = 4; document.getElementById('chooser').dispatchEvent(new Event('input'))")
    assert point(browser, 7, 0).startswith("Layer 1, head 4 · query 127")
    browser.run(f"{ROWS}.querySelector('details').open = true")
    browser.run("new Promise((done) => setTimeout(done, 50))")
    cells = browser.run(f"[...{ROWS}.querySelectorAll('table tbody tr')].map((r) => [...r.children].map((c) => c.textContent))")
    assert [cells[8][0], cells[63][0], cells[62][0]] == ["8–9", "i", "i−1"]
    column = [float(row[8].replace("−", "-")) for row in cells if row[8] != "–"]
    assert sum(column) == pytest.approx(1, abs=0.06)
    assert [row[1] == "–" for row in cells] == np.isnan(survey["rows"]["row"].values[1, 4, 0]).tolist()


def test_arrow_keys_inspect_a_row_and_leave_the_head_alone(browser, page):
    browser.open(page, width=1280, fragment="#head=1.3")
    browser.run(f"{ROWS}.querySelector('svg.strip').focus()")
    for key in ("ArrowUp", "ArrowRight", "ArrowRight"):
        browser.key(key)
    assert browser.run("location.hash") == "#head=1.3"
    assert browser.run("document.getElementById('said').textContent").startswith("Layer 1, head 3 · query 75 → key 2: weight ")


def test_one_text_shows_its_tokens_and_hostile_ones_stay_text(browser, hostile):
    browser.open(hostile, width=1280, fragment="#head=1.3")
    browser.run(f"(() => {{ const s = {ROWS}.querySelector('select'); s.value = 1; s.dispatchEvent(new Event('change')); }})()")
    said = point(browser, 7, 0)
    assert "key 0 “</script><script>window.hacked=1</script>" in said
    assert "\\u202egnorw\\u200b" in said
    assert "“tok125”" in point(browser, 7, 61)
    assert "keys 8–9 “tok8” “tok9”:" in point(browser, 7, 8)
    assert browser.run("typeof window.hacked") == "undefined"
    assert browser.complaints() == []


def test_the_spectrum_stands_over_the_rotary_frequencies_of_the_layer(browser, tmp_path):
    survey = make_run(tmp_path / "run", measures=("sinks", "spectra", "rotary"))
    browser.open(write_report(survey), width=1024, fragment="#head=2.1")
    assert browser.complaints() == []
    assert browser.run(OVERLAPS) == []
    figure = "document.querySelector('[data-figure=\"0/spectra-rotary\"]')"
    shown = (survey["rotary"]["rotary_frequency"].values[2] >= np.pi / 32).sum()
    assert browser.run(f"{figure}.querySelectorAll('.drawing > div svg .stick').length") == shown
    share = survey["rotary"]["share"].values[2, 1][:shown].max()
    assert f"tallest stick: {share:.3g}" in readouts(browser)["0/spectra-rotary"]
    browser.open(write_report(survey), width=1024, fragment="#head=0.1")
    assert "none in this range" in readouts(browser)["0/spectra-rotary"]
    assert browser.run(f"{figure}.querySelectorAll('.drawing > div svg .stick').length") == 0

"""Assembly of the page: what a run has becomes sections, its arrays a payload, everything one file that lets nothing else in.

The page states its own Content-Security-Policy: only the script and the style whose hashes it names may act, and nothing may be fetched from anywhere. So
even text that slipped through escaping could not run, and the file says the same in ten years, offline.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gnomon.errors import RunError
from gnomon.report.figures.colour import CATEGORIES, LINES, MISSING, diverging, sequential
from gnomon.report.html.blocks import Rows
from gnomon.report.html.packing import MOST_PER_FIGURE, Packer, script_json
from gnomon.report.html.several import several_runs
from gnomon.report.html.single import single_run
from gnomon.report.html.text import visible
from gnomon.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template

    from gnomon.result import Survey
    from gnomon.result.comparison import Comparison

SCRIPTS: Final = (
    "data",
    "scales",
    "selection",
    "axes",
    "head_map",
    "curves",
    "head_rows",
    "scatter",
    "intervals",
    "tables",
    "head_card",
    "main",
)
LARGEST: Final = 5_000_000


def write_report(
    surveys: Survey | Sequence[Survey],
    path: str | Path | None = None,
    *,
    differences: Comparison | Rows | None = None,
    claims: Rows | None = None,
) -> Path:
    """Writes the page and returns where it is.

    Args:
        surveys: one run, or several to lay side by side.
        path: file to write; ``report.html`` in the folder of the (first) run when not given.
        differences: a comparison of the runs, or rows of one with the same keys each; made from the results of up to six runs when not given.
        claims: verdicts as ``gnomon claims --json`` prints them; those in the run's record when not given.

    Raises:
        RunError: if no path is given and the first run was not written to disk.
    """
    listed = [surveys] if isinstance(surveys, Mapping) else list(surveys)
    text = report_html(listed, differences=differences, claims=claims)
    if path is None and (not listed or listed[0].path is None):
        raise RunError("`path` must be given for a survey that is not on disk; name the file to write.")
    place = Path(path) if path is not None else Path(str(listed[0].path)) / "report.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".tmp-{place.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(place)
    return place


def report_html(surveys: Sequence[Survey], *, differences: Comparison | Rows | None = None, claims: Rows | None = None) -> str:
    """The page as text."""
    if not surveys:
        raise RunError("`surveys` must hold at least one run, got none.")
    text = ""
    for most in MOST_PER_FIGURE:
        text = _page(surveys, Packer(most), differences, claims)
        if len(text) < LARGEST:
            break
    return text


def _page(surveys: Sequence[Survey], packer: Packer, differences: Comparison | Rows | None, claims: Rows | None) -> str:
    """The page with figures of at most as many numbers as the packer allows."""
    if len(surveys) == 1:
        page = single_run(surveys[0], packer, claims=claims)
    else:
        page = several_runs(surveys, packer, differences=differences, claims=claims)
    payload = {name: page.pop(name) for name in ("runs", "figures", "fields")}
    payload |= {"arrays": packer.arrays, "colours": _colours()}
    script, style, data = _script(), _style(), script_json(payload)
    return str(
        _template().render(**page, script=script, style=style, data=data, policy=_policy(script, style), version=__version__)
    )


def _colours() -> dict[str, Any]:
    themes: tuple[Any, ...] = ("light", "dark")
    return {
        "categories": CATEGORIES,
        **{
            theme: {
                "sequential": sequential(theme),
                "diverging": diverging(theme),
                "lines": LINES[theme],
                "missing": MISSING[theme],
            }
            for theme in themes
        },
    }


def _policy(script: str, style: str) -> str:
    """Nothing from outside, and inside only this script and this style; pictures are drawn in the page as data."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


@lru_cache
def _script() -> str:
    parts = [_asset(f"js/{name}.js") for name in SCRIPTS]
    return '"use strict";(() => {\n' + "\n".join(parts) + "\n})();"


@lru_cache
def _style() -> str:
    return _asset("style.css")


@lru_cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    shown = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    shown.filters["visible"] = visible
    return shown.from_string(_asset("page.html.j2"))


def _asset(name: str) -> str:
    return files("gnomon.report.html").joinpath("assets", *name.split("/")).read_text(encoding="utf-8").strip()

"""Figures and tables as files: SVG by our own hand, PNG and PDF through a browser, tables through pandas."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gnomon.errors import ConfigError, ResourceError
from gnomon.report.figures import HeadCurves, HeadMap, HeadRows, figure_of, figures
from gnomon.report.plot import chosen_field, default_head
from gnomon.report.svg import to_svg

if TYPE_CHECKING:
    import pandas as pd

    from gnomon.result import Survey

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
FLAGS: Final = (
    "--headless=new",
    "--disable-gpu",
    "--no-sandbox",
    "--no-first-run",
    "--disable-sync",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
)
SECONDS: Final = 60


def figure_list(survey: Survey) -> list[tuple[str, str]]:
    """Key and title of every figure of a run."""
    return [(figure.key, figure.title) for measure in survey.measures for figure in figures(survey, measure)]


def figure_svg(survey: Survey, key: str, *, head: tuple[int, int] | None = None, field: str | None = None) -> str:
    """One figure of a run as SVG."""
    figure = figure_of(survey, key)
    chosen = head or default_head(survey)
    if isinstance(figure, HeadCurves | HeadRows):
        _check_head(figure, chosen)
    return to_svg(figure, chosen, chosen_field(figure, field) if isinstance(figure, HeadMap) else 0)


def write_figure(
    survey: Survey, key: str, path: Path, format: str = "svg", *, head: tuple[int, int] | None = None, field: str | None = None
) -> None:
    """Writes one figure as ``svg``, ``png`` or ``pdf``.

    Raises:
        ResourceError: for ``png`` and ``pdf`` when no browser is found.
    """
    svg = figure_svg(survey, key, head=head, field=field)
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "svg":
        path.write_text(svg, encoding="utf-8")
    elif format in ("png", "pdf"):
        _through_browser(svg, path, format)
    else:
        raise ConfigError(f"`format` must be svg, png or pdf for a figure, got {format!r}.")


def write_table(survey: Survey, measure: str, path: Path, format: str = "csv") -> None:
    """Writes a measure, or ``headline``, as ``csv``, ``latex`` or ``parquet``; a missing number is an empty cell."""
    if measure != "headline" and measure not in survey.measures:
        raise ConfigError(
            f"`table` must be headline or one of {', '.join(survey.measures) or 'none'} in this run, got {measure!r}."
        )
    frame: pd.DataFrame = survey.to_dataframe(None if measure == "headline" else measure)
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "csv":
        frame.to_csv(path, index=False)
    elif format == "parquet":
        frame.to_parquet(path, index=False)
    elif format == "latex":
        path.write_text(to_latex(frame), encoding="utf-8")
    else:
        raise ConfigError(f"`format` must be csv, latex or parquet for a table, got {format!r}.")


def to_latex(frame: pd.DataFrame) -> str:
    """A booktabs table; numbers to four digits, missing ones as a dash, everything that LaTeX would read as a command escaped."""
    numeric = [frame[name].dtype.kind in "fiu" for name in frame.columns]
    lines = [rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numeric)}}}", r"\toprule"]
    lines.append(" & ".join(_latex(str(name).replace("_", " ")) for name in frame.columns) + r" \\")
    lines.append(r"\midrule")
    lines += [" & ".join(_latex_cell(value) for value in row) + r" \\" for row in frame.itertuples(index=False)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def find_browser() -> str | None:
    """A Chromium on the path, or the one that ``GNOMON_BROWSER`` names."""
    named = os.environ.get("GNOMON_BROWSER")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


def _check_head(figure: HeadCurves | HeadRows, head: tuple[int, int]) -> None:
    arrays = [line.values for line in figure.lines] if isinstance(figure, HeadCurves) else [figure.values]
    shapes = [values.shape for values in arrays if values.ndim > 2]
    layers, heads = (min(shape[axis] for shape in shapes) for axis in (0, 1)) if shapes else (1, 1)
    if not (head[0] < layers and head[1] < heads):
        raise ConfigError(f"`head` must be a layer below {layers} and a head below {heads}, got {head[0]}.{head[1]}.")


def _through_browser(svg: str, path: Path, format: str) -> None:
    browser = find_browser()
    if browser is None:
        raise ResourceError(
            f"`format` {format} needs Chromium or Chrome on the path, but none was found; install one, set GNOMON_BROWSER, or use --format svg."
        )
    width, height = (float(size) for size in re.findall(r'(?:width|height)="([\d.]+)"', svg)[:2])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page, made = Path(folder) / "figure.html", Path(folder) / f"figure.{format}"
        style = f"@page{{size:{width}px {height}px;margin:0}}html,body{{margin:0}}svg{{display:block}}"
        page.write_text(f'<!doctype html><meta charset="utf-8"><style>{style}</style>{svg}', encoding="utf-8")
        picture = (
            [f"--print-to-pdf={made}", "--no-pdf-header-footer"]
            if format == "pdf"
            else [f"--screenshot={made}", f"--window-size={round(width)},{round(height)}", "--force-device-scale-factor=3"]
        )
        command = [browser, *FLAGS, f"--user-data-dir={Path(folder) / 'profile'}", *picture, page.as_uri()]
        try:
            subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ResourceError(
                f"`format` {format} needs a working browser, but {browser} did not run; use --format svg."
            ) from error
        if not made.is_file():
            raise ResourceError(f"`format` {format} needs a working browser, but {browser} wrote nothing; use --format svg.")
        shutil.copyfile(made, path)


def _latex_cell(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "--"
    return f"{value:.4g}" if isinstance(value, float) else _latex(str(value))


def _latex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)

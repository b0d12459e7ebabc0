"""``gnomon export``: one figure or one table of a run, for a paper."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gnomon.errors import ConfigError


class Format(StrEnum):
    """What files are written."""

    svg = "svg"
    png = "png"
    pdf = "pdf"
    csv = "csv"
    latex = "latex"
    parquet = "parquet"


PICTURES = (Format.svg, Format.png, Format.pdf)
TABLES = (Format.csv, Format.latex, Format.parquet)
ENDINGS = {Format.latex: "tex"}


def export(
    run: Annotated[Path, typer.Argument(help="Run folder, as written by `gnomon survey --out`.", metavar="RUN")],
    figure: Annotated[
        str | None, typer.Option(help="A figure by its key, or a measure for its main figure; `list` lists them.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="A measure as a table, or `headline` for all headline numbers.")] = None,
    format: Annotated[Format | None, typer.Option(help="svg, png or pdf for figures; csv, latex or parquet for tables.")] = None,
    head: Annotated[str | None, typer.Option(metavar="L.H", help="Layer and head of curves of one head, such as 5.3.")] = None,
    field: Annotated[str | None, typer.Option(help="Field of a map; the first otherwise.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; named after what is exported otherwise.")
    ] = None,
) -> None:
    """Write a figure or a table of a run to a file."""
    from gnomon.report.export import figure_list, write_figure, write_table
    from gnomon.result import open_run

    if (figure is None) == (table is None):
        raise ConfigError("one of `--figure` and `--table` must be given, got both or none; `--figure list` lists figures.")
    survey = open_run(run)
    if figure == "list":
        typer.echo("\n".join(f"{key}\t{title}" for key, title in figure_list(survey)))
        return
    chosen = _fitting(format, TABLES if figure is None else PICTURES)
    path = out or Path(f"{figure or table}.{ENDINGS.get(chosen, chosen.value)}")
    if figure is not None:
        write_figure(survey, figure, path, chosen.value, head=None if head is None else read_head(head), field=field)
    else:
        write_table(survey, str(table), path, chosen.value)
    typer.echo(str(path))


def read_head(text: str) -> tuple[int, int]:
    """Reads ``L.H``, layer and head."""
    match = re.fullmatch(r"\s*([0-9]{1,4})\.([0-9]{1,4})\s*", text)
    if match is None:
        raise ConfigError(f"`head` must be layer and head with a point between, such as 5.3, got {text!r}.")
    return int(match[1]), int(match[2])


def _fitting(format: Format | None, allowed: tuple[Format, ...]) -> Format:
    if format is not None and format not in allowed:
        raise ConfigError(f"`format` must be one of {', '.join(allowed)} for what is exported, got {format.value}.")
    return format or allowed[0]


__all__ = ["export"]

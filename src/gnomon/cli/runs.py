"""``gnomon runs``: all runs below a folder, and SQL over their numbers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gnomon.cli.choices import RUNS

if TYPE_CHECKING:
    from gnomon.result.catalog import Catalog

LISTED = ("run", "status", "model", "scheme", "reason", "sequences", "length", "measures")


def runs(
    folder: Annotated[Path, typer.Argument(help="Folder whose runs are listed, however deep they lie.", metavar="DIR")] = RUNS,
    sql: Annotated[
        str | None,
        typer.Option(help="One SELECT over the tables runs, headline, labels, and one per measure (a row per layer and head)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print rows as strict JSON instead of a table.")] = False,
) -> None:
    """List all runs below a folder, or ask their numbers in SQL."""
    import sys

    from gnomon.report.terminal.page import show
    from gnomon.report.terminal.tables import table
    from gnomon.result.catalog import open_catalog

    catalog = open_catalog(folder)
    columns, rows = catalog.query(sql) if sql is not None else listing(catalog, whole=json)
    if json:
        from gnomon.result.strict_json import dumps

        names = distinct(columns)
        typer.echo(dumps({"rows": [dict(zip(names, row, strict=True)) for row in rows]}), nl=False)
        return
    if not rows:
        typer.echo("no rows" if sql is not None else f"no runs in {folder}; `gnomon survey` makes one.")
        return
    shown = [[cell_text(cell) for cell in row] for row in rows]
    numeric = [any(isinstance(row[index], int | float) for row in rows) for index in range(len(columns))]
    left = numeric.index(True) if True in numeric else len(columns)
    show(table(columns, shown, left=left), sys.stdout)


def listing(catalog: Catalog, *, whole: bool) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The table of runs: all columns, or those that fit a terminal, with the number of measures instead of their names."""
    table = catalog.table("runs")
    columns = {name: table.column(name).to_pylist() for name in (table.column_names if whole else LISTED)}
    if not whole:
        columns["measures"] = [None if names is None else len(names) for names in columns["measures"]]
        if not any(columns["reason"]):
            del columns["reason"]
    return list(columns), list(zip(*columns.values(), strict=True))


def cell_text(cell: Any) -> str:
    """A value as it stands in the table; numbers to six digits."""
    from gnomon.report.terminal.tables import number

    if cell is None:
        return "-"
    if isinstance(cell, float):
        return number(cell, 6)
    return ", ".join(map(str, cell)) if isinstance(cell, list) else str(cell)


def distinct(names: Iterable[str]) -> list[str]:
    """The same names, numbered where they recur, since an object holds a name once."""
    found: list[str] = []
    for name in names:
        again = 2
        chosen = name
        while chosen in found:
            chosen, again = f"{name}_{again}", again + 1
        found.append(chosen)
    return found


__all__ = ["runs"]

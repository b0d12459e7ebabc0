"""``gnomon report``: one page from one run, or from several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, as written by `gnomon survey --out`.", metavar="RUN...")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; report.html in the first run otherwise.")
    ] = None,
) -> None:
    """Write the report as one HTML file that needs nothing else."""
    from gnomon.report.claims import claims_beside, table_rows
    from gnomon.report.html import write_report
    from gnomon.result import open_run

    surveys = [open_run(run) for run in runs]
    if out is None and len(surveys) > 1:
        out = Path("report.html")
    verdicts = claims_beside(surveys)
    typer.echo(str(write_report(surveys, out, claims=None if verdicts is None else table_rows(verdicts))))


__all__ = ["report"]

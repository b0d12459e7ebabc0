"""``gnomon show``: what a run found."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Against(StrEnum):
    """What to lay a run beside."""

    paper = "paper"


def show(
    run: Annotated[Path, typer.Argument(help="Run folder, as written by `gnomon survey --out`.", metavar="RUN")],
    json: Annotated[bool, typer.Option("--json", help="Print the headline numbers as strict JSON instead.")] = False,
    against: Annotated[Against | None, typer.Option(help="Lay the numbers beside published ones instead.")] = None,
    measure: Annotated[list[str] | None, typer.Option("--measure", help="Show this measure only; may be repeated.")] = None,
) -> None:
    """Print what a run found, as tables or as JSON."""
    from gnomon.result import open_run

    survey = open_run(run)
    if json:
        from gnomon.report.headline_json import headline_json

        typer.echo(headline_json(survey, measure), nl=False)
        return
    if against is Against.paper:
        import sys

        from gnomon.report.terminal.page import show as show_page
        from gnomon.report.terminal.papers import papers_page

        show_page(papers_page(survey), sys.stdout)
        return
    from gnomon.report.terminal import print_survey

    print_survey(survey, only=measure)

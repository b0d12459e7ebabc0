"""``gnomon measures``: what can be measured."""

from __future__ import annotations

import sys

import typer


def measures() -> None:
    """List what can be measured, and what each answers."""
    from gnomon.report.terminal.page import show
    from gnomon.report.terminal.tables import table
    from gnomon.study.registry import entries

    rows = [(name, "yes" if entry.default else "", entry.answers) for name, entry in entries().items()]
    show(table(("name", "default", "answers"), rows, left=3), sys.stdout)
    typer.echo("\nChoose with `gnomon survey --measures NAME,NAME`; `default` and `all` are understood too.")


__all__ = ["measures"]

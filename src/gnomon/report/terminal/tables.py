"""Tables and lines of text that come out the same on a terminal, in a file and in a log.

Names come from model files and run folders of strangers, so nothing is read as markup and control characters are shown as ``?``.
What needs numpy is imported where it is used: commands that only list something answer at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from gnomon.result import Survey

DIM = "dim"
BOLD = "bold"


def plain(value: object) -> str:
    """Text safe to print: what is not printable becomes ``?``, line breaks become spaces."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(str(value).split()))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", left: int = 1) -> Table:
    """A table without rules: headings, then rows; columns after the first ``left`` hold numbers and are set to the right."""
    out = Table(
        box=None, title=Text(plain(title), BOLD) if title else None, title_justify="left", pad_edge=False, padding=(0, 2, 0, 0)
    )
    for index, heading in enumerate(columns):
        out.add_column(Text(heading, DIM), justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        out.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    return out


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """Labels and what they say, in two columns."""
    out = Table.grid(padding=(0, 2, 0, 0))
    out.add_column(style=DIM, no_wrap=True)
    out.add_column(overflow="fold")
    for label, value in pairs:
        out.add_row(Text(label), Text(plain(value)))
    return out


def headline_table(survey: Survey, measure: str) -> Table | Text:
    """The headline numbers of one measure, each with its interval, or why it is missing."""
    from gnomon.result.survey import format_estimate

    numbers, labels = survey.headline.get(measure, {}), survey.labels.get(measure, {})
    if not numbers and not labels:
        return Text("no headline numbers", DIM)
    out = Table.grid(padding=(0, 2, 0, 0))
    out.add_column(overflow="fold")
    out.add_column(overflow="fold")
    out.add_column(style=DIM, no_wrap=True)
    for key, label in labels.items():
        out.add_row(Text(plain(key)), Text(plain(label), BOLD), Text(""))
    for key, number in numbers.items():
        style = DIM if number.is_missing else BOLD
        out.add_row(Text(plain(key)), Text(plain(format_estimate(number)), style), Text(f"n = {number.n}" if number.n else ""))
    return out


def number(value: float, digits: int = 3) -> str:
    """A number for a cell, ``-`` when there is none."""
    from gnomon.result.survey import format_number

    return format_number(value, digits) if value == value else "-"

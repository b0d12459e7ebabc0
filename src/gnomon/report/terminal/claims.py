"""The ledger on a terminal: by paper, a row per verdict, below it the sentence that says how it came about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gnomon.report.claims import Row, interval_text, null_text
from gnomon.report.terminal.tables import BOLD, DIM, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

COLOURS: Final = {"supported": "green", "not supported": "red", "inconclusive": "yellow", "not applicable": "dim"}
SUBJECTS: Final = {
    "A": "where absolute position comes from",
    "B": "attention sinks as reference frames",
    "C": "wavelet-like heads",
    "P": "phase and harmonics",
    "D": "attention and likelihood",
}


def claims_page(rows: Sequence[Row]) -> RenderableType:
    """Every verdict, grouped by paper; the model is named where there are several."""
    several = len({row.get("model") for row in rows}) > 1
    parts: list[RenderableType] = [] if several or not rows else [Text(plain(rows[0].get("model")), BOLD), Text("")]
    for letter, group in groupby(rows, key=lambda row: str(row.get("id"))[:1]):
        listed = list(group)
        heading = Text(f"{plain(letter)}  {plain(listed[0].get('paper'))}", "bold underline")
        parts += [Text.assemble(heading, (f"  {SUBJECTS.get(letter, '')}", DIM)), *_verdicts(listed, several=several), Text("")]
    parts.append(_counts(rows))
    return Group(*parts)


def _verdicts(rows: Sequence[Row], *, several: bool) -> Iterator[RenderableType]:
    for row in rows:
        word = plain(row.get("verdict"))
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=2)
        line.add_column(width=14)
        line.add_column(overflow="fold")
        text = Text(plain(row.get("statement")))
        if several:
            text = Text.assemble(text, (f"  {plain(row.get('model'))}", DIM))
        line.add_row(Text(plain(row.get("id")), BOLD), Text(word, COLOURS.get(word, "")), text)
        yield line
        yield Padding(Group(*_details(row)), (0, 0, 0, 20))


def _details(row: Row) -> Iterator[Text]:
    if interval_text(row) != "-":
        number = Text.assemble((interval_text(row), BOLD), (f"  against {null_text(row)}" if null_text(row) != "-" else ""))
        number.append(f"  n = {row.get('n')}", DIM)
        yield number.append(f"  {plain(row.get('quantity'))}", DIM)
    yield Text(plain(row.get("why")))
    if row.get("published"):
        yield Text(f"published: {plain(row.get('published'))}", DIM)


def _counts(rows: Sequence[Row]) -> Text:
    found = Counter(plain(row.get("verdict")) for row in rows)
    return Text.assemble(
        *(part for word in COLOURS if found[word] for part in ((f"{found[word]} {word}", COLOURS[word]), ("   ", "")))
    )

"""A comparison as one table: a block per quantity, a line per run; what is missing or was not measured is a dash."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.tables import DIM, facts, plain, table
from gnomon.result.survey import format_estimate, format_number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result.comparison import Comparison, Row

SIGNIFICANT = 0.05


def comparison_page(comparison: Comparison) -> RenderableType:
    """Which runs, whether they are paired, and the table."""
    first, *others = comparison.names
    about = [("first", first), *zip(others, comparison.pairing, strict=True)]
    parts: list[RenderableType] = [facts(about), Text("")]
    if comparison.labels:
        rows = [(key, *words) for key, words in comparison.labels.items()]
        parts += [table(("label", *comparison.names), rows, left=1 + len(comparison.names)), Text("")]
    lines = [line for row in comparison.rows for line in _lines(row, comparison.names)]
    columns = ("quantity", "run", "value [95 %]", "less the first [95 %]", "p, corrected", "")
    whole = table(columns, lines, left=4)
    for column in (0, 2, 3):
        whole.columns[column].no_wrap = True
    parts += [whole, Text("")]
    note = f"* p below {SIGNIFICANT} after Holm's correction over {comparison.tests} tests; u: unpaired"
    parts.append(Text(note, DIM))
    return Group(*parts)


def _lines(row: Row, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    out = []
    for index, (name, value, one) in enumerate(zip(names, row.values, (None, *row.compared), strict=True)):
        cells = [
            row.quantity if index == 0 else "",
            plain(name),
            "-" if value is None or value.is_missing else format_estimate(value),
        ]
        if one is None:
            cells += ["", "", ""]
        else:
            bounds = one.difference
            change = f"{bounds.value:+.3g}"
            if bounds.has_bounds:
                change += f" [{format_number(bounds.low)}, {format_number(bounds.high)}]"
            p = "" if math.isnan(one.p_corrected) else format_number(one.p_corrected, 2)
            mark = "*" if one.p_corrected < SIGNIFICANT else ""
            cells += [change, p, mark + ("" if bounds.paired or not bounds.has_bounds else "u")]
        out.append(tuple(cells))
    return out

"""The differences of several runs from the first, as the comparison of results states them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gnomon.report.html.blocks import Rows, rows_table
from gnomon.report.html.sentences import plain
from gnomon.report.html.text import visible
from gnomon.result.comparison import Comparison, compare_runs
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    from gnomon.result import Survey

LEVEL: Final = 0.05
MOST_RUNS: Final = 6


def differences_tree(surveys: Sequence[Survey], names: Sequence[str], given: Comparison | Rows | None) -> dict[str, Any] | None:
    """Sentence, table and remarks; ``None`` where nothing can be compared.

    Args:
        surveys: the runs.
        names: what they are called.
        given: a comparison that was made already, or rows of one; made here when not given and the runs are few.
    """
    if given is not None and not isinstance(given, Comparison):
        table = rows_table(given)
        return None if table is None else {"sentence": "Headline numbers and their differences.", "table": table, "notes": []}
    if given is None and not 2 <= len(surveys) <= MOST_RUNS:
        return None
    made = given or compare_runs(surveys, list(names))
    rows = [row for one in made.rows for row in _rows(made, one)]
    rows.sort(key=lambda row: row[0])
    clear = sum(p < LEVEL for p, _ in rows)
    sentence = (
        f"{clear} of {made.tests} tested numbers differ from {visible(made.names[0])} beyond chance, corrected over all of them."
        if made.tests
        else "No number could be tested: there is no interval on both sides."
    )
    columns = ["quantity", "run", visible(made.names[0]), "this run", "difference", "corrected p"]
    notes = [f"{visible(name)}: {visible(words)}." for name, words in zip(made.names[1:], made.pairing, strict=True)]
    return {"sentence": sentence, "table": {"columns": columns, "rows": [cells for _, cells in rows]}, "notes": notes}


def _rows(made: Comparison, row: Any) -> list[tuple[float, list[str]]]:
    """One row per run but the first, with the p-value to sort by; untested ones last."""
    out = []
    for name, value, one in zip(made.names[1:], row.values[1:], row.compared, strict=True):
        if one is None or value is None or row.values[0] is None:
            continue
        change = Estimate(one.difference.value, one.difference.low, one.difference.high)
        tested = one.p_corrected == one.p_corrected
        cells = [visible(row.quantity), visible(name), plain(row.values[0]), plain(value), plain(change)]
        out.append((one.p_corrected if tested else 2.0, [*cells, f"{one.p_corrected:.2g}" if tested else "–"]))
    return out

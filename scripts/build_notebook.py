"""Runs an example in percent format and writes it as a notebook with its outputs.

Usage: python scripts/build_notebook.py examples/first_survey.py docs/example.ipynb

Cells run in this process, so that no kernel need be installed. A Plotly figure is stored as such and, for readers that do not draw it, as the SVG that the report draws of the same figure.
"""

from __future__ import annotations

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

PLOTLY = "application/vnd.plotly.v1+json"


class Cell(NamedTuple):
    """One cell: ``code`` or ``markdown``, and its text."""

    kind: str
    text: str


def cells_of(source: str) -> list[Cell]:
    """The cells of a file in percent format; text before the first mark belongs to none."""
    cells: list[Cell] = []
    for block in ("\n" + source).split("\n# %%")[1:]:
        head, _, body = block.partition("\n")
        if "[markdown]" in head:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            cells.append(Cell("markdown", "\n".join(lines)))
        else:
            cells.append(Cell("code", body.strip()))
    return cells


def run_cell(text: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Runs a cell; what it printed and the value of its last expression."""
    tree = ast.parse(text)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(last, "<cell>", "eval"), names)
    return printed.getvalue(), value


def shown(value: Any, drawn: list[str]) -> dict[str, Any]:
    """A value by MIME type, as a notebook would show it."""
    if type(value).__module__.startswith("plotly."):
        figure = json.loads(value.to_json())
        return {PLOTLY: {**figure, "config": {}}, **({"image/svg+xml": drawn[-1]} if drawn else {}), "text/plain": "Figure"}
    found = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_") and (html := value._repr_html_()):
        found["text/html"] = html
    return found


def record_drawings(drawn: list[str]) -> None:
    """From here on, keeps the SVG of every figure that is made for a notebook."""
    from gnomon.report import plot
    from gnomon.report.figures import HeadMap
    from gnomon.report.svg import to_svg

    original = plot.to_plotly

    def to_plotly(figure: Any, *, head: Any = (0, 0), field: str | None = None) -> Any:
        drawn.append(to_svg(figure, head, plot.chosen_field(figure, field) if isinstance(figure, HeadMap) else 0))
        return original(figure, head=head, field=field)

    plot.to_plotly = to_plotly


def notebook_of(cells: list[Cell]) -> dict[str, Any]:
    """The notebook, executed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    drawn: list[str] = []
    record_drawings(drawn)
    made: list[dict[str, Any]] = []
    count = 0
    for index, cell in enumerate(cells):
        entry: dict[str, Any] = {
            "cell_type": cell.kind,
            "id": f"cell-{index}",
            "metadata": {},
            "source": cell.text.splitlines(True),
        }
        if cell.kind == "code":
            count += 1
            printed, value = run_cell(cell.text, names)
            outputs: list[dict[str, Any]] = []
            if printed:
                outputs.append({"output_type": "stream", "name": "stdout", "text": printed.splitlines(True)})
            if value is not None:
                outputs.append(
                    {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": shown(value, drawn)}
                )
            entry |= {"execution_count": count, "outputs": outputs}
        made.append(entry)
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def main() -> None:
    """Reads the example and writes the notebook named on the command line."""
    source, target = map(Path, sys.argv[1:3])
    notebook = notebook_of(cells_of(source.read_text(encoding="utf-8")))
    target.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

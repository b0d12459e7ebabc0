"""Numbers on their way into the page: compact, exact enough, with missing values kept missing.

Small arrays travel as little-endian 32-bit floats, where NaN is NaN. Larger ones are cut into 65 534 equal steps between their least and largest value
(an error below one part in a hundred thousand of the range, less than a pixel), with the last code for NaN. Weights of rows travel in 255 steps of their square
root, so that small ones are not lost. Curves of very many heads first lose their interval and then every other point until they fit, rows their example and then every other query;
the figure's note says so.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any, Final

import numpy as np

from gnomon.report.figures import (
    Axis,
    Curves,
    Figure,
    HeadCurve,
    HeadCurves,
    HeadField,
    HeadMap,
    HeadRows,
    HeadScatter,
    Intervals,
    Line,
    Marks,
)
from gnomon.report.figures.kinds import Floats
from gnomon.report.html.text import visible
from gnomon.statistics import Estimate

EXACT: Final = 512
CODES: Final = 65535
ROOTS: Final = 255
ROWS_FOR_ONE: Final = 4
"""How many weights of rows may stand in a figure for one number of a curve: half its size, and worth twice the room."""
MOST_PER_FIGURE: Final = (300_000, 100_000, 30_000)


class Packer:
    """Collects the arrays of a page and describes figures by reference to them.

    Attributes:
        arrays: what was packed.
        most: how many numbers a figure may have.
    """

    def __init__(self, most: int = MOST_PER_FIGURE[0]) -> None:
        self.most = most
        self.arrays: list[dict[str, Any]] = []

    def figure(self, figure: Figure) -> dict[str, Any]:
        """A figure as JSON; arrays are numbers of entries in ``arrays``."""
        tree: dict[str, Any] = {"kind": figure.kind, "key": figure.key, "title": visible(figure.title)}
        if isinstance(figure, HeadMap):
            return tree | {"fields": [self.field(field) for field in figure.fields]}
        if isinstance(figure, HeadScatter):
            return tree | {"x": self.field(figure.x), "y": self.field(figure.y), "logX": figure.log_x, "logY": figure.log_y}
        if isinstance(figure, HeadRows):
            return tree | self.rows(figure)
        if isinstance(figure, HeadCurves | Curves):
            lines = [self.line(line) for line in figure.lines]
            return tree | {
                "x": _axis(figure.x),
                "y": _axis(figure.y),
                "at": self.array(figure.at),
                "lines": lines,
                "categorical": isinstance(figure, Curves) and figure.categorical,
                "marks": None if figure.marks is None else self.marks(figure.marks),
            }
        assert isinstance(figure, Intervals)
        rows = [{"label": visible(row.label), "role": row.role, **_number(row.number)} for row in figure.rows]
        return tree | {"x": _axis(figure.x), "rows": rows, "reference": figure.reference}

    def field(self, field: HeadField) -> dict[str, Any]:
        """One field of a map."""
        return {
            "key": field.key,
            "label": visible(field.label),
            "units": visible(field.units),
            "palette": field.palette,
            "limits": [float(end) for end in field.limits],
            "names": [visible(name) for name in field.names],
            "shape": list(field.values.shape),
            "values": self.array(field.values),
            "low": self.array(field.low),
            "high": self.array(field.high),
        }

    def line(self, line: Line | HeadCurve) -> dict[str, Any]:
        """One line, of a figure or of every head."""
        shape = list(line.values.shape)
        ends = {"low": self.array(line.low), "high": self.array(line.high)}
        return {"name": visible(line.name), "role": line.role, "shape": shape, "values": self.array(line.values), **ends}

    def marks(self, marks: Marks) -> dict[str, Any]:
        """Sticks along the axis."""
        ends = {"at": self.array(marks.at), "heights": self.array(marks.heights), "shape": list(marks.heights.shape)}
        return {"label": visible(marks.label), "what": visible(marks.what), **ends}

    def rows(self, figure: HeadRows) -> dict[str, Any]:
        """Rows of every head."""
        places = {name: self.array(getattr(figure, name)) for name in ("queries", "first", "last", "offset")}
        return {
            **places,
            "bins": list(figure.bins),
            "shape": list(figure.values.shape),
            "values": self.weights(figure.values),
            "example": self.weights(figure.example),
            "sequence": figure.sequence,
            "tokens": [visible(text) for text in figure.tokens],
        }

    def weights(self, values: Floats | None) -> int | None:
        """Keeps an array of weights from 0 to 1 in steps of their square root."""
        if values is None:
            return None
        roots = np.sqrt(np.clip(np.nan_to_num(values.ravel()), 0, 1)) * (ROOTS - 1)
        codes = np.where(np.isfinite(values.ravel()), roots.round(), ROOTS).astype("u1")
        self.arrays.append({"type": "u1", "data": _base64(codes)})
        return len(self.arrays) - 1

    def array(self, values: Floats | None) -> int | None:
        """Keeps an array and returns its number."""
        if values is None:
            return None
        self.arrays.append(packed(values))
        return len(self.arrays) - 1


def packed(values: Floats) -> dict[str, Any]:
    """One array: ``{"type", "data"}`` and, when quantised, its least and largest value."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    if flat.size <= EXACT or not finite.size:
        return {"type": "f4", "data": _base64(flat.astype("<f4"))}
    low, high = float(finite.min()), float(finite.max())
    place = (flat - low) / ((high - low) or 1.0) * (CODES - 1)
    codes = np.where(np.isfinite(flat), np.nan_to_num(place).round(), CODES).astype("<u2")
    return {"type": "u2", "low": low, "high": high, "data": _base64(codes)}


def unpacked(array: dict[str, Any]) -> Floats:
    """What the page will read: the inverse of :func:`packed`."""
    raw = base64.b64decode(array["data"])
    if array["type"] == "f4":
        return np.frombuffer(raw, "<f4").astype(np.float64)
    if array["type"] == "u1":
        roots = np.frombuffer(raw, "u1").astype(np.float64)
        return np.where(roots == ROOTS, np.nan, (roots / (ROOTS - 1)) ** 2)
    codes = np.frombuffer(raw, "<u2").astype(np.float64)
    scale = (array["high"] - array["low"]) / (CODES - 1)
    return np.where(codes == CODES, np.nan, array["low"] + codes * scale)


def fitted(figure: Figure, most: int) -> Figure:
    """The same figure within ``most`` numbers: intervals of head curves go first, then every other point; of rows the example, then every other query."""
    if isinstance(figure, HeadRows):
        return _fewer_rows(figure, most * ROWS_FOR_ONE)
    if not isinstance(figure, HeadCurves):
        return figure
    said: list[str] = []
    while _size(figure) > most:
        if any(line.low is not None for line in figure.lines):
            figure = replace(figure, lines=tuple(replace(line, low=None, high=None) for line in figure.lines))
            said.append("Intervals are left out of the page for size; the run has them.")
        elif len(figure.at) > 4 and not figure.x.names:
            kept = slice(None, None, 2)
            lines = tuple(replace(line, values=line.values[..., kept]) for line in figure.lines)
            figure = replace(figure, at=figure.at[kept], lines=lines)
            said.append("Points are thinned for size.")
        else:
            break
    return replace(figure, note=" ".join(filter(None, [figure.note, *dict.fromkeys(said)]))) if said else figure


def _fewer_rows(figure: HeadRows, most: int) -> HeadRows:
    said: list[str] = []
    if figure.example is not None and 2 * figure.values.size > most:
        figure = replace(figure, example=None, tokens=())
        said.append("The example is left out of the page for size; the run has it.")
    while figure.values.size > most and len(figure.queries) > 1:
        kept = slice((len(figure.queries) - 1) % 2, None, 2)
        figure = replace(figure, queries=figure.queries[kept], values=figure.values[:, :, kept])
        said.append("Queries are left out for size.")
    return replace(figure, note=" ".join(filter(None, [figure.note, *dict.fromkeys(said)]))) if said else figure


def script_json(tree: Any) -> str:
    """Strict JSON that cannot end or open an element."""
    text = json.dumps(tree, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _size(figure: HeadCurves) -> int:
    return sum(line.values.size * (1 if line.low is None else 3) for line in figure.lines)


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "text": visible(axis.text),
        "log": axis.log,
        "names": [visible(name) for name in axis.names],
        "low": axis.low,
        "high": axis.high,
        "whole": axis.whole,
    }


def _number(number: Estimate) -> dict[str, Any]:
    tree = number.to_json()
    return {**tree, "reason": visible(tree["reason"])} if "reason" in tree else tree


def _base64(array: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")

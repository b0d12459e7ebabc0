"""Numbers on their way into the page: compact, exact enough, with missing values kept missing.

Small arrays travel as little-endian 32-bit floats, where NaN is NaN. Larger ones are cut into 65 534 equal steps between their least and largest value
(an error below one part in a hundred thousand of the range, less than a pixel), with the last code for NaN. Curves of very many heads first lose their
interval and then every other point until they fit; the figure's note says so.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any, Final

import numpy as np

from gnomon.report.figures import Axis, Curves, Figure, HeadCurve, HeadCurves, HeadField, HeadMap, HeadScatter, Intervals, Line
from gnomon.report.figures.kinds import Floats
from gnomon.report.html.text import visible
from gnomon.statistics import Estimate

EXACT: Final = 512
CODES: Final = 65535
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
        if isinstance(figure, HeadCurves | Curves):
            lines = [self.line(line) for line in figure.lines]
            return tree | {
                "x": _axis(figure.x),
                "y": _axis(figure.y),
                "at": self.array(figure.at),
                "lines": lines,
                "categorical": isinstance(figure, Curves) and figure.categorical,
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
    codes = np.frombuffer(raw, "<u2").astype(np.float64)
    scale = (array["high"] - array["low"]) / (CODES - 1)
    return np.where(codes == CODES, np.nan, array["low"] + codes * scale)


def fitted(figure: Figure, most: int) -> Figure:
    """The same figure within ``most`` numbers: intervals of head curves go first, then every other point."""
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

"""A figure as a picture of its own, for a paper: scalable, without scripts, with its labels as text.

The same figures that the page draws, on a white ground in the light colours, at a fixed size. A figure of heads is drawn for the head that is asked for;
without one, for the head with the largest value of the run's first map.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

import numpy as np

from gnomon.report.figures import Axis, Curves, Figure, HeadCurves, HeadMap, HeadRows, HeadScatter, Intervals, Line, Marks
from gnomon.report.figures.colour import CATEGORIES, LINES, MISSING, colour_at, diverging, sequential
from gnomon.report.figures.kinds import Floats, HeadField
from gnomon.report.html.text import visible
from gnomon.report.scale import Scale, scale_for

WIDTH: Final = 560
HEIGHT: Final = 300
LETTER: Final = 6.4
INK: Final = "#1d1d1b"
SOFT: Final = "#5b5a55"
FAINT: Final = "#e5e2da"
CHANCE: Final = "#6f6e69"
STICK: Final = "#8a4b00"
FONT: Final = "font-family:system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:11.5px"
Head = tuple[int, int]


def to_svg(figure: Figure, head: Head = (0, 0), field: int = 0) -> str:
    """The figure as an SVG document.

    Args:
        figure: any figure.
        head: layer and head, for curves of a head and for the mark on a map.
        field: which field of a map.
    """
    if isinstance(figure, HeadCurves):
        return to_svg(figure.of(*head))
    if isinstance(figure, HeadMap):
        body, size = _head_map(figure.fields[field])
    elif isinstance(figure, HeadRows):
        body, size = _rows(figure, head)
    elif isinstance(figure, HeadScatter):
        body, size = _scatter(figure)
    elif isinstance(figure, Curves):
        body, size = _curves(figure)
    else:
        assert isinstance(figure, Intervals)
        body, size = _intervals(figure)
    title = figure.fields[field].label if isinstance(figure, HeadMap) else figure.title
    if isinstance(figure, HeadRows):
        title = f"{title}, layer {head[0]} head {head[1]}"
    return _document(visible(title), body, size)


def _document(title: str, body: Sequence[str], size: tuple[float, float]) -> str:
    width, height = size[0], size[1] + 26
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" style="{escape(FONT)}">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
        f'<text x="4" y="15" fill="{INK}" font-weight="600" font-size="13">{escape(title)}</text>'
        f'<g transform="translate(0,26)">{"".join(body)}</g></svg>\n'
    )


def _head_map(field: HeadField) -> tuple[list[str], tuple[float, float]]:
    layers, heads = field.values.shape
    left, top = 40.0, 22.0
    cell = min((WIDTH - left - 6) / heads, 40.0)
    tall = max(min(cell, 26.0, 560 / layers), 2.5)
    body = [_hatching()]
    gap = 1.0 if min(cell, tall) > 7 else 0.0
    for layer in range(layers):
        for head in range(heads):
            place = (
                f'x="{left + head * cell:.2f}" y="{top + layer * tall:.2f}" width="{cell - gap:.2f}" height="{tall - gap:.2f}"'
            )
            body.append(f'<rect {place} fill="{field_colour(field, float(field.values[layer, head]), missing="url(#none)")}"/>')
    bottom = top + tall * layers
    body += [_text(left + (head + 0.5) * cell, top - 6, head) for head in range(0, heads, _every(heads, cell, 24))]
    body += [
        _text(left - 6, top + (layer + 0.5) * tall + 4, layer, "end") for layer in range(0, layers, _every(layers, tall, 14))
    ]
    body.append(_text(left + heads * cell + 8, top - 6, "head", "start") if left + heads * cell + 44 < WIDTH else "")
    body.append(_text(left - 6, bottom + 9, "layer", "end"))
    legend = list(_ramp(field, left, bottom + 12))
    return body + legend, (WIDTH, bottom + 40)


def _rows(figure: HeadRows, head: Head) -> tuple[list[str], tuple[float, float]]:
    """Queries downwards, bins across, coloured by the square root of the weight."""
    left, top, tall = 44.0, 36.0, 20.0
    values = figure.values[head]
    cell = (WIDTH - left - 6) / values.shape[1]
    body = [
        _hatching(),
        _text(4, 10, "query i, downwards; keys to the right; colour by the square root of the weight, 0 to 1", "start", INK),
    ]
    table = sequential()
    for row, query in enumerate(figure.queries):
        body.append(_text(left - 6, top + (row + 0.5) * tall + 4, f"{query:g}", "end"))
        for index, value in enumerate(values[row]):
            colour = colour_at(math.sqrt(max(value, 0.0)) if math.isfinite(value) else math.nan, 0.0, 1.0, table, "url(#none)")
            place = (
                f'x="{left + index * cell:.2f}" y="{top + row * tall:.2f}" width="{cell + 0.05:.2f}" height="{tall + 0.05:.2f}"'
            )
            body.append(f'<rect {place} fill="{colour}"/>')
    bins = figure.bins
    every = _every(len(bins), cell, LETTER * max(map(len, bins)) + 6)
    body += [_text(left + (index + 0.5) * cell, top - 6, bins[index]) for index in range(0, len(bins), every)]
    return body, (WIDTH, top + tall * len(figure.queries) + 8)


def _hatching() -> str:
    return (
        '<defs><pattern id="none" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<line x1="0" y1="0" x2="0" y2="5" stroke="{MISSING["light"]}" stroke-width="3"/></pattern></defs>'
    )


def field_colour(field: HeadField, value: float, *, missing: str) -> str:
    """The colour of one cell of a map in the light colours."""
    if field.palette == "categories":
        return CATEGORIES[int(value) % len(CATEGORIES)] if math.isfinite(value) else missing
    table = diverging() if field.palette == "diverging" else sequential()
    return colour_at(value, *field.limits, table, missing)


def _ramp(field: HeadField, x: float, y: float) -> Iterator[str]:
    if field.palette == "categories":
        for index, name in enumerate(field.names):
            yield f'<rect x="{x:.1f}" y="{y:.1f}" width="11" height="11" fill="{CATEGORIES[index % len(CATEGORIES)]}"/>'
            yield _text(x + 16, y + 10, visible(name), "start")
            x += 30 + LETTER * len(name)
        return
    table = diverging() if field.palette == "diverging" else sequential()
    low, high = (_number(end) for end in field.limits)
    start = x + LETTER * len(low) + 6
    yield _text(x, y + 9, low, "start")
    for index, colour in enumerate(table):
        yield f'<rect x="{start + index * 2:.1f}" y="{y:.1f}" width="2.4" height="10" fill="{colour}"/>'
    yield _text(start + 2 * len(table) + 8, y + 9, f"{high} {field.units}".strip(), "start")


def _curves(figure: Curves) -> tuple[list[str], tuple[float, float]]:
    values = [part for line in figure.lines for part in (line.values, line.low, line.high) if part is not None]
    xs, ys = _frame_scales(figure.x, figure.at, figure.y, np.concatenate([np.ravel(part) for part in values]))
    body = list(_frame(figure.x, figure.y, xs, ys))
    for index, line in enumerate(figure.lines):
        colour = _line_colour(figure, line, index)
        body += (
            _dots(line, index, len(figure.lines), xs, ys, colour) if figure.x.names else _stroke(line, figure.at, xs, ys, colour)
        )
    if figure.marks is not None:
        body += _sticks(figure.marks, figure.at, xs)
    bottom = HEIGHT + 8.0
    x = 44.0
    for index, line in enumerate(figure.lines if len(figure.lines) > 1 else ()):
        wide = 40 + LETTER * len(line.name)
        if x + wide > WIDTH and x > 44:
            x, bottom = 44.0, bottom + 17
        body.append(_line_mark(x, bottom + 8, _line_colour(figure, line, index), line.role))
        body.append(_text(x + 28, bottom + 12, visible(line.name), "start"))
        x += wide
    if figure.marks is not None:
        bottom += 17
        body.append(f'<path d="M48 {bottom + 12}v-6m7 6v-11m7 11v-4" stroke="{STICK}" stroke-width="2"/>')
        body.append(_text(72, bottom + 12, visible(f"{figure.marks.label}: {figure.marks.what}"), "start"))
    return body, (WIDTH, bottom + 20)


def _sticks(marks: Marks, at: Floats, xs: Scale) -> Iterator[str]:
    """Half the height for the tallest; a stick of nothing still shows where it stands."""
    known = (
        np.isfinite(marks.at)
        & np.isfinite(marks.heights)
        & (marks.at >= at.min() * (1 - 1e-6))
        & (marks.at <= at.max() * (1 + 1e-6))
    )
    tallest = max(float(marks.heights[known].max()), 1e-9) if known.any() else 1.0
    for place, height in zip(marks.at[known], marks.heights[known], strict=True):
        tall = max(0.5 * (HEIGHT - 58) * max(height / tallest, 0.0), 3.0)
        yield f'<path d="M{xs(place):.2f} {HEIGHT - 36}v{-tall:.2f}" stroke="{STICK}" stroke-width="2" opacity="0.75"/>'


def _stroke(line: Line, at: Floats, xs: Scale, ys: Scale, colour: str) -> Iterator[str]:
    drawable = np.isfinite(line.values) & (line.values > 0 if ys.log else True)
    if line.low is not None and line.high is not None and line.role == "value":
        bounded = drawable & np.isfinite(line.low) & np.isfinite(line.high) & (line.low > 0 if ys.log else True)
        for start, stop in _runs(bounded):
            upper = [f"{xs(at[i]):.2f},{ys(line.high[i]):.2f}" for i in range(start, stop)]
            lower = [f"{xs(at[i]):.2f},{ys(line.low[i]):.2f}" for i in reversed(range(start, stop))]
            yield f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.18"/>'
    dashed = "" if line.role == "value" else ' stroke-dasharray="5 4"'
    for start, stop in _runs(drawable):
        points = " ".join(f"{xs(at[i]):.2f},{ys(line.values[i]):.2f}" for i in range(start, stop))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>'
        if line.role == "value" and (len(at) <= 24 or stop - start == 1):
            yield "".join(
                f'<circle cx="{xs(at[i]):.2f}" cy="{ys(line.values[i]):.2f}" r="3" fill="{colour}"/>' for i in range(start, stop)
            )


def _dots(line: Line, index: int, count: int, xs: Scale, ys: Scale, colour: str) -> Iterator[str]:
    for place, value in enumerate(line.values):
        if not math.isfinite(value):
            continue
        x = xs(place) + (index - (count - 1) / 2) * 12
        if line.low is not None and line.high is not None and math.isfinite(line.low[place]):
            yield f'<path d="M{x:.2f} {ys(line.low[place]):.2f}V{ys(line.high[place]):.2f}" stroke="{colour}" stroke-width="1.5"/>'
        yield f'<circle cx="{x:.2f}" cy="{ys(value):.2f}" r="3.4" fill="{colour}"/>'


def _scatter(figure: HeadScatter) -> tuple[list[str], tuple[float, float]]:
    x = Axis(label=figure.x.label, units=figure.x.units, log=figure.log_x)
    y = Axis(label=figure.y.label, units=figure.y.units, log=figure.log_y)
    xs, ys = _frame_scales(x, figure.x.values.ravel(), y, figure.y.values.ravel())
    body = list(_frame(x, y, xs, ys))
    depth = sequential()[16:]
    layers = figure.x.values.shape[0]
    for layer, (row_x, row_y) in enumerate(zip(figure.x.values, figure.y.values, strict=True)):
        colour = colour_at(layer, 0, max(layers - 1, 1), depth, CHANCE)
        both = np.isfinite(row_x) & np.isfinite(row_y)
        body += [
            f'<circle cx="{xs(a):.2f}" cy="{ys(b):.2f}" r="3" fill="{colour}"/>'
            for a, b in zip(row_x[both], row_y[both], strict=True)
        ]
    return body, (WIDTH, HEIGHT + 8.0)


def _intervals(figure: Intervals) -> tuple[list[str], tuple[float, float]]:
    left = 14 + LETTER * max((len(row.label) for row in figure.rows), default=0)
    bottom = 10 + 24.0 * len(figure.rows)
    known = [end for row in figure.rows for end in row.number[:3] if math.isfinite(end)]
    xs = scale_for(
        figure.x,
        np.array([*known, *([figure.reference] if figure.reference is not None else [])]),
        left + 6,
        WIDTH - 14,
        pad=0.04,
    )
    body = []
    for tick in xs.ticks(int((WIDTH - left) / 60)):
        body.append(f'<line x1="{xs(tick):.2f}" x2="{xs(tick):.2f}" y1="4" y2="{bottom}" stroke="{FAINT}"/>')
        body.append(_text(xs(tick), bottom + 15, _number(tick)))
    if figure.reference is not None:
        place = xs(figure.reference)
        body.append(f'<line x1="{place:.2f}" x2="{place:.2f}" y1="4" y2="{bottom}" stroke="{SOFT}" stroke-dasharray="2 3"/>')
    for index, row in enumerate(figure.rows):
        y = 18 + 24.0 * index
        body.append(_text(left - 8, y + 4, visible(row.label), "end"))
        number = row.number
        if number.is_missing:
            body.append(_text(left + 8, y + 4, visible(number.reason or "no value"), "start", SOFT))
            continue
        if math.isfinite(number.low) and math.isfinite(number.high):
            body.append(
                f'<path d="M{xs(number.low):.2f} {y}H{xs(number.high):.2f}" stroke="{LINES["light"][0]}" stroke-width="1.5"/>'
            )
        body.append(f'<circle cx="{xs(number.value):.2f}" cy="{y}" r="3.5" fill="{LINES["light"][0]}"/>')
    body.append(_text(WIDTH - 10, bottom + 32, visible(figure.x.text), "end", INK))
    return body, (WIDTH, bottom + 38)


def _frame_scales(x: Axis, at: Floats, y: Axis, values: Floats) -> tuple[Scale, Scale]:
    xs = scale_for(x, at, 52, WIDTH - 16)
    return xs, scale_for(y, values, HEIGHT - 36, 22, pad=0.05)


def _frame(x: Axis, y: Axis, xs: Scale, ys: Scale) -> Iterator[str]:
    for tick in ys.ticks(6):
        yield f'<line x1="44" x2="{WIDTH - 8}" y1="{ys(tick):.2f}" y2="{ys(tick):.2f}" stroke="{FAINT}"/>'
        yield _text(39, ys(tick) + 4, _number(tick), "end")
    yield f'<line x1="44" x2="{WIDTH - 8}" y1="{HEIGHT - 36}" y2="{HEIGHT - 36}" stroke="{SOFT}"/>'
    if x.names:
        for place, name in enumerate(x.names):
            yield _text(xs(place), HEIGHT - 20, visible(name))
    else:
        for tick in xs.ticks(8):
            yield _text(xs(tick), HEIGHT - 20, _number(tick))
    yield _text(WIDTH - 8, HEIGHT - 4, visible(x.text), "end", INK)
    yield _text(4, 10, visible(y.text), "start", INK)


def _line_colour(figure: Curves, line: Line, index: int) -> str:
    if figure.categorical:
        return CATEGORIES[index % len(CATEGORIES)]
    return LINES["light"][index % len(LINES["light"])] if line.role == "value" else CHANCE


def _line_mark(x: float, y: float, colour: str, role: str) -> str:
    dashed = "" if role == "value" else ' stroke-dasharray="5 4"'
    return f'<line x1="{x:.1f}" x2="{x + 22:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="2"{dashed}/>'


def _text(x: float, y: float, text: Any, anchor: str = "middle", fill: str = SOFT) -> str:
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" fill="{fill}">{escape(str(text))}</text>'


def _runs(wanted: Any) -> list[tuple[int, int]]:
    """Stretches of true entries, as start and stop."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(wanted, dtype=np.int8), [0]])))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _every(count: int, size: float, room: float) -> int:
    return next((step for step in (1, 2, 4, 5, 8, 10, 16, 20, 32) if step * size >= room), max(count // 4, 1))


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")

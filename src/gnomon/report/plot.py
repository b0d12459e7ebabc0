"""Figures in a notebook: ``survey.plot.sinks()`` gives a Plotly figure.

    survey.plot.sinks()                    the main figure of a measure
    survey.plot("leakage-early")           any figure by its key
    survey.plot.figures                    the keys there are
    survey.plot.leakage("leakage-head-mask", head=(5, 3))   curves of one head

Plotly is loaded when a figure is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon.errors import ConfigError, MissingExtraError
from gnomon.report.figures import (
    Axis,
    Curves,
    Figure,
    HeadCurves,
    HeadMap,
    HeadRows,
    HeadScatter,
    Intervals,
    figure_of,
    figures,
    main_figure,
)
from gnomon.report.figures.colour import CATEGORIES, LINES, diverging, sequential
from gnomon.report.figures.kinds import Floats, HeadField, Line

if TYPE_CHECKING:
    from gnomon.result import Survey

Head = tuple[int, int]
GREY = "#6f6e69"
STICK = "#8a4b00"


class Plot:
    """What ``survey.plot`` is: a function per measure, and any figure by its key."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey

    @property
    def figures(self) -> list[str]:
        """Keys of all figures of the run."""
        return [figure.key for measure in self._survey.measures for figure in figures(self._survey, measure)]

    def __call__(self, key: str, *, head: Head | None = None, field: str | None = None) -> Any:
        """One figure.

        Args:
            key: of the figure, or a measure for its main figure.
            head: layer and head, for curves of a head; the head with the largest value of the run's first map otherwise.
            field: which field of a map, by its key; the first otherwise.
        """
        return to_plotly(figure_of(self._survey, key), head=head or default_head(self._survey), field=field)

    def __getattr__(self, measure: str) -> Callable[..., Any]:
        if measure.startswith("_") or measure not in self._survey.measures:
            raise AttributeError(f"this survey has no {measure!r} to plot; it has {', '.join(self._survey.measures)}")

        def plot(key: str | None = None, *, head: Head | None = None, field: str | None = None) -> Any:
            return self(key or main_figure(self._survey, measure).key, head=head, field=field)

        plot.__doc__ = f"A figure of {measure}: the main one, or the one whose key is given."
        return plot

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._survey.measures]


def default_head(survey: Survey) -> Head:
    """Layer and head with the largest value of the first map that the run has; the very first head where there is none."""
    for measure in survey.measures:
        for figure in figures(survey, measure):
            if isinstance(figure, HeadMap) and np.isfinite(figure.fields[0].values).any():
                layer, head = np.unravel_index(int(np.nanargmax(figure.fields[0].values)), figure.shape)
                return int(layer), int(head)
    return 0, 0


def chosen_field(figure: HeadMap, key: str | None) -> int:
    """Index of a map's field by its key."""
    keys = [field.key for field in figure.fields]
    if key is not None and key not in keys:
        raise ConfigError(f"`field` must be one of {', '.join(keys)}, got {key!r}.")
    return 0 if key is None else keys.index(key)


def to_plotly(figure: Figure, *, head: Head = (0, 0), field: str | None = None) -> Any:
    """A figure as a Plotly figure."""
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise MissingExtraError("plotly", "notebook", "drawing in a notebook") from error
    if isinstance(figure, HeadCurves):
        return to_plotly(figure.of(*head))
    if isinstance(figure, HeadMap):
        traces, layout = _head_map(go, figure.fields[chosen_field(figure, field)])
    elif isinstance(figure, HeadRows):
        traces, layout = _rows(go, figure, head)
    elif isinstance(figure, HeadScatter):
        traces, layout = _scatter(go, figure)
    elif isinstance(figure, Curves):
        traces, layout = [trace for index, line in enumerate(figure.lines) for trace in _line(go, figure, line, index)], {}
        traces += [] if figure.marks is None else _sticks(go, figure)
        layout = {"xaxis": _axis(figure.x, figure.at), "yaxis": _axis(figure.y)}
    else:
        assert isinstance(figure, Intervals)
        traces, layout = _intervals(go, figure)
    return go.Figure(traces, {"title": {"text": figure.title}, "template": "plotly_white", **layout})


def _head_map(go: Any, field: HeadField) -> tuple[list[Any], dict[str, Any]]:
    low, high = field.limits
    table = diverging() if field.palette == "diverging" else sequential()
    colours = [[place, colour] for place, colour in zip(np.linspace(0, 1, len(table)).tolist(), table, strict=True)]
    bar: dict[str, Any] = {"title": {"text": field.units}}
    text = None
    if field.palette == "categories":
        steps = len(field.names)
        colours = [[edge / steps, CATEGORIES[i % len(CATEGORIES)]] for i in range(steps) for edge in (i, i + 1)]
        low, high = -0.5, steps - 0.5
        bar = {"tickvals": list(range(steps)), "ticktext": list(field.names)}
        text = [[field.names[int(code)] if np.isfinite(code) else "unknown" for code in row] for row in field.values]
    elif field.low is not None and field.high is not None:
        text = [[f"[{a:.3g}, {b:.3g}]" for a, b in zip(*rows, strict=True)] for rows in zip(field.low, field.high, strict=True)]
    hover = "layer %{y}, head %{x}: %{z:.3g}" + (" %{text}" if text else "") + "<extra></extra>"
    trace = go.Heatmap(z=field.values, zmin=low, zmax=high, colorscale=colours, colorbar=bar, text=text, hovertemplate=hover)
    title = {"text": field.label}
    return [trace], {
        "title": title,
        "xaxis": {"title": {"text": "head"}},
        "yaxis": {"title": {"text": "layer"}, "autorange": "reversed"},
    }


def _rows(go: Any, figure: HeadRows, head: Head) -> tuple[list[Any], dict[str, Any]]:
    values = figure.values[head]
    table = sequential()
    colours = [[place, colour] for place, colour in zip(np.linspace(0, 1, len(table)).tolist(), table, strict=True)]
    queries = [f"{query:g}" for query in figure.queries]
    bar = {"title": {"text": "weight"}, "tickvals": [0.0, 0.1**0.5, 0.5, 1.0], "ticktext": ["0", "0.1", "0.25", "1"]}
    trace = go.Heatmap(
        z=np.sqrt(np.clip(values, 0, None)),
        x=list(figure.bins),
        y=queries,
        text=[[f"{value:.3g}" for value in row] for row in values],
        hovertemplate="query %{y}, key %{x}: %{text}<extra></extra>",
        zmin=0,
        zmax=1,
        colorscale=colours,
        colorbar=bar,
    )
    title = {"text": f"{figure.title}, layer {head[0]} head {head[1]}"}
    x = {"title": {"text": "key (i: the query)"}, "type": "category"}
    y = {"title": {"text": "query i"}, "type": "category", "autorange": "reversed"}
    return [trace], {"title": title, "xaxis": x, "yaxis": y}


def _sticks(go: Any, figure: Curves) -> list[Any]:
    """Half the height of the tallest line for the tallest stick."""
    assert figure.marks is not None
    marks, most = figure.marks, max(float(np.nanmax(line.values)) for line in figure.lines)
    known = np.isfinite(marks.at) & np.isfinite(marks.heights)
    tall = np.clip(marks.heights[known] / max(float(marks.heights[known].max(initial=0.0)), 1e-9), 0.02, None) * most / 2
    x, y = (np.stack(parts, 1).ravel() for parts in ((marks.at[known],) * 3, (0 * tall, tall, np.full_like(tall, np.nan))))
    text = np.repeat([f"{height:.3g}" for height in marks.heights[known]], 3)
    name = f"{marks.label}: {marks.what}"
    return [
        go.Scatter(x=x, y=y, text=text, name=name, mode="lines", line={"color": STICK, "width": 2}, hovertemplate="%{x}: %{text}")
    ]


def _scatter(go: Any, figure: HeadScatter) -> tuple[list[Any], dict[str, Any]]:
    layers, heads = figure.x.values.shape
    names = [f"layer {layer}, head {head}" for layer in range(layers) for head in range(heads)]
    depth = np.repeat(np.arange(layers), heads)
    marker = {"color": depth, "colorscale": list(sequential()[16:]), "colorbar": {"title": {"text": "layer"}}}
    trace = go.Scatter(x=figure.x.values.ravel(), y=figure.y.values.ravel(), mode="markers", marker=marker, text=names)
    x = Axis(label=figure.x.label, units=figure.x.units, log=figure.log_x)
    y = Axis(label=figure.y.label, units=figure.y.units, log=figure.log_y)
    return [trace], {"xaxis": _axis(x), "yaxis": _axis(y)}


def _line(go: Any, figure: Curves, line: Line, index: int) -> list[Any]:
    colour = (CATEGORIES if figure.categorical else LINES["light"])[index % 8] if line.role == "value" else GREY
    at = list(figure.x.names) if figure.x.names else _placed(figure.x, figure.at)
    style = {"color": colour, "dash": "solid" if line.role == "value" else "dash"}
    if line.low is None or line.high is None or line.role != "value":
        return [go.Scatter(x=at, y=line.values, name=line.name, mode="lines", line=style)]
    if figure.x.names:
        ends = {"type": "data", "symmetric": False, "array": line.high - line.values, "arrayminus": line.values - line.low}
        return [go.Scatter(x=at, y=line.values, name=line.name, mode="markers", marker={"color": colour}, error_y=ends)]
    hidden = {"mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip", "legendgroup": line.name}
    return [
        go.Scatter(x=at, y=line.high, **hidden),
        go.Scatter(x=at, y=line.low, fill="tonexty", fillcolor=_faint(colour), **hidden),
        go.Scatter(x=at, y=line.values, name=line.name, mode="lines", line=style, legendgroup=line.name),
    ]


def _intervals(go: Any, figure: Intervals) -> tuple[list[Any], dict[str, Any]]:
    rows = figure.rows[::-1]
    values = np.array([row.number.value for row in rows])
    low, high = (np.array([getattr(row.number, end) for row in rows]) for end in ("low", "high"))
    ends = {"type": "data", "symmetric": False, "array": high - values, "arrayminus": values - low}
    colour = LINES["light"][0]
    trace = go.Scatter(x=values, y=[row.label for row in rows], mode="markers", error_x=ends, marker={"color": colour})
    layout: dict[str, Any] = {"xaxis": _axis(figure.x)}
    if figure.reference is not None:
        layout["shapes"] = [
            {
                "type": "line",
                "x0": figure.reference,
                "x1": figure.reference,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"dash": "dot"},
            }
        ]
    return [trace], layout


def _axis(axis: Axis, at: Floats | None = None) -> dict[str, Any]:
    tree: dict[str, Any] = {"title": {"text": axis.text}}
    if axis.log:
        tree["type"] = "log"
        if at is not None and len(at) <= 24:
            tree |= {"tickvals": _placed(axis, at).tolist(), "ticktext": [f"{value:g}" for value in at]}
    elif axis.low is not None and axis.high is not None:
        tree["range"] = [axis.low, axis.high]
    return tree


def _placed(axis: Axis, at: Floats) -> Floats:
    """Places on the axis; on a logarithmic one zero stands at half the smallest positive value."""
    positive = at[at > 0]
    return np.where(at > 0, at, positive.min() / 2) if axis.log and positive.size else at


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"

"""A map of all heads: layers downwards, heads across, one cell of colour each.

On a terminal with colours a line of text holds two layers, by half blocks whose upper and lower halves have their own colour.
Elsewhere (a file, a log, ``NO_COLOR``, a terminal of sixteen colours) a layer is a line of digits: the tenths of the scale. Where
there are more heads than columns, neighbours share a cell that shows the largest of them, and the legend says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import Console, ConsoleOptions
from rich.style import Style
from rich.text import Text

from gnomon.report.terminal.colour import colours

UPPER_HALF = "\N{UPPER HALF BLOCK}"
MARGIN = 7
NO_VALUE = "?"
MANY_COLOURS = ("256", "truecolor")


class HeadMap:
    """A layer × head array as blocks of colour or as digits, whichever the console can show.

    Args:
        values: ``[layer, head]``; NaN where there is no value.
        title: what is shown.
        low: value at the dark end of the scale.
        high: value at the light end; the largest value when not given.
    """

    def __init__(self, values: NDArray[np.floating], title: str, *, low: float = 0.0, high: float | None = None) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        if self.values.ndim != 2:
            raise ValueError(f"`values` must be layer by head, got an array with {self.values.ndim} dimensions.")
        self.title = title
        finite = self.values[np.isfinite(self.values)]
        self.low = low
        self.high = float(high if high is not None else (finite.max() if finite.size else low + 1))
        if self.high <= self.low:
            self.high = self.low + 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Draws for this console."""
        in_colour = console.color_system in MANY_COLOURS and not console.no_color and not options.ascii_only
        room = max(options.max_width - MARGIN - 1, 8)
        values, pooled = pool_heads(self.values, room)
        width = 2 if 2 * values.shape[1] <= room and in_colour else 1
        yield Text(self.title, "bold")
        yield _ruler(values.shape[1], pooled, width)
        yield from self._blocks(values, width) if in_colour else self._digits(values)
        yield self._legend(pooled, in_colour)

    def _blocks(self, values: NDArray[np.float64], width: int) -> Iterator[Text]:
        rgb = colours(values, self.low, self.high)
        for layer in range(0, len(values), 2):
            line = Text.assemble((f"{layer:>{MARGIN - 1}} ", "dim"))
            lower = rgb[layer + 1] if layer + 1 < len(rgb) else None
            for head, upper in enumerate(rgb[layer]):
                below = None if lower is None else Color.from_rgb(*map(int, lower[head]))
                line.append(UPPER_HALF * width, Style(color=Color.from_rgb(*map(int, upper)), bgcolor=below))
            yield line

    def _digits(self, values: NDArray[np.float64]) -> Iterator[Text]:
        scaled = (values - self.low) / (self.high - self.low)
        tenths = np.clip(np.floor(np.nan_to_num(scaled) * 10), 0, 9).astype(int)
        for layer, row in enumerate(tenths):
            cells = "".join(
                str(tenth) if np.isfinite(value) else NO_VALUE for tenth, value in zip(row, values[layer], strict=True)
            )
            yield Text(f"{layer:>{MARGIN - 1}} {cells}")

    def _legend(self, pooled: int, in_colour: bool) -> Text:
        line = Text(" " * MARGIN)
        line.append(f"{self.low:.3g} ")
        if in_colour:
            for red, green, blue in colours(np.linspace(0, 1, 16), 0, 1):
                line.append(" ", Style(bgcolor=Color.from_rgb(int(red), int(green), int(blue))))
        else:
            line.append("0123456789")
        line.append(f" {self.high:.3g}")
        if pooled > 1:
            line.append(f"; a cell is the largest of {pooled} heads")
        if not np.isfinite(self.values).all():
            line.append("; grey: no value" if in_colour else f"; {NO_VALUE}: no value")
        return line


def pool_heads(values: NDArray[np.float64], room: int) -> tuple[NDArray[np.float64], int]:
    """The same map in at most ``room`` columns, each the largest of so many neighbouring heads, and how many."""
    layers, heads = values.shape
    pooled = max(1, math.ceil(heads / room))
    if pooled == 1:
        return values, 1
    padded = np.full((layers, math.ceil(heads / pooled) * pooled), np.nan)
    padded[:, :heads] = values
    grouped = padded.reshape(layers, -1, pooled)
    largest = np.where(np.isfinite(grouped), grouped, -np.inf).max(-1)
    return np.where(np.isfinite(largest), largest, np.nan), pooled


def _ruler(columns: int, pooled: int, width: int) -> Text:
    every = max(1, math.ceil(4 / width))
    line = Text(" layer ", "dim")
    for column in range(0, columns, every):
        room = width * min(every, columns - column)
        label = str(column * pooled)
        line.append(label.ljust(room)[:room] if len(label) <= room else " " * room)
    line.append("  head")
    return line

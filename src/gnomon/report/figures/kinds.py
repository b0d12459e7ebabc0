"""The kinds of figure.

==============  =====================================================================================
kind            what it shows
==============  =====================================================================================
`HeadMap`       one value per layer and head, layers downwards, heads across; several fields to choose from
`HeadCurves`    curves of one head, whichever is chosen
`HeadRows`      rows of attention of one head: queries downwards, bins of keys across
`HeadScatter`   two values of every head against each other
`Curves`        lines with their intervals, over depth, position, offset, training step
`Intervals`     a few numbers with their intervals, one below the other
==============  =====================================================================================

Arrays are numpy, NaN where there is no value; an interval is a pair of arrays of the same shape, or ``None`` where the run has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics import Estimate

Floats = NDArray[np.float64]
Palette = Literal["sequential", "diverging", "categories"]
Role = Literal["value", "null", "chance"]
ROBUST: Final = 0.985
OUTLYING: Final = 2.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One axis.

    Attributes:
        label: what it shows.
        units: of its numbers; empty for plain numbers.
        log: whether equal ratios are equally far apart.
        names: names of the ticks at 0, 1, 2, ... of an axis of categories.
        low, high: bounds to show at least, where the quantity has natural ones.
        whole: whether only whole numbers occur.
    """

    label: str
    units: str = ""
    log: bool = False
    names: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False

    @property
    def text(self) -> str:
        """Label with units."""
        return f"{self.label} ({self.units})" if self.units else self.label


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadField:
    """One value per layer and head.

    Attributes:
        key: name within its figure.
        label: what it is.
        values: ``[layer, head]``.
        low, high: bounds of the 95 % interval.
        units: of the values.
        palette: ``categories`` for codes 0, 1, ... named by ``names``.
        domain: values at both ends of the colour scale; the finite range when not given.
        names: of the categories.
    """

    key: str
    label: str
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    units: str = ""
    palette: Palette = "sequential"
    domain: tuple[float, float] | None = None
    names: tuple[str, ...] = ()

    @property
    def limits(self) -> tuple[float, float]:
        """Values at the ends of the colour scale; a few values far above all others do not flatten the rest."""
        if self.palette == "categories":
            return 0.0, float(max(len(self.names) - 1, 1))
        if self.domain is not None:
            return self.domain
        finite = self.values[np.isfinite(self.values)]
        if not finite.size:
            return 0.0, 1.0
        low, high = float(finite.min()), float(finite.max())
        usual = float(np.quantile(finite, ROBUST))
        if self.palette == "sequential" and high - low > OUTLYING * (usual - low) > 0:
            high = usual
        if self.palette == "diverging":
            most = max(abs(low), abs(high)) or 1.0
            return -most, most
        return (low, high) if high > low else (low, low + 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Figure:
    """What every figure has.

    Attributes:
        key: stable name, unique in a run; ``gnomon export --figure`` takes it.
        title: what is shown, in a few words.
        note: how to read it, a sentence or two.
    """

    kind: ClassVar[str]

    key: str
    title: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadMap(Figure):
    """Values of all heads; the first field is shown unless another is chosen."""

    kind: ClassVar[str] = "head-map"

    fields: tuple[HeadField, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads."""
        layers, heads = self.fields[0].values.shape
        return layers, heads


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadCurve:
    """One line of a chosen head: ``values [layer, head, x]``, or ``[layer, x]`` for a reference that heads share."""

    name: str
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    role: Role = "value"

    def of(self, layer: int, head: int) -> Line:
        """The line of one head."""

        def pick(array: Floats | None) -> Floats | None:
            return None if array is None else array[layer, head] if array.ndim == 3 else array[layer]

        values = pick(self.values)
        assert values is not None
        return Line(name=self.name, values=values, low=pick(self.low), high=pick(self.high), role=self.role)


@dataclass(frozen=True, kw_only=True, eq=False)
class Marks:
    """Sticks at places of the horizontal axis, with a height of their own: the tallest of a head says its value in words.

    Attributes:
        label: what stands there.
        what: what the height is.
        at: places, ``[layer, mark]``; ``[mark]`` once a head is chosen.
        heights: ``[layer, head, mark]``; ``[mark]`` once a head is chosen.
    """

    label: str
    what: str
    at: Floats
    heights: Floats

    def of(self, layer: int, head: int) -> Marks:
        """The marks of one head."""
        return Marks(label=self.label, what=self.what, at=self.at[layer], heights=self.heights[layer, head])


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadCurves(Figure):
    """Curves of one head, with sticks along the axis where there is something to compare them with."""

    kind: ClassVar[str] = "head-curves"

    x: Axis
    y: Axis
    at: Floats
    lines: tuple[HeadCurve, ...]
    marks: Marks | None = None

    def of(self, layer: int, head: int) -> Curves:
        """The curves of one head as a figure of its own."""
        lines = tuple(line.of(layer, head) for line in self.lines)
        title = f"{self.title}, layer {layer} head {head}"
        marks = None if self.marks is None else self.marks.of(layer, head)
        return Curves(key=self.key, title=title, note=self.note, x=self.x, y=self.y, at=self.at, lines=lines, marks=marks)


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadRows(Figure):
    """Rows of one head.

    Attributes:
        queries: positions that attend, downwards.
        first, last: first and last key of each bin, NaN for a bin that is an offset.
        offset: offset of each bin, NaN for a bin of keys.
        values: weights, mean over sequences, ``[layer, head, query, bin]``; NaN where the query sees nothing of the bin.
        example: the same in one sequence.
        sequence: which one.
        tokens: strings of that sequence's tokens, as far as the record has them.
    """

    kind: ClassVar[str] = "head-rows"

    queries: Floats
    first: Floats
    last: Floats
    offset: Floats
    values: Floats
    example: Floats | None = None
    sequence: int = 0
    tokens: tuple[str, ...] = ()

    @property
    def bins(self) -> tuple[str, ...]:
        """What each bin holds, in a few letters: a key, keys, or a place relative to the query i."""
        places = zip(self.first.tolist(), self.last.tolist(), self.offset.tolist(), strict=True)
        return tuple(_bin_name(*place) for place in places)


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadScatter(Figure):
    """Every head as a dot."""

    kind: ClassVar[str] = "head-scatter"

    x: HeadField
    y: HeadField
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """One line over the figure's ``at``."""

    name: str
    values: Floats
    low: Floats | None = None
    high: Floats | None = None
    role: Role = "value"


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves(Figure):
    """Lines over a shared axis; ``categorical`` gives them the colours that a map of the same categories has."""

    kind: ClassVar[str] = "curves"

    x: Axis
    y: Axis
    at: Floats
    lines: tuple[Line, ...]
    categorical: bool = False
    marks: Marks | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalRow:
    """One number with its interval."""

    label: str
    number: Estimate
    role: Role = "value"


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals(Figure):
    """Numbers with intervals on one axis; ``reference`` is the value that means nothing happens."""

    kind: ClassVar[str] = "intervals"

    x: Axis
    rows: tuple[IntervalRow, ...]
    reference: float | None = None


def _bin_name(first: float, last: float, offset: float) -> str:
    if np.isfinite(offset):
        return f"i{-offset:+g}".replace("-", "−") if offset else "i"
    return f"{first:g}" if first == last else f"{first:g}–{last:g}"

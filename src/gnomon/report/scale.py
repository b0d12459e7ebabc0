"""From numbers to places along an axis: linear or logarithmic, with ticks at round values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from gnomon.report.figures.kinds import Axis, Floats

FEW: Final = 12
WIDE: Final = 5000.0


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Maps ``low..high`` to ``start..end``.

    Attributes:
        zero: on a logarithmic axis, where values of zero stand: half the smallest positive one.
        given: values on a logarithmic axis: its ticks when they are few; with many, ticks are powers of two over a moderate range.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    zero: float = 1.0
    whole: bool = False
    given: tuple[float, ...] = ()

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high, at = (self._into(float(one)) for one in (self.low, self.high, value))
        if high <= low:
            low, high = low - 0.5, high + 0.5
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """At most about so many round values."""
        if not self.log:
            return linear_ticks(self.low, self.high, most, whole=self.whole)
        least = self.low if self.low > 0 else 2 * self.zero
        zero = [0.0] if self.low <= 0 else []
        if 0 < len(self.given) <= FEW:
            return [*zero, *(value for value in self.given if value > 0)][:: max(1, math.ceil(len(self.given) / max(most, 1)))]
        base = 2.0 if self.given and self.high / least < WIDE else 10.0
        powers = range(math.ceil(math.log(least, base) - 1e-9), math.floor(math.log(self.high, base) + 1e-9) + 1)
        ticks = [base**power for power in powers[:: max(1, math.ceil(len(powers) / max(most, 1)))]]
        return [*zero, *ticks] if len(ticks) > 1 else linear_ticks(self.low, self.high, most, whole=self.whole)

    def _into(self, value: float) -> float:
        return math.log(value if value > 0 else self.zero) if self.log else value


def linear_ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between ``low`` and ``high``."""
    span = (high - low) or 1.0
    rough = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    if whole:
        step = max(1.0, float(round(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def scale_for(axis: Axis, values: Floats, start: float, end: float, *, pad: float = 0.0) -> Scale:
    """The scale of an axis for the values on it; missing values do not count."""
    if axis.names:
        inset = (end - start) / len(axis.names) / 2
        return Scale(low=0.0, high=float(len(axis.names) - 1), start=start + inset, end=end - inset)
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    positive = finite[finite > 0]
    log = axis.log and positive.size > 0 and low >= 0
    if log:
        given = tuple(float(value) for value in np.unique(finite)) if finite.size <= 64 else ()
        return Scale(
            low=low, high=high, start=start, end=end, log=True, zero=float(positive.min()) / 2, whole=axis.whole, given=given
        )
    room = ((high - low) or abs(high) or 1.0) * pad
    low = axis.low if axis.low is not None and axis.low <= low else (min(low, 0.0) if 0 <= low < room else low - room)
    high = axis.high if axis.high is not None and axis.high >= high else high + room
    return Scale(low=low, high=high, start=start, end=end, whole=axis.whole)

"""A number with its interval, or the reason why there is none."""

from __future__ import annotations

import math
from typing import Any, NamedTuple


class Estimate(NamedTuple):
    """A value, the bounds of its 95 % interval, and the number of sequences behind it.

    A value that could not be estimated is NaN and says why in ``reason``; it is never replaced by a number.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    reason: str | None = None

    @classmethod
    def missing(cls, reason: str, n: int = 0) -> Estimate:
        """An estimate that could not be made, and why."""
        return cls(math.nan, math.nan, math.nan, n, reason)

    @property
    def is_missing(self) -> bool:
        """Whether there is no value."""
        return not math.isfinite(self.value)

    def to_json(self) -> dict[str, Any]:
        """Strict JSON: a missing number is ``None``, with a reason beside it."""
        tree: dict[str, Any] = {
            "value": _finite_or_none(self.value),
            "low": _finite_or_none(self.low),
            "high": _finite_or_none(self.high),
            "n": int(self.n),
        }
        if tree["value"] is None or self.reason:
            tree["reason"] = self.reason or "not finite"
        return tree

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> Estimate:
        """The inverse of :meth:`to_json`."""
        value, low, high = (_nan_if_none(tree.get(key)) for key in ("value", "low", "high"))
        return cls(value, low, high, tree.get("n", 0), tree.get("reason"))


def _finite_or_none(number: float) -> float | None:
    number = float(number)
    return number if math.isfinite(number) else None


def _nan_if_none(number: float | None) -> float:
    return math.nan if number is None else float(number)

"""The difference of one quantity between two runs, with its interval: paired where the runs saw the same sequences.

**Paired.** Each run leaves out the same groups of sequences in turn (:class:`~gnomon.statistics.jackknife.Jackknifed`), so the difference has
leave-one-group-out values of its own, and what all runs owe to the text alone cancels. The interval is Student's t with one degree of freedom less than there are
groups. Where no group makes any difference there is no spread to divide by; the p-value is then that of a sign test, ``2 ** (1 - groups)``: were either sign as
likely for each group, all would have one sign no more often. Two runs that are equal, with every group, leave nothing to test, and have no p-value.

**Unpaired.** From two intervals alone, by the method of variance estimates recovery: for ``d = b - a``, ``low = d - sqrt((b - b_low)^2 + (a_high - a)^2)`` and
``high`` likewise, which keeps the asymmetry of bootstrap intervals. The p-value takes the bound on the side of zero as 1.96 standard errors. It is right for
independent samples and too wide for shared ones.

A quantity without bounds of its own (a p-value, a count) has a difference and no test.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics.bootstrap import CONFIDENCE, MIN_SEQUENCES
from gnomon.statistics.estimate import Estimate
from gnomon.statistics.jackknife import Jackknifed

Floats = NDArray[np.float64]


class Difference(NamedTuple):
    """A difference with its 95 % bounds and its two-sided p-value before any correction; NaN where there is none.

    ``paired`` says whether it was made from the same sequences.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    paired: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether it comes with an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


def paired_difference(first: Jackknifed, second: Jackknifed) -> Difference:
    """``second - first``, both with the same groups left out in turn; single numbers, not arrays."""
    change = second - first
    interval = change.interval()
    value, low, high = (float(bound) for bound in interval)
    return Difference(value, low, high, jackknife_p(change), paired=True)


def jackknife_p(quantity: Jackknifed) -> float:
    """Two-sided p-value of a single number against zero; NaN with fewer than three groups or missing values."""
    from scipy.stats import t

    number, value = quantity.num_sequences, float(quantity.value)
    without = np.asarray(quantity.without, dtype=np.float64)
    if number < MIN_SEQUENCES or not (math.isfinite(value) and np.isfinite(without).all()):
        return math.nan
    error = math.sqrt((number - 1) / number * float(((without - without.mean()) ** 2).sum()))
    if error > 1e-12 * max(abs(value), float(np.abs(without).max())):
        return float(2 * t.sf(abs(value) / error, number - 1))
    return math.nan if value == 0 else 2.0 ** (1 - number)


def unpaired_difference(first: Estimate, second: Estimate) -> Difference:
    """``second - first`` from their intervals, as if from independent samples."""
    from scipy.stats import norm

    value = second.value - first.value
    if not all(map(math.isfinite, (value, first.low, first.high, second.low, second.high))):
        return Difference(value)
    below = math.hypot(second.value - second.low, first.high - first.value)
    above = math.hypot(second.high - second.value, first.value - first.low)
    toward_zero = below if value > 0 else above
    if toward_zero == 0:
        return Difference(value, value - below, value + above)
    point = float(norm.ppf(0.5 + CONFIDENCE / 2))
    return Difference(value, value - below, value + above, float(2 * norm.sf(point * abs(value) / toward_zero)))

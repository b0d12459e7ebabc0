"""From an interval and a null to a word: the only places where a verdict is decided.

A claim is **supported** when the interval of its effect lies wholly on the claimed side of the null. It is **not supported** when the interval lies
wholly on the other side, or so close around the null that what is left would be negligible (where a claim states how much that is). Everything else is
**inconclusive**: the interval covers the null, or there is no interval, or there are fewer than ``LEAST`` units behind it. Where the null was itself
estimated, the two intervals must not touch, which is stricter than the interval of their difference.

A claim with several parts is supported when all parts are, and not supported as soon as one part is not (:func:`all_of`).
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

from gnomon.result.survey import format_estimate, format_number
from gnomon.statistics import Estimate
from gnomon.study.claims.verdict import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED

LEAST: Final = 5
Side = Literal["above", "below", "apart"]


class Finding(NamedTuple):
    """A word and how it came about."""

    verdict: str
    why: str


def interval_rule(
    effect: Estimate, side: Side, *, null: float | Estimate = 0.0, negligible: float = 0.0, least: int = LEAST, name: str = ""
) -> Finding:
    """Where the interval of an effect lies, seen from its null.

    Args:
        effect: with its interval.
        side: where the claim puts it; ``apart`` is either side.
        null: a number, or an estimate whose interval counts too.
        negligible: distance from the null that would not matter; with it, an interval within that distance is a finding against the claim.
        least: fewest sequences.
        name: of the effect, for the sentence.
    """
    label = f"{name} " if name else ""
    if effect.is_missing:
        return Finding(INCONCLUSIVE, f"{label}missing: {effect.reason or 'not finite'}")
    shown = f"{label}{format_estimate(effect)}"
    bounds = _bounds(null)
    if bounds is None:
        return Finding(
            INCONCLUSIVE, f"{shown}; its null is missing: {null.reason if isinstance(null, Estimate) else 'not finite'}"
        )
    if effect.n < least:
        return Finding(INCONCLUSIVE, f"{shown}; {effect.n} is fewer than {least}, too few to judge by")
    if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return Finding(INCONCLUSIVE, f"{shown}, without an interval")
    low, high = bounds
    beside = f"{shown} against {format_number(low) if low == high else format_estimate(null)}"  # type: ignore[arg-type]
    over, under = effect.low > high, effect.high < low
    if (over and side in ("above", "apart")) or (under and side in ("below", "apart")):
        return Finding(SUPPORTED, beside)
    if over or under:
        return Finding(NOT_SUPPORTED, f"{beside}, on the other side")
    if negligible and effect.low > low - negligible and effect.high < high + negligible:
        return Finding(NOT_SUPPORTED, f"{beside}, within a negligible {format_number(negligible)}")
    return Finding(INCONCLUSIVE, f"{beside}, which it covers")


def equivalence_rule(effect: Estimate, margin: float, *, least: int = LEAST, name: str = "") -> Finding:
    """Supported when the interval lies within ``margin`` around zero, not supported when it lies wholly beyond."""
    label = f"{name} " if name else ""
    if effect.is_missing:
        return Finding(INCONCLUSIVE, f"{label}missing: {effect.reason or 'not finite'}")
    shown = f"{label}{format_estimate(effect)} against a margin of {format_number(margin)}"
    if effect.n < least or not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return Finding(INCONCLUSIVE, f"{shown}; n = {effect.n}, no interval to judge by")
    if effect.low > -margin and effect.high < margin:
        return Finding(SUPPORTED, shown)
    if effect.low > margin or effect.high < -margin:
        return Finding(NOT_SUPPORTED, f"{shown}, beyond it")
    return Finding(INCONCLUSIVE, f"{shown}, which the interval crosses")


def bound_rule(value: float, bound: float, *, loosest: float, name: str) -> Finding:
    """An identity up to rounding: supported within ``bound``; a bound above ``loosest`` is too wide to tell anything."""
    if not math.isfinite(value):
        return Finding(INCONCLUSIVE, f"{name} missing")
    shown = f"{name} {value:.2g} against {bound:.2g} for rounding"
    if value > bound:
        return Finding(NOT_SUPPORTED, f"{shown}, beyond it")
    if bound > loosest:
        return Finding(INCONCLUSIVE, f"{shown}: numbers of so few bits could hide a change; run in float32")
    return Finding(SUPPORTED, shown)


def all_of(*findings: Finding) -> Finding:
    """The verdict on a claim of several parts."""
    words = [finding.verdict for finding in findings]
    verdict = next((word for word in (NOT_SUPPORTED, INCONCLUSIVE) if word in words), SUPPORTED)
    return Finding(verdict, "; ".join(finding.why for finding in findings))


def difference(first: Estimate, second: Estimate) -> Estimate:
    """``first - second`` of independent estimates: half-widths add in squares."""
    if first.is_missing or second.is_missing:
        return Estimate.missing(first.reason or second.reason or "not finite")
    value = first.value - second.value
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, value - down, value + up, min(first.n, second.n))


def contrast(first: Estimate, second: Estimate) -> Estimate:
    """``first - second`` of estimates that share their sequences: half-widths add up, which is the widest that any dependence allows."""
    if first.is_missing or second.is_missing:
        return Estimate.missing(first.reason or second.reason or "not finite")
    return Estimate(
        first.value - second.value, first.low - second.high, first.high - second.low, min(first.n, second.n) or first.n
    )


def _bounds(null: float | Estimate) -> tuple[float, float] | None:
    if not isinstance(null, Estimate):
        return (null, null) if math.isfinite(null) else None
    if null.is_missing:
        return None
    low = null.low if math.isfinite(null.low) else null.value
    high = null.high if math.isfinite(null.high) else null.value
    return low, high

"""Headlines with groups of sequences left out in turn, so that runs on the same text can be compared pair by pair.

The sequences are dealt into at most sixteen groups (sequence n to group n mod K), the same in every run on the same text. Every measure is finished once more without each
group, and its headline numbers are kept in the run's record under ``replicates``: ``{"groups": K, "values": {measure: {quantity: [K numbers or null]}}}``. They cost no
forward pass: what was observed belongs to one sequence each. Experiments with passes of their own have none; differences of theirs are unpaired, and say so.

A headline without bounds (a p-value, a count) is not replicated. Groups differ by at most one sequence in size where their number does not divide that of the sequences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gnomon.measure.protocol import Measure, Observed
from gnomon.statistics import Estimate
from gnomon.statistics.values_only import values_only

MOST_GROUPS: Final = 16
FEWEST_GROUPS: Final = 4

Replicates = dict[str, list[float | None]]


def group_of_each(num_sequences: int) -> NDArray[np.int64]:
    """The group of every sequence; empty when there are too few sequences to leave any out."""
    groups = min(MOST_GROUPS, num_sequences)
    return np.arange(num_sequences) % groups if groups >= FEWEST_GROUPS else np.zeros(0, dtype=np.int64)


def replicated(measure: Measure, observed: Observed, headline: Mapping[str, Estimate]) -> Replicates:
    """The headline numbers that have bounds, without each group in turn."""
    group = group_of_each(len(observed.subject.windows))
    wanted = [key for key, number in headline.items() if math.isfinite(number.low) and math.isfinite(number.high)]
    if not len(group) or not wanted:
        return {}
    out: Replicates = {key: [] for key in wanted}
    with values_only():
        for left_out in range(int(group.max()) + 1):
            numbers = measure.headline(measure.finish(restricted(observed, np.flatnonzero(group != left_out))))
            for key in wanted:
                value = numbers[key].value if key in numbers else math.nan
                out[key].append(float(value) if math.isfinite(value) else None)
    return out


def restricted(observed: Observed, sequences: NDArray[np.int64]) -> Observed:
    """What was observed of some of the sequences."""
    subject = observed.subject
    part = replace(subject, windows=subject.windows.take(sequences), layout=subject.laid_out)
    return Observed(
        layers={name: values[sequences] for name, values in observed.layers.items()},
        states={name: values[sequences] for name, values in observed.states.items()},
        subject=part,
    )


def record_of(num_sequences: int, values: Mapping[str, Replicates]) -> dict[str, Any]:
    """For the run's record."""
    group = group_of_each(num_sequences)
    return {"groups": int(group.max()) + 1 if len(group) else 0, "values": {name: dict(kept) for name, kept in values.items()}}

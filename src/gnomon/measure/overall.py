"""Model-wide figures: one number per sequence, averaged over sequences, with an interval and the count behind it.

They are what headlines are read from, stored as scalar variables ``overall_<name>`` with ``_low`` and ``_high``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.measure.averaged import Averages, nan_mean, read_estimate
from gnomon.statistics import Estimate

OVERALL = "overall_"


def add_overall(out: Averages, name: str, values: NDArray[Any], long_name: str, units: str = "1") -> None:
    """Add the mean over sequences (axis 0) of each sequence's mean over everything else, NaN left out."""
    per_sequence = nan_mean(values.reshape(len(values), -1), 1)
    out.mean(OVERALL + name, per_sequence, (), long_name, units, sequences=int(np.isfinite(per_sequence).sum()))


def read_overall(dataset: xr.Dataset, name: str, reason: str) -> Estimate:
    """The figure added under ``name``; missing for the ``reason`` given where no sequence had a value."""
    return read_estimate(dataset, OVERALL + name, int(dataset[OVERALL + name].attrs["sequences"]), reason)

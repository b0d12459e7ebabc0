"""Means over sequences as dataset variables: each with its interval beside it, and what it is in its attributes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.statistics import Estimate, bootstrap_mean

Floats = NDArray[np.floating]


class Averages:
    """Collects variables of one dataset; NaN sequences are left out of a mean cell by cell."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.variables: dict[str, xr.DataArray] = {}

    def mean(self, name: str, values: Floats, dims: Sequence[str], long_name: str, units: str = "1", **attrs: Any) -> None:
        """Adds the mean over axis 0 (sequences) with ``_low`` and ``_high``; ``dims`` are those of the remaining axes."""
        interval = bootstrap_mean(np.asarray(values), seed=self.seed)
        for suffix, array, what in (
            ("", interval.value, ""),
            ("_low", interval.low, ", lower bound of the 95 % interval"),
            ("_high", interval.high, ", upper bound of the 95 % interval"),
        ):
            self.add(name + suffix, array, dims, long_name + what, units, **attrs)

    def add(self, name: str, values: NDArray[Any], dims: Sequence[str], long_name: str, units: str = "1", **attrs: Any) -> None:
        """Adds an array as it is; floats are kept in single precision."""
        array = np.asarray(values)
        kept = array.astype(np.float32) if array.dtype.kind == "f" else array
        self.variables[name] = xr.DataArray(kept, dims=tuple(dims), attrs={"long_name": long_name, "units": units, **attrs})

    def dataset(self, attrs: dict[str, Any], coords: dict[str, Any] | None = None) -> xr.Dataset:
        """The dataset of everything added."""
        return xr.Dataset(dict(self.variables), coords=coords or {}, attrs=attrs)


def nan_mean(values: Floats, axis: int | tuple[int, ...]) -> Floats:
    """Mean that leaves NaN out and is NaN, silently, where nothing is left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmean(np.asarray(values, dtype=np.float64), axis=axis))


def read_estimate(dataset: xr.Dataset, name: str, number: int, reason: str) -> Estimate:
    """A scalar variable with its bounds as an :class:`Estimate`."""
    value, low, high = (float(dataset[name + bound]) for bound in ("", "_low", "_high"))
    return Estimate(value, low, high, number) if np.isfinite(value) else Estimate.missing(reason)

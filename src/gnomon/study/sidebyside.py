"""Both components of leakage for several models side by side: is the balance architectural?

Claim A7 orders positional schemes: a scaled rotary encoding suppresses the residual component, sliding windows let it grow with depth,
plain RoPE lies between. Models that differ in nothing but the scheme can be compared layer by layer; models of different depth by
relative depth (0 the first layer, 1 the last). Besides the components themselves:

- ``growth``: least-squares slope of a layer component over relative depth, in squared nats: above 0 where it accumulates;
- ``balance``: residual component over the sum of residual and mask, 0 to 1 where both are positive, missing otherwise.

Runs are taken as independent of each other, so the interval of a difference adds the half-widths of both in squares; runs on
the same text are more alike than that and their true intervals narrower. An interval is that of the text, not of training: two models
of the same scheme trained from other seeds differ too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import LAYER, QUERY_BAND, RUN
from gnomon.errors import ConfigError
from gnomon.statistics import Estimate

COMPONENTS = ("residual", "mask", "total")
BOUNDS = ("", "_low", "_high")


def side_by_side(runs: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Components of every run by layer and band, and of the whole model.

    Args:
        runs: ``leakage`` datasets by name, of two or more models.

    Returns:
        ``layer_*`` of dimensions ``[run, layer, query_band]`` (missing beyond a model's own layers), ``model_*`` and ``growth_*``
        ``[run, query_band]``, ``balance``, and the coordinate ``depth [run, layer]``.
    """
    if not runs:
        raise ConfigError("`runs` must hold at least one run with the measure leakage, got none; survey a model first.")
    for name, dataset in runs.items():
        if f"layer_{COMPONENTS[0]}" not in dataset:
            raise ConfigError(
                f"`runs` must hold datasets of the measure leakage, got {name!r} without; survey it again with leakage."
            )
    layers = max(dataset.sizes[LAYER] for dataset in runs.values())
    bands = [str(band) for band in next(iter(runs.values()))[QUERY_BAND].values]
    out = xr.Dataset(coords={RUN: list(runs), LAYER: np.arange(layers), QUERY_BAND: bands})
    depth = np.full((len(runs), layers), np.nan)
    for place, dataset in enumerate(runs.values()):
        depth[place, : dataset.sizes[LAYER]] = relative_depth(dataset.sizes[LAYER])
    out = out.assign_coords(depth=((RUN, LAYER), depth))
    for name in COMPONENTS:
        for bound in BOUNDS:
            _stack(out, runs, f"layer_{name}{bound}", (LAYER, QUERY_BAND))
            _stack(out, runs, f"model_{name}{bound}", (QUERY_BAND,))
        slopes = [growth(dataset[f"layer_{name}"].transpose(LAYER, QUERY_BAND).values) for dataset in runs.values()]
        attributes = {"long_name": f"slope of the {name} component over relative depth", "units": "nat^2"}
        out[f"growth_{name}"] = ((RUN, QUERY_BAND), np.stack(slopes), attributes)
    residual, mask = out["model_residual"], out["model_mask"]
    out["balance"] = (residual / (residual + mask)).where((residual > 0) & (mask > 0))
    out["balance"].attrs.update(long_name="residual component over residual and mask", units="1")
    out.attrs["missing"] = "layers beyond a model's own; balance where a component is not above zero"
    return out


def difference(dataset: xr.Dataset, first: str, second: str, *, component: str = "residual", band: str = "early") -> Estimate:
    """First run less second, of a component of the whole model, taking the runs as independent."""
    at = dataset.sel({QUERY_BAND: band})
    values, squares = [], 0.0
    for run in (first, second):
        value, low, high = (float(at[f"model_{component}{bound}"].sel({RUN: run})) for bound in BOUNDS)
        values.append(value)
        squares += ((high - low) / 2) ** 2
    gap = values[0] - values[1]
    if not np.isfinite(gap):
        return Estimate.missing(f"one of the runs has no {component} component for {band} queries")
    return Estimate(gap, gap - squares**0.5, gap + squares**0.5)


def relative_depth(layers: int) -> NDArray[np.float64]:
    """0 for the first layer, 1 for the last."""
    return np.linspace(0, 1, layers) if layers > 1 else np.zeros(1)


def growth(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Slope over relative depth of ``[layer, band]``, from the layers that have a value; NaN with fewer than three."""
    out = np.full(values.shape[1], np.nan)
    depth = relative_depth(len(values))
    for band in range(values.shape[1]):
        known = np.isfinite(values[:, band])
        if known.sum() >= 3:
            out[band] = np.polyfit(depth[known], values[known, band], 1)[0]
    return out


def _stack(out: xr.Dataset, runs: Mapping[str, xr.Dataset], name: str, dims: tuple[str, ...]) -> None:
    whole = np.full((len(runs), *(out.sizes[dim] for dim in dims)), np.nan)
    for place, dataset in enumerate(runs.values()):
        values = dataset[name].transpose(*dims).values
        inside = tuple(slice(size) for size in values.shape)
        whole[place][inside] = values
    out[name] = ((RUN, *dims), whole, dict(next(iter(runs.values()))[name].attrs))

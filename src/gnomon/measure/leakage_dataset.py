"""The labelled form of the leakage measure: arrays filled band by band, then a dataset in full-word dimensions.

Three resolutions of the same quantities: per cell (layer, head, band, offset), per layer (prefix ``layer_``, mean
over heads and offsets that fit) and of the model (prefix ``model_``, mean over layers too). Each has ``_low`` and
``_high``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import HEAD, LAYER, OFFSET, QUERY, QUERY_BAND
from gnomon.measure.leakage_components import COMPONENTS, CORNERS, TESTED, LeakageArrays
from gnomon.measure.leakage_grid import BAND_EDGES, BANDS, LeakageGrid
from gnomon.statistics import Interval

Floats = NDArray[np.floating]
CELL = (LAYER, HEAD, QUERY_BAND, OFFSET)
BOUNDS = ("", "_low", "_high")
MEANING = {
    "total": "variance over positions of the expected log-weight",
    "residual": "variance over positions of the expected logit",
    "mask": "variance over positions of the expected log-denominator",
    "covariance": "covariance over positions of expected logit and log-denominator",
    "mask_alone": "leakage with stationary logits and each query's own number of keys",
    "residual_alone": "leakage with a fixed number of keys and logits as they are",
    "mask_effect": "main effect of the number of keys",
    "residual_effect": "main effect of the logits",
    "interaction": "interaction of the number of keys and the logits",
}


@dataclass
class Labelled:
    """Arrays by variable name, being filled.

    Attributes:
        arrays: name to (dimensions, values).
        count: sequences behind each band.
        offsets: distances back to the key.
    """

    arrays: dict[str, tuple[tuple[str, ...], Floats]]
    offsets: NDArray[np.int64]
    count: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(BANDS), dtype=np.int64))

    def put_cells(self, name: str, band: int, interval: Interval) -> None:
        """Cells ``[layer, head, offset]`` of a band."""
        for bound, values in zip(BOUNDS, interval, strict=True):
            self.arrays[name + bound][1][:, :, band] = values

    def put_layers(self, name: str, band: int, interval: Interval) -> None:
        """Layer means ``[layer]`` of a band."""
        for bound, values in zip(BOUNDS, interval, strict=True):
            self.arrays[f"layer_{name}{bound}"][1][:, band] = values

    def put_layer(self, name: str, band: int, layer: int, interval: Interval) -> None:
        """The mean of one layer and band."""
        for bound, values in zip(BOUNDS, interval, strict=True):
            self.arrays[f"layer_{name}{bound}"][1][layer, band] = values

    def put_model(self, name: str, band: int, interval: Interval) -> None:
        """The mean of the model in a band."""
        for bound, values in zip(BOUNDS, interval, strict=True):
            self.arrays[f"model_{name}{bound}"][1][band] = values

    def put_p(self, name: str, band: int, p: Floats, familywise: Floats) -> None:
        """P-values ``[layer, head]`` of a band."""
        self.arrays[f"{name}_p"][1][:, :, band] = p
        self.arrays[f"{name}_p_familywise"][1][:, :, band] = familywise

    def put_model_p(self, name: str, band: int, p: Floats) -> None:
        """The p-value of the model's mean in a band."""
        self.arrays[f"model_{name}_p"][1][band] = p


def blank(layers: int, heads: int, offsets: NDArray[np.int64]) -> Labelled:
    """Every variable, missing everywhere."""
    sizes = {LAYER: layers, HEAD: heads, QUERY_BAND: len(BANDS), OFFSET: len(offsets)}

    def empty(*dims: str) -> tuple[tuple[str, ...], Floats]:
        return dims, np.full([sizes[dim] for dim in dims], np.nan)

    arrays = {name + bound: empty(*CELL) for name in COMPONENTS for bound in BOUNDS}
    for name in (*COMPONENTS, *CORNERS):
        for bound in BOUNDS:
            arrays[f"layer_{name}{bound}"] = empty(LAYER, QUERY_BAND)
            arrays[f"model_{name}{bound}"] = empty(QUERY_BAND)
    for name in TESTED:
        arrays[f"{name}_p"] = empty(LAYER, HEAD, QUERY_BAND)
        arrays[f"{name}_p_familywise"] = empty(LAYER, HEAD, QUERY_BAND)
        arrays[f"model_{name}_p"] = empty(QUERY_BAND)
    return Labelled(arrays, offsets)


def labelled(out: Labelled, arrays: LeakageArrays, grid: LeakageGrid, missing: Mapping[str, str]) -> xr.Dataset:
    """The dataset, with profiles of means over the grid beside the components."""
    dataset = xr.Dataset(
        {name: (dims, values.astype(np.float32) if HEAD in dims else values) for name, (dims, values) in out.arrays.items()}
    )
    for name in dataset.data_vars:
        dataset[name].attrs.update(_attributes(str(name)))
    count = {"long_name": "sequences that reach the end of the band", "units": "1"}
    dataset["num_sequences"] = ((QUERY_BAND,), out.count, count)
    dataset["logit_profile"] = (
        (LAYER, HEAD, QUERY, OFFSET),
        _mean(arrays.logit).astype(np.float32),
        {"long_name": "mean logit", "units": "nat"},
    )
    dataset["denominator_profile"] = (
        (LAYER, HEAD, QUERY),
        _mean(arrays.log_denominator).astype(np.float32),
        {"long_name": "mean log-denominator", "units": "nat"},
    )
    dataset = dataset.assign_coords(
        {
            LAYER: np.arange(arrays.logit.shape[1]),
            HEAD: np.arange(arrays.logit.shape[2]),
            QUERY_BAND: list(BANDS),
            OFFSET: grid.offsets,
            QUERY: grid.queries,
            "band_of_query": (QUERY, grid.band),
        }
    )
    dataset.attrs.update({f"missing_{label}": reason for label, reason in missing.items()})
    dataset.attrs["band_edges"] = list(BAND_EDGES)
    dataset.attrs["missing"] = "; ".join(f"{label}: {reason}" for label, reason in missing.items()) or (
        "an offset is missing where fewer than three positions of a band see a key at position 1 or later at that distance; "
        "counterfactuals are missing in bidirectional layers"
    )
    return dataset


def _attributes(name: str) -> dict[str, str]:
    if "_p" in name and name.rsplit("_p", 1)[1] in ("", "_familywise"):
        what = name.removeprefix("model_").rsplit("_p", 1)[0]
        among = ", corrected over layers and heads" if name.endswith("familywise") else ""
        return {"long_name": f"p-value of {MEANING[what]} under flat profiles{among}", "units": "1"}
    bound = {"_low": ", lower 95 % bound", "_high": ", upper 95 % bound"}
    suffix = next((key for key in bound if name.endswith(key)), "")
    core = name.removesuffix(suffix).removeprefix("layer_").removeprefix("model_")
    return {"long_name": MEANING[core] + bound.get(suffix, ""), "units": "nat^2"}


def _mean(values: NDArray[np.floating]) -> Floats:
    """Mean over sequences of what is finite, without a copy of the whole in double precision."""
    finite = np.isfinite(values)
    count = finite.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = np.where(finite, values, 0).sum(0, dtype=np.float64) / count
    return mean

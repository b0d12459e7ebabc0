"""Leakage: the components by band, by layer, and which heads leak most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from gnomon.dims import HEAD, LAYER, OFFSET, QUERY_BAND
from gnomon.report.terminal.head_map import HeadMap
from gnomon.report.terminal.tables import number, table

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import RenderableType

    from gnomon.result import Survey

COMPONENTS = ("total", "residual", "mask", "covariance", "mask_alone", "residual_alone")
POSITIONS = {"early": "2-32", "middle": "32-128", "late": "128 on"}
MOST_ROWS = 12


def section(survey: Survey) -> RenderableType:
    """Components of the model by band, of its layers, and a map of heads by residual component at early queries."""
    dataset = survey["leakage"]
    parts: list[RenderableType] = [by_band_table(dataset), Text(""), by_layer_table(dataset, ("residual", "mask"))]
    early = dataset["residual"].sel({QUERY_BAND: "early"}).transpose(LAYER, HEAD, OFFSET).values
    if np.isfinite(early).any():
        parts += [Text(""), HeadMap(mean_of_known(early), "residual component by head, queries 2-32 (nat^2)")]
    return Group(*parts)


def by_band_table(dataset: xr.Dataset) -> RenderableType:
    """A row per component, with the interval and the p-value of each band."""
    bands = [str(band) for band in dataset[QUERY_BAND].values]
    columns = ["nat^2", *(f"queries {POSITIONS.get(band, band)}" for band in bands)]
    rows: list[list[object]] = []
    for name in COMPONENTS:
        row: list[object] = [name.replace("_", " ")]
        row += [_with_bounds(dataset.sel({QUERY_BAND: band}), f"model_{name}") for band in bands]
        rows.append(row)
    for name in ("total", "residual"):
        values = [float(dataset[f"model_{name}_p"].sel({QUERY_BAND: band})) for band in bands]
        rows.append([f"p of {name}", *(number(value) for value in values)])
    rows.append(["sequences", *(str(int(count)) for count in dataset["num_sequences"].values)])
    return table(columns, rows, title="leakage, mean over layers, heads and offsets")


def by_layer_table(dataset: xr.Dataset, names: tuple[str, ...]) -> RenderableType:
    """Layer means by band, thinned, first and last layer included."""
    size = dataset.sizes[LAYER]
    shown = np.unique(np.linspace(0, size - 1, min(size, MOST_ROWS)).round().astype(int))
    bands = [str(band) for band in dataset[QUERY_BAND].values]
    columns = ["layer", *(f"{name} {band}" for name in names for band in bands)]
    rows = [
        [
            str(layer),
            *(number(float(dataset[f"layer_{name}"].sel({QUERY_BAND: band})[layer])) for name in names for band in bands),
        ]
        for layer in shown
    ]
    return table(columns, rows, title="by layer (nat^2)")


def mean_of_known(values: np.ndarray) -> np.ndarray:
    """Mean over the last axis of what is finite, NaN where nothing is."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: np.ndarray = np.where(finite, values, 0).sum(-1) / finite.sum(-1)
    return mean


def _with_bounds(at: xr.Dataset, name: str) -> str:
    value, low, high = (float(at[name + end]) for end in ("", "_low", "_high"))
    return f"{number(value)} [{number(low)}, {number(high)}]" if np.isfinite(value) else "-"

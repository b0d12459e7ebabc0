"""Likelihood: by layer, how a word's likelihood goes with its attention to itself, and what replacing the word does to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from gnomon.dims import LAYER
from gnomon.report.terminal.tables import DIM, facts, headline_table, number, plain, table

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import RenderableType

    from gnomon.result import Survey

MOST_ROWS = 16
VIEW = {"aggregate": "mean", "condition": "all_keys", "mode": "inner"}
BEST = "*"


def section(survey: Survey) -> RenderableType:
    """Headline, text behind it, a row per layer, and a row per band of replacements."""
    dataset = survey["likelihood"]
    if "correlation" not in dataset:
        return Text(f"missing: {plain(dataset.attrs.get('missing', 'no correlations were computed'))}", DIM)
    parts: list[RenderableType] = [headline_table(survey, "likelihood"), Text(""), _text(dataset), Text("")]
    parts.append(by_layer_table(dataset))
    if "drawn_log_likelihood" in dataset:
        parts += [Text(""), by_band_table(dataset)]
    return Group(*parts)


def by_layer_table(dataset: xr.Dataset) -> RenderableType:
    """Correlation, partial correlation and contrast of each layer, thinned, first, last and best layer included."""
    inner = dataset.sel(VIEW).isel(reading=0)
    strength = np.nan_to_num(np.abs(inner["correlation"].values))
    best, size = int(np.argmax(strength)), dataset.sizes[LAYER]
    shown = sorted({*np.linspace(0, size - 1, min(size, MOST_ROWS)).round().astype(int).tolist(), best})
    columns = ["layer", "rho", "95 % interval", "p, corrected", "partial rho", "95 % interval"]
    contrasted = "contrast" in dataset
    if contrasted:
        columns += ["contrast", "95 % interval"]
    rows = []
    for layer in shown:
        one = inner.isel(layer=layer)
        row: list[object] = [f"{layer}{BEST if layer == best else ''}", *_with_bounds(one, "correlation")]
        row += [number(float(one["correlation_p"])), *_with_bounds(one, "partial")]
        if contrasted:
            row += _with_bounds(dataset.sel(condition=VIEW["condition"], control="plain").isel(layer=layer), "contrast")
        rows.append(row)
    reading = plain(str(dataset["reading"].values[0]))
    return table(
        columns,
        rows,
        title=f"inner attention and the {reading} log-likelihood of the word ({BEST} largest); contrast: lowest band - highest",
    )


def by_band_table(dataset: xr.Dataset) -> RenderableType:
    """What was drawn to replace words, and how much inner attention changed on average over layers."""
    change = dataset["inner_change"].sel(condition=VIEW["condition"])
    rows = [
        (
            str(band).replace("_", ", "),
            *_with_bounds(dataset.sel(band=band), "drawn_log_likelihood"),
            number(float(dataset["drawn_log_frequency"].sel(band=band))),
            number(float(change.sel(band=band).isel(layer=0))),
            number(float(change.sel(band=band).isel(layer=-1))),
        )
        for band in dataset["band"].values
    ]
    columns = ("replaced by", "log-likelihood", "95 % interval", "log frequency", "change, first layer", "change, last layer")
    return table(columns, rows, title="inner attention after replacing the word")


def _text(dataset: xr.Dataset) -> RenderableType:
    left_out = json.loads(dataset.attrs.get("left_out", "{}"))
    pairs: list[tuple[str, object]] = [("text", dataset.attrs.get("text", "")), ("sentences", dataset.sizes["sequence"])]
    pairs += [("left out", f"{count}: {reason}") for reason, count in left_out.items()]
    return facts(pairs) if pairs else Text("", DIM)


def _with_bounds(dataset: xr.Dataset, name: str) -> tuple[str, str]:
    value, low, high = (float(dataset[name + end]) for end in ("", "_low", "_high"))
    return number(value), f"[{number(low, 2)}, {number(high, 2)}]" if low == low and high == high else ""

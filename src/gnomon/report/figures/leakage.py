"""Figures of positional leakage, of what heads read from position 0, and of the norms that stand there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gnomon.dims import LAYER, OFFSET, QUERY, QUERY_BAND
from gnomon.report.figures.kinds import (
    Axis,
    Curves,
    Figure,
    HeadCurve,
    HeadCurves,
    HeadMap,
    HeadScatter,
    IntervalRow,
    Intervals,
    Line,
)
from gnomon.report.figures.reading import axis_of, coordinate_labels, head_curve, head_field, head_fields, line
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr

COMPONENTS = {"residual": "residual (logits)", "mask": "mask (denominators)", "total": "total (log-weights)"}
SQUARED = "nat²"
LEAK = Axis(label="variance over positions", units=SQUARED)


def leakage_figures(dataset: xr.Dataset) -> list[Figure]:
    """Bands, depth per band, map of heads, and the chosen head's components and profiles."""
    found: list[Figure | None] = [_bands(dataset)]
    if QUERY_BAND in dataset.dims:
        found += [_depth(dataset, str(band)) for band in coordinate_labels(dataset, QUERY_BAND)]
    found += [_map(dataset), *(_of_head(dataset, name, word) for name, word in COMPONENTS.items() if name != "total")]
    found += [_denominator(dataset), _logit(dataset)]
    return [figure for figure in found if figure is not None]


def read_figures(dataset: xr.Dataset) -> list[Figure]:
    """What each head carries from position 0."""
    fields = head_fields(dataset, ("mass", "share", "carried", "value_ratio"))
    if not fields:
        return []
    found: list[Figure] = [HeadMap(key="reads-map", title="What every head carries from position 0", fields=tuple(fields))]
    known = {field.key: field for field in fields}
    if {"mass", "carried"} <= set(known):
        note = "A head low and to the right looks at position 0 and takes little from it: its sink is close to a no-operation."
        scatter = HeadScatter(
            key="reads-scatter", title="Looking at position 0 and taking from it", x=known["mass"], y=known["carried"], note=note
        )
        found.append(scatter)
    return found


def norm_figures(dataset: xr.Dataset) -> list[Figure]:
    """Position 0 against other positions through the levels."""
    found: list[Figure] = []
    level = "level" if "level" in dataset.dims else LAYER
    if level not in dataset.dims:
        return found
    x, at = axis_of(dataset, level)
    axis = Axis(label="level (0: embedding)", whole=True)
    for name, title, label in (
        ("hidden_ratio", "Norm of position 0 against the mean of other positions", "ratio"),
        ("largest_over_median", "Largest magnitude against the median", "ratio"),
    ):
        curve = line(dataset, name, level, label=title)
        if curve is not None:
            y = Axis(label=label, log=bool((curve.values[np.isfinite(curve.values)] > 0).all()))
            key = f"norms-{name.replace('_', '-')}"
            found.append(Curves(key=key, title=title, x=axis if level == "level" else x, y=y, at=at, lines=(curve,)))
    return found


def _bands(dataset: xr.Dataset) -> Intervals | None:
    if "model_residual" not in dataset or QUERY_BAND not in dataset.dims:
        return None
    rows = []
    for index, band in enumerate(coordinate_labels(dataset, QUERY_BAND)):
        for name, word in COMPONENTS.items():
            if f"model_{name}" in dataset:
                value, low, high = (
                    float(dataset[f"model_{name}{end}"].values[index]) if f"model_{name}{end}" in dataset else np.nan
                    for end in ("", "_low", "_high")
                )
                number = Estimate(value, low, high) if np.isfinite(value) else Estimate.missing("not reached by this text")
                rows.append(IntervalRow(label=f"{band}: {word}", number=number))
    note = "Mean over layers, heads and offsets. Early, middle and late: queries 2 to 31, 32 to 127, 128 and on. 0: no trace of absolute position."
    return Intervals(
        key="leakage-bands", title="Trace of absolute position in attention", x=LEAK, rows=tuple(rows), reference=0.0, note=note
    )


def _depth(dataset: xr.Dataset, band: str) -> Curves | None:
    lines = [line(dataset, f"layer_{name}", LAYER, at={QUERY_BAND: band}, label=word) for name, word in COMPONENTS.items()]
    kept: tuple[Line, ...] = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, LAYER)
    return Curves(key=f"leakage-{band}", title=f"Components over depth, {band} queries", x=x, y=LEAK, at=at, lines=kept)


def _map(dataset: xr.Dataset) -> HeadMap | None:
    if not {QUERY_BAND, OFFSET} <= set(dataset.dims):
        return None
    fields = []
    for name in ("residual", "mask"):
        for band in coordinate_labels(dataset, QUERY_BAND):
            for offset in coordinate_labels(dataset, OFFSET)[:4:3]:
                label = f"{name} component, {band} queries, offset {offset}"
                fields.append(head_field(dataset, name, at={QUERY_BAND: band, OFFSET: offset}, label=label))
    kept = tuple(replace(field, domain=(0.0, max(field.limits[1], 0.01))) for field in fields if field is not None)
    return HeadMap(key="leakage-map", title="Leakage of every head", fields=kept) if kept else None


def _of_head(dataset: xr.Dataset, name: str, word: str) -> HeadCurves | None:
    if not {QUERY_BAND, OFFSET} <= set(dataset.dims):
        return None
    bands = coordinate_labels(dataset, QUERY_BAND)
    lines = [head_curve(dataset, name, OFFSET, at={QUERY_BAND: band}, label=str(band)) for band in bands]
    kept: tuple[HeadCurve, ...] = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, OFFSET)
    return HeadCurves(
        key=f"leakage-head-{name}", title=f"{word.capitalize()} component by offset", x=x, y=LEAK, at=at, lines=kept
    )


def _denominator(dataset: xr.Dataset) -> HeadCurves | None:
    curve = head_curve(dataset, "denominator_profile", QUERY, label="this head")
    if curve is None:
        return None
    x, at = axis_of(dataset, QUERY)
    y = Axis(label="mean log-denominator", units="nat")
    note = "Uniform logits give a line that rises with ln of the number of keys."
    return HeadCurves(key="leakage-denominator", title="Log-denominator by position", x=x, y=y, at=at, lines=(curve,), note=note)


def _logit(dataset: xr.Dataset) -> HeadCurves | None:
    if "logit_profile" not in dataset or OFFSET not in dataset.dims:
        return None
    lines = [
        head_curve(dataset, "logit_profile", QUERY, at={OFFSET: offset}, label=f"offset {offset}")
        for offset in coordinate_labels(dataset, OFFSET)[:5:2]
    ]
    kept = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, QUERY)
    note = "A head that knows offsets alone has flat lines."
    y = Axis(label="mean logit", units="nat")
    return HeadCurves(key="leakage-logit", title="Logit at a fixed offset by position", x=x, y=y, at=at, lines=kept, note=note)

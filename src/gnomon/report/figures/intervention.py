"""Figures of interventions: what each replacement of position 0, or each cut, removed, with its control beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gnomon.dims import CONDITION, LAYER, QUERY_BAND
from gnomon.report.figures.kinds import Axis, Curves, Figure, IntervalRow, Intervals
from gnomon.report.figures.reading import axis_of, coordinate_labels, label_of, line, units_of
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr

UNCHANGED = "none"
CHANGES = {
    "loss_change": "Change of the loss",
    "sink_mass_change": "Change of the weight on position 0",
}


def intervention_figures(dataset: xr.Dataset) -> list[Figure]:
    """Fractions removed by band, changes of loss and sinks, and the residual component over depth."""
    if CONDITION not in dataset.dims:
        return []
    found: list[Figure | None] = []
    for index, band in enumerate(coordinate_labels(dataset, QUERY_BAND) if QUERY_BAND in dataset.dims else ()):
        found.append(
            _rows(
                dataset, "removed_residual", f"Share of the residual component removed, {band} queries", f"removed-{band}", index
            )
        )
    found += [_rows(dataset, name, title, name.replace("_", "-")) for name, title in CHANGES.items()]
    found.append(_over_depth(dataset))
    return [figure for figure in found if figure is not None]


def _rows(dataset: xr.Dataset, name: str, title: str, key: str, band: int | None = None) -> Intervals | None:
    if name not in dataset or set(dataset[name].dims) != ({CONDITION} if band is None else {CONDITION, QUERY_BAND}):
        return None
    part = dataset if band is None else dataset.isel({QUERY_BAND: band})
    rows = []
    for place, condition in enumerate(coordinate_labels(dataset, CONDITION)):
        value, low, high = (
            float(part[f"{name}{end}"].values[place]) if f"{name}{end}" in part else np.nan for end in ("", "_low", "_high")
        )
        if str(condition) != UNCHANGED:
            number = Estimate(value, low, high) if np.isfinite(value) else Estimate.missing("nothing to remove, or not reached")
            rows.append(IntervalRow(label=str(condition), number=number))
    if not any(np.isfinite(row.number.value) for row in rows):
        return None
    x = Axis(label=title.split(",")[0], units=units_of(dataset, name))
    note = (
        f"{label_of(dataset, name).capitalize()}, against the unchanged model on the same text. Negative: the change added to it."
    )
    return Intervals(key=f"intervention-{key}", title=title, x=x, rows=tuple(rows), reference=0.0, note=note)


def _over_depth(dataset: xr.Dataset) -> Curves | None:
    if "layer_residual" not in dataset or QUERY_BAND not in dataset.dims:
        return None
    first = coordinate_labels(dataset, QUERY_BAND)[0]
    conditions = coordinate_labels(dataset, CONDITION)[:6]
    lines = [
        line(
            dataset,
            "layer_residual",
            LAYER,
            at={CONDITION: condition, QUERY_BAND: first},
            label="unchanged" if condition == UNCHANGED else str(condition),
        )
        for condition in conditions
    ]
    kept = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, LAYER)
    y = Axis(label="residual component", units="nat²")
    return Curves(key="intervention-depth", title=f"Residual component over depth, {first} queries", x=x, y=y, at=at, lines=kept)

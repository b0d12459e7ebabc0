"""Figures of reference frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gnomon.dims import HEAD, LAYER
from gnomon.report.figures.kinds import Axis, Curves, Figure, HeadCurves, HeadField, HeadMap, IntervalRow, Intervals
from gnomon.report.figures.reading import axis_of, coordinate_labels, head_curve, head_fields, line
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr

KIND = "kind"
SCORE = Axis(label="score", low=0.0, high=1.0)
SHARE = Axis(label="share of sequences", low=0.0, high=1.0)
SHARES = ("framed", "top", "two_ended", "first_mass", "special_mass", "last_mass", "same_position", "same_token", "sink_first")
NUMBERS = ("effective", "received_effective", "sinks")


def frame_figures(dataset: xr.Dataset) -> list[Figure]:
    """Kind of every head, shares of kinds, kinds over depth, and the chosen head's scores."""
    found = (_map(dataset), _shares(dataset), _of_head(dataset), _over_depth(dataset, "layer_score", KIND), _anchors(dataset))
    return [figure for figure in found if figure is not None]


def _map(dataset: xr.Dataset) -> HeadMap | None:
    fields = [
        _codes(dataset, str(name))
        for name in dataset.data_vars
        if "kinds" in dataset[name].attrs and set(dataset[name].dims) == {LAYER, HEAD}
    ]
    fields += head_fields(dataset, SHARES, domain=(0.0, 1.0))
    fields += head_fields(dataset, NUMBERS)
    return HeadMap(key="frames-map", title="Kind of frame, every head", fields=tuple(fields)) if fields else None


def _codes(dataset: xr.Dataset, name: str) -> HeadField:
    """A variable of codes whose attribute ``kinds`` names them; -1 is unknown."""
    codes = np.asarray(dataset[name].transpose(LAYER, HEAD).values, dtype=np.float64)
    names = tuple(map(str, dataset[name].attrs["kinds"]))
    return HeadField(
        key=name, label="kind of frame", values=np.where(codes >= 0, codes, np.nan), palette="categories", names=names
    )


def _shares(dataset: xr.Dataset) -> Intervals | None:
    if "share" not in dataset or dataset["share"].dims != (KIND, "bound"):
        return None
    values = np.asarray(dataset["share"].values, dtype=np.float64)
    rows = []
    for kind, (value, low, high) in zip(coordinate_labels(dataset, KIND), values.tolist(), strict=True):
        number = Estimate(value, low, high) if np.isfinite(value) else Estimate.missing("no answer")
        rows.append(IntervalRow(label=str(kind), number=number))
    return Intervals(
        key="frames-shares", title="Share of heads by kind", x=Axis(label="share of heads", low=0.0, high=1.0), rows=tuple(rows)
    )


def _of_head(dataset: xr.Dataset) -> HeadCurves | None:
    curve = head_curve(dataset, "score", KIND, label="this head") if KIND in dataset.dims else None
    if curve is None:
        return None
    x, at = axis_of(dataset, KIND)
    return HeadCurves(key="frames-head", title="Score of each kind", x=x, y=SCORE, at=at, lines=(curve,))


def _over_depth(dataset: xr.Dataset, name: str, along: str) -> Curves | None:
    if along not in dataset.dims or name not in dataset:
        return None
    lines = [line(dataset, name, LAYER, at={along: entry}, label=str(entry)) for entry in coordinate_labels(dataset, along)]
    kept = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, LAYER)
    title = "Kind of frame over depth" if along == KIND else "Where the layer's top anchor stands"
    y = SCORE if along == KIND else SHARE
    key = f"frames-{name.replace('_', '-')}"
    return Curves(key=key, title=title, x=x, y=y, at=at, lines=kept, categorical=along == KIND)


def _anchors(dataset: xr.Dataset) -> Curves | None:
    return _over_depth(dataset, "anchor_at", "place")

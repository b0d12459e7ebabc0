"""Figures of sinks and of attention in general."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.dims import DEPTH, HEAD, LAYER, QUERY_BAND, THRESHOLD
from gnomon.report.figures.kinds import Axis, Curves, Figure, HeadCurves, HeadMap, Line
from gnomon.report.figures.reading import axis_of, head_curve, head_field, head_fields, line

if TYPE_CHECKING:
    import xarray as xr

SHARE = Axis(label="share", low=0.0, high=1.0)
UNIT = (0.0, 1.0)
FIELDS = ("alpha_0", "special_mass", "other_special_mass", "strongest_alpha", "strongest_is_first", "strongest_is_special")
USUAL = 0.3


def sink_figures(dataset: xr.Dataset) -> list[Figure]:
    """Map of heads, depth, thresholds, and the chosen head by band of queries."""
    found = (_map(dataset), _by_band(dataset), _over_depth(dataset), _over_threshold(dataset))
    return [figure for figure in found if figure is not None]


def attention_figures(dataset: xr.Dataset) -> list[Figure]:
    """Map of heads, and how far and where the chosen head looks."""
    names = ("relative_entropy", "entropy", "effective_keys", "peak", "offset_mean", "offset_sd", "self_mass", "sequence_mass")
    known = [name for name in names if name in dataset]
    shares = {"relative_entropy", "peak", "self_mass", "sequence_mass"}
    fields = [
        field for name in known if (field := head_field(dataset, name, domain=UNIT if name in shares else None)) is not None
    ]
    found: list[Figure] = []
    if fields:
        found.append(HeadMap(key="attention-map", title="Concentration and reach of every head", fields=tuple(fields)))
    for name, key, title in (
        ("offset_mass", "attention-offset", "How far back the head looks"),
        ("received", "attention-received", "Which positions the head looks at"),
    ):
        figure = _profile(dataset, name, key, title)
        if figure is not None:
            found.append(figure)
    return found


def _profile(dataset: xr.Dataset, name: str, key: str, title: str) -> HeadCurves | None:
    if name not in dataset:
        return None
    along = next(str(dim) for dim in dataset[name].dims if dim not in (LAYER, HEAD))
    mine = head_curve(dataset, name, along, label="this head")
    chance = head_curve(dataset, f"{name}_uniform", along, label="uniform attention", role="chance")
    if mine is None:
        return None
    x, at = axis_of(dataset, along)
    lines = (mine,) if chance is None else (mine, chance)
    y = Axis(label="mean weight", low=0.0)
    return HeadCurves(key=key, title=title, x=x, y=y, at=at, lines=lines, note=str(dataset[name].attrs.get("long_name", "")))


def _map(dataset: xr.Dataset) -> HeadMap | None:
    first = [
        head_field(
            dataset,
            "position_0_mass_by_band",
            at={QUERY_BAND: "from_32"},
            label="weight on position 0, queries from 32 on",
            domain=UNIT,
        ),
        head_field(dataset, "position_0_mass", label="weight on position 0, all queries but the first", domain=UNIT),
    ]
    fields = [field for field in first if field is not None] + head_fields(dataset, FIELDS, domain=UNIT)
    if not fields:
        return None
    return HeadMap(key="sinks-map", title="Weight on position 0, every head", fields=tuple(fields))


def _by_band(dataset: xr.Dataset) -> HeadCurves | None:
    mine = head_curve(dataset, "position_0_mass_by_band", QUERY_BAND, label="this head")
    chance = head_curve(dataset, "position_0_uniform_by_band", QUERY_BAND, label="uniform attention", role="chance")
    if mine is None:
        return None
    x, at = axis_of(dataset, QUERY_BAND)
    y = Axis(label="weight on position 0", low=0.0, high=1.0)
    lines = (mine,) if chance is None else (mine, chance)
    return HeadCurves(key="sinks-head", title="Weight on position 0 by band of queries", x=x, y=y, at=at, lines=lines)


def _over_depth(dataset: xr.Dataset) -> Curves | None:
    lines = [
        line(dataset, "layer_head_share", LAYER, at={THRESHOLD: USUAL}, label="share of heads above 0.3"),
        line(dataset, "layer_position_0_mass", LAYER, at={QUERY_BAND: "from_32"}, label="mean weight on position 0"),
        line(dataset, "position_0_uniform_by_band", LAYER, at={QUERY_BAND: "from_32"}, label="uniform attention", role="chance"),
    ]
    return _curves(dataset, "sinks-depth", "Sinks over depth", LAYER, lines)


def _over_threshold(dataset: xr.Dataset) -> Curves | None:
    lines = [
        line(dataset, "head_share", THRESHOLD, at={DEPTH: "all"}, label="share of heads (queries from 32 on)"),
        line(dataset, "sink_rate", THRESHOLD, label="sink rate (sequence by sequence, all queries)"),
    ]
    return _curves(dataset, "sinks-threshold", "How the share depends on the threshold", THRESHOLD, lines)


def _curves(dataset: xr.Dataset, key: str, title: str, along: str, lines: list[Line | None]) -> Curves | None:
    kept = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, along)
    return Curves(key=key, title=title, x=x, y=SHARE, at=at, lines=kept)

"""Figures of attention against likelihood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gnomon.dims import BAND, CONDITION, LAYER
from gnomon.report.figures.kinds import Axis, Curves, Figure, HeadMap, Line
from gnomon.report.figures.reading import axis_of, coordinate_labels, head_field, line

if TYPE_CHECKING:
    import xarray as xr

CHOICES: Final = ("reading", "aggregate", CONDITION, "mode", "control")
WANTED: Final = {"mode": "inner", "aggregate": "mean"}
CORRELATION: Final = Axis(label="rank correlation", low=-1.0, high=1.0)
MAPS: Final = {
    "head_correlation": "correlation with likelihood",
    "head_partial": "the same, controls taken out",
    "head_contrast": "least likely less likeliest word",
}


def likelihood_figures(dataset: xr.Dataset) -> list[Figure]:
    """Correlation over depth, map of heads, and what replacing the word changes."""
    found = (_correlation(dataset), _map(dataset), _contrast(dataset), _change(dataset))
    return [figure for figure in found if figure is not None]


def _at(dataset: xr.Dataset, name: str, **more: Any) -> dict[str, Any]:
    """The main entry of every choice that a variable has: inner attention, mean over tokens, the first of the others."""
    dims = [str(dim) for dim in dataset[name].dims if dim in CHOICES and dim not in more] if name in dataset else []
    labels = {dim: coordinate_labels(dataset, dim) for dim in dims}
    chosen = {dim: WANTED[dim] if WANTED.get(dim) in known else known[0] for dim, known in labels.items()}
    return {**chosen, **more}


def _correlation(dataset: xr.Dataset) -> Curves | None:
    lines = [
        line(dataset, "correlation", LAYER, at=_at(dataset, "correlation"), label="as it is"),
        line(dataset, "partial", LAYER, at=_at(dataset, "partial"), label="controls taken out"),
    ]
    note = "A word's log-likelihood against the attention among its own tokens, over sentences; the strongest of many layers is biased upwards."
    return _over_depth(dataset, "likelihood-correlation", "Attention and likelihood over depth", CORRELATION, lines, note)


def _map(dataset: xr.Dataset) -> HeadMap | None:
    fields = [
        head_field(dataset, name, at=_at(dataset, name), label=words, palette="diverging")
        for name, words in MAPS.items()
        if name in dataset
    ]
    kept = tuple(field for field in fields if field is not None)
    return HeadMap(key="likelihood-map", title="Attention and likelihood, every head", fields=kept) if kept else None


def _contrast(dataset: xr.Dataset) -> Curves | None:
    if "control" not in dataset.dims:
        return None
    lines = [
        line(dataset, "contrast", LAYER, at=_at(dataset, "contrast", control=control), label=str(control).replace("_", " "))
        for control in coordinate_labels(dataset, "control")
    ]
    y = Axis(label="change of inner attention")
    return _over_depth(dataset, "likelihood-contrast", "Least likely word less likeliest, over depth", y, lines)


def _change(dataset: xr.Dataset) -> Curves | None:
    if BAND not in dataset.dims:
        return None
    lines = [
        line(dataset, "inner_change", LAYER, at=_at(dataset, "inner_change", band=band), label=str(band).replace("_", " "))
        for band in coordinate_labels(dataset, BAND)
    ]
    y = Axis(label="change of inner attention")
    return _over_depth(dataset, "likelihood-change", "Word replaced by tokens of a likelihood band", y, lines)


def _over_depth(dataset: xr.Dataset, key: str, title: str, y: Axis, lines: list[Line | None], note: str = "") -> Curves | None:
    kept = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, LAYER)
    return Curves(key=key, title=title, x=x, y=y, at=at, lines=kept, note=note)

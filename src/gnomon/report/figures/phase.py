"""Figures of phase: oscillation and harmonics over depth, and the chosen head under an imposed phase."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gnomon.dims import CONDITION, LAYER
from gnomon.report.figures.kinds import Axis, Curves, Figure, HeadCurve, HeadCurves, Line
from gnomon.report.figures.reading import axis_of, coordinate_labels, head_curve, label_of, line, units_of

if TYPE_CHECKING:
    import xarray as xr

PHASE = "phase"
PERIOD = "period"
OSCILLATION = {"query_line": "Queries at their own rotary frequency", "logit_contrast": "Logits on rotary frequencies"}
HARMONICS = {"post": "inside the feed-forward", "output": "at its output"}
RESPONSES = {
    "local_entropy": "Entropy of attention under an imposed phase",
    "local_peak": "Largest weight under an imposed phase",
    "local_norm": "Norm of the head's output under an imposed phase",
    "global_entropy": "Entropy, every layer turned",
}
CONTROL = "Other planes are turned by the same angle as a control; at half a turn both reverse the dot product, so only a quarter turn tells."


def phase_figures(dataset: xr.Dataset) -> list[Figure]:
    """Imposed phases first, then oscillation and harmonics over depth."""
    found = [
        *(_response(dataset, name, title) for name, title in RESPONSES.items()),
        *(_oscillation(dataset, name, title) for name, title in OSCILLATION.items()),
        *(_distortion(dataset, place, words) for place, words in HARMONICS.items()),
    ]
    return [figure for figure in found if figure is not None]


def _response(dataset: xr.Dataset, name: str, title: str) -> HeadCurves | None:
    if PHASE not in dataset.dims:
        return None
    turned = head_curve(dataset, f"{name}_rotary", PHASE, label="rotary planes") or head_curve(
        dataset, name, PHASE, label="rotary planes"
    )
    control = head_curve(dataset, f"{name}_other", PHASE, label="other planes", role="null")
    if turned is None:
        return None
    x, at = axis_of(dataset, PHASE)
    order = np.argsort(at, kind="stable")
    kept = tuple(_ordered(curve, order) for curve in (turned, control) if curve is not None)
    variable = f"{name}_rotary" if f"{name}_rotary" in dataset else name
    y = Axis(label=label_of(dataset, variable).split(",")[0], units=units_of(dataset, variable))
    note = CONTROL if control is not None else ""
    return HeadCurves(key=f"phase-{name.replace('_', '-')}", title=title, x=x, y=y, at=at[order], lines=kept, note=note)


def _ordered(curve: HeadCurve, order: np.ndarray) -> HeadCurve:
    low, high = (None if end is None else end[..., order] for end in (curve.low, curve.high))
    return replace(curve, values=curve.values[..., order], low=low, high=high)


def _oscillation(dataset: xr.Dataset, name: str, title: str) -> Curves | None:
    if CONDITION not in dataset.dims or name not in dataset:
        return None
    lines = [
        line(dataset, name, LAYER, at={CONDITION: condition}, label=str(condition).replace("_", " "))
        for condition in coordinate_labels(dataset, CONDITION)
    ]
    y = Axis(label=label_of(dataset, name), low=0.0, high=1.0)
    return _over_depth(dataset, f"phase-{name.replace('_', '-')}", title, y, lines)


def _distortion(dataset: xr.Dataset, place: str, words: str) -> Curves | None:
    if PERIOD not in dataset.dims:
        return None
    period = coordinate_labels(dataset, PERIOD)[len(coordinate_labels(dataset, PERIOD)) // 2]
    lines = [
        line(dataset, f"distortion_{place}", LAYER, at={PERIOD: period}, label="as it is"),
        line(dataset, f"distortion_{place}_linear", LAYER, at={PERIOD: period}, label="its tangent", role="null"),
    ]
    return _over_depth(
        dataset,
        f"phase-distortion-{place}",
        f"Harmonics {words}, period {period}",
        Axis(label="total harmonic distortion"),
        lines,
    )


def _over_depth(dataset: xr.Dataset, key: str, title: str, y: Axis, lines: list[Line | None]) -> Curves | None:
    kept = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    x, at = axis_of(dataset, LAYER)
    return Curves(key=key, title=title, x=x, y=y, at=at, lines=kept)

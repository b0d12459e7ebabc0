"""Figures of a training: what was measured over its steps, and when each quantity emerged."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from gnomon.dims import CHECKPOINT
from gnomon.report.figures.kinds import Axis, Curves, Figure, Floats, IntervalRow, Intervals, Line, Role
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr

QUANTITY: Final = "quantity"
STEP: Final = "step"
TOGETHER: Final = {
    "Sinks": ("sinks/head_share_03", "sinks/sink_rate_03", "sinks/position_0_mass", "sinks/position_0_uniform"),
    "Trace of absolute position, early queries": ("leakage/residual_early", "leakage/mask_early", "leakage/total_early"),
    "Trace of absolute position, middle queries": ("leakage/residual_middle", "leakage/mask_middle", "leakage/total_middle"),
    "Heads by kind of frame": (
        "frames/share_none",
        "frames/share_centralized",
        "frames/share_distributed",
        "frames/share_bidirectional",
    ),
    "Massive activations": ("norms/largest_over_median",),
    "Entropy of attention": ("attention/relative_entropy",),
    "Spectral entropy": ("spectra/paper/spectral_entropy",),
    "Selectivity": ("spectra/paper/selectivity",),
    "Low frequencies beyond shuffled positions": ("spectra/calibrated/low_share_excess",),
    "Distance from random matrices": ("matrix/distance", "matrix/distance_shuffled"),
    "Attention and likelihood": ("likelihood/correlation",),
}
"""Quantities that are drawn in one picture."""
REFERENCES: Final[dict[str, Role]] = {"_uniform": "chance", "_shuffled": "null"}
MOST_ROWS: Final = 16


def evolution_figures(dataset: xr.Dataset) -> list[Figure]:
    """Order of emergence, then the trajectories."""
    if QUANTITY not in dataset.dims or CHECKPOINT not in dataset.dims or STEP not in dataset.coords:
        return []
    names = [str(name) for name in dataset[QUANTITY].values]
    ends = [np.asarray(dataset[end].transpose(QUANTITY, CHECKPOINT).values, dtype=np.float64) for end in ("value", "low", "high")]
    steps = np.asarray(dataset[STEP].values, dtype=np.float64)
    known = {name: (ends[0][row], ends[1][row], ends[2][row]) for row, name in enumerate(names)}
    order = _emergence(dataset, names)
    return ([order] if order is not None else []) + trajectories(steps, known)


def trajectories(steps: Floats, known: Mapping[str, tuple[Floats, Floats, Floats]]) -> list[Figure]:
    """One figure per group of quantities that are known.

    Args:
        steps: of the checkpoints; those without one (NaN) are left out.
        known: value, low and high over checkpoints, by ``measure/quantity``.
    """
    chosen = np.flatnonzero(np.isfinite(steps))
    chosen = chosen[np.argsort(steps[chosen], kind="stable")]
    at = steps[chosen]
    found: list[Figure] = []
    for title, quantities in TOGETHER.items():
        lines = [line for name in quantities if name in known and (line := _line(name, known[name], chosen)) is not None]
        if lines:
            key = "training-" + re.sub(r"[^a-z]+", "-", title.lower()).strip("-")
            x = Axis(label="training step", log=_spread(at), whole=True)
            found.append(Curves(key=key, title=title, x=x, y=Axis(label="value"), at=at, lines=tuple(lines)))
    return found


def _line(name: str, ends: Sequence[Floats], chosen: np.ndarray) -> Line | None:
    value, low, high = (end[chosen] for end in ends)
    if not np.isfinite(value).any():
        return None
    key = name.rsplit("/", 1)[-1]
    role: Role = next((role for suffix, role in REFERENCES.items() if key.endswith(suffix)), "value")
    bounded = bool(np.isfinite(low).any())
    return Line(name=key.replace("_", " "), values=value, low=low if bounded else None, high=high if bounded else None, role=role)


def _spread(at: Floats) -> bool:
    positive = at[at > 0]
    return bool(len(positive) > 1 and (at >= 0).all() and positive.max() > 20 * positive.min())


def _emergence(dataset: xr.Dataset, names: list[str]) -> Intervals | None:
    """Steps at which quantities were halfway, the earliest first."""
    if "emergence" not in dataset:
        return None
    value, low, high = (
        np.asarray(dataset[f"emergence{end}"].values, dtype=np.float64)
        if f"emergence{end}" in dataset
        else np.full(len(names), np.nan)
        for end in ("", "_low", "_high")
    )
    order = [int(row) for row in np.argsort(value) if np.isfinite(value[row])][:MOST_ROWS]
    if not order:
        return None
    rows = tuple(
        IntervalRow(label=names[row], number=Estimate(float(value[row]), float(low[row]), float(high[row]))) for row in order
    )
    x = Axis(label="training step", log=_spread(value[order]), whole=True)
    note = "The step at which the monotone fit is halfway between first and last, with its 95 % interval; only what changed beyond chance."
    return Intervals(key="training-emergence", title="When quantities emerged", x=x, rows=rows, note=note)

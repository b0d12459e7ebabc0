"""From the runs of checkpoints to one dataset: trajectories, when each quantity emerged, and in which order.

Every checkpoint saw the same sequences, so its headline values differ by what training did and not by the text, and differences are paired
(:mod:`gnomon.statistics.difference`). Per quantity:

- ``value``, ``low``, ``high`` ``[quantity, checkpoint]``: the headline of each run;
- ``change``: last less first, with bounds and a p-value corrected by Holm over all quantities;
- ``emergence``: the step at which the monotone fit is halfway (:mod:`gnomon.statistics.emergence`), with bounds, and the checkpoints around it; only where the change is there with confidence after correction;
- ``turning``: the step of the inner checkpoint that lies outside both ends with confidence (corrected for the search over checkpoints and over quantities), for what comes and goes;
- ``before_next``: of those that emerged, in order, the share of resamples in which each came before the next.

Claims served: B8 and C5. What it cannot show: anything between two checkpoints, or of another seed of training.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import CHECKPOINT
from gnomon.result import Survey
from gnomon.result.comparison import CONTROL, replicated
from gnomon.statistics import Estimate, holm
from gnomon.statistics.difference import Difference, jackknife_p, paired_difference, unpaired_difference
from gnomon.statistics.emergence import Emergence, emergence, share_before, turning_point
from gnomon.statistics.jackknife import Jackknifed
from gnomon.study.checkpoints import Checkpoint, is_pythia

NAME: Final = "evolution"
QUANTITY: Final = "quantity"
LABEL: Final = "label"
ALPHA: Final = 0.05
LEAST_CHECKPOINTS: Final = 3
APPEARING: Final = {
    "sinks/head_share_03": "sinks",
    "norms/largest_over_median": "massive activations",
    "leakage/residual_early": "residual leakage",
    "leakage/mask_early": "mask component",
    "frames/share_none": "reference frames (heads without one)",
    "frames/share_centralized": "centralized frames",
    "frames/share_distributed": "distributed frames",
    "spectra/paper/spectral_entropy": "spectral entropy",
    "spectra/paper/selectivity": "spectral selectivity",
    "spectra/calibrated/low_share_excess": "low-band excess",
    "matrix/distance": "departure from random matrices",
    "attention/relative_entropy": "concentration",
}
"""Quantities whose order of appearance is told, and what they stand for."""


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """One quantity over the checkpoints that have it.

    Attributes:
        quantity: ``measure/key``.
        values: one per checkpoint of the evolution; missing where it has none.
        replicates: leave-one-group-out values by checkpoint, ``None`` where not kept.
    """

    quantity: str
    values: tuple[Estimate, ...]
    replicates: tuple[Jackknifed | None, ...]

    def usable(self, steps: NDArray[np.float64]) -> NDArray[np.int64]:
        """Checkpoints with a value and a known step."""
        return np.flatnonzero(np.isfinite(steps) & np.array([math.isfinite(value.value) for value in self.values]))

    def without(self, chosen: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Leave-one-group-out values ``[group, checkpoint]``, ``None`` unless every chosen checkpoint has them."""
        parts = [self.replicates[index] for index in chosen]
        if any(part is None for part in parts):
            return None
        return np.stack([part.without for part in parts if part is not None], axis=1)

    def change(self, chosen: NDArray[np.int64]) -> Difference:
        """Last less first."""
        first, last = int(chosen[0]), int(chosen[-1])
        one, two = self.replicates[first], self.replicates[last]
        if one is not None and two is not None:
            return paired_difference(one, two)
        return unpaired_difference(self.values[first], self.values[last])


def evolution_of(checkpoints: Sequence[Checkpoint], surveys: Sequence[Survey | None], *, seed: int = 0) -> xr.Dataset:
    """The dataset; see the module's text. ``surveys`` are ``None`` where a checkpoint could not be surveyed."""
    steps = np.array([one.step for one in checkpoints], dtype=np.float64)
    trajectories = [t for t in trajectories_of(surveys) if len(t.usable(steps)) >= 1]
    rows = [_analysed(one, steps, seed) for one in trajectories]
    corrected = holm(np.array([row["change_p"] for row in rows], dtype=np.float64))
    turning = holm(np.array([row["turning_p"] for row in rows], dtype=np.float64))
    resampled: dict[int, NDArray[np.float64]] = {}
    for index, row in enumerate(rows):
        row["change_p_corrected"], row["turning_p_corrected"] = float(corrected[index]), float(turning[index])
        found: Emergence | None = row.pop("found")
        if found is not None and row["change_p_corrected"] < ALPHA:
            row |= {"emergence": found.step, "emergence_low": found.low, "emergence_high": found.high}
            row |= {"emergence_after": found.after, "emergence_before": found.before}
            resampled[index] = found.resampled
        if not row["turning_p_corrected"] < ALPHA:
            row |= dict.fromkeys(("turning", "turning_low", "turning_high", "turning_excess"), math.nan)
    _tell_order(rows, resampled)
    return _dataset(checkpoints, surveys, steps, trajectories, rows)


def headline_of(dataset: xr.Dataset) -> dict[str, Estimate]:
    """Step of emergence of every quantity, or why there is none."""
    out = {}
    groups = int(dataset.attrs["groups"])
    for index, quantity in enumerate(dataset[QUANTITY].values.tolist()):
        at = dataset.isel({QUANTITY: index})
        step = float(at["emergence"])
        if math.isfinite(step):
            out[quantity] = Estimate(step, float(at["emergence_low"]), float(at["emergence_high"]), groups)
        else:
            out[quantity] = Estimate.missing(_why_none(at), groups)
    return out


def trajectories_of(surveys: Sequence[Survey | None]) -> list[Trajectory]:
    """Every headline number that has bounds somewhere, over all checkpoints."""
    keys: dict[tuple[str, str], None] = {}
    for survey in _present(surveys):
        for measure, numbers in survey.headline.items():
            if CONTROL not in measure:
                keys |= dict.fromkeys((measure, key) for key, number in numbers.items() if math.isfinite(number.low))
    missing = Estimate.missing("not measured")
    return [
        Trajectory(
            quantity=f"{measure}/{key}",
            values=tuple(missing if s is None else s.headline.get(measure, {}).get(key, missing) for s in surveys),
            replicates=tuple(None if s is None else replicated(s, measure, key) for s in surveys),
        )
        for measure, key in keys
    ]


def equal_starts(checkpoints: Sequence[Checkpoint], surveys: Sequence[Survey | None]) -> str:
    """Whether steps 0 and 1 gave the same numbers, in words; empty when they are not both there, or need not."""
    at = {one.step: survey for one, survey in zip(checkpoints, surveys, strict=True) if survey is not None}
    if 0.0 not in at or 1.0 not in at or not is_pythia(checkpoints[0].model):
        return ""
    one, other = ({f"{m}/{k}": v for m, numbers in at[step].headline.items() for k, v in numbers.items()} for step in (0.0, 1.0))
    differing = [key for key in {**one, **other} if _plain(one.get(key)) != _plain(other.get(key))]
    if not differing:
        return f"steps 0 and 1 are equal in all {len(one)} numbers, as they must be for Pythia"
    return (
        f"steps 0 and 1 must be equal for Pythia, whose first update changed nothing, but differ in {len(differing)} of {len(one)} numbers, "
        f"the first {sorted(differing)[0]}"
    )


def _analysed(one: Trajectory, steps: NDArray[np.float64], seed: int) -> dict[str, Any]:
    """Change, emergence and turning point of one quantity, before any correction."""
    chosen = one.usable(steps)
    row: dict[str, Any] = dict.fromkeys(
        ("first", "last", "change", "change_low", "change_high", "change_p", "emergence", "emergence_low", "emergence_high"),
        math.nan,
    )
    row |= dict.fromkeys(("emergence_after", "emergence_before", "turning", "turning_low", "turning_high"), math.nan)
    row |= {"turning_excess": math.nan, "turning_p": math.nan, "before_next": math.nan, "found": None, "paired": False}
    values = np.array([one.values[index].value for index in chosen], dtype=np.float64)
    row["first"], row["last"] = float(values[0]), float(values[-1])
    if len(chosen) < 2:
        return row
    change = one.change(chosen)
    row |= {
        "change": change.value,
        "change_low": change.low,
        "change_high": change.high,
        "change_p": change.p,
        "paired": change.paired,
    }
    if len(chosen) < LEAST_CHECKPOINTS:
        return row
    without = one.without(chosen)
    row["found"] = emergence(steps[chosen], values, without, seed=seed)
    turning = turning_point(steps[chosen], values, without, seed=seed)
    if turning is not None and without is not None:
        near = 0 if abs(values[turning.place] - values[0]) < abs(values[turning.place] - values[-1]) else len(chosen) - 1
        gap = Jackknifed(
            np.asarray(values[turning.place] - values[near]), np.asarray(without[:, turning.place] - without[:, near])
        )
        row |= {"turning": float(steps[chosen][turning.place]), "turning_low": turning.low, "turning_high": turning.high}
        row |= {"turning_excess": turning.excess, "turning_p": min(1.0, jackknife_p(gap) * (len(chosen) - 2))}
    return row


def _tell_order(rows: list[dict[str, Any]], resampled: Mapping[int, NDArray[np.float64]]) -> None:
    """For each quantity of the order of appearance, how surely it came before the next."""
    order = sorted(resampled, key=lambda index: float(rows[index]["emergence"]))
    for rank, index in enumerate(order):
        rows[index]["rank"] = rank
        if rank + 1 < len(order):
            rows[index]["before_next"] = share_before(resampled[index], resampled[order[rank + 1]])


_DESCRIBED: Final = {
    "first": "value at the first checkpoint",
    "last": "value at the last checkpoint",
    "change": "last less first",
    "change_low": "lower bound of the change",
    "change_high": "upper bound of the change",
    "change_p": "two-sided p of the change",
    "change_p_corrected": "the same after Holm's correction over quantities",
    "emergence": "step at which the monotone fit is halfway",
    "emergence_low": "lower bound of that step over resamples",
    "emergence_high": "upper bound of that step over resamples",
    "emergence_after": "step of the checkpoint before it",
    "emergence_before": "step of the checkpoint after it",
    "turning": "step of the inner checkpoint outside both ends",
    "turning_low": "lower bound of that step over resamples",
    "turning_high": "upper bound of that step over resamples",
    "turning_excess": "how far it lies beyond the nearer end",
    "turning_p": "p of that excess, corrected for the search over checkpoints",
    "turning_p_corrected": "the same after Holm's correction over quantities",
    "before_next": "share of resamples in which it emerged before the next in order",
}


def _dataset(
    checkpoints: Sequence[Checkpoint],
    surveys: Sequence[Survey | None],
    steps: NDArray[np.float64],
    trajectories: Sequence[Trajectory],
    rows: Sequence[Mapping[str, Any]],
) -> xr.Dataset:
    variables: dict[str, Any] = {}
    for name, what in (("value", "headline value"), ("low", "its lower bound"), ("high", "its upper bound")):
        table = np.array([[getattr(value, name) for value in one.values] for one in trajectories], dtype=np.float64)
        table = table.reshape(len(trajectories), len(checkpoints))
        variables[name] = ((QUANTITY, CHECKPOINT), table, {"long_name": what, "units": "of the quantity"})
    for name, what in _DESCRIBED.items():
        units = "steps" if name.startswith(("emergence", "turning")) and "_p" not in name and "excess" not in name else "1"
        variables[name] = (
            (QUANTITY,),
            np.array([row[name] for row in rows], dtype=np.float64),
            {"long_name": what, "units": units},
        )
    variables["rank"] = (
        (QUANTITY,),
        np.array([row.get("rank", -1) for row in rows], dtype=np.int64),
        {"long_name": "place in the order of emergence, -1 where it did not emerge", "units": "1"},
    )
    labels = list(dict.fromkeys(f"{m}/{k}" for s in _present(surveys) for m, found in s.labels.items() for k in found))
    words = [["" if s is None else _label(s, name) for s in surveys] for name in labels]
    variables["word"] = (
        (LABEL, CHECKPOINT),
        np.array(words, dtype=object).reshape(len(labels), len(checkpoints)).astype(str),
        {"long_name": "answer in a word", "units": ""},
    )
    coords: dict[str, Any] = {
        QUANTITY: np.array([one.quantity for one in trajectories], dtype=object).astype(str),
        CHECKPOINT: np.array([one.name for one in checkpoints], dtype=object).astype(str),
        LABEL: np.array(labels, dtype=object).astype(str),
        "step": (CHECKPOINT, steps),
    }
    groups = max((int(s.info.get("replicates", {}).get("groups", 0)) for s in surveys if s is not None), default=0)
    known = set(coords[QUANTITY].tolist())
    attrs = {
        "title": "Evolution over checkpoints",
        "groups": groups,
        "appearing": json.dumps({key: what for key, what in APPEARING.items() if key in known}),
        "missing": "a quantity has no step of emergence where it does not change with confidence, or has fewer than three checkpoints",
    }
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _why_none(at: xr.Dataset) -> str:
    known = int((np.isfinite(at["value"]) & np.isfinite(at["step"])).sum())
    if known < LEAST_CHECKPOINTS:
        return f"{known} checkpoints with a known step have a value, {LEAST_CHECKPOINTS} are needed"
    p = float(at["change_p_corrected"])
    if not math.isfinite(p):
        return "the change has no interval"
    return f"last less first is {float(at['change']):.3g}, which is not beyond chance (corrected p {p:.2g})"


def _present(surveys: Sequence[Survey | None]) -> list[Survey]:
    return [survey for survey in surveys if survey is not None]


def _label(survey: Survey, name: str) -> str:
    measure, _, key = name.partition("/")
    return survey.labels.get(measure, {}).get(key, "")


def _plain(number: Estimate | None) -> tuple[Any, ...] | None:
    return None if number is None else tuple(None if isinstance(part, float) and math.isnan(part) else part for part in number)

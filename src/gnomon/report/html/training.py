"""Checkpoints of one training as curves over its steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gnomon.report.figures import Figure
from gnomon.report.figures.evolution import trajectories
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    from gnomon.result import Survey

_STEP: Final = re.compile(r"step[-_]?(\d+)", re.IGNORECASE)


def checkpoint_step(info: Mapping[str, Any]) -> float | None:
    """The training step of the model that was surveyed, if the record or the revision names one."""
    for tree in (info, info.get("checkpoint"), info.get("model")):
        if isinstance(tree, Mapping) and isinstance(tree.get("step"), int | float):
            return float(tree["step"])
    model = info.get("model")
    found = _STEP.search(str(model.get("revision") or model.get("name") or "")) if isinstance(model, Mapping) else None
    return float(found[1]) if found else None


def training_figures(surveys: Sequence[Survey]) -> list[Figure]:
    """One figure per group of headline numbers that the runs have."""
    missing = Estimate.missing("not measured")
    keys = dict.fromkeys((measure, key) for survey in surveys for measure, numbers in survey.headline.items() for key in numbers)
    steps = np.array([np.nan if (step := checkpoint_step(survey.info)) is None else step for survey in surveys])
    known = {}
    for measure, key in keys:
        numbers = [survey.headline.get(measure, {}).get(key, missing) for survey in surveys]
        value, low, high = (np.array([getattr(number, end) for number in numbers]) for end in ("value", "low", "high"))
        known[f"{measure}/{key}"] = (value, low, high)
    return trajectories(steps, known)

"""Measures given as objects, beside those known by name.

Whoever writes a measure wants to run it before it has a package and an entry point: ``gnomon.survey(measures=["default", MyMeasure()])``. An object's class and parameters take the place
of a name in what decides whether a run may be resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnomon.errors import ConfigError
from gnomon.measure.protocol import Measure
from gnomon.study.experiment import Experiment
from gnomon.study.registry import entries

Asked = str | Sequence[str | Measure | Experiment]


def divided(asked: Asked) -> tuple[list[str], dict[str, Measure | Experiment]]:
    """Names, and objects by the name that each has.

    Raises:
        ConfigError: for anything else, or for an object whose name is taken.
    """
    if isinstance(asked, str):
        return asked.split(","), {}
    names, given = [], {}
    for one in asked:
        if isinstance(one, str):
            names.append(one)
        elif isinstance(one, Measure | Experiment):
            if one.name in entries() or one.name in given:
                raise ConfigError(f"`measures` must have different names, got {one.name!r} twice; rename yours.")
            given[one.name] = one
        else:
            raise ConfigError(
                f"`measures` must be names or measures, got {type(one).__name__}; give an instance, such as MyMeasure()."
            )
    return names, given


def described(given: dict[str, Measure | Experiment]) -> dict[str, Any]:
    """Class and parameters of each object."""
    return {name: {"class": f"{type(one).__module__}.{type(one).__qualname__}", **vars(one)} for name, one in given.items()}

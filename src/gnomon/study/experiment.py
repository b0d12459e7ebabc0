"""What an experiment is: a study with forward passes of its own.

A :class:`~gnomon.measure.protocol.Measure` looks on while text runs through the model once. An experiment chooses its own inputs, changes the
model, or needs gradients; it returns the same kind of dataset and the same kind of headline, and lives in the same run folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr

    from gnomon.corpus import Windows
    from gnomon.model import PositionModel

Arrays = Mapping[str, NDArray[Any]]


def _no_progress(done: int, total: int) -> None:
    """Report nothing."""


def _no_store(key: str, function: Callable[[], Arrays]) -> Arrays:
    """Run without keeping."""
    return function()


@dataclass(frozen=True, kw_only=True)
class Context:
    """What an experiment gets besides model and text.

    Attributes:
        seed: of everything random.
        batch_size: sequences per forward pass.
        progress: called with (done, total) in units of the experiment's own choosing.
        stage: ``stage(key, function)`` returns ``function()``, or what it returned before if this run was interrupted after it.
        options: the experiment's own parameters, by name.
    """

    seed: int = 0
    batch_size: int = 8
    progress: Callable[[int, int], None] = _no_progress
    stage: Callable[[str, Callable[[], Arrays]], Arrays] = _no_store
    options: Mapping[str, Any] = field(default_factory=dict)


class Experiment(ABC):
    """One study with its own passes; subclasses hold only their parameters."""

    name: ClassVar[str]
    title: ClassVar[str]
    claims: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """Do the work; long parts go through ``context.stage`` and tell ``context.progress``."""

    @abstractmethod
    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """The few numbers that stand for this experiment; keys are stable."""

    def labels(self, dataset: xr.Dataset) -> dict[str, str]:
        """Answers that are words, such as the kind of a frame; keys are stable."""
        return {}


def run_alone(experiment: Experiment, model: PositionModel, windows: Windows, **options: Any) -> xr.Dataset:
    """Run one experiment without a run folder, as a notebook would."""
    return experiment.run(model, windows, Context(options={key: _plain(value) for key, value in options.items()}))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value

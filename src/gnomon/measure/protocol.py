"""What a measure is: data about what it needs, one function per layer and batch, one function at the end.

A :class:`Measure` never sees the engine, the model or the disk. For every layer of every batch the engine calls
``observe(view)`` and keeps what comes back, one value per sequence; after the last batch ``finish(observed)`` turns the stack
``[sequence, layer, ...]`` into a labelled dataset. Because what is kept belongs to one sequence each, intervals come from
resampling sequences, and an interrupted run resumes at its next batch without the measure knowing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor

    from gnomon.capture.view import AttentionView, StateView
    from gnomon.corpus import Windows
    from gnomon.kernels.quantities import Needs
    from gnomon.model import Anatomy, Scheme


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the measures know of the model and the text: facts only, no weights.

    Attributes:
        anatomy: counts and widths of the model.
        scheme: its positional scheme.
        windows: the token windows of this survey, or a part of them.
        layout: all windows, where ``windows`` are a part: what was kept is laid out for these.
        seed: of everything random.
    """

    anatomy: Anatomy
    scheme: Scheme
    windows: Windows
    layout: Windows | None = None
    seed: int = 0

    @property
    def laid_out(self) -> Windows:
        """The windows that decide where a measure looks: all of the survey's, even when it is finished on a part."""
        return self.windows if self.layout is None else self.layout


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Everything a measure kept.

    Attributes:
        layers: per name, ``[sequence, layer, ...]``: what ``observe`` returned.
        states: per name, ``[sequence, level, ...]``: what ``observe_states`` returned; level 0 is the embedding, level l + 1 the
            output of layer l.
        subject: model and text.
    """

    layers: Mapping[str, NDArray[Any]]
    states: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    subject: Subject


class Measure(ABC):
    """One family of quantities; subclasses are small and hold only their parameters."""

    name: ClassVar[str]
    title: ClassVar[str]
    claims: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def needs(self, subject: Subject) -> Needs:
        """What the engine must compute for this measure on this model and text."""

    @abstractmethod
    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Values of one layer for the sequences of one batch: tensors whose first axis is the sequence."""

    def observe_states(self, view: StateView) -> Mapping[str, Tensor]:
        """Values of one level of the residual stream, if the needs ask for states; first axis the sequence."""
        return {}

    @abstractmethod
    def finish(self, observed: Observed) -> xr.Dataset:
        """The labelled dataset, per-sequence values or their means with intervals, in full-word dimensions."""

    @abstractmethod
    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """The few numbers that stand for this measure in ``gnomon show --json``; keys are stable."""

    def labels(self, dataset: xr.Dataset) -> dict[str, str]:
        """Answers that are words, such as the kind of a frame; keys are stable."""
        return {}


def cell_count(array: NDArray[Any]) -> int:
    """Number of sequences with at least one finite value."""
    return int(np.isfinite(array.reshape(len(array), -1)).any(1).sum())

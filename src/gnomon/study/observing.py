"""Looking on: text runs through the model once while every measure observes.

What a measure returns for a layer has one value per sequence; batch by batch these are stacked into ``[sequence, layer, ...]`` and kept as a
part of the run, so that an interrupted survey resumes at the batch it stopped at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture import AttentionView, StateView, capture_pass
from gnomon.corpus import Windows
from gnomon.errors import ResourceError
from gnomon.kernels import Needs
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.model import PositionModel

Arrays = dict[str, NDArray[Any]]
Progress = Callable[[str, int, int], None]


class Parts(Protocol):
    """Where a run keeps what each batch gave."""

    def has_part(self, key: str) -> bool:
        """Whether a part is there, whole."""

    def read_part(self, key: str) -> Mapping[str, NDArray[Any]]:
        """Its arrays."""

    def write_part(self, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep it."""


@dataclass
class _Collector:
    """What one batch's measures return, by measure and name, one entry per layer or level."""

    measures: Mapping[str, Measure]
    kept: dict[str, list[Tensor]] = field(default_factory=dict)

    def on_view(self, view: AttentionView) -> None:
        for name, measure in self.measures.items():
            for key, values in measure.observe(view).items():
                self.kept.setdefault(f"{name}/layers/{key}", []).append(values)

    def on_states(self, view: StateView) -> None:
        for name, measure in self.measures.items():
            for key, values in measure.observe_states(view).items():
                self.kept.setdefault(f"{name}/states/{key}", []).append(values)

    def arrays(self) -> Arrays:
        """Stacked along the second axis, ``[sequence, layer, ...]``, in single precision where they are floats."""
        return {key: _compact(torch.stack(values, 1)) for key, values in self.kept.items()}


def observe(
    model: PositionModel,
    windows: Windows,
    measures: Mapping[str, Measure],
    *,
    batch_size: int,
    seed: int,
    parts: Parts,
    prefix: str = "",
    progress: Progress | None = None,
) -> dict[str, Observed]:
    """Run the text through the model once; per measure, everything it kept."""
    subject = Subject(anatomy=model.anatomy, scheme=model.scheme, windows=windows, seed=seed)
    needs = joined_needs(subject, measures)
    batches = list(windows.batches(batch_size))
    held: list[tuple[NDArray[np.int64], Mapping[str, NDArray[Any]]]] = []
    for index, chosen in enumerate(batches):
        if progress is not None:
            progress(f"{prefix}observing", index, len(batches))
        key = f"{prefix}batch-{index:05d}"
        if not parts.has_part(key):
            parts.write_part(key, observe_batch(model, windows, chosen, measures, needs))
        held.append((chosen, parts.read_part(key)))
    if progress is not None:
        progress(f"{prefix}observing", len(batches), len(batches))
    return {name: _observed(name, held, len(windows), subject) for name in measures}


def joined_needs(subject: Subject, measures: Mapping[str, Measure]) -> Needs:
    """What serves all measures at once."""
    return reduce(or_, (measure.needs(subject) for measure in measures.values()), Needs())


def observe_batch(
    model: PositionModel, windows: Windows, chosen: NDArray[np.int64], measures: Mapping[str, Measure], needs: Needs
) -> Arrays:
    """What every measure keeps of one batch, ``[sequence, layer, ...]`` by measure and name."""
    batch = windows.take(chosen).trimmed()
    collector = _Collector(measures)
    try:
        capture_pass(
            model,
            torch.from_numpy(batch.tokens.copy()),
            torch.from_numpy(batch.lengths.copy()),
            torch.from_numpy(batch.special.copy()),
            needs,
            collector.on_view,
            collector.on_states if needs.states else None,
        )
    except torch.OutOfMemoryError as reason:
        raise ResourceError(
            f"{len(chosen)} sequences of {batch.length} tokens do not fit in the memory of {model.device}; use a smaller --batch-size or --length."
        ) from reason
    return collector.arrays()


def _observed(
    name: str, held: list[tuple[NDArray[np.int64], Mapping[str, NDArray[Any]]]], num_sequences: int, subject: Subject
) -> Observed:
    groups: dict[str, Arrays] = {"layers": {}, "states": {}}
    for group, arrays in groups.items():
        start = f"{name}/{group}/"
        for key in sorted({key for _, part in held for key in part if key.startswith(start)}):
            arrays[key.removeprefix(start)] = _assemble(key, held, num_sequences)
    return Observed(layers=groups["layers"], states=groups["states"], subject=subject)


def _assemble(key: str, held: list[tuple[NDArray[np.int64], Mapping[str, NDArray[Any]]]], num_sequences: int) -> NDArray[Any]:
    """One array over all sequences; where batches differ in width (by position), the narrower are filled with NaN."""
    shape = np.max([part[key].shape[1:] for _, part in held], axis=0)
    first = held[0][1][key]
    whole = np.full((num_sequences, *shape), np.nan if first.dtype.kind == "f" else 0, dtype=first.dtype)
    for chosen, part in held:
        values = part[key]
        corner: tuple[Any, ...] = (chosen, *(slice(size) for size in values.shape[1:]))
        whole[corner] = values
    return whole


def _compact(values: Tensor) -> NDArray[Any]:
    values = values.detach().cpu()
    if values.is_floating_point():
        values = values.float()
    array: NDArray[Any] = values.numpy()
    return array

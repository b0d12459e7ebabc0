"""Removing what chosen heads read from position 0.

The logit of key 0 is set to minus infinity for the chosen heads and for every query but the first, so that their rows
sum to one over the remaining keys: a read is removed and the rest renormalised. Query 0 keeps seeing itself, so
position 0's own trajectory is not touched (A5) and only its readers are (A6). Setting the weight to zero without
renormalising would shrink the head's output as well, which is another change.

The control removes the same read from as many other heads of the same layers, drawn at random among those not chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.attention import add_bias
from gnomon.errors import ConfigError
from gnomon.intervene.change import Applied, Change
from gnomon.kernels.problem import AttentionProblem
from gnomon.model import PositionModel


class Head(NamedTuple):
    """A head by layer and number."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.layer}.{self.head}"


@dataclass(frozen=True)
class HideKey:
    """Minus infinity on one key for chosen heads, for every query but that key's own.

    Attributes:
        heads: which heads, ``[H]`` bool.
        key: the key.
    """

    heads: Tensor
    key: int = 0

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :class:`gnomon.kernels.problem.Bias`."""
        hidden = (keys[None, :] == self.key) & (queries[:, None] != self.key)
        chosen = self.heads.to(queries.device)[None, :, None, None] & hidden[None, None]
        return torch.zeros(chosen.shape, device=queries.device).masked_fill_(chosen, -torch.inf)


@dataclass(frozen=True)
class HideFirst(Change):
    """Position 0 hidden from chosen heads.

    Attributes:
        heads: which heads.
        name: how the heads were chosen, for the label.
    """

    heads: tuple[Head, ...]
    name: str = "heads"
    kind: ClassVar[str] = "sink_reads"

    @property
    def label(self) -> str:
        """See :class:`Change`."""
        return f"reads={self.name}"

    @contextmanager
    def applied(self, model: PositionModel) -> Iterator[Applied]:
        """See :class:`Change`."""
        layers, number = model.anatomy.num_layers, model.anatomy.num_heads
        outside = [head for head in self.heads if not (0 <= head.layer < layers and 0 <= head.head < number)]
        if outside:
            raise ConfigError(
                f"`ablate_sink_reads` must name heads within {layers} layers of {number} heads, got "
                f"{', '.join(map(str, outside))}; count from 0."
            )
        by_layer: dict[int, Tensor] = {}
        for head in self.heads:
            by_layer.setdefault(head.layer, torch.zeros(number, dtype=torch.bool))[head.head] = True

        def edit(layer: int, problem: AttentionProblem) -> AttentionProblem:
            chosen = by_layer.get(layer)
            return problem if chosen is None else add_bias(problem, HideKey(chosen))

        yield Applied(edit=edit)


@dataclass(frozen=True)
class NarrowWindow(Change):
    """Every layer sees at most the last ``window`` positions, itself included.

    Attributes:
        window: how many positions.
    """

    window: int
    kind: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ConfigError(f"`window` must be at least 1 position, got {self.window}; 1 is the query itself.")

    @property
    def label(self) -> str:
        """See :class:`Change`."""
        return f"window={self.window}"

    @contextmanager
    def applied(self, model: PositionModel) -> Iterator[Applied]:
        """See :class:`Change`."""

        def edit(layer: int, problem: AttentionProblem) -> AttentionProblem:
            own = problem.mask.window
            window = self.window if own is None else min(own, self.window)
            return replace(problem, mask=replace(problem.mask, window=window))

        yield Applied(edit=edit)


def largest_heads(values: NDArray[np.floating], count: int) -> tuple[Head, ...]:
    """The heads with the largest of ``values [layer, head]``, in order of layer and head; missing values last."""
    if not 1 <= count <= values.size:
        raise ConfigError(f"`ablate_sink_reads` must choose 1 to {values.size} heads, got {count}; the model has no more.")
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), axis=None, kind="stable")[:count]
    return tuple(sorted(Head(int(place // values.shape[1]), int(place % values.shape[1])) for place in order))


def matched_heads(chosen: Sequence[Head], shape: tuple[int, int], seed: int) -> tuple[Head, ...]:
    """As many heads that were not chosen: from the same layers where these have enough, else from the nearest layers."""
    generator = np.random.default_rng(seed)
    free = {Head(layer, head) for layer in range(shape[0]) for head in range(shape[1])} - set(chosen)
    drawn: list[Head] = []
    for head in chosen:
        if not free:
            break
        distance = min(abs(other.layer - head.layer) for other in free)
        nearest = sorted(other for other in free if abs(other.layer - head.layer) == distance)
        taken = nearest[int(generator.integers(len(nearest)))]
        free.remove(taken)
        drawn.append(taken)
    return tuple(sorted(drawn))

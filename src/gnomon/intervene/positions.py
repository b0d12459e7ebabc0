"""Moving all positions, and changing the base of rotary frequencies.

A shift adds a constant to every position id: under rotations nothing may change but rounding (A1). Another base
stretches or shrinks the
wavelengths: the inverse frequency of pair p of n becomes ``f * (base' / base) ** (-p / n)``, which is that of the new
base where the old one was plain, and keeps whatever scaling was applied to each pair where it was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import torch
from torch import Tensor

from gnomon.errors import ConfigError
from gnomon.intervene.change import Applied, Change
from gnomon.model import PositionModel


@dataclass(frozen=True)
class ShiftPositions(Change):
    """Every position id moved by a constant.

    Attributes:
        by: how far, at least 0.
    """

    by: int
    kind: ClassVar[str] = "shift"

    def __post_init__(self) -> None:
        if self.by < 0:
            raise ConfigError(f"`shift` must be at least 0 positions, got {self.by}; negative positions do not exist.")

    @property
    def label(self) -> str:
        """See :class:`Change`."""
        return f"shift={self.by}"

    @contextmanager
    def applied(self, model: PositionModel) -> Iterator[Applied]:
        """See :class:`Change`."""
        if not takes_position_ids(model):
            raise ConfigError(f"`shift` must be left out for {model.name}, which takes no position ids; nothing could be moved.")
        yield Applied(shift=self.by)


@dataclass(frozen=True)
class RotaryBase(Change):
    """Another base of the rotary frequencies, in every layer that rotates.

    Attributes:
        base: the new base, above 1.
    """

    base: float
    kind: ClassVar[str] = "rope_base"

    def __post_init__(self) -> None:
        if not self.base > 1:
            raise ConfigError(f"`rope_base` must be above 1, got {self.base:g}; usual bases are 10000 to 1000000.")

    @property
    def label(self) -> str:
        """See :class:`Change`."""
        return f"rope_base={self.base:g}"

    @contextmanager
    def applied(self, model: PositionModel) -> Iterator[Applied]:
        """See :class:`Change`."""
        kept = [(buffer, buffer.clone(), base) for buffer, base in rotary_buffers(model)]
        try:
            for buffer, old, base in kept:
                pairs = torch.arange(old.numel(), dtype=torch.float64, device=old.device).reshape(old.shape)
                buffer.copy_(old.double() * (self.base / base) ** (-pairs / old.numel()))
            yield Applied()
        finally:
            for buffer, old, _ in kept:
                buffer.copy_(old)


def takes_position_ids(model: PositionModel) -> bool:
    """Whether the model can be told positions."""
    return "position_ids" in signature(model.backbone.forward).parameters


def rotary_buffers(model: PositionModel) -> list[tuple[Tensor, float]]:
    """Buffers of inverse frequencies that the model multiplies positions with, each with its base."""
    named = [(name.rsplit(".", 1)[-1], buffer) for name, buffer in model.backbone.named_buffers()]
    found = [(leaf.removesuffix("inv_freq").rstrip("_"), buffer) for leaf, buffer in named if leaf.endswith("inv_freq")]
    current = [(prefix, buffer) for prefix, buffer in found if not prefix.endswith("original")]
    if model.scheme.kind != "rope" or not current:
        raise ConfigError(
            f"`rope_base` must be left out for {model.name}, which keeps no rotary frequencies ({model.scheme.kind})."
        )
    if model.scheme.length_dependent:
        raise ConfigError(
            f"`rope_base` must be left out for {model.name}, whose frequencies change with the length of the input "
            f"({model.scheme.rope_scaling})."
        )
    return [(buffer, _base_of(model, prefix)) for prefix, buffer in current]


def _base_of(model: PositionModel, prefix: str) -> float:
    """The base of a buffer: of its layer type where types differ, else the one base."""
    parameters: Any = getattr(getattr(model.config, "text_config", None) or model.config, "rope_parameters", None) or {}
    nested = parameters.get(prefix) if prefix else None
    base = nested.get("rope_theta") if isinstance(nested, dict) else model.scheme.rope_base
    if base is None:
        raise ConfigError(f"`rope_base` must be left out for {model.name}, whose own base is not known.")
    return float(base)

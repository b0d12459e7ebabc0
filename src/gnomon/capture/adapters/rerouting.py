"""What an adapter is: instance attributes that stand in for methods, put on and taken off."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn

from gnomon.capture.attention import NAME
from gnomon.model import PositionModel


class Adapter(ABC):
    """Reroutes the attention modules of one model.

    While installed, the configuration names gnomon's attention, so that transformers builds no dense ``T x T`` mask; the replaced methods do not
    read a mask.

    Attributes:
        method: name of the method of each attention module that is replaced.
        own: the implementation that is the family's own code, restored on :meth:`uninstall`.
    """

    method: ClassVar[str] = "forward"
    own: ClassVar[str] = "eager"

    def __init__(self, model: PositionModel) -> None:
        self.model = model

    @property
    def installed(self) -> bool:
        """Whether the replacements are in place."""
        return all(self.method in vars(module) for module in self.model.attentions)

    def install(self) -> None:
        """Put the replacements in place; a second call changes nothing."""
        for module in self.model.attentions:
            setattr(module, self.method, partial(self.compute, module))
        self._name_attention(NAME)

    def uninstall(self) -> None:
        """Give the model its own code back."""
        for module in self.model.attentions:
            vars(module).pop(self.method, None)
        self._name_attention(self.own)

    @abstractmethod
    def compute(self, module: nn.Module, *args: Any, **options: Any) -> tuple[Tensor, None]:
        """What stands in for ``module``'s method."""

    def _name_attention(self, name: str) -> None:
        self.model.config._attn_implementation = name


def split_heads(features: Tensor, num_heads: int) -> Tensor:
    """``[B, T, H D]`` to ``[B, H, T, D]``."""
    return features.view(*features.shape[:-1], num_heads, -1).transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """``[B, H, T, D]`` to ``[B, T, H D]``."""
    return heads.transpose(1, 2).flatten(2)

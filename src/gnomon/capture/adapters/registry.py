"""Which attention class is rerouted by which adapter."""

from __future__ import annotations

from typing import Final

from gnomon.capture.adapters.alibi import BloomAdapter, MptAdapter
from gnomon.capture.adapters.local import GPTNeoAdapter
from gnomon.capture.adapters.rerouting import Adapter
from gnomon.capture.adapters.rotary import FalconAdapter, GPTJAdapter
from gnomon.errors import UnsupportedModelError
from gnomon.model import PositionModel
from gnomon.model.position_model import through_interface

ADAPTERS: Final[dict[str, type[Adapter]]] = {
    "BloomAttention": BloomAdapter,
    "FalconAttention": FalconAdapter,
    "GPTJAttention": GPTJAdapter,
    "GPTNeoSelfAttention": GPTNeoAdapter,
    "MptAttention": MptAdapter,
}


def adapter_for(model: PositionModel) -> Adapter | None:
    """The adapter of a model whose attention bypasses the interface, ``None`` for one that passes through it.

    Raises:
        UnsupportedModelError: when the attention bypasses the interface and no adapter was written for it.
    """
    attention = type(model.attentions[0])
    if attention.__name__ in ADAPTERS:
        return ADAPTERS[attention.__name__](model)
    if through_interface(attention):
        return None
    raise UnsupportedModelError(
        f"`source` must compute attention through transformers' attention interface or be one of {', '.join(sorted(ADAPTERS))}, got "
        f"{attention.__name__} of {model.name}; gnomon cannot observe it faithfully and does not try."
    )

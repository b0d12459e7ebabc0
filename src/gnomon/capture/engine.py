"""One forward pass, observed: the seam between a model and whatever looks on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gnomon.capture.attention import Edit, OnView, Pass, observing
from gnomon.capture.view import StateView
from gnomon.errors import UnsupportedModelError
from gnomon.kernels.quantities import Needs
from gnomon.model import PositionModel

OnStates = Callable[[StateView], None]


@torch.no_grad()
def capture_pass(
    model: PositionModel,
    tokens: Tensor,
    lengths: Tensor,
    special: Tensor | None = None,
    needs: Needs | None = None,
    on_view: OnView | None = None,
    on_states: OnStates | None = None,
    *,
    edit: Edit | None = None,
    logits: bool = False,
    position_ids: Tensor | None = None,
    inputs_embeds: Tensor | None = None,
) -> Tensor | None:
    """Run one batch and call back with what was seen.

    Args:
        model: an opened model.
        tokens: ``[B, T]``, padded on the right.
        lengths: real tokens of each sequence, ``[B]``.
        special: which tokens are special, ``[B, T]``; none when not given.
        needs: what the views must hold.
        on_view: called with each layer's :class:`AttentionView`, in order.
        on_states: called with each level of the residual stream, in order.
        edit: changes a layer's attention problem before it is computed.
        logits: whether to return logits ``[B, T, V]``.
        position_ids: positions other than 0, 1, 2, ..., where the model takes them.
        inputs_embeds: embeddings in place of the tokens' own.
    """
    tokens, lengths = tokens.to(model.device), lengths.to(model.device)
    special = torch.zeros_like(tokens, dtype=torch.bool) if special is None else special.to(model.device)
    current = Pass(
        layers={id(module): layer for layer, module in enumerate(model.attentions)},
        lengths=lengths,
        special=special,
        needs=needs or Needs(),
        on_view=on_view,
        edit=edit,
        chunks=tuple(model.scheme.chunks or ()),
        output_weight=model.output_weight,
    )
    with observing(current), _watching(model, lengths, special, on_states):
        result = model.run(tokens, lengths, position_ids=position_ids, inputs_embeds=inputs_embeds, logits=logits)
    if current.seen != list(range(len(model.attentions))):
        raise UnsupportedModelError(
            f"{model.name} must call every attention layer once and in order, but the calls seen were {current.seen or 'none'}; "
            "its attention does not pass through transformers' attention interface."
        )
    return result


@contextmanager
def _watching(model: PositionModel, lengths: Tensor, special: Tensor, on_states: OnStates | None) -> Iterator[None]:
    """Hooks that hand each level of the residual stream to ``on_states``."""
    if on_states is None:
        yield
        return

    def tell(level: int, hidden: Any) -> None:
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        on_states(StateView(level=level, hidden=hidden, lengths=lengths, special=special))

    def before(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        tell(0, args[0] if args else options["hidden_states"])

    handles = [model.layers[0].register_forward_pre_hook(before, with_kwargs=True)]
    for index, layer in enumerate(model.layers):
        handles.append(layer.register_forward_hook(lambda module, args, output, level=index + 1: tell(level, output)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

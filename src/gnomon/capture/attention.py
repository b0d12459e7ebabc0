"""The one attention function, through which every observed layer of every model goes.

It is registered with transformers under the name ``gnomon``, and so is a mask function of its own, which hands over padding alone: ``[B, 1, 1, T]`` instead of a dense
``T x T``. Visibility is rebuilt here from structure: whether the module is causal, its window, its chunk, and the lengths of the sequences of the pass (of the padding,
where a model is called outside of one). What is rebuilt is proved against the model's own attention when a model is opened (``capture.proof``).

A pass is a context (:class:`Pass`): while one is active, each layer's problem goes to the kernel with the pass's needs, and a view of the result goes to
the pass's callback. Without one the function is ordinary attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface

from gnomon.capture.view import AttentionView
from gnomon.errors import UnsupportedModelError
from gnomon.kernels.dispatch import attention_output, attention_statistics
from gnomon.kernels.problem import AlibiBias, AttentionProblem, Bias, DenseBias, MaskStructure
from gnomon.kernels.quantities import Needs

NAME = "gnomon"

OnView = Callable[[AttentionView], None]
Edit = Callable[[int, AttentionProblem], AttentionProblem]


@dataclass(kw_only=True)
class Pass:
    """One forward pass under observation.

    Attributes:
        layers: layer index of each self-attention module, by ``id``.
        lengths: real tokens of each sequence.
        special: which tokens are special.
        needs: what the kernel must compute.
        on_view: receives each layer's view; without it the layers only compute their output.
        edit: changes a layer's problem before it is computed (an intervention).
        chunks: chunk length per layer, for models that hand it over in their mask alone.
        output_weight: gives a layer's map from head outputs to the residual stream.
        seen: layers in the order of their calls.
    """

    layers: Mapping[int, int]
    lengths: Tensor
    special: Tensor
    needs: Needs = field(default_factory=Needs)
    on_view: OnView | None = None
    edit: Edit | None = None
    chunks: tuple[int | None, ...] = ()
    output_weight: Callable[[int], Tensor | None] | None = None
    seen: list[int] = field(default_factory=list)


_active: ContextVar[Pass | None] = ContextVar("gnomon_pass", default=None)


@contextmanager
def observing(current: Pass) -> Iterator[Pass]:
    """Make ``current`` the active pass."""
    token = _active.set(current)
    try:
        yield current
    finally:
        _active.reset(token)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scaling: float,
    causal: bool = True,
    window: int | None = None,
    chunk: int | None = None,
    bias: Bias | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """Attention output ``[B, H, T, Dv]`` of one module, observed if a pass is active and the module is one of its layers."""
    current = _active.get()
    layer = None if current is None else current.layers.get(id(module))
    if query.shape[2] != key.shape[2]:
        if layer is not None:
            raise UnsupportedModelError(
                f"self-attention of layer {layer} got {query.shape[2]} queries and {key.shape[2]} keys; run it without a key-value cache."
            )
        return _across(query, key, value, scaling, bias)
    if lengths is None:
        lengths = torch.full((len(query),), query.shape[2])
    if current is not None and layer is not None:
        lengths = current.lengths
        chunk = current.chunks[layer] if chunk is None and current.chunks else chunk
    mask = MaskStructure(causal=causal, lengths=lengths.to(query.device), window=window or None, chunk=chunk)
    problem = AttentionProblem(
        query=query, key=key, value=value, scaling=float(scaling), mask=mask, softcap=softcap, bias=bias, sinks=sinks
    )
    if current is None or layer is None:
        return attention_output(problem)
    return _observed(current, layer, problem)


def _observed(current: Pass, layer: int, problem: AttentionProblem) -> Tensor:
    current.seen.append(layer)
    if current.edit is not None:
        problem = current.edit(layer, problem)
    if current.on_view is None:
        return attention_output(problem)
    special = current.special.to(problem.query.device)
    quantities = attention_statistics(problem, current.needs, special)
    weight = current.output_weight(layer) if current.output_weight is not None else None
    current.on_view(AttentionView(layer=layer, problem=problem, quantities=quantities, special=special, output_weight=weight))
    return quantities.output


def _across(query: Tensor, key: Tensor, value: Tensor, scaling: float, bias: Bias | None) -> Tensor:
    """Cross-attention, which gnomon does not study: every key is visible."""
    matrix = None
    if isinstance(bias, DenseBias):
        matrix = bias.matrix
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=matrix, scale=scaling, enable_gqa=True)


def gnomon_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Tensor, None]:
    """The function that transformers calls; see the module's text."""
    output = attend(
        module,
        query,
        key,
        value,
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        causal=_is_causal(module, options),
        window=options.get("sliding_window"),
        chunk=_chunk(module),
        bias=_bias(options, query.shape[1]),
        softcap=options.get("softcap"),
        sinks=options.get("s_aux"),
        lengths=None if attention_mask is None else _lengths_of(attention_mask, type(module).__name__),
    )
    return output.transpose(1, 2).contiguous(), None


def padding_mask(*, attention_mask: Tensor | None = None, dtype: torch.dtype = torch.float32, **structure: Any) -> Tensor | None:
    """The mask that transformers makes for this attention: padding as an additive ``[B, 1, 1, T]``, or nothing; the rest is structure."""
    if attention_mask is None or bool(attention_mask.bool().all()):
        return None
    keep = attention_mask.bool()[:, None, None, :]
    return torch.zeros(keep.shape, dtype=dtype, device=keep.device).masked_fill(~keep, torch.finfo(dtype).min)


def _lengths_of(mask: Tensor, module: str) -> Tensor:
    """Lengths behind a padding mask of :func:`padding_mask`."""
    if mask.ndim != 4 or mask.shape[1] != 1 or mask.shape[2] != 1:
        raise UnsupportedModelError(
            f"{module} hands over a mask of shape {tuple(mask.shape)} of its own making, which gnomon cannot turn into structure; this model is not supported."
        )
    keep = mask[:, 0, 0] == 0
    lengths = keep.sum(-1)
    if not torch.equal(keep, torch.arange(mask.shape[-1], device=mask.device) < lengths[:, None]):
        raise UnsupportedModelError(
            "padding must be on the right of the text, got some elsewhere; position 0 must be a real token."
        )
    return lengths


def _bias(options: Mapping[str, Any], num_heads: int) -> Bias | None:
    """A relative bias that the model holds as a matrix, or ALiBi slopes."""
    matrix, slopes = options.get("position_bias"), options.get("alibi_slopes")
    if matrix is not None:
        return DenseBias(matrix.expand(-1, num_heads, -1, -1))
    return None if slopes is None else AlibiBias(slopes)


def _chunk(module: nn.Module) -> int | None:
    """Chunk length of a layer that hands it over in its mask alone (Llama 4)."""
    config, layer = getattr(module, "config", None), getattr(module, "layer_idx", None)
    types = getattr(config, "layer_types", None)
    if not types or layer is None or layer >= len(types) or types[layer] != "chunked_attention":
        return None
    return getattr(config, "attention_chunk_size", None)


def _is_causal(module: nn.Module, options: Mapping[str, Any]) -> bool:
    """What the call says, else what the module says; a module that says nothing is refused."""
    for said in (options.get("is_causal"), getattr(module, "is_causal", None), getattr(module, "is_decoder", None)):
        if said is not None:
            return bool(said)
    raise UnsupportedModelError(f"{type(module).__name__} does not say whether it is causal; this model is not supported.")


def add_bias(problem: AttentionProblem, bias: Bias) -> AttentionProblem:
    """The problem with another bias added to its own."""
    own = problem.bias
    return replace(problem, bias=bias if own is None else SumBias(own, bias))


@dataclass(frozen=True)
class SumBias:
    """Two biases added."""

    one: Bias
    other: Bias

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :class:`gnomon.kernels.problem.Bias`."""
        return self.one.block(queries, keys) + self.other.block(queries, keys)


AttentionInterface.register(NAME, gnomon_attention)
AttentionMaskInterface.register(NAME, padding_mask)

"""Where the parts of a transformer are, found by structure.

Families name the same parts differently (``model.layers.0.self_attn.o_proj``, ``transformer.h.0.attn.c_proj``,
``bert.encoder.layer.0.attention.output.dense``), and a table of families is out of date with every release. So the parts are found by what they are:

- the residual blocks are the members of the outermost ``ModuleList`` that hold attention;
- a block's self-attention is its innermost attention module with projections of its own, cross-attention left out;
- the output projection is the last linear map below that attention that ends in the residual width;
- the number of key/value heads follows from the widths of the projections: they sum to ``H D + G D + G Dv``.

The configuration is consulted only for what weights cannot show (head count, longest input). What is read here is a claim about the
model, not yet a fact: capture proves it when it counts the calls of every attention module and compares shapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from gnomon.errors import UnsupportedModelError
from gnomon.model.parts import (
    Stack,
    backbone_of,
    called,
    embedding_of,
    linear_maps,
    map_shape,
    map_weight,
    position_table,
    resolve_stack,
    text_config,
)

Kind = Literal["decoder", "encoder", "encoder-decoder"]

_ATTENTION: Final = re.compile(r"attention|attn|mha", re.IGNORECASE)
_CROSS: Final = re.compile(r"cross|encdec|encoder_attn|inter_attention", re.IGNORECASE)
_FEED_FORWARD: Final = ("mlp", "ffn", "feed_forward", "block_sparse_moe", "moe", "DenseReluDense", "fc2", "output.dense")
_INTERMEDIATE: Final = ("intermediate_size", "ffn_hidden_size", "ffn_dim", "d_ff", "encoder_ffn_dim", "hidden_dim", "n_inner")
_HEAD_DIM: Final = ("qk_head_dim", "head_dim", "head_size", "attention_head_size", "key_value_proj_dim")


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """Counts, widths and module names of one stack of a transformer.

    Attributes:
        architecture: class name of the model.
        model_type: transformers' name of the family.
        kind: which sort of model the stack belongs to.
        stack: the surveyed stack of an encoder-decoder, ``None`` otherwise.
        causal: whether a query of this stack sees no later key.
        num_layers, num_heads, num_kv_heads: counts.
        head_dim: width of a query or key head.
        value_dim: width of a value head.
        hidden_size: width of the residual stream.
        intermediate_size: width inside the feed-forward (of one expert, where there are several), or ``None`` when not found.
        vocab_size: rows of the token embedding.
        max_length: longest input that the model was made for, or ``None`` when nothing bounds it.
        num_parameters: weights, tied ones counted once.
        norm: ``rms`` or ``layer``.
        tied_embeddings: whether the output head shares the embedding's weights.
        layers, attentions, outputs, feed_forwards: module names, one per layer; ``outputs`` are the output projections of attention and
            ``feed_forwards`` the modules whose output is added to the stream (empty where a family has no such module).
        norms: per layer, names of the norms on the residual stream.
        embedding: name of the token embedding.
        final_norm, head: names, or ``None`` for models without.
    """

    architecture: str
    model_type: str
    kind: Kind
    stack: Stack | None
    causal: bool
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    value_dim: int
    hidden_size: int
    intermediate_size: int | None
    vocab_size: int
    max_length: int | None
    num_parameters: int
    norm: Literal["rms", "layer"]
    tied_embeddings: bool
    layers: tuple[str, ...]
    attentions: tuple[str, ...]
    outputs: tuple[str, ...]
    feed_forwards: tuple[str, ...]
    norms: tuple[tuple[str, ...], ...]
    embedding: str
    final_norm: str | None
    head: str | None

    @property
    def group(self) -> int:
        """Query heads per key/value head."""
        return self.num_heads // self.num_kv_heads

    def describe(self) -> str:
        """One line for people."""
        heads = (
            f"{self.num_heads} heads" if self.group == 1 else f"{self.num_heads} heads over {self.num_kv_heads} key/value heads"
        )
        part = f"{self.stack} of an " if self.stack else ""
        return (
            f"{part}{self.kind}, {self.num_layers} layers, {heads} of width {self.head_dim}, hidden width {self.hidden_size}, "
            f"{_count(self.num_parameters)} parameters"
        )


def read_anatomy(hf: nn.Module, stack: Stack | None = None) -> Anatomy:
    """Finds the parts of ``hf``.

    Args:
        hf: a transformers model.
        stack: which stack of an encoder-decoder; the encoder when not said.

    Raises:
        UnsupportedModelError: when the parts are not those of a transformer language model.
    """
    config = text_config(hf)
    stack = resolve_stack(hf, stack)
    backbone = backbone_of(hf, stack)
    names = {module: name for name, module in hf.named_modules(remove_duplicate=False)}
    blocks, owner = _residual_blocks(hf, backbone)
    attentions = [_self_attention(hf, block) for block in blocks]
    embedding = embedding_of(hf, backbone)
    hidden = int(embedding.weight.shape[1]) if not hasattr(config, "hidden_size") else int(config.hidden_size)
    outputs = [_output_projection(hf, block, attention, hidden) for block, attention in zip(blocks, attentions, strict=True)]
    num_heads, head_dim, value_dim, kv_heads = _head_counts(hf, config, attentions, outputs)
    causal = _is_causal(hf, attentions[0], stack)
    block_norms = [_stream_norms(block, attention) for block, attention in zip(blocks, attentions, strict=True)]
    head = called(hf, "get_output_embeddings") if stack != "encoder" else None
    final = _final_norm(owner)
    feed_forwards = [_feed_forward(block, attention) for block, attention in zip(blocks, attentions, strict=True)]
    example_norm = next((norm for norms in block_norms for norm in norms), final)
    return Anatomy(
        architecture=type(hf).__name__,
        model_type=str(getattr(config, "model_type", type(hf).__name__)),
        kind="encoder-decoder" if stack is not None else "decoder" if causal else "encoder",
        stack=stack,
        causal=causal,
        num_layers=len(blocks),
        num_heads=num_heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=value_dim,
        hidden_size=hidden,
        intermediate_size=_intermediate_size(config, feed_forwards[0], hidden),
        vocab_size=int(embedding.weight.shape[0]),
        max_length=_max_length(config, backbone),
        num_parameters=sum(parameter.numel() for parameter in hf.parameters()),
        norm=_norm_kind(example_norm),
        tied_embeddings=isinstance(head, nn.Module) and getattr(head, "weight", None) is embedding.weight,
        layers=tuple(names[block] for block in blocks),
        attentions=tuple(names[attention] for attention in attentions),
        outputs=tuple(names[output] for output in outputs),
        feed_forwards=tuple(names[module] for module in feed_forwards if module is not None),
        norms=tuple(tuple(names[norm] for norm in norms) for norms in block_norms),
        embedding=names[embedding],
        final_norm=None if final is None else names[final],
        head=None if head is None else names[head],
    )


def _residual_blocks(hf: nn.Module, backbone: nn.Module) -> tuple[list[nn.Module], nn.Module]:
    """The blocks and the module that owns their list."""
    for owner in backbone.modules():
        for child in owner.children():
            if isinstance(child, nn.ModuleList) and len(child) and all(_attention_modules(block) for block in child):
                return list(child), owner
    raise UnsupportedModelError(
        f"`source` must be a transformer whose every layer attends, got {type(hf).__name__}, in which no list of such layers was found; state-space "
        "and hybrid models are not supported."
    )


def _attention_modules(block: nn.Module) -> list[nn.Module]:
    """Self-attention modules of a block, outermost first."""
    return [
        module
        for name, module in block.named_modules()
        if name
        and not _CROSS.search(name)
        and not _CROSS.search(type(module).__name__)
        and _ATTENTION.search(type(module).__name__)
        and linear_maps(module)
    ]


def _self_attention(hf: nn.Module, block: nn.Module) -> nn.Module:
    """The innermost attention module of a block that has projections as direct children."""
    found = [m for m in _attention_modules(block) if sum(map_weight(child) is not None for child in m.children()) >= 2]
    if len(found) != 1:
        raise UnsupportedModelError(
            f"`source` must have one self-attention per layer, got {len(found)} in a layer of {type(hf).__name__}; this architecture is not supported."
        )
    return found[0]


def _output_projection(hf: nn.Module, block: nn.Module, attention: nn.Module, hidden: int) -> nn.Module:
    """The last map below the outermost attention module around ``attention`` that ends in the residual width."""
    around = next(module for module in _attention_modules(block) if attention in set(module.modules()))
    maps = [module for module in linear_maps(around) if map_shape(module)[0] == hidden]
    if not maps:
        raise UnsupportedModelError(
            f"`source` must project its heads to the residual width {hidden}, got {type(hf).__name__}, in which no such map was found."
        )
    return maps[-1]


def _head_counts(hf: nn.Module, config: Any, attentions: list[nn.Module], outputs: list[nn.Module]) -> tuple[int, int, int, int]:
    """Heads, width of a head, width of a value head, key/value heads; the same in every layer or refused."""
    found = {_heads_of_layer(config, a, o) for a, o in zip(attentions, outputs, strict=True)}
    if len(found) != 1:
        raise UnsupportedModelError(
            f"`source` must have the same heads in every layer, got {len(found)} different sizes in {type(hf).__name__}; it is not supported."
        )
    return found.pop()


def _heads_of_layer(config: Any, attention: nn.Module, output: nn.Module) -> tuple[int, int, int, int]:
    num_heads = int(getattr(config, "num_attention_heads", 0) or getattr(attention, "num_heads", 0))
    width = map_shape(output)[1]
    if not num_heads or width % num_heads:
        raise UnsupportedModelError(f"`source` must have heads of equal width, got {num_heads} heads over {width} features.")
    value_dim = width // num_heads
    head_dim = next(
        (int(getattr(attention, name)) for name in _HEAD_DIM if isinstance(getattr(attention, name, None), int)), value_dim
    )
    projected = sum(map_shape(module)[0] for module in linear_maps(attention) if module is not output)
    kv_heads, rest = divmod(projected - num_heads * head_dim, head_dim + value_dim)
    if rest or kv_heads <= 0 or num_heads % kv_heads:
        kv_heads = int(getattr(config, "num_key_value_heads", None) or num_heads)
    return num_heads, head_dim, value_dim, kv_heads


def _is_causal(hf: nn.Module, attention: nn.Module, stack: Stack | None) -> bool:
    if stack == "encoder":
        return False
    if stack == "decoder":
        return True
    flag = getattr(attention, "is_causal", None)
    if isinstance(flag, bool):
        return flag
    name = type(hf).__name__
    return bool(getattr(hf.config, "is_decoder", False)) or (
        "MaskedLM" not in name and not name.endswith(("BertModel", "bertaModel"))
    )


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower() and isinstance(getattr(module, "weight", None), Tensor)


def _stream_norms(block: nn.Module, attention: nn.Module) -> list[nn.Module]:
    inside = set(attention.modules())
    return [module for module in block.modules() if _is_norm(module) and module not in inside]


def _final_norm(owner: nn.Module) -> nn.Module | None:
    """The last norm beside the list of blocks, if any."""
    beside = [(name, child) for name, child in owner.named_children() if _is_norm(child) and "emb" not in name]
    return beside[-1][1] if beside else None


@torch.no_grad()
def _norm_kind(norm: nn.Module | None) -> Literal["rms", "layer"]:
    """A layer norm does not notice a constant added to its input; an RMS norm does."""
    if norm is None or isinstance(norm, nn.LayerNorm):
        return "layer"
    weight = norm.weight
    assert isinstance(weight, Tensor)
    probe = torch.linspace(-1.0, 2.0, weight.shape[-1], device=weight.device, dtype=weight.dtype)[None]
    first, second = norm(probe).float(), norm(probe + 3.0).float()
    return "layer" if torch.allclose(first, second, atol=1e-2 * float(first.abs().max())) else "rms"


def _feed_forward(block: nn.Module, attention: nn.Module) -> nn.Module | None:
    """The module whose output the feed-forward adds to the stream; where it adds the stream itself, its last map."""
    inside = set(attention.modules())
    for wanted in _FEED_FORWARD:
        for name, module in block.named_modules():
            if module in inside or _ATTENTION.search(name) or not (name == wanted or name.endswith("." + wanted)):
                continue
            maps = linear_maps(module)
            adds_stream = "residual" in signature(module.forward).parameters
            return maps[-1] if adds_stream and maps else module
    return None


def _intermediate_size(config: Any, feed_forward: nn.Module | None, hidden: int) -> int | None:
    for name in _INTERMEDIATE:
        value = getattr(config, name, None)
        if isinstance(value, int):
            return value
    maps = [] if feed_forward is None else linear_maps(feed_forward)
    widths = [map_shape(module)[1] for module in maps if map_shape(module)[0] == hidden]
    return widths[-1] if widths else None


def _max_length(config: Any, backbone: nn.Module) -> int | None:
    """The size of a learned table less the rows it reserves, or what the configuration says."""
    table = position_table(backbone)
    if table is not None:
        reserved = getattr(table, "offset", None)
        if reserved is None:
            reserved = 0 if table.padding_idx is None else table.padding_idx + 1
        return int(table.num_embeddings) - int(reserved)
    for name in ("max_position_embeddings", "max_seq_len", "seq_length"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _count(number: int) -> str:
    for size, unit in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return str(number)

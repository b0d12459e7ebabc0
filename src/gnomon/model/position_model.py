"""A language model that knows its parts: what every later stage takes as "the model".

A :class:`PositionModel` adds nothing to the network. It holds the transformers module, says where layers, attention modules and norms
are, and makes one kind of forward pass: whole windows, no cache, padding on the right. Right padding needs no mask under causal attention, since no real
query sees what follows it; only bidirectional stacks get one.

The weight hash identifies weights cheaply. For every tensor it takes the exact integer sum of the bit patterns (order-free, so equal on every device
and thread count; every element counts) and up to 1024 evenly spaced elements (so that exchanged elements are noticed).
It tells checkpoints apart; it is no signature against tampering.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from gnomon.errors import ModelError
from gnomon.model.anatomy import Anatomy, read_anatomy
from gnomon.model.parts import backbone_of, map_weight
from gnomon.model.scheme import Scheme, read_scheme

_SAMPLE = 1024
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(kw_only=True, eq=False)
class PositionModel:
    """A model, its parts and its positional scheme.

    Attributes:
        hf: the transformers module, in eval mode.
        tokenizer: its tokenizer, or ``None``.
        name: what the user called it.
        anatomy: counts, widths and module names.
        scheme: the positional scheme.
        provenance: where it came from: ``source``, ``revision``, ``files``, ``transformers_class``, ``weight_hash`` once computed.
        adapter: what reroutes attention that does not pass through transformers' interface, ``None`` for the others.
        proof: what was shown when the model was opened, ``None`` before.
    """

    hf: nn.Module
    tokenizer: Any
    name: str
    anatomy: Anatomy
    scheme: Scheme
    provenance: dict[str, Any] = field(default_factory=dict)
    adapter: Any = None
    proof: Any = None

    @classmethod
    def of(
        cls, hf: nn.Module, *, tokenizer: Any = None, name: str = "", stack: Any = None, provenance: dict[str, Any] | None = None
    ) -> PositionModel:
        """Reads anatomy and scheme of a transformers module."""
        anatomy = read_anatomy(hf, stack)
        facts = {"source": name or type(hf).__name__, "revision": None, "files": {}, **(provenance or {})}
        return cls(
            hf=hf,
            tokenizer=tokenizer,
            name=name or type(hf).__name__,
            anatomy=anatomy,
            scheme=read_scheme(hf, anatomy),
            provenance={**facts, "transformers_class": type(hf).__name__},
        )

    def __repr__(self) -> str:
        return f"PositionModel({self.name}: {self.anatomy.describe()}; {self.scheme.describe()})"

    @property
    def config(self) -> Any:
        """The transformers configuration."""
        return self.hf.config

    @property
    def layers(self) -> list[nn.Module]:
        """Residual blocks of the surveyed stack, in order."""
        return self._modules(self.anatomy.layers)

    @property
    def attentions(self) -> list[nn.Module]:
        """Self-attention modules of the surveyed stack, in order."""
        return self._modules(self.anatomy.attentions)

    @property
    def feed_forwards(self) -> list[nn.Module]:
        """Modules whose output the feed-forwards add to the stream."""
        return self._modules(self.anatomy.feed_forwards)

    @property
    def norms(self) -> list[list[nn.Module]]:
        """Norms on the residual stream, per layer."""
        return [self._modules(names) for names in self.anatomy.norms]

    @property
    def embedding(self) -> nn.Module:
        """The token embedding that the surveyed stack calls."""
        return self.hf.get_submodule(self.anatomy.embedding)

    @property
    def final_norm(self) -> nn.Module | None:
        """The norm after the last layer, where there is one."""
        return None if self.anatomy.final_norm is None else self.hf.get_submodule(self.anatomy.final_norm)

    @property
    def backbone(self) -> nn.Module:
        """The module that turns tokens into hidden states."""
        return backbone_of(self.hf, self.anatomy.stack)

    @property
    def device(self) -> torch.device:
        """Where tokens must be."""
        weight = self.embedding.weight
        assert isinstance(weight, Tensor)
        return weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the embedding, and so of the residual stream at its start."""
        weight = self.embedding.weight
        assert isinstance(weight, Tensor)
        return weight.dtype

    @property
    def has_head(self) -> bool:
        """Whether the model can give logits over tokens."""
        return self.anatomy.head is not None

    def output_weight(self, layer: int) -> Tensor | None:
        """The map from head outputs to the residual stream, ``[E, H, Dv]``; ``None`` where weights are not at hand (quantised, offloaded)."""
        weight = map_weight(self.hf.get_submodule(self.anatomy.outputs[layer]))
        if weight is None or weight.is_meta or not weight.is_floating_point():
            return None
        return weight.reshape(self.anatomy.hidden_size, self.anatomy.num_heads, self.anatomy.value_dim)

    def set_attention(self, name: str) -> None:
        """Choose the attention implementation of every part, as registered with transformers.

        Raises:
            ValueError: when the class has attention code of its own that no implementation replaces.
        """
        if not through_interface(type(self.attentions[0])):
            raise ValueError(f"`model` must pass through transformers' attention interface, got {self.anatomy.architecture}.")
        for module in self.hf.modules():
            config = getattr(module, "config", None)
            if config is not None and hasattr(config, "_attn_implementation"):
                config._attn_implementation = name

    def run(
        self,
        tokens: Tensor,
        lengths: Tensor | None = None,
        *,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        logits: bool = False,
    ) -> Tensor | None:
        """One forward pass without cache.

        The decoder of an encoder-decoder attends to an encoder that reads the first token of each sequence alone.

        Args:
            tokens: ``[B, T]``, padded on the right.
            lengths: real tokens of each sequence, ``[B]``; all of them when left out.
            position_ids: positions ``[B, T]`` instead of 0, 1, 2, ...
            inputs_embeds: embeddings ``[B, T, E]`` instead of those of ``tokens``; gradients flow when they require them.
            logits: whether to compute logits over the vocabulary.

        Returns:
            Logits ``[B, T, V]`` when asked for, else ``None``.
        """
        if logits and not self.has_head:
            raise ModelError(f"`model` must have a language-model head to give logits, got {self.name}, {self._headless()}.")
        tokens = tokens.to(self.device)
        arguments = self._arguments(tokens, lengths, position_ids, inputs_embeds)
        called = self.hf if logits or self.anatomy.stack == "decoder" else self.backbone
        with torch.set_grad_enabled(torch.is_grad_enabled() and inputs_embeds is not None and inputs_embeds.requires_grad):
            output = called(**arguments)
        return output.logits if logits else None

    def weight_hash(self) -> str:
        """Hexadecimal hash of all weights; the same on every device and in every process. Kept in ``provenance``."""
        if "weight_hash" not in self.provenance:
            digest = hashlib.sha256()
            for name, parameter in sorted(self.hf.named_parameters()):
                digest.update(f"{name}|{tuple(parameter.shape)}|{parameter.dtype}".encode())
                digest.update(_fingerprint(parameter.detach()))
            self.provenance["weight_hash"] = digest.hexdigest()[:32]
        return str(self.provenance["weight_hash"])

    def _modules(self, names: tuple[str, ...]) -> list[nn.Module]:
        return [self.hf.get_submodule(name) for name in names]

    def _headless(self) -> str:
        return "whose encoder was loaded alone" if self.anatomy.stack == "encoder" else f"a bare {self.anatomy.architecture}"

    def _arguments(
        self, tokens: Tensor, lengths: Tensor | None, position_ids: Tensor | None, inputs_embeds: Tensor | None
    ) -> dict[str, Any]:
        accepted = signature(self.backbone.forward).parameters
        mask = self._padding_mask(tokens, lengths)
        prefix = "decoder_" if self.anatomy.stack == "decoder" else ""
        arguments: dict[str, Any] = {"return_dict": True}
        if "use_cache" in accepted or prefix:
            arguments["use_cache"] = False
        if prefix:
            # The encoder reads the first token alone: given the whole text, cross-attention would carry later tokens back to earlier ones.
            arguments["input_ids"] = tokens[:, :1]
        elif mask is not None and not self.anatomy.causal:
            arguments["attention_mask"] = mask
        if inputs_embeds is None:
            arguments[prefix + "input_ids"] = tokens
        else:
            arguments[prefix + "inputs_embeds"] = inputs_embeds.to(self.device)
        if position_ids is not None:
            if "position_ids" not in accepted:
                raise ModelError(
                    f"`position_ids` must be left out for {self.name}, got positions; {self.anatomy.architecture} derives positions itself."
                )
            arguments["position_ids"] = position_ids.to(self.device)
            if self.anatomy.causal:  # without a mask, transformers takes unusual positions for packed sequences
                arguments["attention_mask"] = torch.ones_like(tokens)
        return arguments

    def _padding_mask(self, tokens: Tensor, lengths: Tensor | None) -> Tensor | None:
        if lengths is None or bool((lengths >= tokens.shape[1]).all()):
            return None
        positions = torch.arange(tokens.shape[1], device=self.device)
        return (positions < lengths.to(self.device)[:, None]).long()


def through_interface(architecture: type) -> bool:
    """Whether a transformers class looks its attention function up, so that a registered one is called at all."""
    modules = (sys.modules.get(base.__module__) for base in architecture.__mro__)
    return any(hasattr(module, "ALL_ATTENTION_FUNCTIONS") for module in modules)


def _fingerprint(tensor: Tensor) -> bytes:
    """Exact sum of bit patterns and evenly spaced elements."""
    if tensor.is_meta or not tensor.numel():
        return b"absent"
    flat = tensor.contiguous().reshape(-1)
    bits = flat.view(_BITS[flat.element_size()])
    total = int(bits.sum(dtype=torch.int64))
    sample = bits[:: max(1, -(-flat.numel() // _SAMPLE))].to("cpu", torch.int64).numpy()
    return total.to_bytes(8, "little", signed=True) + sample.astype("<i8").tobytes()

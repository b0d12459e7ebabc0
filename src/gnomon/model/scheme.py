"""How a model is told where its tokens are: the positional scheme, layer by layer.

Two things tell a transformer about position on purpose: an encoding (rotation of queries and keys, a bias on the logits, or a vector
added to the embedding) and the shape of what may be seen (window, chunk). Both may differ between layers, so every fact here is per
layer. Inverse frequencies are read from the buffers that the model multiplies positions with, after whatever scaling was applied, not
recomputed from a base; the base is reported beside them as the configuration states it.

What this cannot show: schemes that transformers implements outside of buffers, embeddings and biases. Capture's proof (position shift
and causality) is the check on what is claimed here. Claims A1 and A7 rest on it.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from gnomon.model.anatomy import Anatomy
from gnomon.model.parts import backbone_of, position_table, text_config

SchemeKind = Literal["rope", "alibi", "learned", "sinusoidal", "relative", "none"]
Frequencies = tuple[float, ...]

# Families that rotate only where they look through a window.
_ROTATES_IN_WINDOWS_ONLY: Final = frozenset({"cohere2", "exaone4"})
_UNSCALED: Final = frozenset({"default", "proportional"})
_ALIBI_BUILDERS: Final = ("build_alibi_tensor", "build_mpt_alibi_tensor")


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """The positional scheme; tuples have one entry per layer.

    Attributes:
        kind: what encodes position.
        windows: how many positions back (itself included) a query sees, ``None`` for all.
        chunks: length of the blocks outside which nothing is seen, ``None`` for no blocks.
        rope_layers: whether the layer rotates its queries and keys.
        rope_bases: base of the rotation as configured, ``None`` without one.
        inverse_frequencies: radians per token of each rotated pair, after scaling; empty where the layer does not rotate.
        rotary_width: rotated features of a head.
        rotary_fraction: their share of the head.
        rotary_interleaved: whether a rotated pair is features ``2p, 2p + 1`` (GPT-J, Cohere, Llama 4) or ``p, p + width / 2`` (most).
        rope_scaling: transformers' name of the scaling (``linear``, ``dynamic``, ``yarn``, ``llama3``, ``longrope``), or ``None``.
        rope_factor: its factor.
        rope_original_length: length before scaling.
        rope_magnitude: factor on the rotated queries and keys (YaRN's attention factor), 1 otherwise.
        length_dependent: whether the frequencies change with the length of the input (dynamic, longrope).
        alibi_slopes: slope of each head, in logits per token.
        table_size: rows of the table of absolute positions.
        relative_buckets, relative_max_distance: T5's bias.
        softcap: bound on the logits.
        learned_sinks: whether heads have a learned sink logit beside the sequence.
    """

    kind: SchemeKind
    windows: tuple[int | None, ...]
    chunks: tuple[int | None, ...]
    rope_layers: tuple[bool, ...]
    rope_bases: tuple[float | None, ...]
    inverse_frequencies: tuple[Frequencies, ...]
    rotary_width: int = 0
    rotary_fraction: float = 0.0
    rotary_interleaved: bool = False
    rope_scaling: str | None = None
    rope_factor: float | None = None
    rope_original_length: int | None = None
    rope_magnitude: float = 1.0
    length_dependent: bool = False
    alibi_slopes: tuple[float, ...] | None = None
    table_size: int | None = None
    relative_buckets: int | None = None
    relative_max_distance: int | None = None
    softcap: float | None = None
    learned_sinks: bool = False

    @property
    def rope_base(self) -> float | None:
        """The one base of the model, or ``None`` when there is none or several."""
        bases = {base for base in self.rope_bases if base is not None}
        return bases.pop() if len(bases) == 1 else None

    def describe(self) -> str:
        """One line for people."""
        parts = [self._encoding(), self._visibility()]
        if self.softcap is not None:
            parts.append(f"logits soft-capped at {self.softcap:g}")
        if self.learned_sinks:
            parts.append("learned sink logits")
        return "; ".join(part for part in parts if part)

    def _encoding(self) -> str:
        if self.kind == "rope":
            return self._rotation()
        if self.kind == "alibi":
            slopes = self.alibi_slopes or ()
            return f"ALiBi, slopes {min(slopes):.3g} to {max(slopes):.3g}" if slopes else "ALiBi"
        if self.kind in ("learned", "sinusoidal"):
            return f"{self.kind} absolute positions, table of {self.table_size} rows"
        if self.kind == "relative":
            return f"learned relative bias, {self.relative_buckets} buckets up to distance {self.relative_max_distance}"
        return "no positional encoding"

    def _rotation(self) -> str:
        bases = sorted({base for base in self.rope_bases if base is not None})
        text = "RoPE" + (f", base {' and '.join(f'{base:g}' for base in bases)}" if bases else "")
        if self.rotary_fraction < 1:
            text += f", {self.rotary_width} features ({self.rotary_fraction:.0%}) of each head rotated"
        if self.rope_scaling:
            text += f", {self.rope_scaling} scaling" + (f" x{self.rope_factor:g}" if self.rope_factor else "")
        if not all(self.rope_layers):
            text += f", {self.rope_layers.count(False)} of {len(self.rope_layers)} layers without rotation"
        return text

    def _visibility(self) -> str:
        parts = []
        for name, sizes in (("window", self.windows), ("chunk", self.chunks)):
            for size, count in sorted(Counter(size for size in sizes if size is not None).items()):
                where = "every layer" if count == len(sizes) else f"{count} of {len(sizes)} layers"
                parts.append(f"{name} {size} in {where}")
        return "; ".join(parts)


def read_scheme(hf: nn.Module, anatomy: Anatomy) -> Scheme:
    """Reads the scheme of the stack that ``anatomy`` describes from configuration and modules."""
    config = text_config(hf)
    backbone = backbone_of(hf, anatomy.stack)
    attentions = [hf.get_submodule(name) for name in anatomy.attentions]
    layer_types = _layer_types(config, anatomy.num_layers)
    windows = tuple(_window(config, a, t) for a, t in zip(attentions, layer_types, strict=True))
    kind = _kind(config, backbone)
    if kind == "rope" and not any(
        _rotates(config, a, layer, w) for layer, (a, w) in enumerate(zip(attentions, windows, strict=True))
    ):
        kind = "none"
    table = position_table(backbone)
    bias: Any = next((m.relative_attention_bias for m in backbone.modules() if hasattr(m, "relative_attention_bias")), None)
    softcap = getattr(config, "attn_logit_softcapping", None)
    return Scheme(
        kind=kind,
        windows=windows,
        chunks=tuple(getattr(config, "attention_chunk_size", None) if t == "chunked_attention" else None for t in layer_types),
        alibi_slopes=_alibi_slopes(config, backbone, anatomy) if kind == "alibi" else None,
        table_size=None if table is None else int(table.num_embeddings),
        relative_buckets=None if bias is None else int(bias.num_embeddings),
        relative_max_distance=None if bias is None else getattr(config, "relative_attention_max_distance", None),
        softcap=None if softcap is None else float(softcap),
        learned_sinks=any(isinstance(getattr(a, "sinks", None), Tensor) for a in attentions),
        **(_rotation(config, backbone, attentions, layer_types, windows, anatomy) if kind == "rope" else _no_rotation(anatomy)),
    )


def _layer_types(config: Any, num_layers: int) -> tuple[str | None, ...]:
    types = getattr(config, "layer_types", None)
    return tuple(types) if types and len(types) == num_layers else (None,) * num_layers


def _kind(config: Any, backbone: nn.Module) -> SchemeKind:
    """What encodes position; ALiBi first, since some families keep unused rotary buffers beside it."""
    if _uses_alibi(config, backbone):
        return "alibi"
    names = [name.rsplit(".", 1)[-1] for name, _ in backbone.named_buffers()]
    if any(name.endswith("inv_freq") for name in names) or getattr(config, "rotary_dim", None):
        return "rope"
    if any(hasattr(module, "relative_attention_bias") for module in backbone.modules()):
        return "relative"
    table = position_table(backbone)
    if table is None:
        return "none"
    fixed = getattr(config, "sinusoidal_pos_embds", False) or "inusoid" in type(table).__name__
    return "sinusoidal" if fixed else "learned"


def _uses_alibi(config: Any, backbone: nn.Module) -> bool:
    return bool(getattr(config, "alibi", False)) or any(hasattr(backbone, name) for name in _ALIBI_BUILDERS)


def _window(config: Any, attention: nn.Module, layer_type: str | None) -> int | None:
    """The layer's window: from the attention module, else from its type, else from the configuration as a whole."""
    if getattr(attention, "attention_type", None) in ("local", "global"):
        return int(config.window_size) if attention.attention_type == "local" else None
    if layer_type is not None and layer_type != "sliding_attention":
        return None
    window = getattr(attention, "sliding_window", getattr(config, "sliding_window", None))
    if window is None or getattr(config, "use_sliding_window", True) is False:
        return None
    return int(window)


def _no_rotation(anatomy: Anatomy) -> dict[str, Any]:
    return {
        "rope_layers": (False,) * anatomy.num_layers,
        "rope_bases": (None,) * anatomy.num_layers,
        "inverse_frequencies": ((),) * anatomy.num_layers,
    }


def _rotation(
    config: Any,
    backbone: nn.Module,
    attentions: list[nn.Module],
    layer_types: tuple[str | None, ...],
    windows: tuple[int | None, ...],
    anatomy: Anatomy,
) -> dict[str, Any]:
    rotated = tuple(_rotates(config, a, layer, window) for layer, (a, window) in enumerate(zip(attentions, windows, strict=True)))
    parameters = [_rope_parameters(config, layer_type) for layer_type in layer_types]
    frequencies = [_inverse_frequencies(backbone, a, t) for a, t in zip(attentions, layer_types, strict=True)]
    width = 2 * max(len(f) for f in frequencies)
    scaled = next(
        (p for p, r in zip(parameters, rotated, strict=True) if r and p.get("rope_type", "default") not in _UNSCALED), {}
    )
    factor, original = scaled.get("factor"), scaled.get("original_max_position_embeddings")
    scaling = scaled.get("rope_type")
    return {
        "rope_layers": rotated,
        "rope_bases": tuple(_base(config, p) if r else None for p, r in zip(parameters, rotated, strict=True)),
        "inverse_frequencies": tuple(f if r else () for f, r in zip(frequencies, rotated, strict=True)),
        "rotary_width": width,
        "rotary_fraction": width / anatomy.head_dim,
        "rotary_interleaved": _interleaved(attentions[0]),
        "rope_scaling": scaling,
        "rope_factor": None if factor is None else float(factor),
        "rope_original_length": None if original is None else int(original),
        "rope_magnitude": _magnitude(backbone),
        "length_dependent": scaling in ("dynamic", "longrope"),
    }


def _rotates(config: Any, attention: nn.Module, layer: int, window: int | None) -> bool:
    if hasattr(attention, "use_rope"):
        return bool(attention.use_rope)
    flags = getattr(config, "no_rope_layers", None)
    if flags:
        return bool(flags[layer])
    if getattr(config, "model_type", "") in _ROTATES_IN_WINDOWS_ONLY:
        return window is not None or getattr(config, "sliding_window", None) is None
    return True


def _rope_parameters(config: Any, layer_type: str | None) -> dict[str, Any]:
    """The configured rotation of a layer; nested by layer type where types differ."""
    parameters = getattr(config, "rope_parameters", None) or {}
    if layer_type is not None and isinstance(parameters.get(layer_type), dict):
        return dict(parameters[layer_type])
    return dict(parameters)


def _base(config: Any, parameters: dict[str, Any]) -> float | None:
    base = parameters.get("rope_theta", getattr(config, "rope_theta", None))
    if base is None and getattr(config, "rotary_dim", None):
        return 10000.0  # fixed in GPT-J's code
    return None if base is None else float(base)


def _inverse_frequencies(backbone: nn.Module, attention: nn.Module, layer_type: str | None) -> Frequencies:
    """From the layer's own buffer, else from the one of its type, else from the only one; GPT-J's from its table of sines."""
    own = [b for name, b in attention.named_buffers() if name.endswith("inv_freq") and "original" not in name]
    if not own:
        table = dict(attention.named_buffers()).get("embed_positions")
        if table is not None:
            return tuple(torch.asin(table[1, : table.shape[1] // 2].double().clamp(-1, 1)).tolist())
        shared = {name.rsplit(".", 1)[-1]: b for name, b in backbone.named_buffers() if name.endswith("inv_freq")}
        found = shared.get(f"{layer_type}_inv_freq", shared.get("inv_freq"))
        own = [] if found is None else [found]
    return tuple(own[0].double().tolist()) if own else ()


def _interleaved(attention: nn.Module) -> bool:
    """Asks the family's own rotation which features it pairs."""
    module = sys.modules[type(attention).__module__]
    rotate = getattr(module, "rotate_half", None)
    if rotate is None:
        return hasattr(module, "rotate_every_two") or hasattr(module, "apply_rotary_emb")
    turned: Tensor = rotate(torch.arange(4.0).reshape(1, 1, 1, 4))
    return bool(turned.flatten()[0] == -1.0)


def _magnitude(backbone: nn.Module) -> float:
    factors = [getattr(module, "attention_scaling", None) for module in backbone.modules()]
    return float(next((factor for factor in factors if isinstance(factor, (int, float))), 1.0))


def _alibi_slopes(config: Any, backbone: nn.Module, anatomy: Anatomy) -> tuple[float, ...] | None:
    """Difference of the model's own bias between neighbouring keys; Falcon scales it like the dot products."""
    heads = anatomy.num_heads
    mpt: Any = getattr(backbone, "build_mpt_alibi_tensor", None)
    if mpt is not None:
        bias = mpt(heads, 2)
    else:
        build: Any = getattr(
            backbone, "build_alibi_tensor", getattr(sys.modules[type(backbone).__module__], "build_alibi_tensor", None)
        )
        if build is None:
            return None
        bias = build(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)
    slopes = (bias[:, 0, 1] - bias[:, 0, 0]).double()
    if getattr(config, "model_type", "") == "falcon":
        slopes = slopes / math.sqrt(anatomy.head_dim)
    return tuple(slopes.tolist())

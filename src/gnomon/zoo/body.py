"""One Llama-like body whose members differ in their positional scheme and in nothing else.

Claims about schemes compare models, and models of different families differ in norms, biases and widths as well. Here the block is the same for
all (RMS norm, SwiGLU, no biases, untied heads of one width); the configuration chooses what tells a token where it is: rotation (with base, scaling and partial
width as transformers computes them), a learned table, ALiBi, T5's bucketed bias, or nothing; beside that a window, learned sink logits, or sight in both directions.
"""

from __future__ import annotations

import copy
import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding, rotate_half

from gnomon.errors import ConfigError

POSITIONS = ("rope", "learned", "alibi", "relative", "none")


class ZooConfig(PretrainedConfig):  # type: ignore[misc]
    """Sizes, and the positional scheme.

    ``position`` is one of ``POSITIONS``; ``rope_parameters`` are transformers' own (``rope_theta``, ``rope_type``, ``factor``, ``partial_rotary_factor``).
    """

    model_type = "gnomon_zoo"

    def __init__(
        self,
        *,
        vocab_size: int = 4096,
        hidden_size: int = 256,
        intermediate_size: int = 688,
        num_hidden_layers: int = 8,
        num_attention_heads: int = 8,
        max_position_embeddings: int = 512,
        position: str = "rope",
        rope_parameters: dict[str, Any] | None = None,
        sliding_window: int | None = None,
        relative_attention_num_buckets: int = 32,
        relative_attention_max_distance: int = 128,
        learned_sinks: bool = False,
        bidirectional: bool = False,
        rms_norm_eps: float = 1e-5,
        initializer_range: float = 0.02,
        **common: Any,
    ) -> None:
        if position not in POSITIONS:
            raise ConfigError(f"`position` must be one of {', '.join(POSITIONS)}, got {position!r}.")
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_attention_heads
        self.head_dim = hidden_size // num_attention_heads
        self.max_position_embeddings = max_position_embeddings
        self.position = position
        self.alibi = position == "alibi"
        self.rope_parameters = (
            {"rope_type": "default", "rope_theta": 1e4, **(rope_parameters or {})} if position == "rope" else None
        )
        self.sliding_window = sliding_window
        self.relative_attention_num_buckets = relative_attention_num_buckets
        self.relative_attention_max_distance = relative_attention_max_distance
        self.learned_sinks = learned_sinks
        self.bidirectional = bidirectional
        self.rms_norm_eps = rms_norm_eps
        self.initializer_range = initializer_range
        super().__init__(**{"tie_word_embeddings": True, **common})


def alibi_slopes(num_heads: int) -> Tensor:
    """Slopes of ALiBi for a power of two of heads: ``2 ** (-8 h / H)`` for h from 1."""
    return torch.pow(2.0, -8.0 * torch.arange(1, num_heads + 1) / num_heads)


def build_alibi_tensor(attention_mask: Tensor, num_heads: int, dtype: torch.dtype) -> Tensor:
    """The bias on keys 0, 1, ... as a query after all of them sees it, up to a constant: ``slope * j``, ``[H, 1, T]``."""
    positions = torch.arange(attention_mask.shape[-1], dtype=dtype)
    return alibi_slopes(num_heads)[:, None, None].to(dtype) * positions


def relative_buckets(length: int, *, bidirectional: bool, num_buckets: int, max_distance: int, device: torch.device) -> Tensor:
    """Bucket of each query-key pair, ``[T, T]``: exact for near keys, log-spaced for far ones, halves for each direction."""
    position = torch.arange(length, device=device)
    relative = position[None, :] - position[:, None]
    bucket = torch.zeros_like(relative)
    if bidirectional:
        num_buckets //= 2
        bucket += (relative > 0).long() * num_buckets
        distance = relative.abs()
    else:
        distance = (-relative).clamp_min(0)
    exact = num_buckets // 2
    ratio = torch.log(distance.clamp_min(1).float() / exact) / math.log(max_distance / exact)
    far = (exact + ratio * (num_buckets - exact)).long().clamp_max(num_buckets - 1)
    return bucket + torch.where(distance < exact, distance, far)


class ZooAttention(nn.Module):
    """Self-attention through transformers' attention interface."""

    def __init__(self, config: ZooConfig, layer_idx: int) -> None:
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        self.head_dim, self.num_heads = config.head_dim, config.num_attention_heads
        self.scaling = self.head_dim**-0.5
        self.is_causal = not config.bidirectional
        self.sliding_window = config.sliding_window
        width = config.hidden_size
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.sinks = nn.Parameter(torch.zeros(self.num_heads)) if config.learned_sinks else None
        if config.position == "relative" and layer_idx == 0:
            self.relative_attention_bias = nn.Embedding(config.relative_attention_num_buckets, self.num_heads)

    def forward(self, hidden: Tensor, rotation: tuple[Tensor, Tensor] | None, bias: Tensor | None, mask: Tensor | None) -> Tensor:
        """Attention over ``hidden`` ``[B, T, E]``; ``bias`` is a relative bias ``[1, H, T, T]``, ``mask`` marks real tokens."""
        batch, length, width = hidden.shape
        query, key, value = (
            projection(hidden).view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        if rotation is not None:
            query, key = (rotated(states, *rotation) for states in (query, key))
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, dense_attention)
        if self.config._attn_implementation in ("eager", "sdpa"):
            attend = dense_attention
        options: dict[str, Any] = {"sliding_window": self.sliding_window, "s_aux": self.sinks, "position_bias": bias}
        if self.config.alibi:
            options["alibi_slopes"] = alibi_slopes(self.num_heads).to(hidden.device)
        own = attend is dense_attention
        output, _ = attend(self, query, key, value, mask if own else None, scaling=self.scaling, dropout=0.0, **options)
        out: Tensor = self.o_proj(output.reshape(batch, length, width))
        return out


def rotated(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The first features of each head rotated, as many as the tables are wide; the rest as they are."""
    width = cos.shape[-1]
    cos, sin = cos[:, None], sin[:, None]
    turned, rest = states[..., :width], states[..., width:]
    return torch.cat([turned * cos + rotate_half(turned) * sin, rest], -1)


def dense_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    sliding_window: int | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention for training and as the reference: fused where the mask is plain, a dense bias elsewhere.

    A learned sink is an extra key whose logit is the sink and whose value is zero.
    """
    causal = bool(module.is_causal)
    plain = all(one is None for one in (attention_mask, sliding_window, s_aux, position_bias, alibi_slopes))
    if plain:
        output = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=causal, scale=scaling)
        return output.transpose(1, 2).contiguous(), None
    length = query.shape[2]
    position = torch.arange(length, device=query.device)
    offset = position[:, None] - position[None, :]
    hidden = (offset < 0) if causal else torch.zeros_like(offset, dtype=torch.bool)
    if sliding_window is not None:
        hidden = hidden | (offset.abs() >= sliding_window)
    bias = torch.zeros(1, 1, length, length, device=query.device, dtype=query.dtype)
    if position_bias is not None:
        bias = bias + position_bias.to(query.dtype)
    if alibi_slopes is not None:
        bias = bias - alibi_slopes[None, :, None, None].to(query.dtype) * offset.abs()
    bias = bias.masked_fill(hidden, -torch.inf)
    if attention_mask is not None:
        bias = bias.masked_fill(~attention_mask.bool()[:, None, None, :], -torch.inf)
    if s_aux is not None:
        bias = bias.expand(len(query), query.shape[1], -1, -1)
        sink = s_aux[None, :, None, None].to(query.dtype).expand(*bias.shape[:3], 1)
        bias = torch.cat([bias, sink], -1)
        key, value = (nn.functional.pad(states, (0, 0, 0, 1)) for states in (key, value))
    output = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=scaling)
    return output.transpose(1, 2).contiguous(), None


class ZooFeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, config: ZooConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """``[B, T, E]`` to the same."""
        out: Tensor = self.down_proj(nn.functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden))
        return out


class ZooBlock(nn.Module):
    """One pre-norm residual block."""

    def __init__(self, config: ZooConfig, layer_idx: int) -> None:
        super().__init__()
        self.input_layernorm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.self_attn = ZooAttention(config, layer_idx)
        self.post_attention_layernorm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = ZooFeedForward(config)

    def forward(
        self, hidden_states: Tensor, rotation: tuple[Tensor, Tensor] | None, bias: Tensor | None, mask: Tensor | None
    ) -> Tensor:
        """``[B, T, E]`` to the same."""
        hidden_states = hidden_states + self.self_attn(self.input_layernorm(hidden_states), rotation, bias, mask)
        out: Tensor = hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))
        return out


class ZooPreTrained(PreTrainedModel):  # type: ignore[misc]
    """What transformers needs to know of the body."""

    config_class = ZooConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_attention_backend = True
    _no_split_modules: ClassVar[list[str]] = ["ZooBlock"]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        spread = self.config.initializer_range
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=spread)
        elif isinstance(module, LlamaRMSNorm):
            nn.init.ones_(module.weight)
        if isinstance(module, ZooAttention) and module.sinks is not None:
            nn.init.zeros_(module.sinks)
        if isinstance(module, (ZooAttention, ZooFeedForward)):
            last = module.o_proj if isinstance(module, ZooAttention) else module.down_proj
            nn.init.normal_(last.weight, mean=0.0, std=spread / math.sqrt(2 * self.config.num_hidden_layers))


class ZooModel(ZooPreTrained):
    """Tokens to hidden states."""

    def __init__(self, config: ZooConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        if config.position == "learned":
            self.embed_positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        if config.position == "rope":
            self.rotary_emb = LlamaRotaryEmbedding(_rotated_part(config))
        self.layers = nn.ModuleList(ZooBlock(config, index) for index in range(config.num_hidden_layers))
        self.norm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """Token embedding."""
        return self.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Put another token embedding in place."""
        self.embed_tokens = value

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        return_dict: bool = True,
    ) -> BaseModelOutput:
        """Hidden states ``[B, T, E]`` after the final norm."""
        hidden = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        length = hidden.shape[1]
        positions = torch.arange(length, device=hidden.device)[None] if position_ids is None else position_ids
        if self.config.position == "learned":
            hidden = hidden + self.embed_positions(positions)
        rotation = self.rotary_emb(hidden, positions) if self.config.position == "rope" else None
        bias = self._relative_bias(length, hidden.device) if self.config.position == "relative" else None
        mask = attention_mask if self.config.bidirectional else None
        for layer in self.layers:
            hidden = layer(hidden, rotation, bias, mask)
        return BaseModelOutput(last_hidden_state=self.norm(hidden))

    def _relative_bias(self, length: int, device: torch.device) -> Tensor:
        buckets = relative_buckets(
            length,
            bidirectional=self.config.bidirectional,
            num_buckets=self.config.relative_attention_num_buckets,
            max_distance=self.config.relative_attention_max_distance,
            device=device,
        )
        table = self.get_submodule("layers.0.self_attn.relative_attention_bias")
        bias: Tensor = table(buckets).permute(2, 0, 1)[None]
        return bias


def _rotated_part(config: ZooConfig) -> ZooConfig:
    """The configuration as the rotation's tables see it: heads as wide as what is rotated."""
    fraction = (config.rope_parameters or {}).get("partial_rotary_factor", 1.0)
    part = copy.deepcopy(config)
    part.head_dim = int(config.head_dim * fraction)
    part.rope_parameters = {key: value for key, value in (config.rope_parameters or {}).items() if key != "partial_rotary_factor"}
    return part


class ZooForCausalLM(ZooPreTrained):
    """The body with a head that predicts the next token."""

    _tied_weights_keys: ClassVar[dict[str, str]] = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: ZooConfig) -> None:
        super().__init__(config)
        self.model = ZooModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """Token embedding."""
        return self.model.embed_tokens

    def get_output_embeddings(self) -> nn.Linear:
        """The head."""
        return self.lm_head

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        return_dict: bool = True,
    ) -> CausalLMOutput:
        """Logits ``[B, T, V]``, and the mean cross-entropy of the next token when ``labels`` are given."""
        hidden = self.model(
            input_ids, attention_mask=attention_mask, position_ids=position_ids, inputs_embeds=inputs_embeds
        ).last_hidden_state
        logits = self.lm_head(hidden)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=-100)
        return CausalLMOutput(loss=loss, logits=logits)


class ZooForMaskedLM(ZooForCausalLM):
    """The bidirectional body with a head that predicts masked tokens in place."""

    def forward(self, *arguments: Any, labels: Tensor | None = None, **options: Any) -> CausalLMOutput:
        """Logits ``[B, T, V]``, and the mean cross-entropy at the positions that ``labels`` mark."""
        logits = super().forward(*arguments, **options).logits
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=-100)
        return CausalLMOutput(loss=loss, logits=logits)


def register() -> None:
    """Make the body known to transformers' Auto classes."""
    AutoConfig.register(ZooConfig.model_type, ZooConfig, exist_ok=True)
    AutoModelForCausalLM.register(ZooConfig, ZooForCausalLM, exist_ok=True)
    AutoModelForMaskedLM.register(ZooConfig, ZooForMaskedLM, exist_ok=True)


register()

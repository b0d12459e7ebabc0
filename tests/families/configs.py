"""Tiny random models of every supported family, built from their configurations, and what must be found out about each.

Nothing is downloaded: a family is a configuration with three or four layers and a hidden width of 64, seeded. ``FAMILIES`` states the
facts that anatomy and scheme must recover, so that everybody's parametrised tests run over the same list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch import nn
from transformers import PreTrainedTokenizerFast

VOCABULARY = 272
HIDDEN = 64
MAX_POSITIONS = 256
TokenizerStyle = Literal["bos", "bos_off", "none", "cls", "eos"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """A tiny model and the facts expected of it.

    Attributes:
        name: key in ``FAMILIES``.
        config: a function that returns a fresh configuration.
        auto: the transformers class that builds the model.
        scheme: expected kind of positional scheme.
        causal: expected causality of the surveyed stack.
        stack: which stack of an encoder-decoder is surveyed.
        windows: expected window per layer.
        chunks: expected chunk per layer.
        rope_layers: expected rotation per layer.
        heads, kv_heads, head_dim: expected of every layer.
        interface: whether attention goes through transformers' attention interface; if not an adapter must exist.
        style: tokenizer that suits the family.
        weights_scale: factor on all weight matrices after initialisation, so that attention is not uniform.
    """

    name: str
    config: Callable[[], Any]
    auto: Any
    scheme: str
    causal: bool = True
    stack: Literal["encoder", "decoder"] | None = None
    windows: tuple[int | None, ...] = (None,) * 3
    chunks: tuple[int | None, ...] | None = None
    rope_layers: tuple[bool, ...] | None = None
    heads: int = 4
    kv_heads: int = 4
    head_dim: int = 16
    interface: bool = True
    softcap: float | None = None
    learned_sinks: bool = False
    style: TokenizerStyle = "bos"
    weights_scale: float = 6.0
    notes: tuple[str, ...] = field(default=())

    @property
    def num_layers(self) -> int:
        """Layers of the surveyed stack."""
        return len(self.windows)

    @property
    def kind(self) -> str:
        """Expected ``Anatomy.kind``."""
        if self.stack is not None:
            return "encoder-decoder"
        return "decoder" if self.causal else "encoder"

    def build(self, attn_implementation: str = "eager", seed: int = 0) -> nn.Module:
        """A seeded model in eval mode, float32, on the CPU; weights are large enough for attention to be far from uniform."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _make(self.auto, self.config(), attn_implementation)
            with torch.no_grad():
                for name, parameter in sorted(model.named_parameters()):
                    if parameter.ndim >= 2:
                        parameter.mul_(self.weights_scale)
                    elif "sinks" in name or name.endswith("bias"):
                        parameter.normal_(0.0, 0.3)
        return model.eval().requires_grad_(False)

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The tokenizer of ``style``."""
        return byte_tokenizer(self.style)

    def tokens(self, batch: int = 2, length: int = 24, seed: int = 0) -> torch.Tensor:
        """Random ids, ``[batch, length]``, none of them special."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(8, 264, (batch, length), generator=generator)


def _make(auto: Any, config: Any, attn_implementation: str) -> nn.Module:
    if hasattr(auto, "from_config"):
        return auto.from_config(config, attn_implementation=attn_implementation)
    return auto._from_config(config, attn_implementation=attn_implementation)


def _decoder(config_class: Any, **extra: Any) -> Callable[[], Any]:
    """A configuration with the names that Llama's descendants share."""

    def make() -> Any:
        settings: dict[str, Any] = {
            "vocab_size": VOCABULARY,
            "hidden_size": HIDDEN,
            "intermediate_size": 96,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": MAX_POSITIONS,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        }
        return config_class(**{**settings, **extra})

    return make


def _plain(config_class: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: config_class(vocab_size=VOCABULARY, **settings)


def _llama(**extra: Any) -> Callable[[], Any]:
    return _decoder(tf.LlamaConfig, **extra)


_BERT = {
    "hidden_size": HIDDEN,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": MAX_POSITIONS,
    "pad_token_id": 0,
}
_T5 = {
    "d_model": HIDDEN,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 3,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
}
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def _causal(name: str, config: Callable[[], Any], scheme: str = "rope", **facts: Any) -> Family:
    return Family(name=name, config=config, auto=tf.AutoModelForCausalLM, scheme=scheme, **facts)


def _masked(name: str, config: Callable[[], Any], scheme: str = "learned", **facts: Any) -> Family:
    return Family(
        name=name, config=config, auto=tf.AutoModelForMaskedLM, scheme=scheme, **{"causal": False, "style": "cls", **facts}
    )


_LIST = (
    _causal("llama", _llama(), kv_heads=2),
    _causal("llama-linear", _llama(rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}), kv_heads=2),
    _causal("llama-dynamic", _llama(rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}), kv_heads=2),
    _causal("llama-yarn", _llama(rope_parameters=_YARN), kv_heads=2),
    _causal("llama-llama3", _llama(rope_parameters=_LLAMA3), kv_heads=2),
    _causal("mistral", _decoder(tf.MistralConfig, sliding_window=8), kv_heads=2, windows=(8, 8, 8)),
    _causal("mixtral", _decoder(tf.MixtralConfig, num_local_experts=4, sliding_window=None), kv_heads=2),
    _causal("qwen2", _decoder(tf.Qwen2Config), kv_heads=2, style="none"),
    _causal("qwen3", _decoder(tf.Qwen3Config, head_dim=16), kv_heads=2, style="none"),
    _causal(
        "gemma2",
        _decoder(
            tf.Gemma2Config,
            head_dim=16,
            sliding_window=8,
            attn_logit_softcapping=5.0,
            final_logit_softcapping=30.0,
            query_pre_attn_scalar=16,
        ),
        kv_heads=2,
        windows=(8, None, 8),
        softcap=5.0,
    ),
    _causal(
        "gemma3",
        _decoder(
            tf.Gemma3TextConfig,
            head_dim=16,
            sliding_window=8,
            query_pre_attn_scalar=16,
            layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        ),
        kv_heads=2,
        windows=(8, 8, None),
    ),
    _causal("phi", _decoder(tf.PhiConfig, num_key_value_heads=4, partial_rotary_factor=0.5), style="none"),
    _causal("gpt-neox", _decoder(tf.GPTNeoXConfig, rotary_pct=0.25, use_parallel_residual=True), style="none"),
    _causal(
        "gpt-j",
        _plain(tf.GPTJConfig, n_positions=MAX_POSITIONS, n_embd=HIDDEN, n_layer=3, n_head=4, rotary_dim=8, n_inner=96),
        interface=False,
        style="none",
    ),
    _causal(
        "gpt2",
        _plain(tf.GPT2Config, n_positions=MAX_POSITIONS, n_embd=HIDDEN, n_layer=3, n_head=4, n_inner=96),
        "learned",
        style="none",
    ),
    _causal(
        "gpt2-upcast",
        _plain(
            tf.GPT2Config,
            n_positions=MAX_POSITIONS,
            n_embd=HIDDEN,
            n_layer=3,
            n_head=4,
            n_inner=96,
            reorder_and_upcast_attn=True,
            scale_attn_by_inverse_layer_idx=True,
        ),
        "learned",
        style="none",
    ),
    _causal(
        "opt",
        _plain(
            tf.OPTConfig,
            hidden_size=HIDDEN,
            ffn_dim=96,
            num_hidden_layers=3,
            num_attention_heads=4,
            max_position_embeddings=MAX_POSITIONS,
            word_embed_proj_dim=HIDDEN,
        ),
        "learned",
    ),
    _causal("bloom", _plain(tf.BloomConfig, hidden_size=HIDDEN, n_layer=3, n_head=4), "alibi", interface=False, style="none"),
    _causal(
        "mpt",
        _plain(tf.MptConfig, d_model=HIDDEN, n_heads=4, n_layers=3, max_seq_len=MAX_POSITIONS),
        "alibi",
        interface=False,
        style="none",
    ),
    _causal(
        "smollm3",
        _decoder(tf.SmolLM3Config, num_hidden_layers=4, no_rope_layer_interval=4),
        kv_heads=2,
        windows=(None,) * 4,
        rope_layers=(True, True, True, False),
    ),
    _causal(
        "gpt-oss",
        _decoder(
            tf.GptOssConfig,
            head_dim=16,
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        ),
        kv_heads=2,
        windows=(8, None, 8),
        learned_sinks=True,
        style="none",
    ),
    _causal(
        "falcon",
        _plain(tf.FalconConfig, hidden_size=HIDDEN, num_hidden_layers=3, num_attention_heads=4, ffn_hidden_size=96),
        kv_heads=1,
        interface=False,
        style="none",
    ),
    _causal(
        "falcon-new",
        _plain(
            tf.FalconConfig,
            hidden_size=HIDDEN,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_kv_heads=2,
            new_decoder_architecture=True,
            ffn_hidden_size=96,
        ),
        kv_heads=2,
        interface=False,
        style="none",
    ),
    _causal(
        "falcon-alibi",
        _plain(
            tf.FalconConfig,
            hidden_size=HIDDEN,
            num_hidden_layers=3,
            num_attention_heads=4,
            alibi=True,
            multi_query=False,
            parallel_attn=False,
            bias=True,
            ffn_hidden_size=96,
        ),
        "alibi",
        interface=False,
        style="none",
    ),
    _causal(
        "gpt-neo",
        _plain(
            tf.GPTNeoConfig,
            hidden_size=HIDDEN,
            num_layers=4,
            num_heads=4,
            attention_types=[[["global", "local"], 2]],
            window_size=8,
            max_position_embeddings=MAX_POSITIONS,
            intermediate_size=96,
        ),
        "learned",
        windows=(None, 8, None, 8),
        interface=False,
        style="none",
    ),
    _causal(
        "llama4",
        _decoder(
            tf.Llama4TextConfig,
            num_hidden_layers=4,
            head_dim=16,
            intermediate_size_mlp=96,
            num_local_experts=2,
            attention_chunk_size=8,
            no_rope_layer_interval=4,
            floor_scale=8,
        ),
        kv_heads=2,
        windows=(None,) * 4,
        chunks=(8, 8, 8, None),
        rope_layers=(True, True, True, False),
    ),
    _masked("bert", _plain(tf.BertConfig, **_BERT)),
    Family(
        name="bert-bare",
        config=_plain(tf.BertConfig, **_BERT),
        auto=tf.AutoModel,
        scheme="learned",
        causal=False,
        style="cls",
        notes=("no language-model head",),
    ),
    _masked("roberta", _plain(tf.RobertaConfig, **{**_BERT, "pad_token_id": 1})),
    _masked("xlm-r", _plain(tf.XLMRobertaConfig, **{**_BERT, "pad_token_id": 1})),
    _masked(
        "distilbert",
        _plain(tf.DistilBertConfig, dim=HIDDEN, hidden_dim=96, n_layers=3, n_heads=4, max_position_embeddings=MAX_POSITIONS),
    ),
    _masked(
        "distilbert-sinusoidal",
        _plain(
            tf.DistilBertConfig,
            dim=HIDDEN,
            hidden_dim=96,
            n_layers=3,
            n_heads=4,
            max_position_embeddings=MAX_POSITIONS,
            sinusoidal_pos_embds=True,
        ),
        "sinusoidal",
    ),
    _masked(
        "modernbert",
        _plain(
            tf.ModernBertConfig,
            **{**_BERT, "local_attention": 8, "global_attn_every_n_layers": 3, "cls_token_id": 3, "sep_token_id": 4},
        ),
        "rope",
        windows=(None, 5, 5),
    ),
    Family(
        name="t5-encoder",
        config=_plain(tf.T5Config, **_T5),
        auto=tf.AutoModelForSeq2SeqLM,
        scheme="relative",
        causal=False,
        stack="encoder",
        style="eos",
        weights_scale=1.5,
    ),
    Family(
        name="t5-decoder",
        config=_plain(tf.T5Config, **_T5),
        auto=tf.AutoModelForSeq2SeqLM,
        scheme="relative",
        causal=True,
        stack="decoder",
        style="eos",
        weights_scale=1.5,
    ),
)

FAMILIES: dict[str, Family] = {family.name: family for family in _LIST}

SPECIALS = ("<pad>", "<s>", "</s>", "<cls>", "<sep>", "<mask>", "<unk>", "<extra>")


def byte_tokenizer(style: TokenizerStyle = "bos") -> PreTrainedTokenizerFast:
    """A byte-level tokenizer with offsets, made in memory: ids 0-7 are special, 8-263 are bytes.

    Args:
        style: ``bos`` puts ``<s>`` first; ``bos_off`` has a BOS but does not add it; ``none`` has no BOS at all (its only special token
            is the end-of-text); ``cls`` wraps in ``<cls> ... <sep>`` and has a mask; ``eos`` appends ``</s>`` (T5).
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate((*SPECIALS, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    return _finish(tokenizer, style)


def word_tokenizer(words: list[str], style: TokenizerStyle = "none") -> PreTrainedTokenizerFast:
    """A whole-word tokenizer with offsets over ``words``; the special tokens take the ids 0-7."""
    vocabulary = {token: index for index, token in enumerate((*SPECIALS, *dict.fromkeys(words)))}
    tokenizer = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return _finish(tokenizer, style)


def _finish(tokenizer: Tokenizer, style: TokenizerStyle) -> PreTrainedTokenizerFast:
    ids = {token: index for index, token in enumerate(SPECIALS)}
    templates = {
        "bos": ("<s> $A", ["<s>"]),
        "cls": ("<cls> $A <sep>", ["<cls>", "<sep>"]),
        "eos": ("$A </s>", ["</s>"]),
    }
    if style in templates:
        single, used = templates[style]
        tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=[(t, ids[t]) for t in used])
    named = {
        "bos": {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
        "bos_off": {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
        "none": {"eos_token": "</s>"},
        "cls": {"cls_token": "<cls>", "sep_token": "<sep>", "mask_token": "<mask>", "pad_token": "<pad>"},
        "eos": {"eos_token": "</s>", "pad_token": "<pad>"},
    }[style]
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", **named)

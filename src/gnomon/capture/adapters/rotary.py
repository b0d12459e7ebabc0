"""GPT-J and Falcon: rotation inside code of their own.

GPT-J keeps its dot products in one small method, which is all that is replaced. Falcon has three layouts of the fused
projection (one key/value head, groups, all heads) and an ALiBi variant whose bias is rounded to bfloat16 and scaled with the dot products. Its
eager code in transformers 5 adds that bias twice; the sdpa code adds it once, as the model was trained, and is the one that counts.
"""

from __future__ import annotations

import math
import sys
from typing import Any, ClassVar

from torch import Tensor

from gnomon.capture.adapters.alibi import KeyBias
from gnomon.capture.adapters.rerouting import Adapter, merge_heads
from gnomon.capture.attention import attend


class GPTJAdapter(Adapter):
    """GPT-J: queries and keys arrive rotated at ``_attn``."""

    method: ClassVar[str] = "_attn"

    def compute(self, module: Any, *args: Any, **options: Any) -> tuple[Tensor, None]:
        """See :meth:`Adapter.compute`."""
        query, key, value = args[:3]
        return attend(module, query, key, value, scaling=1 / math.sqrt(module.head_dim), causal=True), None


class FalconAdapter(Adapter):
    """Falcon in its three layouts, rotated or with ALiBi."""

    own: ClassVar[str] = "sdpa"

    def compute(self, module: Any, *args: Any, **options: Any) -> tuple[Tensor, None]:
        """See :meth:`Adapter.compute`."""
        query, key, value = (part.transpose(1, 2) for part in module._split_heads(module.query_key_value(args[0])))
        if module.new_decoder_architecture:  # keys and values come copied to every head of their group
            group = module.num_heads // module.num_kv_heads
            key, value = key[:, ::group], value[:, ::group]
        alibi, bias = options["alibi"], None
        if alibi is None:
            rotate = sys.modules[type(module).__module__].apply_rotary_pos_emb
            query, key = rotate(query, key, *options["position_embeddings"])
        else:
            bias = KeyBias(alibi[: module.num_heads, 0].float() * module.inv_norm_factor)
        heads = attend(module, query, key, value, scaling=module.inv_norm_factor, causal=True, bias=bias)
        return module.dense(merge_heads(heads)), None

"""BLOOM and MPT: ALiBi added to the logits as ``slope * j``.

Both families bias a key by its own position; the softmax removes the difference from ``-slope * (i - j)``, which is the form that gnomon reports because
it depends on the offset alone. In half precision BLOOM rounds the bias of each key, so that it is no longer linear;
then the rounded table itself is used (:class:`KeyBias`) and what rounding adds to the sense of position is the model's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gnomon.capture.adapters.rerouting import Adapter, merge_heads, split_heads
from gnomon.capture.attention import attend
from gnomon.kernels.problem import AlibiBias, Bias


@dataclass(frozen=True)
class KeyBias:
    """A bias by key, counted from the query's own: ``table[j] - table[i]``, table ``[H, T]``."""

    table: Tensor

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :class:`gnomon.kernels.problem.Bias`."""
        return (self.table[:, None, keys] - self.table[:, queries, None])[None]


class BloomAdapter(Adapter):
    """BLOOM: fused projection with the three parts of each head side by side; the residual is added inside."""

    def compute(self, module: Any, *args: Any, **options: Any) -> tuple[Tensor, None]:
        """See :meth:`Adapter.compute`."""
        hidden, residual = args
        query, key, value = module._reshape(module.query_key_value(hidden))
        bias = alibi_bias(options["alibi"], module.num_heads)
        heads = attend(module, query, key, value, scaling=module.inv_norm_factor, causal=True, bias=bias)
        return module.dense(merge_heads(heads)) + residual, None


class MptAdapter(Adapter):
    """MPT: one bias table for the longest input, of which the end is used."""

    def install(self) -> None:
        """Also hands the model a mask that it passes on without making one of its own."""
        super().install()
        if not hasattr(self, "_hook"):
            self._hook = self.model.backbone.register_forward_pre_hook(_without_mask, with_kwargs=True)

    def uninstall(self) -> None:
        """See :meth:`Adapter.uninstall`."""
        super().uninstall()
        if hasattr(self, "_hook"):
            self._hook.remove()
            del self._hook

    def compute(self, module: Any, *args: Any, **options: Any) -> tuple[Tensor, None]:
        """See :meth:`Adapter.compute`."""
        mixed = module.Wqkv(args[0])
        if module.clip_qkv:
            mixed = mixed.clamp(min=-module.clip_qkv, max=module.clip_qkv)
        query, key, value = (split_heads(part, module.n_heads) for part in mixed.chunk(3, dim=2))
        table = options["position_bias"]
        bias = AlibiBias((table[:, 0, -1] - table[:, 0, -2]).float())
        heads = attend(module, query, key, value, scaling=module.softmax_scale, causal=True, bias=bias)
        return module.out_proj(merge_heads(heads)), None


def alibi_bias(alibi: Tensor, num_heads: int) -> Bias:
    """Bias from the tensor that the model made for an unpadded batch, ``[B H, 1, T]``."""
    table = alibi[:num_heads, 0]
    if table.dtype in (torch.float32, torch.float64) and table.shape[1] > 1:
        return AlibiBias(table[:, 1] - table[:, 0])
    return KeyBias(table.float())


def _without_mask(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A mask with four axes is passed on as it is, and the rerouted layers do not read it."""
    return args, {**options, "attention_mask": torch.zeros(1, 1, 1, 1, dtype=torch.bool)}

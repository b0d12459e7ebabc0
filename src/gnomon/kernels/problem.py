"""One attention problem: what a layer was asked to compute, with its mask as structure instead of as a matrix.

A dense mask has ``T * T`` entries, which is what this project exists to avoid; so the visible keys of a query are described by
four facts that hold for every layer of every supported model: causality, a window, a chunk length and the real lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class MaskStructure:
    """Which keys a query sees.

    Key j is visible to query i when all of these hold: ``j < length`` of the sequence; ``j <= i`` if ``causal``;
    ``|i - j| < window`` if there is a window; ``i // chunk == j // chunk`` if there is a chunk. Sequences are padded on the right.

    Attributes:
        causal: whether later keys are hidden.
        lengths: real tokens of each sequence, ``[B]``.
        window: how many positions back (itself included), and in bidirectional layers also ahead, a query sees.
        chunk: length of the blocks outside which nothing is seen (Llama 4's local layers).
    """

    causal: bool
    lengths: Tensor
    window: int | None = None
    chunk: int | None = None

    def visible(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Visibility of ``keys`` to ``queries`` (both position vectors), ``[B, Q, K]``, by the definition alone."""
        i, j = queries[:, None], keys[None, :]
        seen = torch.ones(len(queries), len(keys), dtype=torch.bool, device=queries.device)
        if self.causal:
            seen &= j <= i
        if self.window is not None:
            seen &= (i - j).abs() < self.window
        if self.chunk is not None:
            seen &= i // self.chunk == j // self.chunk
        real = keys[None, :] < self.lengths.to(keys.device)[:, None]
        return seen[None] & real[:, None, :]

    def counts(self, length: int) -> Tensor:
        """Number of keys visible to each query of ``range(length)``, ``[B, length]``, without forming the mask."""
        first, last = self.key_range(torch.arange(length, device=self.lengths.device))
        stop = torch.minimum(last[None] + 1, self.lengths[:, None])
        return (stop - first[None]).clamp_min(0)

    def key_range(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """First and last key that structure (lengths aside) lets each of ``queries`` see; the last may exceed any length."""
        far = torch.iinfo(torch.int32).max
        first = torch.zeros_like(queries)
        last = queries.clone() if self.causal else torch.full_like(queries, far)
        if self.window is not None:
            first = torch.maximum(first, queries - self.window + 1)
            last = torch.minimum(last, queries + self.window - 1)
        if self.chunk is not None:
            start = queries // self.chunk * self.chunk
            first = torch.maximum(first, start)
            last = torch.minimum(last, start + self.chunk - 1)
        return first, last


class Bias(Protocol):
    """An additive bias on the logits, given block by block."""

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Bias of ``queries`` against ``keys`` (position vectors), broadcastable to ``[B, H, Q, K]``."""


@dataclass(frozen=True)
class AlibiBias:
    """ALiBi: a slope per head times the distance to the key, in the form ``-slope * (i - j)``.

    Frameworks that add ``slope * j`` differ by a constant per query, which the softmax removes; the logits reported by gnomon
    use this form, since it depends on the offset alone.
    """

    slopes: Tensor

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :class:`Bias`."""
        offset = (queries[:, None] - keys[None, :]).to(self.slopes.dtype)
        return -self.slopes[None, :, None, None] * offset


@dataclass(frozen=True)
class DenseBias:
    """A bias that the model itself has as a matrix (T5): ``[1 or B, H, T, T]``."""

    matrix: Tensor

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """See :class:`Bias`."""
        return self.matrix[:, :, queries[:, None], keys[None, :]]


@dataclass(frozen=True, kw_only=True)
class AttentionProblem:
    """Inputs of one attention layer, as transformers hands them over.

    The logits are ``s = scaling * q . k``, then ``softcap * tanh(s / softcap)`` if there is a soft-cap, then the bias; the weights
    ``a = exp(s - Z)`` with ``Z`` the log-sum-exp over visible keys and, if there are learned sinks, the head's sink logit.

    Attributes:
        query: ``[B, H, T, D]``, positions already applied.
        key: ``[B, G, T, D]``.
        value: ``[B, G, T, Dv]``.
        scaling: factor on the dot products.
        mask: the structure of visibility.
        softcap: Gemma 2's bound on the logits.
        bias: ALiBi or relative bias.
        sinks: learned sink logits ``[H]`` (gpt-oss): one more term in each denominator, off the sequence.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scaling: float
    mask: MaskStructure
    softcap: float | None = None
    bias: Bias | None = None
    sinks: Tensor | None = None

    @property
    def num_heads(self) -> int:
        """Query heads."""
        return self.query.shape[1]

    @property
    def num_kv_heads(self) -> int:
        """Key/value heads."""
        return self.key.shape[1]

    @property
    def group(self) -> int:
        """Query heads per key/value head."""
        return self.num_heads // self.num_kv_heads

    @property
    def length(self) -> int:
        """Positions in the padded batch."""
        return self.query.shape[2]

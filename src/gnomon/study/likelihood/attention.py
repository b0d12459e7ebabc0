"""The attention of a word: to itself, to the rest of its sentence, and from the rest.

Every mode is a mean over (query, key) pairs that the mask lets through, so a causal model's empty upper triangle counts for nothing:

- **inner**: queries and keys both in the word. For a word of one token it is that token's weight on itself.
- **outer**: queries in the word, keys in the rest.
- **received**: queries in the rest, keys in the word. Missing where no query of the rest sees the word (the last word, causally).

Inner and outer are not independent: rows sum to 1, so outer is what inner leaves, shared out over the rest. For the same reason the
mean over *all* keys is one over their number whatever the model does; it is not reported.

Two conditions: with all keys, and with **sinks excluded**: the columns of position 0 and of special tokens are removed and each row is
made to sum to 1 again, which asks how the rest of the attention is shared. A word that holds position 0 is missing there.

Range 0 to 1. With uniform attention over n visible keys every mode is 1/n, so all of them fall with sentence length, and in a causal
model with position: a relation to likelihood must be shown to outlive those two. Claims D1, D2.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from gnomon.capture import AttentionView

MODES: Final = ("inner", "outer", "received")
CONDITIONS: Final = ("all_keys", "sinks_excluded")


def word_attention(view: AttentionView, first: Tensor, stop: Tensor) -> Tensor:
    """Attention of each sequence's word ``first <= position < stop``, ``[B, H, condition, mode]``; NaN where there is no pair."""
    positions = torch.arange(view.problem.length, device=view.lse.device)
    rows_BHQK = view.rows(positions)
    real_BT = positions[None] < view.lengths.to(positions.device)[:, None]
    visible_BQK = view.mask.visible(positions, positions) & real_BT[:, :, None]
    word_BT = (positions[None] >= first[:, None]) & (positions[None] < stop[:, None])
    sink_BT = (view.special.to(positions.device) | (positions == 0)[None]) & real_BT
    return mean_over_pairs(rows_BHQK, visible_BQK, word_BT, sink_BT)


def mean_over_pairs(rows_BHQK: Tensor, visible_BQK: Tensor, word_BT: Tensor, sink_BT: Tensor) -> Tensor:
    """Mean weights by condition and mode, ``[B, H, condition, mode]``.

    Args:
        rows_BHQK: weights; what is not visible is not looked at.
        visible_BQK: which pairs count.
        word_BT: which positions are the word.
        sink_BT: which positions are removed as keys in the second condition.
    """
    weights = torch.where(visible_BQK[:, None], rows_BHQK, 0.0)
    whole = _modes(weights, visible_BQK, word_BT)

    kept_BQK = visible_BQK & ~sink_BT[:, None, :]
    weights = torch.where(kept_BQK[:, None], weights, 0.0)
    total = weights.sum(-1, keepdim=True)
    rest = _modes(weights / total.clamp_min(torch.finfo(weights.dtype).tiny), kept_BQK, word_BT)
    holds_sink = (word_BT & sink_BT).any(1)
    return torch.stack([whole, rest.masked_fill(holds_sink[:, None, None], torch.nan)], dim=2)


def _modes(weights_BHQK: Tensor, pairs_BQK: Tensor, word_BT: Tensor) -> Tensor:
    query, key = word_BT[:, :, None], word_BT[:, None, :]
    chosen = torch.stack([pairs_BQK & query & key, pairs_BQK & query & ~key, pairs_BQK & ~query & key], dim=1)  # B M Q K
    sums = torch.einsum("bhqk,bmqk->bhm", weights_BHQK, chosen.to(weights_BHQK.dtype))
    return sums / torch.where(chosen.any((-1, -2)), chosen.sum((-1, -2)), torch.nan)[:, None]

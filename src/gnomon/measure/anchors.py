"""Anchors: keys that far queries give more weight than chance would.

**Quantity.** A frame of reference is a place that tokens look at *from afar*. For a key j take the sampled queries i that see it at a distance
``|i - j| >= d`` with ``d = max(2, span / 8)``; ``span`` is what a query can see (the sequence, or the window or chunk of a local layer). Over
them let ``W_j = sum_i a_ij``. The null shuffles every row over the keys that its query sees, which keeps each row's total ``t_i`` and sum of squares
``s_i`` and forgets places; in closed form, with ``c_i`` visible keys,

    E_j = sum_i t_i / c_i,        V_j = sum_i (s_i / c_i - (t_i / c_i)^2).

Let further ``N_j = (sum_i a_ij)^2 / sum_i a_ij^2`` be the effective number of queries behind ``W_j``. A key is an **anchor** when

- ``(W_j - E_j) / sqrt(V_j)`` exceeds ``z`` (or ``z_companion`` beside a key that exceeds ``z``);
- ``N_j`` is at least 0.3 of its far viewers, and at least 2.5: one query that gives it everything makes no anchor, however unlikely by chance;
- its mean far weight is at least ``least`` and at least ``lift`` times ``E_j``, and enough queries see it from afar.

Its **weight** is ``(W_j - E_j) / number of far viewers``: the share of an average far row that goes to it beyond chance.

**Range.** Weights lie in [0, 1]; a pure sink has ``1 - 1/c``, uniform attention (causal or not), a local band and random rows have none at all.

**What it cannot show.** Keys near the end of a causal sequence have few far viewers and are left out, so an anchor there is missed. Sequences of fewer
than six tokens, and rows of fewer than three sampled queries, have no answer.

The published criterion (claim B1: a share gamma of the queries that see a key give it more than tau) is in :func:`sink_shares`; the closed forms for
uniform attention serve claim B2. The anchor rule itself is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gnomon.kernels.problem import MaskStructure
from gnomon.measure.bands import viewers

SAMPLED_QUERIES = 16
SAMPLED_TOKENS = 64
FIRST_TOKENS = 8
SORTED_KEYS = 1024


@dataclass(frozen=True, kw_only=True)
class AnchorRule:
    """When a key counts as an anchor.

    Attributes:
        far: least distance as a fraction of what a query can see.
        nearest: least distance in tokens.
        z: standard deviations above the row-shuffled null.
        z_companion: the same for further anchors, once one key exceeds ``z``.
        support: least effective number of queries behind it, as a share of its far viewers.
        support_least: the same as a number.
        least: least mean far weight.
        lift: least ratio to the row-shuffled expectation.
        viewers: least number of sampled queries that see the key from afar.
        viewers_share: the same as a share of the best seen key's.
        shortest: fewest tokens of a sequence that has an answer.
    """

    far: float = 0.125
    nearest: int = 2
    z: float = 4.0
    z_companion: float = 2.5
    support: float = 0.3
    support_least: float = 2.5
    least: float = 0.03
    lift: float = 2.0
    viewers: int = 3
    viewers_share: float = 0.25
    shortest: int = 6


class Anchors(NamedTuple):
    """Anchors of a batch.

    Attributes:
        weight_BHK: weight beyond chance, zero where a key is no anchor.
        answered_B: whether the sequence was long enough and seen by enough sampled queries.
    """

    weight_BHK: Tensor
    answered_B: Tensor


class FarWeight(NamedTuple):
    """Sums over far sampled queries: observed, its squares, mean and variance under the row-shuffled null; and how many queries."""

    observed_BHK: Tensor
    squares_BHK: Tensor
    expected_BHK: Tensor
    variance_BHK: Tensor
    viewers_BK: Tensor


def sampled_queries(mask: MaskStructure, length: int, count: int = SAMPLED_QUERIES) -> Tensor:
    """Evenly spaced queries: over the whole batch length, or over the last window of the shortest sequence where layers are local."""
    span = _span(mask, length)
    if span >= length:
        first, last = length // count if length > count else 0, length - 1
    else:
        last = int(mask.lengths.min()) - 1
        first = max(0, last - span + 1)
    return torch.linspace(first, last, min(count, last - first + 1), device=mask.lengths.device).round().long()


def sampled_tokens(length: int, device: torch.device | str = "cpu", limit: int = SAMPLED_TOKENS) -> Tensor:
    """All tokens up to ``limit``; beyond, the first eight and the rest evenly spaced up to the last of the batch."""
    if length <= limit:
        return torch.arange(length, device=device)
    rest = torch.linspace(FIRST_TOKENS, length - 1, limit - FIRST_TOKENS, device=device).round().long()
    return torch.cat([torch.arange(FIRST_TOKENS, device=device), rest])


def visible_rows(mask: MaskStructure, queries: Tensor, length: int) -> Tensor:
    """Which keys each real sampled query sees, ``[B, R, K]``; nothing for queries beyond a sequence."""
    seen = mask.visible(queries, torch.arange(length, device=queries.device))
    return seen & (queries[None] < mask.lengths.to(queries.device)[:, None])[..., None]


def uniform_received(mask: MaskStructure, length: int) -> Tensor:
    """Mean weight that each key gets under uniform attention over visible keys from the queries that see it, ``[B, K]``; 0 where nobody does."""
    position = torch.arange(length, device=mask.lengths.device)
    # A key gets 1 / c_i of every query in the stretch that sees it: a difference of cumulative sums.
    real = position[None] < mask.lengths[:, None]
    total = torch.nn.functional.pad((real / mask.counts(length).clamp_min(1).double()).cumsum(-1), (1, 0))
    first = position if mask.causal else mask.key_range(position)[0]
    seen_by = viewers(mask, length)
    stop = (first[None] + seen_by).clamp_max(length)
    return ((torch.gather(total, -1, stop) - total[:, first]) / seen_by.clamp_min(1)).float()


def shuffled_rows(rows_BHRK: Tensor, visible_BRK: Tensor, seed: int) -> Tensor:
    """Each row with its weights permuted over the keys that its query sees.

    A query has one random order of its keys, and each head starts in it at a random place: every head's permutation is uniform, any two
    heads' are independent, and only one sort per query is paid for.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.rand(visible_BRK.shape, generator=generator)
    order_BRK = noise.to(rows_BHRK.device).masked_fill(~visible_BRK, 2.0).argsort(-1)
    start_BHR = torch.rand(rows_BHRK.shape[:3], generator=generator).to(rows_BHRK.device)
    count_BR = visible_BRK.sum(-1).clamp_min(1)
    start_BHR = (start_BHR * count_BR[:, None]).long()
    rank_BRK = visible_BRK.long().cumsum(-1).sub(1).clamp_min(0)
    turned = (rank_BRK[:, None] + start_BHR[..., None]) % count_BR[:, None, :, None]
    chosen = torch.gather(order_BRK[:, None].expand(turned.shape), -1, turned)
    return torch.gather(rows_BHRK, -1, chosen).masked_fill(~visible_BRK[:, None], 0.0)


def far_weight(
    rows_BHRK: Tensor, visible_BRK: Tensor, queries: Tensor, mask: MaskStructure, rule: AnchorRule, *, layer: bool = False
) -> FarWeight:
    """Weight that each key gets from far sampled queries, with its row-shuffled mean and variance in closed form.

    With ``layer``, the mean over heads is appended as one more head: the layer's own profile, its null with heads shuffled independently.
    """
    length = rows_BHRK.shape[-1]
    rows = rows_BHRK.masked_fill(~visible_BRK[:, None], 0.0)
    span = mask.lengths.clamp_max(_span(mask, length)).to(rows.device)
    nearest_B = (span * rule.far).ceil().clamp_min(rule.nearest)
    distance_RK = (queries[:, None] - torch.arange(length, device=queries.device)[None]).abs()
    far_BRK = (visible_BRK & (distance_RK[None] >= nearest_B[:, None, None])).to(rows.dtype)
    count_BR = visible_BRK.sum(-1).clamp_min(1).to(rows.dtype)[:, None]
    mean_BHR = rows.sum(-1) / count_BR
    variance_BHR = (rows.square().sum(-1) / count_BR - mean_BHR.square()).clamp_min(0.0)
    if layer:
        rows = torch.cat([rows, rows.mean(1, keepdim=True)], 1)
        variance_BHR = torch.cat([variance_BHR, variance_BHR.sum(1, keepdim=True) / mean_BHR.shape[1] ** 2], 1)
        mean_BHR = torch.cat([mean_BHR, mean_BHR.mean(1, keepdim=True)], 1)
    return FarWeight(
        torch.einsum("bhrk,brk->bhk", rows, far_BRK),
        torch.einsum("bhrk,brk->bhk", rows.square(), far_BRK),
        torch.einsum("bhr,brk->bhk", mean_BHR, far_BRK),
        torch.einsum("bhr,brk->bhk", variance_BHR, far_BRK),
        far_BRK.sum(1),
    )


def anchors(far: FarWeight, lengths: Tensor, rule: AnchorRule) -> Anchors:
    """Which keys are anchors, and by how much."""
    count_BHK = far.viewers_BK.clamp_min(1)[:, None]
    excess = far.observed_BHK - far.expected_BHK
    best_B1 = far.viewers_BK.amax(-1, keepdim=True)
    seen_BK = (far.viewers_BK >= rule.viewers) & (far.viewers_BK >= rule.viewers_share * best_B1)
    deviation = far.variance_BHK.sqrt()
    support_BHK = far.observed_BHK.square() / far.squares_BHK.clamp_min(torch.finfo(excess.dtype).tiny)
    possible = (
        seen_BK[:, None]
        & (excess > rule.z_companion * deviation)
        & (excess > 1e-6)
        & (support_BHK >= (rule.support * count_BHK).clamp_min(rule.support_least))
        & (far.observed_BHK >= rule.least * count_BHK)
        & (far.observed_BHK >= rule.lift * far.expected_BHK)
    )
    chosen = possible & (possible & (excess > rule.z * deviation)).any(-1, keepdim=True)
    weight = (excess / count_BHK).clamp(0.0, 1.0).masked_fill(~chosen, 0.0)
    answered = seen_BK.any(-1) & (lengths.to(weight.device) >= rule.shortest)
    return Anchors(weight, answered)


def sink_shares(rows_BHRK: Tensor, visible_BRK: Tensor, levels: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Claim B1's share: of the sampled queries that see a key, how many give it more than tau; tau is a quantile of the row weights.

    Args:
        rows_BHRK: weights of sampled queries.
        visible_BRK: what they see.
        levels: quantile levels of the weights of that head on visible keys.

    Returns:
        ``share [level, B, H, K]`` (0 where nobody sees the key) and ``seen [B, K]``, the share of sampled queries that see the key.
    """
    step = max(1, -(-rows_BHRK.shape[-1] // SORTED_KEYS))
    hidden = ~visible_BRK[:, None]
    sample = rows_BHRK.masked_fill(hidden, -1.0)[..., ::step].flatten(2)
    count_B = visible_BRK[..., ::step].flatten(1).sum(-1)
    size = sample.shape[-1]
    ranks_LB = torch.stack([(level * (count_B - 1)).floor().clamp_min(0).long() + size - count_B for level in levels]).clamp_max(
        size - 1
    )
    taus_LBH = _ranked(sample, ranks_LB)
    real_B = visible_BRK.any(-1).sum(-1).clamp_min(1)
    viewers_BK = visible_BRK.sum(1)
    shown = rows_BHRK.masked_fill(hidden, -1.0)
    shares = [(shown > tau_BH[..., None, None]).sum(2) / viewers_BK.clamp_min(1)[:, None] for tau_BH in taus_LBH]
    return torch.stack(shares), viewers_BK / real_B[:, None]


def _ranked(sample_BHN: Tensor, ranks_LB: Tensor) -> Tensor:
    """Entries of given ranks (ascending) of each head's sample, ``[level, B, H]``; numpy's selection is far faster than a sort on the CPU."""
    if sample_BHN.device.type != "cpu":
        ordered = sample_BHN.sort(-1).values
        index = ranks_LB[:, :, None].expand(-1, -1, sample_BHN.shape[1])
        return torch.gather(ordered, -1, index.permute(1, 2, 0)).permute(2, 0, 1)
    values = sample_BHN.numpy()
    found = [np.partition(values[b], ranks.tolist(), axis=-1)[:, ranks.numpy()] for b, ranks in enumerate(ranks_LB.T)]
    return torch.from_numpy(np.stack(found)).permute(2, 0, 1)


def effective_number(weights: Tensor) -> Tensor:
    """Inverse participation ``(sum w)^2 / sum w^2`` over the last axis: 1 for a single key, n for n equal ones, NaN for none."""
    return weights.sum(-1).square() / weights.square().sum(-1)


def _span(mask: MaskStructure, length: int) -> int:
    return min(length, *(limit for limit in (mask.window, mask.chunk) if limit is not None), length)

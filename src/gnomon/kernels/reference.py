"""The specification: dense attention statistics in float64, written to be read.

Every faster kernel is tested against this one. It forms the whole matrix and is never used on a real model.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from gnomon.kernels.problem import AttentionProblem
from gnomon.kernels.quantities import Needs, Quantities


def dense_logits(problem: AttentionProblem) -> Tensor:
    """All logits in float64, ``[B, H, T, T]``, ``-inf`` where the key is hidden."""
    query = problem.query.double()
    key = problem.key.double().repeat_interleave(problem.group, dim=1)
    scores_BHQK = query @ key.transpose(-1, -2) * problem.scaling
    if problem.softcap is not None:
        scores_BHQK = problem.softcap * torch.tanh(scores_BHQK / problem.softcap)
    positions = torch.arange(problem.length, device=query.device)
    if problem.bias is not None:
        scores_BHQK = scores_BHQK + problem.bias.block(positions, positions).double()
    visible_BQK = problem.mask.visible(positions, positions)
    return scores_BHQK.masked_fill(~visible_BQK[:, None], -torch.inf)


def attention_statistics(problem: AttentionProblem, needs: Needs, special: Tensor) -> Quantities:
    """Everything in ``needs`` by its definition; ``special`` marks special tokens, ``[B, T]``."""
    scores_BHQK = dense_logits(problem)
    length = problem.length
    positions = torch.arange(length, device=scores_BHQK.device)
    lse = torch.logsumexp(scores_BHQK, dim=-1)
    if problem.sinks is not None:
        lse = torch.logaddexp(lse, problem.sinks.double()[None, :, None])
    weights_BHQK = torch.exp(scores_BHQK - lse[..., None])
    weights_BHQK = torch.where(torch.isfinite(lse)[..., None], weights_BHQK, 0.0)
    value = problem.value.double().repeat_interleave(problem.group, dim=1)
    output = weights_BHQK @ value
    real_B1Q = (positions[None] < problem.mask.lengths[:, None])[:, None]

    def by_query(values: Tensor) -> Tensor:
        keep = real_B1Q.reshape(*real_B1Q.shape, *([1] * (values.ndim - 3)))
        return torch.where(keep, values, torch.nan)

    offset_QK = (positions[:, None] - positions[None, :]).abs().double()
    log_weights = torch.where(weights_BHQK > 0, scores_BHQK - lse[..., None], 0.0)
    moments = {
        "entropy": -(weights_BHQK * log_weights).sum(-1),
        "peak": weights_BHQK.amax(-1),
        "offset_mean": (weights_BHQK * offset_QK).sum(-1),
        "offset_square": (weights_BHQK * offset_QK**2).sum(-1),
        "self_mass": weights_BHQK.diagonal(dim1=-2, dim2=-1),
    }
    real_weights = weights_BHQK * real_B1Q[..., None]
    return Quantities(
        output=output,
        lse=by_query(lse),
        moments={name: by_query(moments[name]) for name in sorted(needs.moments)},
        first=by_query(_first(weights_BHQK, needs.first_keys)) if needs.first_keys else None,
        special=by_query((weights_BHQK * special[:, None, None, :]).sum(-1)) if needs.special else None,
        offset_mass=by_query(_offset_mass(weights_BHQK, offset_QK, needs.offset_edges)) if needs.offset_edges else None,
        received=by_query(real_weights.sum(-2)) if needs.received else None,
        above=by_query(torch.stack([(real_weights > t).double().sum(-2) for t in needs.above], -1)) if needs.above else None,
    )


def _first(weights: Tensor, count: int) -> Tensor:
    """Weights of the first ``count`` keys; those beyond the last key hold nothing."""
    kept = weights[..., :count]
    return torch.nn.functional.pad(kept, (0, count - kept.shape[-1]))


def _offset_mass(weights: Tensor, offset_QK: Tensor, edges: tuple[int, ...]) -> Tensor:
    bounds = [*edges, torch.inf]
    bands = [(offset_QK >= low) & (offset_QK < high) for low, high in itertools.pairwise(bounds)]
    return torch.stack([(weights * band).sum(-1) for band in bands], -1)

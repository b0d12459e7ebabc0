"""Rows and logits at chosen places: gathers of dot products, for measures that need a sample of the matrix exactly.

Given the log-denominators, any entry of the attention matrix is one dot product away; nothing here grows with ``T * T``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gnomon.kernels.problem import AttentionProblem


def rows_of(problem: AttentionProblem, lse: Tensor, queries: Tensor) -> Tensor:
    """Weights of chosen queries over all keys, ``[B, H, R, T]``: zero where hidden, NaN for queries beyond a sequence's length."""
    scores = row_logits(problem, queries)
    weights = torch.exp(scores - lse[:, :, queries, None])
    return weights.masked_fill_(~_real(problem, queries), torch.nan)


def row_logits(problem: AttentionProblem, queries: Tensor) -> Tensor:
    """Logits of chosen queries against all keys, ``[B, H, R, T]``, ``-inf`` where hidden."""
    keys = torch.arange(problem.length, device=problem.query.device)
    batch, heads, _, width = problem.query.shape
    chosen = problem.query[:, :, queries].reshape(batch, problem.num_kv_heads, problem.group * len(queries), width)
    scores = torch.matmul(chosen, problem.key.transpose(-1, -2)).reshape(batch, heads, len(queries), -1).float()
    scores = finish_logits(problem, scores, queries, keys)
    return scores.masked_fill_(~problem.mask.visible(queries, keys)[:, None], -torch.inf)


def finish_logits(problem: AttentionProblem, dots: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Scale, soft-cap and bias raw dot products, in place."""
    dots.mul_(problem.scaling)
    if problem.softcap is not None:
        dots.div_(problem.softcap).tanh_().mul_(problem.softcap)
    if problem.bias is not None:
        dots.add_(problem.bias.block(queries, keys))
    return dots


def logits_at(problem: AttentionProblem, queries: Tensor, offsets: Tensor) -> Tensor:
    """Logits of chosen queries at chosen offsets (key = query - offset), ``[B, H, P, R]``; NaN where there is no such visible key."""
    keys_PR = queries[:, None] - offsets[None, :]
    inside_PR = (keys_PR >= 0) & (keys_PR < problem.length)
    flat = keys_PR.clamp(0, problem.length - 1)
    batch, heads, _, width = problem.query.shape
    gathered = problem.key[:, :, flat]  # B G P R D
    chosen = problem.query[:, :, queries].reshape(batch, problem.num_kv_heads, problem.group, len(queries), width)
    scores = torch.einsum("bgnpd,bgprd->bgnpr", chosen.float(), gathered.float()).reshape(batch, heads, *keys_PR.shape)
    scores = scores * problem.scaling
    if problem.softcap is not None:
        scores = problem.softcap * torch.tanh(scores / problem.softcap)
    if problem.bias is not None:
        bias = problem.bias.block(queries, torch.arange(problem.length, device=queries.device))
        index = flat.expand(*bias.shape[:2], *flat.shape)
        scores = scores + torch.gather(bias, -1, index)
    visible = _visible_pairs(problem, queries, flat) & inside_PR[None]
    return scores.masked_fill(~visible[:, None], torch.nan)


def _visible_pairs(problem: AttentionProblem, queries: Tensor, keys_PR: Tensor) -> Tensor:
    """Visibility of key ``keys_PR[p, r]`` to query ``queries[p]``, real queries only, ``[B, P, R]``."""
    first, last = problem.mask.key_range(queries)
    seen = (keys_PR >= first[:, None]) & (keys_PR <= last[:, None])
    lengths = problem.mask.lengths.to(keys_PR.device)[:, None, None]
    return seen[None] & (keys_PR[None] < lengths) & (queries[None, :, None] < lengths)


def _real(problem: AttentionProblem, queries: Tensor) -> Tensor:
    """Which of ``queries`` are within each sequence, ``[B, 1, R, 1]``."""
    return (queries[None] < problem.mask.lengths.to(queries.device)[:, None])[:, None, :, None]

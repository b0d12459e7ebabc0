"""Which features of a head are rotated together, and what each such pair adds to the logits.

A logit before soft-cap and bias is a sum over features, ``s = scaling * sum_d q_d k_d``, and therefore over rotary pairs and the features that
are not rotated. The covariance of each feature's term with s adds up to the variance of s, so that

    share_d = cov(scaling * q_d k_d, s) / var(s),   sum over d = 1

is an exact division of the variance; a pair's share is the sum of its two features'. A share may be negative (a pair that works against the
rest), and says how much of the difference between keys a pair accounts for, not how much of it is due to position: a slow pair carries content.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.kernels.problem import AttentionProblem


def pair_features(num_pairs: int, *, interleaved: bool) -> NDArray[np.int64]:
    """The two features of each rotary pair, ``[pair, 2]``: neighbours if interleaved, else half the rotated width apart."""
    pair = np.arange(num_pairs)
    return np.stack([2 * pair, 2 * pair + 1] if interleaved else [pair, pair + num_pairs], axis=1)


def sample_points(problem: AttentionProblem, num_points: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random visible (query, key) places of each sequence, ``[B, num_points]`` each; key 0, the usual sink, is left out.

    Queries are spread evenly over the text, keys are uniform over what the query sees. The same length gives the same places. Where a query sees no key but
    position 0 the key is -1.
    """
    queries, keys = [], []
    for length in problem.mask.lengths.tolist():
        generator = torch.Generator().manual_seed(seed + int(length))
        spread = (torch.arange(num_points) + torch.rand(num_points, generator=generator)) / num_points
        query = (1 + spread * (length - 1)).long().clamp(0, length - 1)
        first, last = problem.mask.key_range(query)
        first, last = first.clamp_min(1), last.clamp_max(length - 1)
        key = first + (torch.rand(num_points, generator=generator) * (last - first + 1)).long()
        queries.append(query)
        keys.append(torch.where(last >= first, key.minimum(last), -1))
    device = problem.query.device
    return torch.stack(queries).to(device), torch.stack(keys).to(device)


def feature_covariance(problem: AttentionProblem, queries: Tensor, keys: Tensor) -> Tensor:
    """Covariance of each feature's term with the logit over the given places, ``[B, H, D]``; it sums to the logit's variance."""
    batch = torch.arange(len(queries), device=queries.device)[:, None]
    seen = (keys >= 0)[:, :, None, None]
    query_BPHD = problem.query[batch, :, queries].double()
    key_BPGD = problem.key[batch, :, keys.clamp_min(0)].double()
    shape = (*key_BPGD.shape[:2], problem.num_kv_heads, problem.group, key_BPGD.shape[-1])
    terms = query_BPHD.reshape(shape) * key_BPGD[:, :, :, None] * problem.scaling
    terms = torch.where(seen[..., None], terms, 0.0).reshape(query_BPHD.shape)
    count = seen.sum(1).clamp_min(1)
    centred = torch.where(seen, terms - (terms.sum(1) / count)[:, None], 0.0)
    covariance = (centred * centred.sum(-1, keepdim=True)).sum(1) / count
    enough = seen.sum(1) >= 8
    return torch.where(enough, covariance, torch.nan)

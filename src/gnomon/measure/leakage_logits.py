"""What one layer shows of leakage: logits and log-denominators on the grid, and the same with one source switched off.

For a query i of the grid, with Z its log-denominator over visible keys (a learned sink's logit included):

- ``logit``: s at every offset of the grid; ``log_denominator``: Z. Their difference is log a.
- ``denominator_stationary``: the log-denominator that query i would have if its logits had the distribution they have at the
  end of the sequence, but as many keys as it really sees. Rows of a few reference queries near the end, where every
  offset is visible, are cut to the nearest ``count(i)`` keys and summed; the average over references is taken after
  the logarithm, so that the scatter of logits within a row, which raises a log-sum-exp, stays. The key at position 0
  is an anchor and is handled as
  one: if query i sees it, its logit is added as a late query has it.
- ``denominator_fixed``: the log-denominator over the query's own logits but over the same number of keys for every query of a
  band: the nearest K, K being what the band's first query has, and the anchor if all queries of the band see it.

With stationary logits and a fixed number of keys nothing is left that could depend on i, so that the fourth corner of the
two by two needs no measurement: it is 0.

A window or a chunk limits ``count(i)``; where a layer's references see fewer keys than a query does, that query's
counterfactual is NaN. In a bidirectional layer every query sees every key: the number of keys has no effect to isolate and both
counterfactuals are NaN. Claims A2 to A4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.kernels.problem import AttentionProblem, MaskStructure
from gnomon.kernels.sampling import row_logits
from gnomon.measure.leakage_grid import LeakageGrid

Ints = NDArray[np.int64]

MAX_CELLS = 2**24
SHORTEST = 4


class References(NamedTuple):
    """Queries near the end whose logits stand for stationary ones.

    Attributes:
        content: queries that see the most keys, the anchor aside.
        anchor: late queries that see position 0.
    """

    content: Ints
    anchor: Ints


def observe_logits(
    problem: AttentionProblem, lse: Tensor, grid: LeakageGrid, *, counterfactuals: bool = True
) -> Mapping[str, Tensor]:
    """Everything above for one layer.

    Args:
        problem: the layer's attention problem.
        lse: log-denominators, ``[B, H, T]``.
        grid: where to look.
        counterfactuals: whether to compute the two counterfactual log-denominators.

    Returns:
        ``logit [B, H, Q, R]``, and ``log_denominator``, ``denominator_stationary``, ``denominator_fixed`` ``[B, H,
        Q]``; NaN where the query lies beyond the sequence or the key is hidden, beyond the sequence or the anchor.
    """
    queries = _on_device(grid.queries, problem)
    clipped = queries.clamp_max(problem.length - 1)
    seen = (queries[None] < problem.mask.lengths.to(queries.device)[:, None])[:, None] & (queries < problem.length)
    logits, fixed = _own_rows(problem, clipped, grid, fixed=counterfactuals)
    values = {
        "logit": logits.masked_fill(~torch.isfinite(logits) | ~seen[..., None], torch.nan),
        "log_denominator": lse[:, :, clipped].float().masked_fill(~seen, torch.nan),
    }
    if counterfactuals:
        values["denominator_stationary"] = _stationary(problem, grid).masked_fill(~seen, torch.nan)
        values["denominator_fixed"] = fixed.masked_fill(~seen, torch.nan)
    return values


def content_counts(mask: MaskStructure, queries: Ints) -> Ints:
    """Keys that each query of a causal layer sees, the anchor at position 0 aside."""
    first, last = mask.key_range(torch.as_tensor(queries))
    counts = torch.minimum(last, torch.as_tensor(queries)) - first.clamp_min(1) + 1
    return np.asarray(counts.clamp_min(0).numpy(), dtype=np.int64)


def sees_anchor(mask: MaskStructure, queries: Ints) -> NDArray[np.bool_]:
    """Which queries see position 0."""
    return np.asarray((mask.key_range(torch.as_tensor(queries))[0] == 0).numpy(), dtype=np.bool_)


def reference_queries(mask: MaskStructure, grid: LeakageGrid) -> References:
    """The references of a layer: as many keys as possible, then as late as possible."""
    places = np.arange(1, grid.limit, dtype=np.int64)
    order = np.lexsort((places, content_counts(mask, places)))
    content = np.sort(places[order[-grid.references :]])
    anchored = places[sees_anchor(mask, places)][-grid.references :]
    return References(content, np.resize(anchored, len(content)))


def _own_rows(problem: AttentionProblem, queries: Tensor, grid: LeakageGrid, *, fixed: bool) -> tuple[Tensor, Tensor]:
    """Logits at the grid's offsets, and log-denominators over a fixed number of nearest keys, a few queries at a time."""
    offsets = _on_device(grid.offsets, problem)
    keys, anchored = (
        _fixed_keys(problem.mask, grid) if fixed and problem.mask.causal else (np.zeros(len(queries), np.int64), None)
    )
    steps = torch.arange(int(keys.max(initial=0)), device=queries.device)
    size = max(1, MAX_CELLS // (problem.query.shape[0] * problem.num_heads * problem.length))
    logits, denominators = [], []
    for start in range(0, len(queries), size):
        part = slice(start, start + size)
        rows = row_logits(problem, queries[part])
        logits.append(_nearest(rows, queries[part], offsets))
        if anchored is None:
            denominators.append(torch.full_like(rows[..., 0], torch.nan))
            continue
        beyond = steps >= _on_device(keys[part], problem)[:, None]
        sums = _nearest(rows, queries[part], steps).masked_fill(beyond, -torch.inf).logsumexp(-1)
        seen = torch.as_tensor(anchored[part], device=sums.device)
        sums = torch.where(seen, torch.logaddexp(sums, rows[..., 0]), sums)
        denominators.append(_with_sinks(problem, sums))
    return torch.cat(logits, 2), torch.cat(denominators, 2)


def _fixed_keys(mask: MaskStructure, grid: LeakageGrid) -> tuple[Ints, NDArray[np.bool_]]:
    """For each query, the fewest keys that a query of its band sees besides the anchor, and whether all of the band see the anchor."""
    counts, anchored = content_counts(mask, grid.queries), sees_anchor(mask, grid.queries)
    keys, seen = np.empty_like(counts), np.empty_like(anchored)
    for band in np.unique(grid.band):
        chosen = grid.of_band(int(band))
        keys[chosen], seen[chosen] = counts[chosen].min(), anchored[chosen].all()
    return keys, seen


def _stationary(problem: AttentionProblem, grid: LeakageGrid) -> Tensor:
    """Rows of the references cut to each query's number of keys, ``[B, H, Q]``; NaN where there is no such counterfactual."""
    if not problem.mask.causal or not SHORTEST <= grid.limit <= problem.length:
        shape = (problem.query.shape[0], problem.num_heads, len(grid.queries))
        return torch.full(shape, torch.nan, device=problem.query.device)
    counts, anchored = content_counts(problem.mask, grid.queries), sees_anchor(problem.mask, grid.queries)
    references = reference_queries(problem.mask, grid)
    content = _on_device(references.content, problem)
    steps = torch.arange(int(counts.max(initial=1)), device=content.device)
    rows = row_logits(problem, content)
    cumulated = _running_log_sum(_nearest(rows, content, steps))  # B H references keys
    taken = cumulated[..., _on_device(np.maximum(counts - 1, 0), problem)]
    if not np.array_equal(references.anchor, references.content):
        rows = row_logits(problem, _on_device(references.anchor, problem))
    anchor = rows[..., :1].expand_as(taken)
    taken = torch.where(torch.as_tensor(anchored, device=content.device), torch.logaddexp(taken, anchor), taken)
    mean = _with_sinks(problem, taken).mean(-2)
    covered = content_counts(problem.mask, references.content).min() >= counts
    mean = mean.masked_fill(torch.as_tensor(~covered | (counts < 1), device=mean.device), torch.nan)
    short = problem.mask.lengths.to(mean.device) < grid.limit
    return mean.masked_fill(short[:, None, None], torch.nan)


def _running_log_sum(logits: Tensor) -> Tensor:
    """Logarithm of the running sum of exponentials; in double precision, where a sum may be e^-700 of the largest term."""
    top = logits.amax(-1, keepdim=True)
    return ((logits - top).double().exp_().cumsum(-1).log_() + top).to(logits.dtype)


def _nearest(rows: Tensor, queries: Tensor, offsets: Tensor) -> Tensor:
    """Logits by offset instead of by key, ``[B, H, Q, R]``; ``-inf`` where there is no such key or it is the anchor."""
    keys = queries[:, None] - offsets[None]
    gathered = torch.gather(rows, -1, keys.clamp_min(0).expand(*rows.shape[:2], *keys.shape))
    return gathered.masked_fill(keys < 1, -torch.inf)


def _with_sinks(problem: AttentionProblem, denominators: Tensor) -> Tensor:
    """Add a learned sink's term, ``[B, H, ...]``."""
    if problem.sinks is None:
        return denominators
    shape = (1, -1, *([1] * (denominators.ndim - 2)))
    return torch.logaddexp(denominators, problem.sinks.float().reshape(shape))


def _on_device(indices: Ints, problem: AttentionProblem) -> Tensor:
    return torch.as_tensor(indices, device=problem.query.device)

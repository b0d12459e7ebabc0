"""Means over bands of queries and of positions, and what uniform attention would give there.

What attention does depends on how much there is to attend to, so that a mean over queries says which queries. The bands are

========  ====================  ============================================================================
band      queries               what it is for
========  ====================  ============================================================================
early     2 to 31               few keys; position is told mostly by how many there are
middle    32 to 127
late      128 and on
from_32   32 and on             sinks: heads that put weight on position 0 though there is plenty else to see
all       1 and on              everything but query 0, which sees itself alone in a causal model
========  ====================  ============================================================================

Positions (of keys, values and states) and offsets are binned by octaves: 0, 1, 2-3, 4-7, 8-15, ... Uniform attention is the yardstick:
a causal query i gives each of its ``i + 1`` keys ``1 / (i + 1)``, so that position 0 gets a mean of ``(H_T - H_m) / (T - m)`` from the
queries m to T - 1 although no head prefers it; windows and chunks are taken into account through the mask's own counts.

Everything here reduces ``[B, H, T]`` to a few numbers per sequence and head by one product with ``[B, T, bands]``; a band in which a
sequence has no eligible query is 0 / 0 and so NaN, never 0.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from gnomon.kernels.problem import MaskStructure
from gnomon.kernels.quantities import DEFAULT_OFFSET_EDGES

QUERY_BANDS: Final[dict[str, tuple[int, float]]] = {
    "early": (2, 32),
    "middle": (32, 128),
    "late": (128, torch.inf),
    "from_32": (32, torch.inf),
    "all": (1, torch.inf),
}
ALL: Final = list(QUERY_BANDS).index("all")
FROM_32: Final = list(QUERY_BANDS).index("from_32")
POSITION_EDGES: Final = DEFAULT_OFFSET_EDGES


def real_positions(mask: MaskStructure, length: int) -> Tensor:
    """Which positions hold a real token, ``[B, T]``."""
    return torch.arange(length, device=mask.lengths.device)[None] < mask.lengths[:, None]


def sees_position_0(mask: MaskStructure, length: int) -> Tensor:
    """Which real queries see position 0, ``[B, T]``."""
    first, _ = mask.key_range(torch.arange(length, device=mask.lengths.device))
    return (first == 0)[None] & real_positions(mask, length)


def band_members(length: int, *, device: torch.device | str = "cpu") -> Tensor:
    """Which queries belong to which band, ``[T, bands]``."""
    queries = torch.arange(length, device=device)[:, None]
    low, high = (torch.tensor([edges[end] for edges in QUERY_BANDS.values()], device=device) for end in (0, 1))
    return (queries >= low) & (queries < high)


def position_members(length: int, *, device: torch.device | str = "cpu") -> Tensor:
    """Which positions belong to which octave, ``[T, octaves]``."""
    positions = torch.arange(length, device=device)
    octave = torch.bucketize(positions, torch.tensor(POSITION_EDGES, device=device), right=True) - 1
    return octave[:, None] == torch.arange(len(POSITION_EDGES), device=device)


def mean_over(values: Tensor, eligible_BT: Tensor, members_TN: Tensor) -> Tensor:
    """Means of ``[B, T]``, ``[B, H, T]`` or ``[B, H, T, X]`` over the eligible positions of each band, the band where T was.

    A NaN in a place that is eligible stays NaN; a band without eligible places is NaN.
    """
    weights_BTN = (eligible_BT[..., None] & members_TN[None]).to(values.dtype)
    count_BN = weights_BTN.sum(1)
    if values.ndim == 2:
        return torch.einsum("bt,btn->bn", values.masked_fill(~eligible_BT, 0.0), weights_BTN) / count_BN
    if values.ndim == 3:
        filled = values.masked_fill(~eligible_BT[:, None], 0.0)
        return torch.einsum("bht,btn->bhn", filled, weights_BTN) / count_BN[:, None]
    filled = values.masked_fill(~eligible_BT[:, None, :, None], 0.0)
    return torch.einsum("bhtx,btn->bhnx", filled, weights_BTN) / count_BN[:, None, :, None]


def uniform_weight(mask: MaskStructure, length: int) -> Tensor:
    """Weight that uniform attention gives each visible key, by query, ``[B, T]``; NaN for queries beyond the sequence."""
    counts = mask.counts(length).float()
    return (1.0 / counts).masked_fill(~real_positions(mask, length) | (counts == 0), torch.nan)


def viewers(mask: MaskStructure, length: int) -> Tensor:
    """How many real queries see each key, ``[B, T]``; 0 on padding."""
    first, last = _viewer_range(mask, length)
    seen = (torch.minimum(last[None] + 1, mask.lengths[:, None]) - first[None]).clamp_min(0)
    return seen.masked_fill(~real_positions(mask, length), 0)


def uniform_received(mask: MaskStructure, length: int) -> Tensor:
    """Weight that each key receives in all under uniform attention, ``[B, T]``."""
    first, last = _viewer_range(mask, length)
    given = uniform_weight(mask, length).nan_to_num(0.0)
    running = torch.nn.functional.pad(given.cumsum(1), (1, 0))
    stop = torch.minimum(last[None] + 1, mask.lengths[:, None]).clamp_min(0)
    start = torch.minimum(first[None].expand_as(stop), stop)
    received = running.gather(1, stop) - running.gather(1, start)
    return received.masked_fill(~real_positions(mask, length), 0.0)


def visible_special(mask: MaskStructure, special_BT: Tensor) -> Tensor:
    """How many special tokens each query sees, ``[B, T]``."""
    length = special_BT.shape[1]
    first, last = mask.key_range(torch.arange(length, device=special_BT.device))
    running = torch.nn.functional.pad((special_BT & real_positions(mask, length)).long().cumsum(1), (1, 0))
    stop = (last + 1).clamp_max(length)[None].expand_as(special_BT)
    return running.gather(1, stop) - running.gather(1, first[None].expand_as(special_BT))


def uniform_offset_mass(mask: MaskStructure, length: int, edges: tuple[int, ...]) -> Tensor:
    """Weight by band of ``|i - j|`` under uniform attention, ``[B, T, bands]``; NaN for queries beyond the sequence."""
    queries = torch.arange(length, device=mask.lengths.device)
    first, last = mask.key_range(queries)
    last = torch.minimum(last[None], mask.lengths[:, None] - 1)[..., None]
    low = torch.tensor(edges, device=queries.device)
    high = torch.tensor([*edges[1:], 2 * length + edges[-1]], device=queries.device) - 1
    query = queries[None, :, None]
    behind = torch.minimum(query - low, last) - torch.maximum(query - high, first[None, :, None]) + 1
    ahead = torch.minimum(query + high, last) - torch.maximum(query + low.clamp_min(1), first[None, :, None]) + 1
    count = behind.clamp_min(0) + ahead.clamp_min(0)
    return count * uniform_weight(mask, length)[..., None]


def received_per_viewer(received_BHT: Tensor, mask: MaskStructure) -> Tensor:
    """Mean weight that a key gets from the queries that see it, ``[B, H, T]``: alpha of the sink rate; NaN on padding."""
    seen = viewers(mask, received_BHT.shape[-1])
    return (received_BHT / seen[:, None]).masked_fill((seen == 0)[:, None], torch.nan)


def _viewer_range(mask: MaskStructure, length: int) -> tuple[Tensor, Tensor]:
    """First and last query that structure lets see each key, ``[T]`` each."""
    keys = torch.arange(length, device=mask.lengths.device)
    first, last = (keys if mask.causal else torch.zeros_like(keys)), torch.full_like(keys, length - 1)
    if mask.window is not None:
        first, last = torch.maximum(first, keys - mask.window + 1), torch.minimum(last, keys + mask.window - 1)
    if mask.chunk is not None:
        start = keys // mask.chunk * mask.chunk
        first, last = torch.maximum(first, start), torch.minimum(last, start + mask.chunk - 1)
    return first, last

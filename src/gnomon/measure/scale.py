"""How much the wavelet picture of a head changes when its text is shortened (scale sensitivity, claim C4).

Two conventions, always named. Both compare the attention that keys receive (mean over queries) in the whole text with what the same tokens receive in the shortened
one, as ``1 - cosine`` of db2 coefficients at level 3 (symmetric boundary), position 0 dropped: 0 says unchanged up to a factor.

- ``paper``: the shortened text is the first ``floor(alpha n)`` tokens, the whole text's signal is cut to them. A candidate: the
  publication does not give the convention away. In a causal model the rows of a prefix *are* the rows of the text, so what is
  compared are averages of the same rows over fewer queries: small values follow from the mask, whatever the scheme;
- ``calibrated``: the shortened text is a random subset of its tokens in order (position 0 kept), so that positions and neighbours truly
  change in causal and bidirectional models alike, divided by the same distance to an *unrelated* text shortened to equal length. 0 says
  unchanged, 1 says no more alike than two unrelated texts. To be compared between models of the same mask only.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gnomon.measure.wavelets import decompose, max_level

LEVEL = 3
ALPHAS = (0.5, 0.25)


def shortest_signal() -> int:
    """Fewest keys (position 0 dropped) that a level 3 transform allows."""
    length = 2
    while max_level(length) < LEVEL:
        length += 1
    return length


def coefficient_distance(first: Tensor, second: Tensor) -> Tensor:
    """``1 - cosine`` of the wavelet coefficients of signals along the last axis; NaN for too few samples or none of weight."""
    if first.shape[-1] < shortest_signal():
        return torch.full_like(first[..., 0], torch.nan)
    one, other = (torch.cat(decompose(signal.double(), LEVEL), -1) for signal in (first, second))
    product = (one * other).sum(-1)
    return 1 - product / torch.sqrt(one.square().sum(-1) * other.square().sum(-1))

"""What can be asked of an attention layer, and what comes back.

Quantities of one query (entropy, offsets, masses) are linear or nearly linear in its row of weights, so that they accumulate while
the output is computed; quantities of one key (attention received) need the log-denominators first. Which of them are computed is
data: measures state their :class:`Needs`, the engine joins them, and a kernel computes the union once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from torch import Tensor

MOMENTS: Final = ("entropy", "peak", "offset_mean", "offset_square", "self_mass")
DEFAULT_OFFSET_EDGES: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a measure asks of the engine.

    Attributes:
        moments: names from ``MOMENTS``: per query, entropy of the row in nats (of the weights on the sequence: a learned sink's share
            is left out and the rest not renormalised), largest weight, mean and mean square of the offset ``|i - j|``, weight on itself.
        first_keys: weights on each of the first k keys, per query.
        special: total weight on special tokens (BOS, CLS, SEP, ...), per query.
        offset_edges: left edges of bands of ``|i - j|``; weight per band, per query. The last band is open.
        received: weight that each key receives, summed over queries.
        above: thresholds; how many queries give each key a weight above each.
        states: the residual stream, by level.
    """

    moments: frozenset[str] = frozenset()
    first_keys: int = 0
    special: bool = False
    offset_edges: tuple[int, ...] = ()
    received: bool = False
    above: tuple[float, ...] = ()
    states: bool = False

    def __or__(self, other: Needs) -> Needs:
        """The union: what serves both."""
        if self.offset_edges and other.offset_edges and self.offset_edges != other.offset_edges:
            raise ValueError(f"offset_edges must agree between measures, got {self.offset_edges} and {other.offset_edges}")
        return Needs(
            moments=self.moments | other.moments,
            first_keys=max(self.first_keys, other.first_keys),
            special=self.special or other.special,
            offset_edges=self.offset_edges or other.offset_edges,
            received=self.received or other.received,
            above=tuple(sorted({*self.above, *other.above})),
            states=self.states or other.states,
        )


@dataclass(frozen=True, kw_only=True)
class Quantities:
    """What a kernel returns; what was not asked for is empty or ``None``. Queries beyond a sequence's length hold NaN.

    Attributes:
        output: attention output ``[B, H, T, Dv]`` in the dtype of the values.
        lse: log-denominators ``Z`` in nats, learned sink included, ``[B, H, T]`` float32 (float64 in the reference).
        moments: per name ``[B, H, T]``.
        first: ``[B, H, T, first_keys]``.
        special: ``[B, H, T]``.
        offset_mass: ``[B, H, T, bands]``.
        received: ``[B, H, T]``, by key.
        above: ``[B, H, T, thresholds]``, by key.
    """

    output: Tensor
    lse: Tensor
    moments: dict[str, Tensor] = field(default_factory=dict)
    first: Tensor | None = None
    special: Tensor | None = None
    offset_mass: Tensor | None = None
    received: Tensor | None = None
    above: Tensor | None = None

"""What a measure sees of one attention layer, or of one level of the residual stream, for the sequences of one batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gnomon.kernels.problem import AttentionProblem, MaskStructure
from gnomon.kernels.quantities import Quantities
from gnomon.kernels.sampling import logits_at, rows_of


@dataclass(kw_only=True)
class AttentionView:
    """One layer's attention, without its matrix.

    What was declared as needs is in ``quantities``; rows and logits at chosen places are computed when asked for and kept for the next
    measure that asks for the same.

    Attributes:
        layer: index of the layer.
        problem: rotated queries, keys, values, scaling and mask structure.
        quantities: what the kernel computed.
        special: which tokens are special, ``[B, T]``.
        output_weight: the map from head outputs to the residual stream, ``[E, H, Dv]``, where the model has one.
    """

    layer: int
    problem: AttentionProblem
    quantities: Quantities
    special: Tensor
    output_weight: Tensor | None = None
    _kept: dict[object, Tensor] = field(default_factory=dict)

    @property
    def lengths(self) -> Tensor:
        """Real tokens of each sequence, ``[B]``."""
        return self.problem.mask.lengths

    @property
    def mask(self) -> MaskStructure:
        """Which keys a query sees."""
        return self.problem.mask

    @property
    def lse(self) -> Tensor:
        """Log-denominators, ``[B, H, T]``."""
        return self.quantities.lse

    def moment(self, name: str) -> Tensor:
        """A per-query moment that was asked for, ``[B, H, T]``."""
        return self.quantities.moments[name]

    @property
    def first(self) -> Tensor:
        """Weight on each of the first keys, ``[B, H, T, k]``."""
        return _asked_for(self.quantities.first, "first_keys")

    @property
    def special_mass(self) -> Tensor:
        """Weight on special tokens, ``[B, H, T]``."""
        return _asked_for(self.quantities.special, "special")

    @property
    def offset_mass(self) -> Tensor:
        """Weight by band of offset, ``[B, H, T, bands]``."""
        return _asked_for(self.quantities.offset_mass, "offset_edges")

    @property
    def received(self) -> Tensor:
        """Weight received by each key, summed over queries, ``[B, H, T]``."""
        return _asked_for(self.quantities.received, "received")

    @property
    def above(self) -> Tensor:
        """How many queries give each key a weight above each threshold, ``[B, H, T, thresholds]``."""
        return _asked_for(self.quantities.above, "above")

    def rows(self, queries: Tensor) -> Tensor:
        """Rows of weights of chosen queries, ``[B, H, R, T]``: zero where a key is hidden, NaN where a query is beyond the length."""
        key = ("rows", tuple(queries.tolist()))
        if key not in self._kept:
            self._kept[key] = rows_of(self.problem, self.lse, queries)
        return self._kept[key]

    def logits(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Logits ``s`` of chosen queries at chosen offsets (key = query - offset), ``[B, H, P, R]``; NaN where the key is hidden."""
        key = ("logits", tuple(queries.tolist()), tuple(offsets.tolist()))
        if key not in self._kept:
            self._kept[key] = logits_at(self.problem, queries, offsets)
        return self._kept[key]

    def weights(self, queries: Tensor, offsets: Tensor) -> Tensor:
        """Weights of chosen queries at chosen offsets, ``[B, H, P, R]``; NaN where the key is hidden."""
        return torch.exp(self.logits(queries, offsets) - self.lse[:, :, queries, None])


@dataclass(frozen=True, kw_only=True)
class StateView:
    """One level of the residual stream: level 0 is the embedding, level l + 1 the output of layer l.

    Attributes:
        level: index of the level.
        hidden: ``[B, T, E]``.
        lengths: real tokens of each sequence, ``[B]``.
        special: which tokens are special, ``[B, T]``.
    """

    level: int
    hidden: Tensor
    lengths: Tensor
    special: Tensor


def _asked_for(quantity: Tensor | None, need: str) -> Tensor:
    if quantity is None:
        raise ValueError(f"the measure reads a quantity that its needs do not declare; add `{need}` to needs()")
    return quantity

"""Attention as a random matrix: gap, participation, and distance from the Marchenko-Pastur law (claim B8's instruments).

**Square matrix** of the sampled tokens (all up to 64), singular values ``s1 >= s2 >= ...``:

- ``gap``: ``(s1 - s2) / s1``, 1 for rank one (every row the same), 0 for two equal directions;
- ``participation``: ``(sum s^2)^2 / sum s^4``, the effective rank, 1 for rank one, n for the identity.

**Rectangle** that every query sees whole: m keys of the first half and ``p = m / 2`` queries of the second half of the shortest sequence of the batch that has sixteen tokens (at most 64 keys, 32
queries, evenly spaced), so that no mask shows in it. Every row is centred and divided by its standard deviation; ``C = X X^T / (m - 1)`` has trace p, and for rows of independent entries its eigenvalues follow
Marchenko-Pastur with ratio ``y = p / (m - 1)`` on ``[(1 - sqrt y)^2, (1 + sqrt y)^2]``:

- ``distance``: largest difference between the eigenvalues' distribution function and the law's, 0 to 1;
- ``spread``: ``(mean lambda^2 - 1) (m - 1) / (p - 1)``, the mean squared correlation of two rows times ``m - 1``: 1 for rows shuffled independently (exactly, at any size) and
  under the law, ``m - 1`` when all rows agree;
- ``outside``: share of eigenvalues above the upper edge (times ``1 + m^(-2/3)``, the scale of its fluctuation).

**Null.** Rows shuffled over visible keys (``*_shuffled``, on two heads per layer) keep each row's weights, heavy tails included, and are the null to judge by: the law itself is exact only for
large matrices. ``gap`` and ``participation`` also have uniform attention (``*_uniform``). **Missing:** sequences shorter than sixteen tokens; layers whose window or chunk hides the rectangle;
rows that are exactly uniform have no standard deviation. The normalisation is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

import torch
import xarray as xr
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import HEAD, LAYER
from gnomon.kernels.quantities import Needs
from gnomon.measure.anchors import shuffled_rows
from gnomon.measure.averaged import Averages, nan_mean, read_estimate
from gnomon.measure.graph import LEAST_TOKENS, spread_heads, square_weights
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

LEAST_LENGTH: Final = 16
MOST_KEYS: Final = 64
GRID: Final = 513
SHORT: Final = "sequences shorter than sixteen tokens, exactly uniform rows, or a window that hides the rectangle"
SQUARE: Final = {
    "gap": "relative gap between the first two singular values",
    "participation": "participation ratio of squared singular values",
}
RECTANGLE: Final = {
    "distance": "Kolmogorov distance of eigenvalues of row-standardised attention from Marchenko-Pastur",
    "spread": "variance of eigenvalues over that of Marchenko-Pastur",
    "outside": "share of eigenvalues above the Marchenko-Pastur edge",
}


@dataclass(frozen=True, kw_only=True)
class Matrix(Measure):
    """Random-matrix statistics.

    Attributes:
        null_heads: heads per layer whose shuffled rows are measured.
        seed: of the shuffled rows.
    """

    name: ClassVar[str] = "matrix"
    title: ClassVar[str] = "Random-matrix statistics of attention"
    claims: ClassVar[tuple[str, ...]] = ("B8",)

    null_heads: int = 2
    seed: int = 0

    def needs(self, subject: Subject) -> Needs:
        """Rows only."""
        return Needs()

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Both matrices of one layer."""
        square = square_weights(view)
        uniform = (square.visible.double() / square.visible.sum(-1, keepdim=True).clamp_min(1))[:, None]
        chosen = spread_heads(square.weights.shape[1], self.null_heads, square.weights.device)
        shuffled = shuffled_rows(square.weights[:, chosen], square.visible, self.seed + view.layer)
        enough = (square.real.sum(-1) >= LEAST_TOKENS)[:, None]
        out: dict[str, Tensor] = {}
        for suffix, weights in (("", square.weights), ("_uniform", uniform), ("_shuffled", shuffled)):
            for name, values in singular_statistics(weights).items():
                kept = torch.where(enough, values, torch.nan)
                out[name + suffix] = kept if not suffix else kept.nanmean(1)
        block = rectangle(view)
        if block is None:
            missing = torch.full_like(out["gap"], torch.nan)
            return out | dict.fromkeys(RECTANGLE, missing) | {f"{name}_shuffled": missing[:, 0] for name in RECTANGLE}
        everything = torch.ones_like(block[:, 0], dtype=torch.bool)
        null = marchenko_pastur_statistics(shuffled_rows(block[:, chosen], everything, self.seed + view.layer))
        out |= marchenko_pastur_statistics(block)
        return out | {f"{name}_shuffled": values.nanmean(1) for name, values in null.items()}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals."""
        out, layers = Averages(observed.subject.seed), observed.layers
        for name, what in {**SQUARE, **RECTANGLE}.items():
            out.mean(name, layers[name], (LAYER, HEAD), what)
            out.mean(f"{name}_overall", nan_mean(layers[name], (1, 2)), (), f"{what}, over layers and heads")
            for null in ("shuffled", "uniform"):
                if f"{name}_{null}" in layers:
                    out.mean(f"{name}_{null}", layers[f"{name}_{null}"], (LAYER,), f"{what}, {null} rows")
                    out.mean(
                        f"{name}_{null}_overall", nan_mean(layers[f"{name}_{null}"], 1), (), f"{what}, {null} rows, over layers"
                    )
        attrs = {
            "missing": SHORT,
            "definitions": "the normalisation of rows and the rectangle are ours",
            "sequences": len(layers["gap"]),
        }
        return out.dataset(attrs)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Every quantity over layers and heads, and under shuffled rows."""
        number = int(dataset.attrs["sequences"])
        names = [name + suffix for name in (*SQUARE, *RECTANGLE) for suffix in ("", "_shuffled")]
        return {name: read_estimate(dataset, f"{name}_overall", number, SHORT) for name in names}


def singular_statistics(weights_BHMM: Tensor) -> dict[str, Tensor]:
    """Gap and participation of matrices, from the eigenvalues of ``A A^T``; NaN for a matrix of zeros."""
    square = weights_BHMM.double()
    values = torch.linalg.eigvalsh(square @ square.transpose(-1, -2)).clamp_min(0.0)
    largest = values[..., -1].sqrt()
    second = values[..., -2].sqrt() if values.shape[-1] > 1 else torch.zeros_like(largest)
    known = largest > 0
    gap = (largest - second) / torch.where(known, largest, torch.nan)
    total = values.sum(-1).square()
    return {"gap": gap.float(), "participation": (total / torch.where(known, values.square().sum(-1), torch.nan)).float()}


def rectangle(view: AttentionView) -> Tensor | None:
    """Weights of queries of the second half on keys of the first half, ``[B, H, p, m]``; NaN for short sequences, ``None`` where not all is seen."""
    long = view.lengths >= LEAST_LENGTH
    if not bool(long.any()):
        return None
    shortest = int(view.lengths[long].min())
    half = shortest // 2
    count = min(half, MOST_KEYS)
    device = view.lengths.device
    keys = torch.linspace(0, half - 1, count, device=device).round().long()
    queries = torch.linspace(half, shortest - 1, count // 2, device=device).round().long()
    if not bool(view.mask.visible(queries, keys)[long].all()):
        return None
    return view.rows(queries)[..., keys].masked_fill(~long[:, None, None, None], torch.nan)


def marchenko_pastur_statistics(block_BHPM: Tensor) -> dict[str, Tensor]:
    """Distance, spread and share outside of row-standardised matrices; NaN where a row has no spread."""
    queries, keys = block_BHPM.shape[-2:]
    centred = block_BHPM.double() - block_BHPM.double().mean(-1, keepdim=True)
    deviation = centred.square().sum(-1, keepdim=True).div(keys - 1).sqrt()
    known = (deviation > 1e-9 * block_BHPM.double().abs().amax(-1, keepdim=True).clamp_min(1e-300)).all(-2)[..., 0]
    # Unknown matrices are replaced by zeros, which the solver takes, and are missing in the end.
    standard = torch.where(known[..., None, None], centred / deviation.clamp_min(1e-300), 0.0)
    values = torch.linalg.eigvalsh(standard @ standard.transpose(-1, -2) / (keys - 1)).clamp_min(0.0)
    ratio = queries / (keys - 1)
    law = law_at(values, ratio)
    steps = torch.arange(queries + 1, device=values.device, dtype=values.dtype) / queries
    distance = torch.maximum((law - steps[:-1]).abs(), (law - steps[1:]).abs()).amax(-1)
    edge = (1 + ratio**0.5) ** 2 * (1 + keys ** (-2 / 3))
    out = {
        "distance": distance,
        "spread": (values.square().mean(-1) - 1) * (keys - 1) / (queries - 1),
        "outside": (values > edge).double().mean(-1),
    }
    return {name: torch.where(known, part, torch.nan).float() for name, part in out.items()}


def law_at(values: Tensor, ratio: float) -> Tensor:
    """Distribution function of the Marchenko-Pastur law of ``ratio <= 1`` at ``values``."""
    grid, law = (part.to(values.device) for part in _law(ratio))
    right = torch.searchsorted(grid, values.contiguous()).clamp(1, GRID - 1)
    share = ((values - grid[right - 1]) / (grid[right] - grid[right - 1])).clamp(0.0, 1.0)
    return law[right - 1] + share * (law[right] - law[right - 1])


@lru_cache(maxsize=256)
def _law(ratio: float) -> tuple[Tensor, Tensor]:
    """The law on a grid that is even in the angle, where its density has no singularity: ``x = middle - half cos(angle)``."""
    low, high = (1 - ratio**0.5) ** 2, (1 + ratio**0.5) ** 2
    angle = torch.linspace(0.0, torch.pi, GRID, dtype=torch.float64)
    half = (high - low) / 2
    grid = (low + high) / 2 - half * angle.cos()
    weight = (half * angle.sin()).square() / (2 * torch.pi * ratio * grid.clamp_min(1e-300))
    weight[0] = 0.0 if low > 0 else weight[1]
    law = torch.cat([torch.zeros(1, dtype=torch.float64), torch.cumulative_trapezoid(weight, angle)])
    return grid, law / law[-1]

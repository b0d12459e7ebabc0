"""Persistent homology of attention: how its parts hang together as the threshold falls (claim B4).

**Two filtrations** over the tokens of a head (all up to 64; beyond, the sample of :mod:`gnomon.measure.graph`):

- ``attention``: distance ``1 - max(a_ij, a_ji)``; at distance ``1 - theta`` its graph is that of :mod:`gnomon.measure.graph` at theta, so ``b0`` there equals ``components``;
- ``hellinger``: distance ``sqrt(1 - sum_k sqrt(a_ik a_jk))`` between the rows of tokens i and j, a metric: how differently they look.

**Quantities.** With bars ``(birth, death)`` of connected parts (dimension 0, the one that never dies left out) and of loops (dimension 1, Rips complex):
``total`` persistence ``sum (death - birth)``; ``entropy`` ``- sum p ln p`` of ``p = (death - birth) / total``, NaN without bars; ``loops``: number of bars of dimension 1;
``b1`` by threshold on the attention filtration: bars with ``birth < 1 - theta <= death``. Above the enclosing radius every complex is a cone, so that a loop alive there dies there.

**How much is computed.** Dimension 0 comes from a minimum spanning tree, for every head and sequence. Dimension 1 is computed (gudhi, edges collapsed) on at most 48 tokens, chosen
farthest-first from token 0 where there are more, for ``heads`` evenly spread heads per layer and the first ``sequences`` of each batch; other cells are NaN.
``heads=None, sequences=None`` does all.

**Null.** Uniform attention for dimension 0 (``*_uniform``) and rows shuffled over visible keys for both (``*_shuffled``; dimension 0 on two heads per layer, dimension 1 on
one). **Missing:** fewer than four tokens. **It cannot show** where a loop is, and total persistence grows with the number of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import gudhi
import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import HEAD, LAYER, THRESHOLD
from gnomon.kernels.quantities import Needs
from gnomon.measure.anchors import SAMPLED_TOKENS, sampled_tokens, shuffled_rows, visible_rows
from gnomon.measure.averaged import Averages, nan_mean, read_estimate
from gnomon.measure.graph import LEAST_TOKENS, SHORT, THRESHOLDS, spanning_tree, spread_heads
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

FILTRATIONS: Final = ("attention", "hellinger")
HOMOLOGY_TOKENS: Final = 48
UNSAMPLED: Final = "loops are computed for a sample of heads and sequences"
TINY: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class Topology(Measure):
    """Persistent homology of two filtrations.

    Attributes:
        thresholds: on the weights, for ``b1``.
        tokens: largest number of tokens for dimension 1.
        heads: heads per layer for dimension 1, evenly spread; all when ``None``.
        sequences: sequences of each batch for dimension 1; all when ``None``.
        seed: of the shuffled rows.
    """

    name: ClassVar[str] = "topology"
    title: ClassVar[str] = "Topology of attention"
    claims: ClassVar[tuple[str, ...]] = ("B4", "B8")

    thresholds: tuple[float, ...] = THRESHOLDS
    tokens: int = HOMOLOGY_TOKENS
    heads: int | None = 3
    sequences: int | None = 6
    seed: int = 0

    def needs(self, subject: Subject) -> Needs:
        """Rows only."""
        return Needs()

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Homology of one layer."""
        tokens = sampled_tokens(view.problem.length, view.lengths.device, SAMPLED_TOKENS)
        visible = visible_rows(view.mask, tokens, view.problem.length)
        rows = view.rows(tokens).masked_fill(~visible[:, None], 0.0)
        real = tokens[None] < view.lengths[:, None]
        out: dict[str, Tensor] = {}
        uniform = (visible / visible.sum(-1, keepdim=True).clamp_min(1)).to(rows.dtype)[:, None]
        chosen = spread_heads(rows.shape[1], 2, rows.device)
        shuffled = shuffled_rows(rows[:, chosen], visible, self.seed + view.layer)
        for name, distances in _distances(rows, tokens, real).items():
            out |= {f"{name}_{key}": values for key, values in parts_statistics(distances, real).items()}
            out |= {f"{name}_{key}": values for key, values in self._loops(distances, real).items()}
        for suffix, weights in (("uniform", uniform), ("shuffled", shuffled)):
            for name, distances in _distances(weights, tokens, real).items():
                for key, values in parts_statistics(distances, real).items():
                    out[f"{name}_{key}_{suffix}"] = values.nanmean(1)
                if suffix == "shuffled":
                    null = self._loops(distances[:, :1], real)
                    out |= {f"{name}_{key}_shuffled": values[:, 0] for key, values in null.items()}
        return {key: values.float() for key, values in out.items()}

    def _loops(self, distances: Tensor, real: Tensor) -> dict[str, Tensor]:
        """Dimension 1 of the sampled heads and sequences, NaN elsewhere."""
        batch, heads = distances.shape[:2]
        which = spread_heads(heads, heads if self.heads is None else self.heads).tolist()
        rows = range(batch if self.sequences is None else min(batch, self.sequences))
        out = np.full((batch, heads, 3 + len(self.thresholds)), np.nan)
        matrices, kept = distances.double().cpu().numpy(), real.cpu().numpy()
        for row in rows:
            if kept[row].sum() < LEAST_TOKENS:
                continue
            for head in which:
                square = matrices[row, head][np.ix_(kept[row], kept[row])]
                out[row, head] = loop_statistics(loop_bars(square, self.tokens), self.thresholds)
        whole = torch.from_numpy(out)
        return {"total_1": whole[..., 0], "entropy_1": whole[..., 1], "loops": whole[..., 2], "b1": whole[..., 3:]}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals."""
        out, layers = Averages(observed.subject.seed), observed.layers
        described = {
            "total_0": "total persistence of connected parts",
            "entropy_0": "persistence entropy of connected parts, nats",
            "total_1": "total persistence of loops",
            "entropy_1": "persistence entropy of loops, nats",
            "loops": "number of loops over the filtration",
        }
        for name in FILTRATIONS:
            for key, what in described.items():
                values = layers[f"{name}_{key}"]
                out.mean(f"{name}_{key}", values, (LAYER, HEAD), f"{what}, {name} filtration")
                out.mean(
                    f"{name}_{key}_overall", nan_mean(values, (1, 2)), (), f"{what}, {name} filtration, over layers and heads"
                )
                for null in ("uniform", "shuffled"):
                    if f"{name}_{key}_{null}" in layers:
                        null_values = layers[f"{name}_{key}_{null}"]
                        out.mean(f"{name}_{key}_{null}", null_values, (LAYER,), f"{what}, {name} filtration, {null} rows")
                        out.mean(
                            f"{name}_{key}_{null}_overall",
                            nan_mean(null_values, 1),
                            (),
                            f"{what}, {name} filtration, {null} rows",
                        )
        out.mean("b1", layers["attention_b1"], (LAYER, HEAD, THRESHOLD), "loops alive at a threshold, attention filtration")
        attrs = {
            "missing": f"{SHORT}; dimension 1: {UNSAMPLED}; entropy: no bars",
            "definitions": "distances, sampling and summaries are ours",
            "heads_sampled": "all" if self.heads is None else self.heads,
            "sequences_sampled_per_batch": "all" if self.sequences is None else self.sequences,
            "tokens_at_most": self.tokens,
            "sequences": len(values),
            "sequences_with_loops": int(np.isfinite(layers["attention_total_1"]).any((1, 2)).sum()),
        }
        return out.dataset(attrs, {THRESHOLD: list(self.thresholds)})

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Total persistence of parts and number of loops of both filtrations, and their nulls."""
        whole, some = int(dataset.attrs["sequences"]), int(dataset.attrs["sequences_with_loops"])
        out = {}
        for name in FILTRATIONS:
            for key, number in (("total_0", whole), ("loops", some)):
                out[f"{name}_{key}"] = read_estimate(dataset, f"{name}_{key}_overall", number, SHORT)
                out[f"{name}_{key}_shuffled"] = read_estimate(dataset, f"{name}_{key}_shuffled_overall", number, SHORT)
        return out


def _distances(rows: Tensor, tokens: Tensor, real: Tensor) -> dict[str, Tensor]:
    """Both distance matrices among the sampled tokens, ``[B, H, M, M]``, zero on the diagonal and inf for tokens that are not real."""
    square = rows[..., tokens]
    eye = torch.eye(len(tokens), dtype=torch.bool, device=rows.device)
    hidden = ~(real[:, :, None] & real[:, None, :])[:, None]
    attention = 1 - torch.maximum(square, square.transpose(-1, -2)).clamp(0.0, 1.0)
    root = (rows / rows.sum(-1, keepdim=True).clamp_min(1e-30)).clamp_min(0.0).sqrt()
    hellinger = (1 - root @ root.transpose(-1, -2)).clamp_min(0.0).sqrt()
    return {
        name: distance.masked_fill(hidden, torch.inf).masked_fill(eye, 0.0)
        for name, distance in (("attention", attention), ("hellinger", hellinger))
    }


def parts_statistics(distances_BHMM: Tensor, real_BM: Tensor) -> dict[str, Tensor]:
    """Total persistence and persistence entropy of dimension 0, ``[B, H]``."""
    batch, heads, size, _ = distances_BHMM.shape
    real = real_BM[:, None].expand(-1, heads, -1).reshape(-1, size)
    deaths = -spanning_tree(-distances_BHMM.reshape(-1, size, size), real)
    bars = torch.where(torch.isinf(deaths), 0.0, deaths).double().reshape(batch, heads, -1)
    total = bars.sum(-1)
    share = bars / total.clamp_min(TINY)[..., None]
    entropy = -torch.xlogy(share, share).sum(-1)
    enough = (real_BM.sum(-1) >= LEAST_TOKENS)[:, None]
    return {
        "total_0": torch.where(enough, total, torch.nan),
        "entropy_0": torch.where(enough & (total > TINY), entropy, torch.nan),
    }


def farthest_points(distances: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Farthest-first choice of ``count`` points from point 0, in the order of choice."""
    chosen = [0]
    nearest = distances[0].copy()
    while len(chosen) < min(count, len(distances)):
        nearest[chosen[-1]] = -1.0
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return np.array(chosen)


def loop_bars(distances: NDArray[Any], limit: int = HOMOLOGY_TOKENS) -> NDArray[np.float64]:
    """Bars of dimension 1 of the Rips filtration of a distance matrix, ``[bar, 2]``."""
    if len(distances) > limit:
        kept = farthest_points(distances, limit)
        distances = distances[np.ix_(kept, kept)]
    radius = float(distances.max(1).min())
    tree = gudhi.SimplexTree.create_from_array(distances, max_filtration=radius)
    tree.collapse_edges()
    tree.expansion(2)
    tree.compute_persistence(min_persistence=TINY)
    bars = np.asarray(tree.persistence_intervals_in_dimension(1), dtype=np.float64).reshape(-1, 2)
    return np.minimum(bars, radius)


def loop_statistics(bars: NDArray[np.float64], thresholds: tuple[float, ...]) -> NDArray[np.float64]:
    """Total persistence, entropy, number of bars, and bars alive at distance ``1 - theta`` for each threshold."""
    lengths = bars[:, 1] - bars[:, 0]
    bars, lengths = bars[lengths > TINY], lengths[lengths > TINY]
    total = lengths.sum()
    share = lengths / total if len(lengths) else lengths
    entropy = -(share * np.log(share)).sum() if len(lengths) else np.nan
    level = 1 - np.asarray(thresholds)
    alive = ((bars[:, :1] < level) & (level <= bars[:, 1:])).sum(0)
    return np.concatenate([[total, entropy, len(lengths)], alive])

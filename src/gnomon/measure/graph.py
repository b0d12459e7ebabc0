"""The attention graph of a head: how connected it is, and how star-like (claim B4).

**Graph.** Tokens are nodes; tokens i and j are joined when ``max(a_ij, a_ji) > theta``, for every theta of ``THRESHOLDS``; no loops. So the graph at theta is the
filtration of :mod:`gnomon.measure.topology` at distance ``1 - theta``. All tokens of a sequence up to 64; beyond, the first eight and evenly spaced ones, with
their weights as they are. The directed graph has an edge i to j when ``a_ij > theta``.

**Quantities**, per threshold (n nodes, degrees d, E edges):

- ``fiedler``: second smallest eigenvalue of ``diag(d) - A``; 0 when there are two components or more, 1 for a star, n for a complete graph;
- ``components``: connected components, from a minimum spanning tree, 1 to n;
- ``centralization``: Freeman's, ``sum_i (max d - d_i) / ((n - 1) (n - 2))``; 1 for a star, 0 when all degrees agree (a cycle, no edge at all);
- ``star``: ``(max d / E) (max d / (n - 1))``, the share of edges that meet at the hub times the share of nodes that it reaches (ours); 1 for a star, 0 without edges;
- ``density``: ``2 E / (n (n - 1))``;
- ``in_centralization``: ``sum_j (max in - in_j) / (n - 1)^2``, 1 when all point at one token;
- ``reciprocity``: share of directed edges that are returned; 0 under a causal mask by construction, NaN without edges.

**Null.** The same of uniform attention over visible keys (``*_uniform``: the closed form ``1 / (i + 1)`` under a causal mask) and of rows shuffled over their visible
keys (``*_shuffled``, on two heads per layer). **Missing:** fewer than four tokens. **It cannot show** which token the hub is: see ``frames``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import torch
import xarray as xr
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import HEAD, LAYER, THRESHOLD
from gnomon.kernels.quantities import Needs
from gnomon.measure.anchors import SAMPLED_TOKENS, sampled_tokens, shuffled_rows, visible_rows
from gnomon.measure.averaged import Averages, nan_mean, read_estimate
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

THRESHOLDS: Final = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
HEADLINE_THRESHOLD: Final = 0.05
LEAST_TOKENS: Final = 4
GRAPHS_AT_ONCE: Final = 2048
QUANTITIES: Final = {
    "fiedler": "algebraic connectivity of the symmetrised attention graph",
    "components": "connected components of the symmetrised attention graph",
    "centralization": "Freeman degree centralization of the symmetrised attention graph",
    "star": "star-likeness of the symmetrised attention graph",
    "density": "share of token pairs that are joined",
    "in_centralization": "in-degree centralization of the directed attention graph",
    "reciprocity": "share of directed edges that are returned",
}
SHORT: Final = f"fewer than {LEAST_TOKENS} tokens"


class SquareWeights(NamedTuple):
    """Weights among sampled tokens, ``[B, H, M, M]``, zero where hidden; which sampled tokens are real, ``[B, M]``; what they see, ``[B, M, M]``."""

    weights: Tensor
    real: Tensor
    visible: Tensor


@dataclass(frozen=True, kw_only=True)
class Graph(Measure):
    """Connectivity and centralization of attention graphs.

    Attributes:
        thresholds: on the weights.
        tokens: largest number of tokens taken.
        null_heads: heads per layer whose shuffled rows are measured.
        seed: of the shuffled rows.
    """

    name: ClassVar[str] = "graph"
    title: ClassVar[str] = "Attention graph"
    claims: ClassVar[tuple[str, ...]] = ("B4", "B8")

    thresholds: tuple[float, ...] = THRESHOLDS
    tokens: int = SAMPLED_TOKENS
    null_heads: int = 2
    seed: int = 0

    def needs(self, subject: Subject) -> Needs:
        """Rows only."""
        return Needs()

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Graphs of one layer."""
        square = square_weights(view, self.tokens)
        out = graph_statistics(square.weights, square.real, self.thresholds)
        uniform = square.visible.double() / square.visible.sum(-1, keepdim=True).clamp_min(1)
        flat = graph_statistics(uniform[:, None], square.real, self.thresholds)
        chosen = spread_heads(square.weights.shape[1], self.null_heads, square.weights.device)
        null_weights = shuffled_rows(square.weights[:, chosen], square.visible, self.seed + view.layer)
        null = graph_statistics(null_weights, square.real, self.thresholds)
        kept = {name: values.float() for name, values in out.items()}
        kept |= {f"{name}_uniform": values[:, 0].float() for name, values in flat.items()}
        return kept | {f"{name}_shuffled": nan_mean_over_heads(values).float() for name, values in null.items()}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals."""
        out = Averages(observed.subject.seed)
        for name, what in QUANTITIES.items():
            out.mean(name, observed.layers[name], (LAYER, HEAD, THRESHOLD), what)
            for null in ("uniform", "shuffled"):
                out.mean(f"{name}_{null}", observed.layers[f"{name}_{null}"], (LAYER, THRESHOLD), f"{what}, {null} rows")
        level = self._headline_index()
        for name in ("fiedler", "centralization", "star"):
            for suffix in ("", "_uniform", "_shuffled"):
                values = observed.layers[name + suffix][..., level]
                whole = nan_mean(values.reshape(len(values), -1), 1)
                out.mean(
                    f"{name}{suffix}_overall", whole, (), f"{QUANTITIES[name]} at {self.thresholds[level]}, over layers and heads"
                )
        attrs = {
            "missing": f"{SHORT}; reciprocity: no edges",
            "definitions": "symmetrised by the larger of both weights; star-likeness is ours",
            "sequences": len(values),
            "headline_threshold": self.thresholds[level],
        }
        return out.dataset(attrs, {THRESHOLD: list(self.thresholds)})

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Centralization, connectivity and star-likeness at threshold 0.05 (or the nearest to it), and their nulls."""
        number = int(dataset.attrs["sequences"])
        names = [name + suffix for name in ("fiedler", "centralization", "star") for suffix in ("", "_uniform", "_shuffled")]
        return {name: read_estimate(dataset, f"{name}_overall", number, SHORT) for name in names}

    def _headline_index(self) -> int:
        return min(range(len(self.thresholds)), key=lambda index: abs(self.thresholds[index] - HEADLINE_THRESHOLD))


def square_weights(view: AttentionView, limit: int = SAMPLED_TOKENS) -> SquareWeights:
    """Weights among the sampled tokens of a layer; kept by the view for the next measure."""
    tokens = sampled_tokens(view.problem.length, view.lengths.device, limit)
    visible = visible_rows(view.mask, tokens, view.problem.length)[:, :, tokens]
    weights = view.rows(tokens)[..., tokens].masked_fill(~visible[:, None], 0.0)
    return SquareWeights(weights, tokens[None] < view.lengths[:, None], visible)


def spread_heads(num_heads: int, count: int, device: torch.device | str = "cpu") -> Tensor:
    """``count`` heads evenly spread over a layer, the first and the last among them."""
    return torch.linspace(0, num_heads - 1, min(count, num_heads), device=device).round().long()


def nan_mean_over_heads(values_BH: Tensor) -> Tensor:
    """Mean over axis 1, NaN where there is no number."""
    return values_BH.nanmean(1)


def graph_statistics(weights_BHMM: Tensor, real_BM: Tensor, thresholds: tuple[float, ...]) -> dict[str, Tensor]:
    """All quantities of the graphs of weights among tokens, ``[B, H, threshold]``; NaN below four real tokens."""
    count_B1 = real_BM.sum(-1).to(torch.float64)[:, None, None]
    pairs_BMM = real_BM[:, :, None] & real_BM[:, None, :] & ~torch.eye(real_BM.shape[1], dtype=torch.bool, device=real_BM.device)
    weights = weights_BHMM.masked_fill(~pairs_BMM[:, None], 0.0)
    similarity = torch.maximum(weights, weights.transpose(-1, -2))
    levels = torch.tensor(thresholds, dtype=weights.dtype, device=weights.device)
    joined = similarity[:, :, None] > levels[:, None, None]
    directed = weights[:, :, None] > levels[:, None, None]
    degree = joined.sum(-1).double()
    most, edges = degree.amax(-1), degree.sum(-1) / 2
    into = directed.sum(-2).double()
    arcs = into.sum(-1)
    returned = (directed & directed.transpose(-1, -2)).sum((-1, -2)).double()
    parts = components(similarity, real_BM, thresholds)
    out = {
        "fiedler": _fiedler(joined, degree, real_BM, parts),
        "components": parts,
        "centralization": (count_B1 * most - degree.sum(-1)) / ((count_B1 - 1) * (count_B1 - 2)),
        "star": torch.where(edges > 0, most / edges.clamp_min(1) * most / (count_B1 - 1), 0.0),
        "density": 2 * edges / (count_B1 * (count_B1 - 1)),
        "in_centralization": (count_B1 * into.amax(-1) - arcs) / (count_B1 - 1) ** 2,
        "reciprocity": torch.where(arcs > 0, returned / arcs, torch.nan),
    }
    return {name: torch.where(count_B1 >= LEAST_TOKENS, values, torch.nan) for name, values in out.items()}


def spanning_tree(similarity_NMM: Tensor, real_NM: Tensor) -> Tensor:
    """Edge similarities of a maximum spanning tree of each graph, ``[N, M - 1]``; ``-inf`` for edges to tokens that are not real.

    Prim's algorithm on all graphs at once; token 0 is real by contract. In the filtration by ``1 - similarity`` these are the deaths of components.
    """
    number, size = real_NM.shape
    rows = torch.arange(number, device=real_NM.device)
    best = similarity_NMM[:, 0].masked_fill(~real_NM, -torch.inf)
    outside = torch.ones_like(real_NM)
    outside[:, 0] = False
    taken = similarity_NMM.new_empty(number, size - 1)
    for step in range(size - 1):
        value, chosen = best.masked_fill(~outside, -torch.inf).max(-1)
        # A graph whose real tokens are used up returns some index at -inf; its row must not open anything.
        done = torch.isneginf(value)
        taken[:, step] = value
        outside[rows[~done], chosen[~done]] = False
        best = torch.where(done[:, None], best, torch.maximum(best, similarity_NMM[rows, chosen])).masked_fill(
            ~real_NM, -torch.inf
        )
    return taken


def components(similarity_BHMM: Tensor, real_BM: Tensor, thresholds: tuple[float, ...]) -> Tensor:
    """Connected components at each threshold, ``[B, H, threshold]``: real tokens less the tree's edges above it."""
    batch, heads, size, _ = similarity_BHMM.shape
    real = real_BM[:, None].expand(-1, heads, -1).reshape(-1, size)
    tree = spanning_tree(similarity_BHMM.reshape(-1, size, size), real)
    levels = torch.tensor(thresholds, dtype=tree.dtype, device=tree.device)
    joined = (tree[:, None] > levels[:, None]).sum(-1)
    return (real.sum(-1)[:, None] - joined).double().reshape(batch, heads, -1)


def _fiedler(joined: Tensor, degree: Tensor, real_BM: Tensor, parts: Tensor) -> Tensor:
    """Second smallest Laplacian eigenvalue; eigenvalues are taken of connected graphs only, others have 0, complete ones n."""
    size = joined.shape[-1]
    count = real_BM.sum(-1).double()[:, None, None].expand(parts.shape)
    complete = degree.sum(-1) == count * (count - 1)
    out = torch.where(complete & (count > 1), count, torch.zeros_like(count))
    wanted = (parts == 1) & ~complete & (count > 1)
    if wanted.any():
        # Tokens that are not real get eigenvalues beyond those of any graph, so that the second smallest is the graph's.
        beyond = torch.where(real_BM, 0.0, 2.0 * size + 1)[:, None, None].expand(degree.shape)[wanted]
        diagonals, edges = torch.split(degree[wanted] + beyond, GRAPHS_AT_ONCE), torch.split(joined[wanted], GRAPHS_AT_ONCE)
        laplacians = (torch.diag_embed(one) - other.double() for one, other in zip(diagonals, edges, strict=True))
        values = [torch.linalg.eigvalsh(laplacian)[:, 1] for laplacian in laplacians]
        out[wanted] = torch.cat(values).clamp_min(0.0)
    return out

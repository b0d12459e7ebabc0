"""Information geometry of attention rows (claim B5): distances from uniform, between heads, between layers.

**Rows** are those of at most sixteen sampled queries, renormalised over the sequence where a head has a learned sink off it.

**Quantities** (nats, per row, averaged over sampled queries):

- ``kl_uniform``: KL from uniform over all real keys, ``ln n - H``; under a causal mask this counts the mask itself as information;
- ``kl_visible``: KL from uniform over the ``c_i`` keys that the query sees (the causal-uniform row), ``ln c_i - H``: 0 for uniform attention, ``ln c_i`` for one key;
- ``js_heads``: Jensen-Shannon divergence ``H((p + q) / 2) - (H(p) + H(q)) / 2`` of two heads of a layer, 0 to ln 2; ``js_layers`` of the head-averaged rows of two layers;
- ``rao_uniform``, ``rao_heads``: Fisher-Rao distance ``2 arccos sum sqrt(p q)`` from the visible uniform row, and between two heads, 0 to pi;
- ``metric_trace``: trace of the Fisher metric of a row in its logits, ``sum p (1 - p) = 1 - sum p^2`` (ours): 0 where one key has all (a row that no small change of
  logits can move), ``1 - 1 / c`` where all are alike.

For layers, rows of every fourth sampled query are kept on 64 slots: the keys themselves up to 64; beyond, the first sixteen and the rest added up in equal stretches. Adding keys up
can only lower a divergence, so ``js_layers`` is a lower bound there.

**Null.** ``js_heads_shuffled`` and ``rao_heads_shuffled``: rows of neighbouring heads, each shuffled by itself over its visible keys. **It cannot show** which keys make the difference.
Fisher information of parameters, by gradients, is the experiment ``fisher``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi
from typing import Any, ClassVar, Final

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import HEAD, LAYER
from gnomon.kernels.quantities import Needs
from gnomon.measure.anchors import sampled_queries, shuffled_rows, visible_rows
from gnomon.measure.averaged import Averages, nan_mean, read_estimate
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

OTHER_HEAD: Final = "other_head"
OTHER_LAYER: Final = "other_layer"
SLOTS: Final = 64
WHOLE_SLOTS: Final = 16
KEPT_QUERIES: Final = 4
CELLS_AT_ONCE: Final = 1 << 25
SHORT: Final = "fewer than two tokens"


@dataclass(frozen=True, kw_only=True)
class Geometry(Measure):
    """Divergences and distances of rows.

    Attributes:
        seed: of the shuffled rows.
    """

    name: ClassVar[str] = "geometry"
    title: ClassVar[str] = "Information geometry of attention"
    claims: ClassVar[tuple[str, ...]] = ("B5", "B8")

    seed: int = 0

    def needs(self, subject: Subject) -> Needs:
        """Rows only."""
        return Needs()

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Divergences within one layer, and its mean rows for those between layers."""
        queries = sampled_queries(view.mask, view.problem.length)
        visible = visible_rows(view.mask, queries, view.problem.length)
        rows = _normalised(view.rows(queries).float().masked_fill(~visible[:, None], 0.0))
        # A row that sees one key says nothing: it is the same in every head.
        used = visible.sum(-1) > 1
        count = used.sum(-1).float()[:, None]
        seen = visible.sum(-1).clamp_min(1).float()[:, None]
        entropy = entropy_of(rows)
        root = rows.sqrt()
        cosine = root.sum(-1) / seen.sqrt()

        def mean(values: Tensor) -> Tensor:
            return torch.where(used[:, None], values, 0.0).sum(-1) / torch.where(count > 0, count, torch.nan)

        shuffled = shuffled_rows(rows, visible, self.seed + view.layer)
        rolled = shuffled.roll(1, 1)
        alone = rows.shape[1] < 2
        null_js = entropy_of((shuffled + rolled) / 2) - (entropy + entropy.roll(1, 1)) / 2
        null_rao = 2 * torch.arccos((shuffled.sqrt() * rolled.sqrt()).sum(-1).clamp(-1.0, 1.0))
        js, rao = head_pairs(rows, entropy, used)
        missing = torch.full_like(count[:, 0], torch.nan)
        return {
            "kl_uniform": mean(view.lengths.to(rows.device).float().log()[:, None, None] - entropy),
            "kl_visible": mean(seen.log() - entropy),
            "rao_uniform": mean(2 * torch.arccos(cosine.clamp(-1.0, 1.0))),
            "metric_trace": mean(1 - rows.square().sum(-1)),
            "js_heads": js,
            "rao_heads": rao,
            "js_heads_shuffled": missing if alone else mean(null_js).mean(1),
            "rao_heads_shuffled": missing if alone else mean(null_rao).mean(1),
            "layer_rows": _kept_rows(rows.mean(1), used),
        }

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals, and the divergences between layers."""
        out, layers = Averages(observed.subject.seed), observed.layers
        for name, (what, units) in _DESCRIBED.items():
            out.mean(name, layers[name], (LAYER, HEAD), what, units)
            out.mean(f"{name}_overall", nan_mean(layers[name], (1, 2)), (), f"{what}, over layers and heads", units)
        between = {
            "js_heads": ("Jensen-Shannon divergence between heads", "nats"),
            "rao_heads": ("Fisher-Rao distance between heads", "radians"),
        }
        for name, (what, units) in between.items():
            pairs = np.asarray(layers[name])
            out.mean(name, pairs, (LAYER, HEAD, OTHER_HEAD), what, units)
            out.mean(f"{name}_overall", nan_mean(_off_diagonal(pairs), (1, 2, 3)), (), f"{what}, over layers and pairs", units)
            null = layers[f"{name}_shuffled"]
            out.mean(f"{name}_shuffled", null, (LAYER,), f"{what}, shuffled rows", units)
            out.mean(f"{name}_shuffled_overall", nan_mean(null, 1), (), f"{what}, shuffled rows, over layers", units)
        pairs = layer_pairs(layers["layer_rows"])
        what = "Jensen-Shannon divergence between layers, rows averaged over heads"
        out.mean("js_layers", pairs, (LAYER, OTHER_LAYER), what, "nats")
        neighbours = np.diagonal(pairs, 1, 1, 2)
        steps = nan_mean(neighbours, 1) if neighbours.shape[1] else np.full(len(pairs), np.nan)
        out.mean("js_layers_overall", steps, (), "Jensen-Shannon divergence between neighbouring layers", "nats")
        attrs = {
            "missing": f"{SHORT}; divergences between heads: a single head",
            "definitions": "the metric trace is ours; layers are compared by head-averaged rows",
            "sequences": len(pairs),
            "largest_js": float(np.log(2)),
            "largest_rao": pi,
        }
        return out.dataset(attrs)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Divergence from causal-uniform, between heads (and its null) and between neighbouring layers, and the metric trace."""
        number = int(dataset.attrs["sequences"])
        names = ("kl_uniform", "kl_visible", "js_heads", "js_heads_shuffled", "rao_heads", "js_layers", "metric_trace")
        return {
            name: read_estimate(dataset, f"{name}_overall", number, "one head, one layer or one token only") for name in names
        }


_DESCRIBED: Final = {
    "kl_uniform": ("divergence of rows from uniform over the sequence", "nats"),
    "kl_visible": ("divergence of rows from uniform over visible keys", "nats"),
    "rao_uniform": ("Fisher-Rao distance of rows from uniform over visible keys", "radians"),
    "metric_trace": ("trace of the Fisher metric of a row in its logits", "1"),
}


def entropy_of(rows: Tensor) -> Tensor:
    """Entropy over the last axis in nats, ``0 ln 0 = 0``."""
    return -torch.xlogy(rows, rows).sum(-1)


def head_pairs(rows_BHRK: Tensor, entropy_BHR: Tensor, used_BR: Tensor) -> tuple[Tensor, Tensor]:
    """Jensen-Shannon divergence and Fisher-Rao distance between all heads, averaged over used queries, ``[B, H, H]``."""
    batch, heads, queries, keys = rows_BHRK.shape
    weight = used_BR.float()
    count = used_BR.sum(-1).float()
    js = rows_BHRK.new_zeros(batch, heads, heads)
    rao = torch.zeros_like(js)
    step = max(1, CELLS_AT_ONCE // (batch * heads * heads * keys))
    for first in range(0, queries, step):
        some = slice(first, first + step)
        rows = rows_BHRK[:, :, some].transpose(1, 2)  # B R H K
        mixed = entropy_of((rows[:, :, :, None] + rows[:, :, None]) / 2)
        own = entropy_BHR[:, :, some].transpose(1, 2)
        each = mixed - (own[..., None] + own[:, :, None]) / 2
        root = rows.sqrt()
        distance = 2 * torch.arccos((root @ root.transpose(-1, -2)).clamp(-1.0, 1.0))
        js += torch.einsum("brgh,br->bgh", each, weight[:, some])
        rao += torch.einsum("brgh,br->bgh", distance, weight[:, some])
    divisor = torch.where(count > 0, count, torch.nan)[:, None, None]
    eye = torch.eye(heads, dtype=torch.bool, device=js.device)
    return tuple((total / divisor).clamp_min(0.0).masked_fill(eye, 0.0) for total in (js, rao))  # type: ignore[return-value]


def layer_pairs(rows_NLQK: NDArray[Any]) -> NDArray[np.float64]:
    """Jensen-Shannon divergence between all layers, averaged over kept queries, ``[N, L, L]``."""
    number, layers = rows_NLQK.shape[:2]
    out = np.empty((number, layers, layers))
    for index, rows in enumerate(torch.from_numpy(np.asarray(rows_NLQK, dtype=np.float32))):
        kept = torch.isfinite(rows).all(-1).all(0)
        rows = rows[:, kept]
        own = entropy_of(rows)
        each = entropy_of((rows[:, None] + rows[None]) / 2) - (own[:, None] + own[None]) / 2
        out[index] = each.mean(-1).clamp_min(0.0).numpy() if bool(kept.any()) else np.nan
        np.fill_diagonal(out[index], 0.0 if bool(kept.any()) else np.nan)
    return out


def _normalised(rows: Tensor) -> Tensor:
    return rows / rows.sum(-1, keepdim=True).clamp_min(1e-30)


def _kept_rows(rows_BRK: Tensor, used_BR: Tensor) -> Tensor:
    """Rows of every fourth sampled query from the last, on 64 slots; NaN where a query does not serve, ``[B, KEPT_QUERIES, SLOTS]``."""
    batch, queries, keys = rows_BRK.shape
    slot = torch.arange(keys, device=rows_BRK.device)
    if keys > SLOTS:
        stretch = (slot - WHOLE_SLOTS) * (SLOTS - WHOLE_SLOTS) // (keys - WHOLE_SLOTS) + WHOLE_SLOTS
        slot = torch.where(slot < WHOLE_SLOTS, slot, stretch)
    # Each sequence has its own last query that serves; count back from it.
    last = queries - 1 - used_BR.flip(-1).long().argmax(-1)
    places = last[:, None] - torch.arange(KEPT_QUERIES, device=rows_BRK.device) * max(1, queries // KEPT_QUERIES)
    inside = (places >= 0) & torch.gather(used_BR, 1, places.clamp_min(0))
    rows = torch.gather(rows_BRK, 1, places.clamp_min(0)[..., None].expand(-1, -1, keys))
    out = rows.new_zeros(batch, KEPT_QUERIES, SLOTS)
    out.index_add_(2, slot, rows)
    return out.masked_fill(~inside[..., None], torch.nan)


def _off_diagonal(pairs: NDArray[Any]) -> NDArray[Any]:
    size = pairs.shape[-1]
    return np.where(np.eye(size, dtype=bool), np.nan, pairs)

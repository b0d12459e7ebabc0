"""Reference frames: which tokens everything else looks at, and of which kind that frame is (claims B1, B2, B3).

**Quantities**, per head, per layer (rows averaged over heads) and per model (anchors averaged over layers), on at most sixteen sampled queries:

- anchors and their weights (:mod:`gnomon.measure.anchors`), kind and soft scores (:mod:`gnomon.measure.kinds`);
- ``first_mass``, ``special_mass``, ``last_mass``: mean weight of queries 1, 2, ... on position 0, on special tokens and on the last token, with the same for
  uniform attention over visible keys (``*_uniform``); the last token only where the mask is not causal;
- ``received_effective``: inverse participation of received weight, each key's divided by the number of queries that see it, over keys that at least
  30 % of queries see; uniform attention in ``received_effective_uniform``;
- ``sinks``: keys that at least a share gamma = 0.4 of their viewers give more than tau, the 90th percentile of the head's weights in that sequence, seen by
  at least 30 % of the queries (claim B1); ``sink_first`` the same for position 0; ``sink_curve`` and ``sink_first_curve`` over tau and gamma;
- ``same_position``, ``same_token``: share of sequences whose top anchor is the modal one, by place (from either end) and by token, with
  ``same_*_chance`` for a key drawn at random;
- ``anchor_at``: where a layer's top anchor stands; ``depth_change``: share of neighbouring framed layers whose top anchors differ.

**Null.** Every row shuffled over its visible keys (``null_framed``), and uniform attention in closed form. Untrained weights are a survey of their own.

**Range.** Shares and scores in [0, 1]; effective numbers at least 1. **It cannot show** what a sink does (see ``values``), nor frames in sequences of fewer than
six tokens; several anchors are not told from noise below about twelve tokens (:doc:`frames` tables how often labels are right).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import torch
import xarray as xr
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.kernels.quantities import Needs
from gnomon.measure import frames_summary as summary
from gnomon.measure.anchors import (
    AnchorRule,
    Anchors,
    anchors,
    effective_number,
    far_weight,
    sampled_queries,
    shuffled_rows,
    sink_shares,
    uniform_received,
    visible_rows,
)
from gnomon.measure.bands import viewers
from gnomon.measure.kinds import KindRule, frame_features, kind_scores
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

SEEN_BY: Final = 0.3
KEPT_ANCHORS: Final = 8


@dataclass(frozen=True, kw_only=True)
class Frames(Measure):
    """Anchors, their kind, and what received weight says of them.

    Attributes:
        anchor_rule: when a key is an anchor.
        kind_rule: thresholds of the kinds.
        taus: quantile levels of the weights; the second is the published one.
        gammas: shares of viewers; the third is the published one.
        delimiters: token ids of delimiters, for the share of top anchors that are one; unknown when empty.
        null_heads: about how many heads of a layer, evenly spaced, have their rows shuffled for the null.
        seed: of the shuffled rows.
    """

    name: ClassVar[str] = "frames"
    title: ClassVar[str] = "Reference frames"
    claims: ClassVar[tuple[str, ...]] = ("B1", "B2", "B3", "B7", "B8")

    anchor_rule: AnchorRule = field(default_factory=AnchorRule)
    kind_rule: KindRule = field(default_factory=KindRule)
    taus: tuple[float, ...] = (0.8, 0.9, 0.95, 0.99)
    gammas: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
    delimiters: tuple[int, ...] = ()
    null_heads: int = 4
    seed: int = 0

    def needs(self, subject: Subject) -> Needs:
        """Received weight, and weight on the first and on special tokens."""
        return Needs(received=True, first_keys=1, special=True)

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Frames of one layer."""
        queries = sampled_queries(view.mask, view.problem.length)
        visible = visible_rows(view.mask, queries, view.problem.length)
        rows = view.rows(queries).float().masked_fill(~visible[:, None], 0.0)
        return {**self._kinds(view, rows, visible, queries), **self._sinks(rows, visible, view), **_masses(view, rows, visible)}

    def _kinds(self, view: AttentionView, rows: Tensor, visible: Tensor, queries: Tensor) -> dict[str, Tensor]:
        lengths = view.lengths.to(rows.device)
        far = far_weight(rows, visible, queries, view.mask, self.anchor_rule, layer=True)
        found = anchors(far, lengths, self.anchor_rule)
        features = frame_features(found.weight_BHK, lengths, causal=view.mask.causal)
        some = rows[:, :: max(1, rows.shape[1] // self.null_heads)]
        null = shuffled_rows(some, visible, self.seed + view.layer)
        null_found = anchors(far_weight(null, visible, queries, view.mask, self.anchor_rule), lengths, self.anchor_rule)
        null_features = frame_features(null_found.weight_BHK, lengths, causal=view.mask.causal)
        null_scores = _where_answered(kind_scores(null_features, lengths, self.kind_rule), null_found)
        scores = _where_answered(kind_scores(features, lengths, self.kind_rule), found)
        place, weight = _strongest(found.weight_BHK[:, -1])
        return {
            "score": scores,
            "framed": _where_answered(features.framed, found),
            "top": features.top,
            "effective": features.effective,
            "two_ended": features.two_ended,
            "place": _top_place(found.weight_BHK),
            "anchor_place": place,
            "anchor_weight": _where_answered(weight, found),
            "null_framed": (1 - null_scores[..., 0]).mean(1),
        }

    def _sinks(self, rows: Tensor, visible: Tensor, view: AttentionView) -> dict[str, Tensor]:
        share, seen = sink_shares(rows, visible, self.taus)
        gammas = torch.tensor(self.gammas, device=rows.device)
        eligible = (seen >= SEEN_BY)[None, :, None, :, None]
        above = (share[..., None] >= gammas) & eligible  # tau B H K gamma
        count = above.sum(3).float()
        first = above[:, :, :, 0].float()
        return {
            "sinks": count[1, ..., 2],
            "sink_first": first[1, ..., 2],
            "sink_curve": count.mean(2).permute(1, 0, 2),
            "sink_first_curve": first.mean(2).permute(1, 0, 2),
        }

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals, labels and their scores."""
        return summary.frames_dataset(observed, self.kind_rule, self.taus, self.gammas, self.delimiters)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Score of the model's kind, shares of heads by kind, stability and depth."""
        return summary.headline(dataset)

    def labels(self, dataset: xr.Dataset) -> dict[str, str]:
        """The model's kind in a word, and its layers' kinds as runs."""
        runs = "; ".join(
            f"{kind} {first}-{last}" if last > first else f"{kind} {first}" for first, last, kind in layer_runs(dataset)
        )
        return {"kind": str(dataset.attrs["kind"]), "layers": runs}


def layer_runs(dataset: xr.Dataset) -> list[tuple[int, int, str]]:
    """Runs of neighbouring layers of one kind: first layer, last layer, kind."""
    names: list[str] = [str(name) for name in dataset.attrs["kinds_by_layer"]]
    starts = [0, *(index for index in range(1, len(names)) if names[index] != names[index - 1])]
    return [(first, last - 1, names[first]) for first, last in zip(starts, [*starts[1:], len(names)], strict=True)]


def _where_answered(values: Tensor, found: Anchors) -> Tensor:
    return torch.where(found.answered_B.view(-1, *[1] * (values.ndim - 1)), values, torch.nan)


def _top_place(weight_BHK: Tensor) -> Tensor:
    """Position of the top anchor, -1 where there is none."""
    best = weight_BHK.max(-1)
    return torch.where(best.values > 0, best.indices, -1)


def _strongest(weight_BK: Tensor) -> tuple[Tensor, Tensor]:
    """The layer's strongest anchors, places and weights ``[B, KEPT_ANCHORS]``, padded with weight 0."""
    best = weight_BK.topk(min(KEPT_ANCHORS, weight_BK.shape[-1]), -1)
    missing = KEPT_ANCHORS - best.values.shape[-1]
    pad = torch.nn.functional.pad
    return pad(best.indices, (0, missing)), pad(best.values, (0, missing))


def _masses(view: AttentionView, rows: Tensor, visible: Tensor) -> dict[str, Tensor]:
    """Mean weight on the first, special and last tokens, and effective number of keys by received weight, each with its uniform value."""
    length = view.problem.length
    lengths = view.lengths.to(rows.device)
    position = torch.arange(length, device=rows.device)
    real = ((position[None] < lengths[:, None]) & (position[None] > 0)).float()
    count = real.sum(-1).clamp_min(1)
    seen = view.mask.counts(length).to(rows.device).clamp_min(1).float()

    def mean(values: Tensor) -> Tensor:
        total = torch.einsum("b...t,bt->b...", torch.nan_to_num(values.float()), real)
        return total / count.view(-1, *[1] * (values.ndim - 2))

    specials = _visible_total(view, view.special.to(rows.device).float())
    sees_first = _visible_total(view, (position == 0).float()[None].expand(len(lengths), -1))
    last = (lengths - 1)[:, None, None, None].expand(*rows.shape[:3], 1)
    real_rows = visible.any(-1).sum(-1).clamp_min(1)
    last_mass = torch.gather(rows, -1, last)[..., 0].sum(-1) / real_rows[:, None]
    answered = lengths > 1
    received, uniform = _received_effective(view)
    return {
        "first_mass": torch.where(answered[:, None], mean(view.first[..., 0]), torch.nan),
        "first_uniform": torch.where(answered, mean(sees_first / seen), torch.nan),
        "special_mass": torch.where(answered[:, None], mean(view.special_mass), torch.nan),
        "special_uniform": torch.where(answered, mean(specials / seen), torch.nan),
        "last_mass": torch.full_like(last_mass, torch.nan) if view.mask.causal else last_mass,
        "received_effective": received,
        "received_effective_uniform": uniform,
    }


def _visible_total(view: AttentionView, weights: Tensor) -> Tensor:
    """Sum of ``weights [B, T]`` over the keys that each query sees, ``[B, T]``."""
    length = weights.shape[-1]
    first, last = view.mask.key_range(torch.arange(length, device=weights.device))
    total = torch.nn.functional.pad(weights.cumsum(-1), (1, 0))
    return total[:, (last + 1).clamp_max(length)] - total[:, first.clamp_max(length)]


def _received_effective(view: AttentionView) -> tuple[Tensor, Tensor]:
    """Effective number of keys by received weight per viewer, and the same for uniform attention."""
    length = view.problem.length
    seen_by = viewers(view.mask, length).to(view.received.device).float()
    eligible = seen_by >= SEEN_BY * seen_by.amax(-1, keepdim=True)
    each = torch.nan_to_num(view.received.float()) / seen_by.clamp_min(1)[:, None]
    expected = uniform_received(view.mask, length).to(each.device)
    return effective_number(each * eligible[:, None]), effective_number(expected * eligible)

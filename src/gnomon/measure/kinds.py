"""Kinds of reference frame: none, centralized, distributed, bidirectional (claim B3).

**Input.** The anchors of a head, of a layer (rows averaged over heads) or of a model (anchors averaged over layers): weights beyond chance, one per key
(:mod:`gnomon.measure.anchors`).

**Features.** ``framed``: their sum, the share of an average far row that goes to anchors. ``top``: the largest over the sum. ``effective``: the inverse
participation, how many equal anchors would do the same. ``two_ended``: twice the smaller of the weights on the first and on the last real token over
the sum, 1 when two equal anchors stand at both ends and 0 when one end is empty. A causal model cannot see its last token from afar, so this is 0 there and
"bidirectional" is reserved for models that look both ways.

**Decision.** Soft steps ``S(x) = 1 / (1 + exp(-x / width))``:

    f = S(framed - least) S(crowd - effective / n),    e = S(two_ended - ends),    c = S(top - dominant)
    none = 1 - f,   bidirectional = f e,   centralized = f (1 - e) c,   distributed = f (1 - e) (1 - c)

The four scores add up to 1; the label is the largest; its score says how sure. Scores are averaged over sequences, never features.

**What it cannot show.** The scores are positions relative to thresholds, not probabilities of being right; how often the labels are right on attention of
known kind is measured on constructed patterns and tabled in the documentation. Features follow the paper's words; the rule and its thresholds are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor

from gnomon.measure.anchors import effective_number

KINDS: Final = ("none", "centralized", "distributed", "bidirectional")


@dataclass(frozen=True, kw_only=True)
class KindRule:
    """Thresholds of the decision, and the widths of its soft steps.

    Attributes:
        least: anchored share of an average far row below which there is no frame.
        dominant: share of the top anchor above which one anchor rules.
        ends: two-ended share above which the ends rule.
        crowd: effective anchors per token above which weights are an unevenness rather than a frame.
        width: width of the soft steps of ``least`` and ``crowd``.
        width_shares: width of the soft steps of ``dominant`` and ``ends``.
    """

    least: float = 0.15
    dominant: float = 0.65
    ends: float = 0.5
    crowd: float = 0.4
    width: float = 0.02
    width_shares: float = 0.04


class Features(NamedTuple):
    """What the decision looks at, each ``[B, ...]``; ``top``, ``effective`` and ``two_ended`` are NaN where there is no anchor."""

    framed: Tensor
    top: Tensor
    effective: Tensor
    two_ended: Tensor


def frame_features(weight_BHK: Tensor, lengths: Tensor, *, causal: bool) -> Features:
    """Features of anchors ``[B, H, K]`` of sequences of ``lengths``."""
    total = weight_BHK.sum(-1)
    safe = torch.where(total > 0, total, torch.nan)
    if causal:
        two_ended = torch.zeros_like(total)
    else:
        last_B11 = (lengths.to(weight_BHK.device) - 1)[:, None, None].expand(-1, weight_BHK.shape[1], 1)
        end = torch.gather(weight_BHK, -1, last_B11)[..., 0]
        two_ended = 2 * torch.minimum(weight_BHK[..., 0], end)
    return Features(total.clamp_max(1.0), weight_BHK.amax(-1) / safe, effective_number(weight_BHK), two_ended / safe)


def kind_scores(features: Features, lengths: Tensor, rule: KindRule) -> Tensor:
    """Soft scores in the order of ``KINDS``, ``[B, H, 4]``."""
    crowd = torch.nan_to_num(features.effective, nan=0.0) / lengths.to(features.framed.device)[:, None]
    framed = torch.sigmoid((features.framed - rule.least) / rule.width) * torch.sigmoid((rule.crowd - crowd) / rule.width)
    framed = torch.where(features.framed > 0, framed, 0.0)
    ends = torch.sigmoid((torch.nan_to_num(features.two_ended, nan=0.0) - rule.ends) / rule.width_shares)
    top = torch.sigmoid((torch.nan_to_num(features.top, nan=0.0) - rule.dominant) / rule.width_shares)
    return torch.stack([1 - framed, framed * (1 - ends) * top, framed * (1 - ends) * (1 - top), framed * ends], -1)

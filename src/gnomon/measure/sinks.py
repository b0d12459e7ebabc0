"""Sinks: weight on position 0 and on special tokens, whatever they mean.

**Quantities**, per layer and head:

- ``position_0_mass``: mean over queries of ``a_i0``, over all queries from 1 on and by band (:mod:`gnomon.measure.bands`), beside what
  uniform attention over the visible keys would give (``position_0_uniform``); likewise ``special_mass`` on BOS, EOS, CLS, SEP and the
  like wherever they stand, and ``other_special_mass`` on those that are not at position 0;
- ``alpha_0``: mean over *all* queries that see position 0, itself included. The **sink rate** is the share of (sequence, layer, head)
  with ``alpha_0 > eps`` (Gu et al., ICLR 2025: eps = 0.3, windows of T = 64); it is given over a range of eps. In a causal model the rate
  depends on T through query 0, which contributes 1 / T: compare with published figures at T = 64 only;
- ``strongest_alpha``: the largest ``alpha_k = sum_i a_ik / (number of queries that see k)`` over keys that at least 30 % of the queries
  see, and how often that key is position 0 or a special token (``strongest_is_first``, ``strongest_is_special``);
- ``head_share``: share of heads whose mean weight on position 0, over sequences and queries from 32 on, exceeds a threshold (.3 is the
  usual one), in all and by thirds of the depth; its interval resamples sequences.

**Range** 0 to 1. **Zero point**: the uniform baseline; at a mean of 0.3 over queries from 32 on it is exceeded many times over.

**What it cannot show.** Whether a sink carries anything (``reads``, ``values``), or which keys beside these anchor a head
(``frames``). A layer whose window hides position 0 from all queries of a band has no value there (NaN), which is not a mass of 0; the
share of heads is then over the heads that have one. Special tokens that a query cannot see, or that are not in the text, likewise.
With learned sink logits the weights on the sequence add up to less than 1, and what they take is not counted as a sink here.

Claims served: B2; A6 through the heads that read position 0. B1's own definition of a sink is in ``frames``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import DEPTH, HEAD, LAYER, QUERY_BAND, THRESHOLD
from gnomon.kernels.quantities import Needs
from gnomon.measure.averaged import Averages, nan_mean, read_estimate
from gnomon.measure.bands import (
    ALL,
    FROM_32,
    QUERY_BANDS,
    band_members,
    mean_over,
    real_positions,
    received_per_viewer,
    sees_position_0,
    uniform_weight,
    viewers,
    visible_special,
)
from gnomon.measure.overall import add_overall, read_overall
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate, bootstrap

Floats = NDArray[np.floating]
DEPTHS: Final = ("all", "first_third", "middle_third", "last_third")
SEEN_BY: Final = 0.3
UNSEEN: Final = "no query of this band sees position 0, or no sequence is long enough to have such queries"
NO_SPECIAL: Final = "the text has no special token that these queries see"


@dataclass(frozen=True, kw_only=True)
class Sinks(Measure):
    """Weight on position 0 and on special tokens.

    Attributes:
        thresholds: of the sink rate and of the share of heads; must contain 0.3.
    """

    name: ClassVar[str] = "sinks"
    title: ClassVar[str] = "Attention sinks"
    claims: ClassVar[tuple[str, ...]] = ("B2", "A6")

    thresholds: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

    def __post_init__(self) -> None:
        if 0.3 not in self.thresholds or not all(0 < value < 1 for value in self.thresholds):
            raise ValueError(f"`thresholds` must lie between 0 and 1 and contain 0.3, got {self.thresholds}; add 0.3.")

    def needs(self, subject: Subject) -> Needs:
        """Weight on the first key and on special tokens by query, and what each key receives."""
        return Needs(first_keys=1, special=True, received=True)

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Means over queries, per sequence and head."""
        length = view.problem.length
        device = view.first.device
        members = band_members(length, device=device)
        first = view.first[..., 0]
        sees, real = sees_position_0(view.mask, length), real_positions(view.mask, length)
        uniform = uniform_weight(view.mask, length)
        num_special = visible_special(view.mask, view.special)
        num_other = num_special - (sees & view.special[:, :1]).long()
        other_mass = view.special_mass - first * view.special[:, None, :1]
        every = torch.ones(length, 1, dtype=torch.bool, device=device)
        return {
            "position_0_mass": mean_over(first, sees, members),
            "position_0_uniform": mean_over(uniform, sees, members),
            "special_mass": mean_over(view.special_mass, real & (num_special > 0), members),
            "special_uniform": mean_over(uniform * num_special, real & (num_special > 0), members),
            "other_special_mass": mean_over(other_mass, real & (num_other > 0), members)[..., ALL],
            "other_special_uniform": mean_over(uniform * num_other, real & (num_other > 0), members)[..., ALL],
            "alpha_0": mean_over(first, sees, every)[..., 0],
            **_strongest(view, real),
        }

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means with intervals, rates and shares over thresholds."""
        kept = observed.layers
        out = Averages(observed.subject.seed)
        _add_masses(out, kept)
        _add_strongest(out, kept)
        _add_rates(out, kept["alpha_0"], self.thresholds)
        _add_head_share(out, kept["position_0_mass"][..., FROM_32], self.thresholds, observed.subject.seed)
        _add_overall(out, kept)
        windows = observed.subject.windows
        return out.dataset(
            attrs={
                "missing": f"position_0: {UNSEEN}; special: {NO_SPECIAL}",
                "query_bands": "; ".join(f"{name}: {low} to {high - 1:g}" for name, (low, high) in QUERY_BANDS.items()),
                "length": windows.length,
                "sequences": len(windows),
                "first_token": windows.first_token.text or "first token of the text",
                "sink_rate_note": "published sink rates are for windows of 64 tokens"
                + ("" if windows.length == 64 else ", these are not"),
            },
            coords={QUERY_BAND: list(QUERY_BANDS), THRESHOLD: list(self.thresholds), DEPTH: list(DEPTHS)},
        )

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Shares of heads, sink rate, and masses against their baselines."""
        at = dataset.sel({THRESHOLD: 0.3})
        n = int(dataset.attrs["sequences"])
        shares = {
            f"head_share_03{'' if depth == 'all' else '_' + depth}": read_estimate(
                at.sel({DEPTH: depth}), "head_share", n, UNSEEN
            )
            for depth in DEPTHS
        }
        return {
            **shares,
            "sink_rate_03": read_estimate(at, "sink_rate", n, UNSEEN),
            "position_0_mass": read_overall(dataset, "position_0_mass", UNSEEN),
            "position_0_uniform": read_overall(dataset, "position_0_uniform", UNSEEN),
            "special_mass": read_overall(dataset, "special_mass", NO_SPECIAL),
            "other_special_mass": read_overall(dataset, "other_special_mass", NO_SPECIAL),
            "strongest_is_first": read_overall(dataset, "strongest_is_first", "no sequence has a key that 30 % of queries see"),
        }


def _strongest(view: AttentionView, real: Tensor) -> dict[str, Tensor]:
    """The key with the largest mean weight per viewer, among keys that enough queries see."""
    seen = viewers(view.mask, view.problem.length)
    eligible = real & (seen >= SEEN_BY * view.lengths[:, None])
    none = ~eligible.any(1)[:, None]
    alpha = received_per_viewer(view.received, view.mask).masked_fill(~eligible[:, None], -1.0)
    value, key = alpha.max(-1)
    special = torch.gather(view.special[:, None].expand_as(alpha), -1, key[..., None])[..., 0]
    return {
        "strongest_alpha": value.masked_fill(none, torch.nan),
        "strongest_is_first": (key == 0).to(value.dtype).masked_fill(none, torch.nan),
        "strongest_is_special": special.to(value.dtype).masked_fill(none, torch.nan),
    }


def _add_masses(out: Averages, kept: Mapping[str, NDArray[Any]]) -> None:
    for name, what in (("position_0", "position 0"), ("special", "special tokens")):
        mass, uniform = kept[f"{name}_mass"], kept[f"{name}_uniform"]
        out.mean(f"{name}_mass", mass[..., ALL], (LAYER, HEAD), f"mean weight on {what}, queries from 1 on")
        out.mean(f"{name}_mass_by_band", mass, (LAYER, HEAD, QUERY_BAND), f"mean weight on {what} by band of queries")
        out.mean(f"{name}_uniform", uniform[..., ALL], (LAYER,), f"the same for {what} under uniform attention over visible keys")
        out.mean(f"{name}_uniform_by_band", uniform, (LAYER, QUERY_BAND), f"uniform weight on {what} by band of queries")
        by_layer = nan_mean(mass, 2)
        out.mean(f"layer_{name}_mass", by_layer, (LAYER, QUERY_BAND), f"mean weight on {what}, mean over heads")
    what = "special tokens beyond position 0"
    out.mean("other_special_mass", kept["other_special_mass"], (LAYER, HEAD), f"mean weight on {what}, queries from 1 on")
    out.mean("other_special_uniform", kept["other_special_uniform"], (LAYER,), f"uniform weight on {what}")


def _add_strongest(out: Averages, kept: Mapping[str, NDArray[Any]]) -> None:
    for name, what in (
        ("alpha_0", "mean weight that position 0 gets from all queries that see it"),
        ("strongest_alpha", "largest mean weight that any key gets from its viewers"),
        ("strongest_is_first", "share of sequences in which that key is position 0"),
        ("strongest_is_special", "share of sequences in which that key is a special token"),
    ):
        out.mean(name, kept[name], (LAYER, HEAD), what)


def _add_rates(out: Averages, alpha: Floats, thresholds: tuple[float, ...]) -> None:
    """Share of heads with ``alpha_0`` above each threshold, per sequence, then averaged over sequences."""
    above = np.stack([np.where(np.isfinite(alpha), alpha > value, np.nan) for value in thresholds], -1)
    out.mean(
        "sink_rate", nan_mean(above, (1, 2)), (THRESHOLD,), "share of (sequence, layer, head) with alpha_0 above the threshold"
    )
    out.mean("layer_sink_rate", nan_mean(above, 2), (LAYER, THRESHOLD), "the same for each layer")


def _add_head_share(out: Averages, mass: Floats, thresholds: tuple[float, ...], seed: int) -> None:
    """Share of heads whose mean mass over sequences exceeds each threshold; the mean is taken anew in every resample."""
    finite = np.isfinite(mass)
    filled = np.where(finite, mass, 0.0).reshape(len(mass), -1)
    counted = finite.reshape(len(mass), -1).astype(np.float64)
    shape = mass.shape[1:]
    depths = _depths(shape[0])

    def shares(weights: NDArray[np.float64]) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = ((weights @ filled) / (weights @ counted)).reshape(shape)
            above = (mean[None] > np.array(thresholds)[:, None, None]).sum(2)  # [threshold, layer]; False where NaN
            have = np.isfinite(mean).sum(1)
            by_depth = [above[:, where].sum(1) / have[where].sum() for where in depths]
            return np.concatenate([np.stack(by_depth), (above / have).T])

    interval = bootstrap(shares, len(mass), seed=seed)
    what = "share of heads whose mean weight on position 0, queries from 32 on, exceeds the threshold"
    for suffix, values in (("", interval.value), ("_low", interval.low), ("_high", interval.high)):
        bound = {"": "", "_low": ", lower bound of the 95 % interval", "_high": ", upper bound of the 95 % interval"}[suffix]
        out.add(f"head_share{suffix}", values[: len(DEPTHS)], (DEPTH, THRESHOLD), what + bound)
        out.add(f"layer_head_share{suffix}", values[len(DEPTHS) :], (LAYER, THRESHOLD), f"{what}, by layer{bound}")


def _depths(num_layers: int) -> list[NDArray[np.int64]]:
    """Layers in all and by thirds of the depth; a third without a layer is empty."""
    layers = np.arange(num_layers)
    third = layers * 3 // max(num_layers, 1)
    return [layers, *(np.flatnonzero(third == index) for index in range(3))]


def _add_overall(out: Averages, kept: Mapping[str, NDArray[Any]]) -> None:
    for name, values in (
        ("position_0_mass", kept["position_0_mass"][..., ALL]),
        ("position_0_uniform", kept["position_0_uniform"][..., ALL]),
        ("special_mass", kept["special_mass"][..., ALL]),
        ("other_special_mass", kept["other_special_mass"]),
        ("strongest_is_first", kept["strongest_is_first"]),
    ):
        add_overall(out, name, values, f"{name}, mean over layers and heads")

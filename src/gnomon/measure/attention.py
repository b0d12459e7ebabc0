"""How concentrated and how far-reaching attention is.

**Quantities**, per query, then averaged over all queries from 1 on and by band (:mod:`gnomon.measure.bands`), per layer and head:

- ``entropy`` of the row in nats, ``-sum_j a_ij ln a_ij``; 0 when one key takes all, ``ln n`` when n visible keys share equally;
- ``relative_entropy``: entropy over ``ln n``, the zero point against which entropies at different positions compare (queries that see at
  least two keys); ``effective_keys``: ``exp(entropy)``, from 1 to n; ``peak``: the largest weight; ``self_mass``: the weight ``a_ii``;
- ``offset_mean`` and ``offset_sd``: mean and standard deviation of ``|i - j|`` under the row's weights, in tokens;
- ``offset_mass``: weight by octave of ``|i - j|``, beside the same under uniform attention over visible keys;
- ``received``: mean weight per (query, visible key) pair by octave of the key's position, beside the uniform value;
- ``sequence_mass``: total weight on the sequence: 1 but for models with learned sink logits, which take the rest.

**What it cannot show.** Entropy and peak grow and shrink with the number of visible keys: compare bands with their baselines, not
with each other. With learned sink logits the entropy is that of the weights on the sequence as they are (not renormalised), while
offsets are renormalised. ``offset_mean`` of a head that reads position 0 is large without the head being "global".

Claims served: C1 (local and global heads), B2 and B5 as the plain row entropy; A2 in outline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import xarray as xr
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import HEAD, LAYER, OFFSET_BAND, POSITION_BAND, QUERY_BAND
from gnomon.kernels.quantities import DEFAULT_OFFSET_EDGES, Needs
from gnomon.measure.averaged import Averages
from gnomon.measure.bands import (
    ALL,
    POSITION_EDGES,
    QUERY_BANDS,
    band_members,
    mean_over,
    position_members,
    real_positions,
    uniform_offset_mass,
    uniform_received,
    viewers,
)
from gnomon.measure.overall import add_overall, read_overall
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

BY_BAND: Final = {
    "entropy": ("mean entropy of a query's weights", "nats"),
    "relative_entropy": ("mean entropy over the logarithm of the number of visible keys", "1"),
    "effective_keys": ("mean of exp(entropy)", "keys"),
    "peak": ("mean largest weight", "1"),
    "self_mass": ("mean weight of a query on its own position", "1"),
    "offset_mean": ("mean offset |query - key| under the weights", "tokens"),
    "offset_sd": ("mean standard deviation of the offset under the weights", "tokens"),
    "sequence_mass": ("mean total weight on the sequence", "1"),
}
SHORT: Final = "no sequence has a query in this band"


@dataclass(frozen=True, kw_only=True)
class Attention(Measure):
    """Entropy, peak, offsets and received weight."""

    name: ClassVar[str] = "attention"
    title: ClassVar[str] = "Concentration and reach"
    claims: ClassVar[tuple[str, ...]] = ("C1", "B5", "A2")

    def needs(self, subject: Subject) -> Needs:
        """All moments, weight by octave of offset, and what each key receives."""
        return Needs(
            moments=frozenset({"entropy", "peak", "offset_mean", "offset_square", "self_mass"}),
            offset_edges=DEFAULT_OFFSET_EDGES,
            received=True,
        )

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Means over queries and over keys, per sequence and head."""
        length, mask = view.problem.length, view.mask
        offset_mass = view.offset_mass
        members = band_members(length, device=offset_mass.device)
        real = real_positions(mask, length)
        counts = mask.counts(length).to(offset_mass.dtype)
        total = offset_mass.sum(-1)
        entropy = view.moment("entropy")
        mean = view.moment("offset_mean") / total
        by_query = {
            "entropy": entropy,
            "effective_keys": entropy.exp(),
            "peak": view.moment("peak"),
            "self_mass": view.moment("self_mass"),
            "offset_mean": mean,
            "offset_sd": (view.moment("offset_square") / total - mean.square()).clamp_min(0.0).sqrt(),
            "sequence_mass": total,
        }
        kept = {name: mean_over(values, real, members) for name, values in by_query.items()}
        several = real & (counts > 1)
        kept["relative_entropy"] = mean_over(entropy / counts.log()[:, None], several, members)
        everything = members[:, ALL : ALL + 1]
        edges = DEFAULT_OFFSET_EDGES
        kept["offset_mass"] = mean_over(offset_mass, real, everything)[:, :, 0]
        kept["offset_uniform"] = mean_over(uniform_offset_mass(mask, length, edges)[:, None], real, everything)[:, 0, 0]
        return {**kept, **_received(view, real)}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means with intervals; octaves beyond the length are dropped."""
        kept, windows = observed.layers, observed.subject.windows
        out = Averages(observed.subject.seed)
        for name, (what, units) in BY_BAND.items():
            out.mean(name, kept[name][..., ALL], (LAYER, HEAD), f"{what}, queries from 1 on", units)
            out.mean(f"{name}_by_band", kept[name], (LAYER, HEAD, QUERY_BAND), f"{what}, by band of queries", units)
        bands = [edge for edge in DEFAULT_OFFSET_EDGES if edge < windows.length]
        octaves = [edge for edge in POSITION_EDGES if edge < windows.length]
        for name, dim, size, what in (
            ("offset", OFFSET_BAND, len(bands), "mean weight by octave of the offset, queries from 1 on"),
            ("received", POSITION_BAND, len(octaves), "mean weight per query that sees the key, by octave of the key's position"),
        ):
            mass = "offset_mass" if name == "offset" else "received"
            out.mean(mass, kept[mass][..., :size], (LAYER, HEAD, dim), what)
            out.mean(f"{mass}_uniform", kept[f"{name}_uniform"][..., :size], (LAYER, dim), f"{what}, under uniform attention")
        for name, (what, units) in BY_BAND.items():
            add_overall(out, name, kept[name][..., ALL], f"{what}, mean over layers and heads", units)
        return out.dataset(
            attrs={
                "missing": f"{SHORT}, or no key in this octave",
                "query_bands": "; ".join(f"{name}: {low} to {high - 1:g}" for name, (low, high) in QUERY_BANDS.items()),
                "length": windows.length,
                "sequences": len(windows),
            },
            coords={
                QUERY_BAND: list(QUERY_BANDS),
                OFFSET_BAND: (OFFSET_BAND, bands, {"long_name": "smallest offset of the octave", "units": "tokens"}),
                POSITION_BAND: (POSITION_BAND, octaves, {"long_name": "first position of the octave", "units": "tokens"}),
            },
        )

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Model means over all heads and queries from 1 on."""
        return {name: read_overall(dataset, name, SHORT) for name in BY_BAND}


def _received(view: AttentionView, real: Tensor) -> dict[str, Tensor]:
    """Weight received per viewing query, by octave of the key's position: a ratio of sums, so that rarely seen keys count little."""
    length = view.problem.length
    members = position_members(length, device=real.device)
    seen = viewers(view.mask, length).to(view.received.dtype)
    share = mean_over(seen, real, members)
    uniform = uniform_received(view.mask, length).to(view.received.dtype)
    return {
        "received": mean_over(view.received, real, members) / share[:, None],
        "received_uniform": mean_over(uniform, real, members) / share,
    }

"""What a sink gives: nothing, or the same thing to everybody (claim B6).

The anchor of a head is the key that gets most beyond uniform attention per query that sees it, among keys that at least 30 % of the best seen key's viewers see. It carries a
value ``v_s``, and the head writes ``a_is W_O v_s`` to query i.

**Quantities**, per head and sequence:

- ``mass``: mean weight on the anchor, over queries that see it; ``excess``: that less what uniform attention over visible keys gives it;
- ``value_ratio``: ``|v_s|`` over the median of the other tokens' ``|v_j|``; ``write_ratio``: the same for ``|W_O v|``; 1 for a token like any other, 0 for a no-operation;
- ``share``: ``mass |W_O v_s|`` over the mean norm of what the head writes in all; may exceed 1 where other tokens cancel it;
- ``weight_constancy``: ``(mean_i a_is)^2 / mean_i a_is^2`` over sampled later queries, 1 when all take the same amount;
- ``output_constancy``: ``|mean_i o_i|^2 / mean_i |o_i|^2`` of the head's whole write, 1 when it writes the same to all queries, about 1 / n when unrelated;
- ``alignment``: mean ``|cos|`` between the anchors' writes of different heads of a layer; ``sqrt(2 / (pi E))`` for unrelated directions (``alignment_chance``);
- ``direction_constancy``: mean cosine between the writes of different sequences, from 32 random projections of the unit vectors (error about 0.1 for unrelated ones).

**Roles** (ours): ``no sink`` when ``excess < 0.15``; else ``no-operation`` when ``write_ratio <= 0.5``; ``broadcast`` when ``write_ratio >= 1`` and ``weight_constancy >= 0.8``; else ``mixed``. Their
shares over sequences are the score.

**Null.** Position by position, an ordinary token has ratios of 1 by construction. **Missing:** models without a linear output map have no write quantities; sequences of fewer
than four tokens. **It cannot show** what the later layers make of a write: see ``intervention``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, ClassVar, Final

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import HEAD, LAYER
from gnomon.kernels.quantities import Needs
from gnomon.measure.anchors import sampled_queries, uniform_received, visible_rows
from gnomon.measure.averaged import Averages, nan_mean, read_estimate
from gnomon.measure.bands import viewers
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate

ROLE: Final = "role"
ROLES: Final = ("no sink", "no-operation", "broadcast", "mixed")
SEEN_BY: Final = 0.3
PROJECTIONS: Final = 32
SHORT: Final = "fewer than four tokens"
NO_MAP: Final = "the model has no linear map from head outputs to the residual stream"


@dataclass(frozen=True, kw_only=True)
class RoleRule:
    """When a sink is a no-operation and when a broadcast.

    Attributes:
        excess: least mean weight of a sink beyond uniform attention.
        silent: largest write ratio of a no-operation.
        loud: least write ratio of a broadcast.
        constant: least constancy of weight of a broadcast.
    """

    excess: float = 0.15
    silent: float = 0.5
    loud: float = 1.0
    constant: float = 0.8


@dataclass(frozen=True, kw_only=True)
class Values(Measure):
    """Values and writes of anchors.

    Attributes:
        rule: thresholds of the roles.
        seed: of the random projections.
    """

    name: ClassVar[str] = "values"
    title: ClassVar[str] = "Anchors in value space"
    claims: ClassVar[tuple[str, ...]] = ("B6",)

    rule: RoleRule = RoleRule()
    seed: int = 0

    def needs(self, subject: Subject) -> Needs:
        """Received weight."""
        return Needs(received=True)

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Values and writes of one layer."""
        place, mass, excess = anchor_of(view)
        lengths = view.lengths.to(mass.device)
        length, group = view.problem.length, view.problem.group
        other = torch.arange(length, device=mass.device)[None, None] != place[..., None]
        real = torch.arange(length, device=mass.device)[None] < lengths[:, None]
        value = view.problem.value.float()
        norm = value.norm(dim=-1).repeat_interleave(group, 1)
        anchor_value = _at(value.repeat_interleave(group, 1), place)
        out = {
            "mass": mass,
            "excess": excess,
            "value_ratio": _ratio(norm, place, real[:, None] & other),
            "weight_constancy": weight_constancy(view, place),
            **self._writes(view, value, anchor_value, place, mass, real, other),
        }
        out["role"] = roles(out["excess"], out["write_ratio"], out["weight_constancy"], self.rule)
        enough = lengths >= 4
        return {name: torch.where(enough.view(-1, *[1] * (part.ndim - 1)), part, torch.nan) for name, part in out.items()}

    def _writes(
        self, view: AttentionView, value: Tensor, anchor_value: Tensor, place: Tensor, mass: Tensor, real: Tensor, other: Tensor
    ) -> dict[str, Tensor]:
        """What goes through the output map; NaN without one."""
        missing = torch.full_like(mass, torch.nan)
        if view.output_weight is None:
            return {
                "write_ratio": missing,
                "share": missing,
                "output_constancy": missing,
                "alignment": missing[:, 0],
                "alignment_chance": missing[:, 0],
                "direction": missing[..., None].expand(-1, -1, PROJECTIONS),
            }
        weight_EHD = view.output_weight.to(mass.device).float()
        gram_HDC = torch.einsum("ehd,ehc->hdc", weight_EHD, weight_EHD)
        size = _written(value.repeat_interleave(view.problem.group, 1), gram_HDC)
        output = torch.nan_to_num(view.quantities.output.float()) * real[:, None, :, None]
        count = real.sum(-1).float()[:, None]
        written = _written(output, gram_HDC)
        middle = output.sum(2) / count[..., None]
        constant = torch.einsum("bhd,hdc,bhc->bh", middle, gram_HDC, middle).clamp_min(0.0)
        energy = (written.square() * real[:, None]).sum(-1) / count
        at_anchor = torch.gather(size, 2, place[..., None])[..., 0]
        mean_written = (written * real[:, None]).sum(-1) / count
        write_BHE = torch.einsum("ehd,bhd->bhe", weight_EHD, anchor_value)
        unit = write_BHE / write_BHE.norm(dim=-1, keepdim=True).clamp_min(1e-30)
        return {
            "write_ratio": _ratio(size, place, real[:, None] & other),
            "share": mass * at_anchor / torch.where(mean_written > 0, mean_written, torch.nan),
            "output_constancy": constant / torch.where(energy > 0, energy, torch.nan),
            "alignment": alignment_of(unit),
            "alignment_chance": torch.full_like(missing[:, 0], sqrt(2 / (pi * unit.shape[-1]))),
            "direction": unit @ _projections(unit.shape[-1], self.seed).to(unit.device),
        }

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals, and roles."""
        out, layers = Averages(observed.subject.seed), observed.layers
        for name, what in _DESCRIBED.items():
            out.mean(name, layers[name], (LAYER, HEAD), what)
        out.mean("alignment", layers["alignment"], (LAYER,), "mean |cosine| between the anchors' writes of different heads")
        out.mean("alignment_overall", nan_mean(layers["alignment"], 1), (), "mean |cosine| between anchors' writes, over layers")
        out.add("alignment_chance", nan_mean(layers["alignment_chance"], (0, 1)), (), "mean |cosine| of unrelated directions")
        constancy = direction_constancy(layers["direction"])
        out.add("direction_constancy", constancy, (LAYER, HEAD), "mean cosine between the anchors' writes of different sequences")
        role = np.asarray(layers["role"])
        shares = np.where(np.isfinite(role)[..., None], role[..., None] == np.arange(len(ROLES)), np.nan)
        out.mean("role_share", shares, (LAYER, HEAD, ROLE), "share of sequences in which the head's anchor has the role")
        out.mean("role_overall", nan_mean(shares, (1, 2)), (ROLE,), "share of roles over layers and heads")
        sink = role > 0
        for name in ("value_ratio", "write_ratio", "share"):
            values = np.where(sink, layers[name], np.nan)
            out.mean(f"{name}_overall", nan_mean(values, (1, 2)), (), f"{_DESCRIBED[name]}, over heads with a sink")
        whole = nan_mean(shares, 0)
        label = np.where(np.isfinite(whole).all(-1), np.nan_to_num(whole).argmax(-1), -1).astype(np.int8)
        out.add("role_of_head", label, (LAYER, HEAD), "commonest role of the head's anchor; -1 unknown", roles=list(ROLES))
        attrs = {"missing": f"{SHORT}; writes: {NO_MAP}", "definitions": "roles and constancies are ours", "sequences": len(role)}
        return out.dataset(attrs, {ROLE: list(ROLES)})

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Shares of roles, and ratios of heads with a sink."""
        number = int(dataset.attrs["sequences"])
        reason = f"no head had a sink, or {NO_MAP}"
        out = {
            name: read_estimate(dataset, f"{name}_overall", number, reason)
            for name in ("value_ratio", "write_ratio", "share", "alignment")
        }
        for role in ROLES:
            parts = dataset.sel(role=role)
            out[f"role_{role.replace(' ', '_').replace('-', '_')}"] = read_estimate(parts, "role_overall", number, reason)
        return out


_DESCRIBED: Final = {
    "mass": "mean weight on the anchor",
    "excess": "mean weight on the anchor beyond uniform attention",
    "value_ratio": "norm of the anchor's value over the median of the others",
    "write_ratio": "norm of what the anchor's value writes over the median of the others",
    "share": "what is written from the anchor over what is written in all",
    "weight_constancy": "constancy over queries of the weight on the anchor",
    "output_constancy": "constancy over queries of what the head writes",
}


def anchor_of(view: AttentionView) -> tuple[Tensor, Tensor, Tensor]:
    """The key of each head that gets most beyond uniform attention, ``[B, H]``, the mean weight on it, and the part beyond."""
    seen_by = viewers(view.mask, view.problem.length).to(view.received.device).float()
    eligible = seen_by >= SEEN_BY * seen_by.amax(-1, keepdim=True)
    each = torch.nan_to_num(view.received.float()) / seen_by.clamp_min(1)[:, None]
    beyond = each - uniform_received(view.mask, view.problem.length).to(each.device)[:, None]
    best = beyond.masked_fill(~eligible[:, None], -2.0).max(-1)
    return best.indices, torch.gather(each, -1, best.indices[..., None])[..., 0], best.values


def weight_constancy(view: AttentionView, place: Tensor) -> Tensor:
    """``(mean a)^2 / mean a^2`` of the weight that sampled queries other than the anchor give it, ``[B, H]``."""
    queries = sampled_queries(view.mask, view.problem.length)
    visible = visible_rows(view.mask, queries, view.problem.length)
    rows = view.rows(queries).float().masked_fill(~visible[:, None], 0.0)
    index = place[:, :, None, None].expand(-1, -1, len(queries), 1)
    weight = torch.gather(rows, -1, index)[..., 0]
    sees = torch.gather(visible[:, None].expand(rows.shape), -1, index)[..., 0] & (queries != place[..., None])
    count = sees.sum(-1)
    mean = weight.mul(sees).sum(-1) / count.clamp_min(1)
    square = weight.square().mul(sees).sum(-1) / count.clamp_min(1)
    return torch.where((count >= 2) & (square > 0), mean.square() / square, torch.nan)


def roles(excess: Tensor, write_ratio: Tensor, constancy: Tensor, rule: RoleRule) -> Tensor:
    """Index into ``ROLES``; NaN for a sink whose write or constancy is unknown."""
    role = torch.full_like(excess, 3.0)
    role = torch.where((write_ratio >= rule.loud) & (constancy >= rule.constant), 2.0, role)
    role = torch.where(write_ratio <= rule.silent, 1.0, role)
    role = torch.where(torch.isnan(write_ratio) | torch.isnan(constancy), torch.nan, role)
    return torch.where(excess < rule.excess, 0.0, role)


def alignment_of(unit_BHE: Tensor) -> Tensor:
    """Mean absolute cosine between different heads, ``[B]``; NaN for a single head."""
    heads = unit_BHE.shape[1]
    cosine = (unit_BHE @ unit_BHE.transpose(-1, -2)).abs()
    total = cosine.sum((-1, -2)) - cosine.diagonal(dim1=-2, dim2=-1).sum(-1)
    return total / (heads * (heads - 1)) if heads > 1 else torch.full_like(total, torch.nan)


def direction_constancy(sketch_NLHP: NDArray[Any]) -> NDArray[np.float64]:
    """Mean cosine between sequences of projected directions, ``[L, H]``; NaN below three sequences."""
    sketch = np.asarray(sketch_NLHP, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = sketch / np.linalg.norm(sketch, axis=-1, keepdims=True)
        known = np.isfinite(unit).all(-1)
        number = known.sum(0)
        total = np.square(np.where(known[..., None], unit, 0.0).sum(0)).sum(-1)
        mean = (total - number) / (number * (number - 1))
    return np.where(number >= 3, mean, np.nan)


def _at(values_BHTD: Tensor, place_BH: Tensor) -> Tensor:
    index = place_BH[..., None, None].expand(-1, -1, 1, values_BHTD.shape[-1])
    return torch.gather(values_BHTD, 2, index)[:, :, 0]


def _written(values_BHTD: Tensor, gram_HDC: Tensor) -> Tensor:
    """Norm of what vectors become through each head's output map, ``[B, H, T]``."""
    return (torch.einsum("bhtd,hdc->bhtc", values_BHTD, gram_HDC) * values_BHTD).sum(-1).clamp_min(0.0).sqrt()


def _ratio(size_BHT: Tensor, place_BH: Tensor, others_BHT: Tensor) -> Tensor:
    """Size at the anchor over the median of the others."""
    median = size_BHT.masked_fill(~others_BHT, torch.nan).nanmedian(-1).values
    return torch.gather(size_BHT, 2, place_BH[..., None])[..., 0] / torch.where(median > 0, median, torch.nan)


def _projections(width: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(width, PROJECTIONS, generator=generator)

"""What each head carries from position 0: how much it looks there, and how much of its output comes from there.

**Quantities**, per head, over late queries i (from position 32, or the second quarter of shorter text), with ``W``
the head's part of the output projection, ``v_j`` values, ``o_i = sum_j a_ij v_j``:

- ``mass``: mean of ``a_i0``; 0 to 1; under uniform causal attention the mean of ``1 / (i + 1)``.
- ``carried``: mean of ``|a_i0 W v_0| / |W o_i|``: length of what is read from position 0 relative to the head's whole
  output. 0 when nothing is read; 1 when nothing else is; above 1 where other keys cancel it.
- ``share``: mean of ``<a_i0 W v_0, W o_i> / |W o_i|^2``: the part of the output along itself, so that the shares of
  all keys add up to 1.
- ``value_ratio``: ``|W v_0|`` over the mean of ``|W v_j|``: well below 1 for a sink that is a place to put attention
  and nothing more.

A head with large ``mass`` and small ``carried`` uses position 0 to do nothing; one with large ``carried`` reads it.
Where a model has no output projection at hand (quantised weights) lengths are those of the values before projection.

What it cannot show: what readers do with it. That takes an intervention (``gnomon intervene --ablate-sink-reads``). Claim A6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from gnomon.dims import HEAD, LAYER
from gnomon.kernels.quantities import Needs
from gnomon.measure.leakage_grid import usable_length
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate, bootstrap_mean
from gnomon.statistics.bootstrap import MIN_SEQUENCES

if TYPE_CHECKING:
    from gnomon.capture.view import AttentionView

FIRST_QUERY = 32
NUM_QUERIES = 32
QUANTITIES = {
    "mass": "mean weight on position 0",
    "carried": "length of what is read from position 0 relative to the head's output",
    "share": "share of the head's output, along itself, that is read from position 0",
    "value_ratio": "length of the projected value of position 0 relative to the mean over positions",
}


class Reads(Measure):
    """Reads of position 0, by head."""

    name: ClassVar[str] = "reads"
    title: ClassVar[str] = "Reads of position 0"
    claims: ClassVar[tuple[str, ...]] = ("A6",)

    def __init__(self) -> None:
        self._queries = np.zeros(0, dtype=np.int64)

    def needs(self, subject: Subject) -> Needs:
        """Log-denominators alone, from which the weight on position 0 follows at the sampled queries; fixes these."""
        self._queries = late_queries(usable_length(subject.windows))
        return Needs(first_keys=1)

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Means over the sampled queries, ``[B, H]`` each; NaN for sequences that reach none."""
        queries = torch.as_tensor(self._queries, device=view.lse.device)
        queries = queries[queries < view.problem.length]
        if not len(queries):
            missing = torch.full(view.lse.shape[:2], torch.nan, device=view.lse.device)
            return dict.fromkeys(QUANTITIES, missing)
        group = view.problem.group
        return head_reads(
            weights=view.first[:, :, queries, 0],
            outputs=view.quantities.output[:, :, queries],
            first_value=view.problem.value[:, :, 0].repeat_interleave(group, 1),
            values=view.problem.value[:, :, queries].repeat_interleave(group, 1),
            real=queries[None] < view.lengths.to(queries.device)[:, None],
            output_weight=view.output_weight,
        )

    def finish(self, observed: Observed) -> xr.Dataset:
        """Means over sequences with intervals, by layer and head, and the model's mean per sequence."""
        dataset = xr.Dataset()
        for name, meaning in QUANTITIES.items():
            values = observed.layers[name]
            for suffix, bound in zip(("", "_low", "_high"), bootstrap_mean(values, seed=observed.subject.seed), strict=True):
                dataset[name + suffix] = ((LAYER, HEAD), bound.astype(np.float32), {"long_name": meaning, "units": "1"})
            reached = np.isfinite(values).all((1, 2))
            mean = bootstrap_mean(np.where(reached, np.nan_to_num(values).mean((1, 2)), np.nan), seed=observed.subject.seed)
            for suffix, number in zip(("", "_low", "_high"), mean, strict=True):
                attributes = {"long_name": f"{meaning}, mean over heads", "units": "1"}
                dataset[f"model_{name}{suffix}"] = ((), float(number), attributes)
            dataset.attrs["num_sequences"] = int(reached.sum())
        layers, heads = observed.layers["mass"].shape[1:]
        dataset = dataset.assign_coords({LAYER: np.arange(layers), HEAD: np.arange(heads)})
        dataset.attrs["queries"] = late_queries(usable_length(observed.subject.laid_out)).tolist()
        dataset.attrs["missing"] = f"bounds are missing with fewer than {MIN_SEQUENCES} sequences"
        return dataset

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Means over heads of the weight on position 0 and of what is carried from it."""
        number = int(dataset.attrs["num_sequences"])
        out = {}
        for name in ("mass", "carried", "share"):
            value, low, high = (float(dataset[f"model_{name}{suffix}"]) for suffix in ("", "_low", "_high"))
            known = np.isfinite(value)
            out[name] = Estimate(value, low, high, number) if known else Estimate.missing("no sequence is long enough", number)
        return out


def late_queries(length: int) -> np.ndarray:
    """Up to ``NUM_QUERIES`` evenly spaced queries from position 32, or from the second quarter of shorter text."""
    first = min(FIRST_QUERY, max(length // 4, 1))
    return np.unique(np.linspace(first, max(length - 1, first), NUM_QUERIES).round().astype(np.int64))


def head_reads(
    *, weights: Tensor, outputs: Tensor, first_value: Tensor, values: Tensor, real: Tensor, output_weight: Tensor | None
) -> Mapping[str, Tensor]:
    """The four quantities from tensors at the sampled queries.

    Args:
        weights: weight on position 0, ``[B, H, Q]``.
        outputs: head outputs before projection, ``[B, H, Q, Dv]``.
        first_value: value of position 0, ``[B, H, Dv]``.
        values: values at the sampled positions, ``[B, H, Q, Dv]``.
        real: which queries lie within each sequence, ``[B, Q]``.
        output_weight: ``[E, H, Dv]``, or ``None`` for lengths before projection.
    """
    outputs, values, first_value = outputs.float(), values.float(), first_value.float()
    if output_weight is None:
        gram = torch.eye(outputs.shape[-1], device=outputs.device).expand(outputs.shape[1], -1, -1)
    else:
        weight = output_weight.to(outputs.device).float()
        gram = torch.einsum("ehd,ehf->hdf", weight, weight)
    projected_first = torch.einsum("bhd,hdf->bhf", first_value, gram)
    output_square = torch.einsum("bhqd,hdf,bhqf->bhq", outputs, gram, outputs).clamp_min(torch.finfo(torch.float32).tiny)
    first_norm = torch.einsum("bhd,bhd->bh", projected_first, first_value).clamp_min(0).sqrt()
    along = torch.einsum("bhd,bhqd->bhq", projected_first, outputs)
    value_norm = torch.einsum("bhqd,hdf,bhqf->bhq", values, gram, values).clamp_min(0).sqrt()
    return {
        "mass": _mean(weights.float(), real),
        "carried": _mean(weights.float() * first_norm[..., None] / output_square.sqrt(), real),
        "share": _mean(weights.float() * along / output_square, real),
        "value_ratio": first_norm / _mean(value_norm, real),
    }


def _mean(values: Tensor, real: Tensor) -> Tensor:
    """Mean over real queries, ``[B, H]`` from ``[B, H, Q]``; NaN where there is none."""
    keep = real[:, None]
    return torch.where(keep, values, 0.0).sum(-1) / keep.sum(-1)

"""Does anything change when all positions move by the same amount?

Under a rotary encoding a logit depends on the offset of query and key alone, so adding a constant to every position
id may change nothing but rounding (A1). With a table of learned positions the same shift changes everything, and this
check fails visibly. It is a check of the encoding by itself: it does not say that the model knows no absolute
position, which the causal mask gives it (A2, A3).

**Quantities**, per layer and shift: the largest ``|s' - s|`` over sampled queries and all visible keys, relative to
the largest ``|s|`` of the layer; and of the output logits, relative to theirs. Errors of a layer include those of the
layers below it. 0 is exact invariance; ``tolerance`` is what rounding may do, since the angle ``position *
frequency`` is itself rounded: ``64 (eps + 2^-24 (T + shift))`` with ``eps`` that of the model's numbers, and at most
0.25.

Models that take no position ids (ALiBi, relative biases, none) cannot be shifted: offsets are all they are given.
They are reported as not applicable. A table of positions admits only shifts that stay within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture import AttentionView, capture_pass
from gnomon.corpus import Windows
from gnomon.dims import LAYER, SHIFT
from gnomon.errors import ConfigError
from gnomon.intervene import takes_position_ids
from gnomon.kernels.sampling import row_logits
from gnomon.model import PositionModel
from gnomon.statistics import Estimate
from gnomon.study.experiment import Arrays, Context, Experiment

SHIFTS = (1, 32, 512)
NUM_SEQUENCES = 4
MAX_LENGTH = 128
NUM_QUERIES = 8


class Invariance(Experiment):
    """Shift of all positions."""

    name: ClassVar[str] = "invariance"
    title: ClassVar[str] = "Invariance under shift"
    claims: ClassVar[tuple[str, ...]] = ("A1",)

    def __init__(self, *, shifts: Sequence[int] = SHIFTS) -> None:
        """Choose shifts.

        Args:
            shifts: constants added to all position ids.
        """
        if not shifts or min(shifts) < 1:
            raise ConfigError(
                f"`shifts` must be positive numbers of positions, got {list(shifts)}; leave it out for {list(SHIFTS)}."
            )
        self.shifts = tuple(int(shift) for shift in shifts)

    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """One pass unshifted and one per shift."""
        some = windows.take(np.arange(min(NUM_SEQUENCES, len(windows)))).trimmed()
        tokens = torch.from_numpy(some.tokens[:, :MAX_LENGTH].copy())
        lengths = torch.from_numpy(np.minimum(some.lengths, MAX_LENGTH))
        reasons = {shift: why_not(model, tokens.shape[1], shift) for shift in self.shifts}
        fitting = [shift for shift, reason in reasons.items() if not reason]
        errors = context.stage("shifts", lambda: shift_errors(model, tokens, lengths, fitting))
        dataset = xr.Dataset(coords={SHIFT: list(self.shifts), LAYER: np.arange(model.anatomy.num_layers)})
        places = [self.shifts.index(shift) for shift in fitting]
        layers = np.full((len(self.shifts), model.anatomy.num_layers), np.nan)
        output = np.full(len(self.shifts), np.nan)
        layers[places], output[places] = errors["layers"], errors["output"]
        bounds = [tolerance(model.dtype, tokens.shape[1] + shift) for shift in self.shifts]
        meaning = {"units": "1", "long_name": "largest change of attention logits relative to the largest logit"}
        dataset["logit_error"] = ((SHIFT, LAYER), layers, meaning)
        dataset["output_error"] = ((SHIFT,), output, {"units": "1", "long_name": "largest relative change of output logits"})
        dataset["tolerance"] = ((SHIFT,), np.asarray(bounds), {"units": "1", "long_name": "what rounding may do"})
        dataset.attrs["num_sequences"] = len(some)
        dataset.attrs["scheme"] = model.scheme.kind
        dataset.attrs["missing"] = "; ".join(dict.fromkeys(reason for reason in reasons.values() if reason))
        return dataset

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Largest relative change of attention logits and of output logits over shifts and layers."""
        number = int(dataset.attrs["num_sequences"])
        out = {}
        for name in ("logit_error", "output_error"):
            values = dataset[name].values
            known = np.isfinite(values)
            reason = str(dataset.attrs["missing"]) or "the model has no language-model head"
            out[name] = Estimate(float(values[known].max()), n=number) if known.any() else Estimate.missing(reason, number)
        return out

    def labels(self, dataset: xr.Dataset) -> dict[str, str]:
        """Whether the logits are invariant."""
        errors = dataset["logit_error"].max(LAYER)
        known = np.isfinite(errors.values)
        if not known.any():
            return {"shift": "not applicable"}
        within = bool((errors.values[known] <= dataset["tolerance"].values[known]).all())
        return {"shift": "invariant" if within else "not invariant"}


def tolerance(dtype: torch.dtype, positions: int) -> float:
    """What rounding may do to logits at positions up to ``positions``."""
    return float(min(0.25, 64 * (torch.finfo(dtype).eps + positions * 2.0**-24)))


def why_not(model: PositionModel, length: int, shift: int) -> str:
    """Why this shift cannot be made, or nothing."""
    if not takes_position_ids(model):
        return f"{model.anatomy.architecture} takes no position ids ({model.scheme.kind}): it is given offsets only"
    limit = model.anatomy.max_length
    if model.scheme.kind in ("learned", "sinusoidal") and limit is not None and length + shift > limit:
        return f"a shift by {shift} leaves the table of {limit} positions"
    return ""


def shift_errors(model: PositionModel, tokens: Tensor, lengths: Tensor, shifts: Sequence[int]) -> Arrays:
    """Largest relative errors, ``layers [shift, layer]`` and ``output [shift]``."""
    layers = np.full((len(shifts), model.anatomy.num_layers), np.nan)
    output = np.full(len(shifts), np.nan)
    if shifts:
        base, base_output = _logits(model, tokens, lengths, 0)
        for place, shift in enumerate(shifts):
            moved, moved_output = _logits(model, tokens, lengths, shift)
            layers[place] = [_error(one, other) for one, other in zip(moved, base, strict=True)]
            if moved_output is not None and base_output is not None:
                output[place] = _error(moved_output, base_output)
    return {"layers": layers, "output": output}


def _logits(
    model: PositionModel, tokens: Tensor, lengths: Tensor, shift: int
) -> tuple[list[NDArray[np.float32]], NDArray[np.float32] | None]:
    """Attention logits of sampled queries by layer, and output logits at these, missing where hidden or padding."""
    queries = torch.linspace(0, tokens.shape[1] - 1, min(NUM_QUERIES, tokens.shape[1])).round().long()
    real = queries[None] < lengths[:, None]
    rows: list[NDArray[np.float32]] = []

    def on_view(view: AttentionView) -> None:
        logits = row_logits(view.problem, queries.to(view.problem.query.device)).cpu()
        hidden = torch.isinf(logits) | ~real[:, None, :, None]
        rows.append(logits.float().masked_fill(hidden, torch.nan).numpy())

    ids = (torch.arange(tokens.shape[1]) + shift).expand_as(tokens) if takes_position_ids(model) else None
    result = capture_pass(model, tokens, lengths, on_view=on_view, logits=model.has_head, position_ids=ids)
    output = None if result is None else result[:, queries].float().cpu().masked_fill(~real[..., None], torch.nan).numpy()
    return rows, output


def _error(moved: NDArray[np.float32], base: NDArray[np.float32]) -> float:
    return float(np.nanmax(np.abs(moved - base)) / np.nanmax(np.abs(base)))

"""Fisher information by group of parameters (claim B5, with gradients): where in the weights the predictions live.

**Quantity.** For one sequence and its predicted places i, ``trace_g = sum over parameters of group g of (d/d theta sum_i ln p(y_i | x))^2 / number of places``, with labels y drawn from
the model's own predictions. Given the text, drawn labels are independent, so the expectation is the mean over places of the trace of the Fisher
information matrix, restricted to the group. ``targets="text"`` uses the text's own tokens instead (the empirical Fisher, in which places do not separate).

**Groups:** embedding (with the output head where tied), queries and keys (features that are rotated apart from those that are not), values, output, feed-forward, norms, head; per layer.

**Range and zero point.** At least 0. ``share`` is a group's part of the whole trace; ``per_parameter`` is the trace over the number of parameters; ``concentration`` is that over the mean of the
whole model, 1 where information is spread evenly over weights. The trace depends on parametrisation (a scaled weight scales it), so groups compare within a model, not between models.

**Cost.** One forward and one backward pass per sequence with the model's plain attention; a gradient is squared and freed as soon as it is there, so that memory is that of one parameter beyond the activations.
The definition by groups is ours. **Missing:** models without a language-model head, encoder-decoders, weights that are not floating point.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import ClassVar, Final, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from gnomon.capture.attention import NAME
from gnomon.corpus import Windows
from gnomon.dims import LAYER
from gnomon.errors import ConfigError
from gnomon.measure.averaged import Averages, read_estimate
from gnomon.model import PositionModel
from gnomon.statistics import Estimate
from gnomon.study.experiment import Arrays, Context, Experiment
from gnomon.study.parameter_groups import GROUPS, Part, add_to, parts_of, sizes_of

GROUP: Final = "group"
HEADLESS: Final = "the model has no language-model head, so that it predicts nothing"
BOTH: Final = "encoder-decoders are not covered"
ABSENT: Final = "the model has no parameters of this group"


@dataclass(frozen=True, kw_only=True)
class Fisher(Experiment):
    """Traces of the Fisher information by backward passes.

    Attributes:
        sequences: how many sequences, from the first.
        tokens: most tokens of each.
        targets: ``model`` draws labels from the predictions, ``text`` takes the text's own tokens.
    """

    name: ClassVar[str] = "fisher"
    title: ClassVar[str] = "Fisher information by parameter group"
    claims: ClassVar[tuple[str, ...]] = ("B5", "B8")

    sequences: int = 8
    tokens: int = 128
    targets: Literal["model", "text"] = "model"

    def __post_init__(self) -> None:
        if self.sequences < 1 or self.tokens < 2:
            raise ConfigError(
                f"`sequences` must be at least 1 and `tokens` at least 2, got {self.sequences} and {self.tokens}; give more."
            )
        if self.targets not in ("model", "text"):
            raise ConfigError(f"`targets` must be model or text, got {self.targets!r}; choose one of them.")

    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """Backward passes, one per sequence."""
        reason = HEADLESS if not model.has_head else BOTH if model.anatomy.stack else None
        if reason is not None:
            return _dataset(
                np.full((1, model.anatomy.num_layers + 1, len(GROUPS)), np.nan), None, context.seed, self.targets, reason
            )
        parts = parts_of(model)
        arrays = context.stage("traces", lambda: self._traces(model, windows, parts, context))
        return _dataset(arrays["trace"], sizes_of(model, parts).numpy(), context.seed, self.targets, None)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Shares of the whole trace by group."""
        number, reason = int(dataset.attrs["sequences"]), str(dataset.attrs.get("reason", ABSENT))
        return {f"share_{group}": read_estimate(dataset.sel(group=group), "share", number, reason) for group in GROUPS}

    def _traces(self, model: PositionModel, windows: Windows, parts: dict[str, Part], context: Context) -> Arrays:
        number = min(self.sequences, len(windows))
        out = torch.zeros(number, model.anatomy.num_layers + 1, len(GROUPS), dtype=torch.float64)
        generator = torch.Generator().manual_seed(context.seed)
        with plain_attention(model), squared_gradients(model, parts) as totals:
            for index in range(number):
                context.progress(index, number)
                length = min(int(windows.lengths[index]), self.tokens)
                tokens = torch.from_numpy(windows.tokens[index, :length].copy())[None].to(model.device)
                totals.zero_()
                places = self._backward(model, tokens, generator)
                out[index] = totals / places if places else torch.nan
        context.progress(number, number)
        return {"trace": out.numpy()}

    def _backward(self, model: PositionModel, tokens: Tensor, generator: torch.Generator) -> int:
        """One backward pass; the number of predicted places."""
        extra = {"use_cache": False} if "use_cache" in signature(model.hf.forward).parameters else {}
        with torch.enable_grad():
            logits = model.hf(input_ids=tokens, return_dict=True, **extra).logits[0].float()
            if model.anatomy.causal:
                logits, truth = logits[:-1], tokens[0, 1:]
            else:
                truth = tokens[0]
            if not len(logits):
                return 0
            labels = truth if self.targets == "text" else _drawn(logits, generator)
            torch.nn.functional.cross_entropy(logits, labels, reduction="sum").backward()  # type: ignore[no-untyped-call]
        return len(logits)


@contextmanager
def plain_attention(model: PositionModel) -> Iterator[None]:
    """The model's own attention in place of the observed one, which gradients need not pass."""
    if model.adapter is not None:
        model.adapter.uninstall()
    else:
        model.set_attention("eager")
    try:
        yield
    finally:
        if model.adapter is not None:
            model.adapter.install()
        else:
            model.set_attention(NAME)


@contextmanager
def squared_gradients(model: PositionModel, parts: dict[str, Part]) -> Iterator[Tensor]:
    """Squares of gradients by layer and group, added up as backward passes make them; every gradient is freed at once."""
    totals = torch.zeros(model.anatomy.num_layers + 1, len(GROUPS), dtype=torch.float64)
    parameters = {name: model.hf.get_parameter(name) for name in parts}
    before = {name: parameter.requires_grad for name, parameter in parameters.items()}
    handles = []

    def keep(part: Part, parameter: Tensor) -> None:
        if parameter.grad is not None:
            add_to(totals, part, parameter.grad.float().square())
            parameter.grad = None

    for name, parameter in parameters.items():
        parameter.requires_grad_(True)
        hook = partial(keep, parts[name])
        handles.append(parameter.register_post_accumulate_grad_hook(hook))  # type: ignore[no-untyped-call]
    try:
        yield totals
    finally:
        for handle in handles:
            handle.remove()
        for name, parameter in parameters.items():
            parameter.requires_grad_(before[name])


def _drawn(logits: Tensor, generator: torch.Generator) -> Tensor:
    """Labels drawn from the predictions."""
    return torch.multinomial(logits.detach().cpu().softmax(-1), 1, generator=generator)[:, 0].to(logits.device)


def _dataset(
    trace_NLG: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    sizes: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None,
    seed: int,
    targets: str,
    reason: str | None,
) -> xr.Dataset:
    """Traces, shares and concentrations, by layer and group and by group."""
    trace = np.asarray(trace_NLG, dtype=np.float64)
    counts = np.zeros(trace.shape[1:]) if sizes is None else sizes
    trace = np.where(counts > 0, trace, np.nan)
    by_group = np.where(counts.sum(0) > 0, np.nansum(trace, 1), np.nan)
    whole = np.nansum(trace, (1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = by_group / whole[:, None]
        concentration = (by_group / counts.sum(0)) / (whole / counts.sum())[:, None]
        layer_concentration = (trace / counts)[:, :-1] / (whole / counts.sum())[:, None, None]
    out = Averages(seed)
    out.mean("trace", trace[:, :-1], (LAYER, GROUP), "trace of the Fisher information per predicted token", "nats squared")
    out.mean("trace_by_group", by_group, (GROUP,), "trace of the Fisher information per predicted token", "nats squared")
    out.mean("share", share, (GROUP,), "share of the whole trace")
    out.mean("concentration", concentration, (GROUP,), "trace per parameter over that of the whole model")
    out.mean("layer_concentration", layer_concentration, (LAYER, GROUP), "trace per parameter over that of the whole model")
    out.add("parameters", counts.sum(0), (GROUP,), "number of parameters", "parameters")
    out.add("layer_parameters", counts[:-1], (LAYER, GROUP), "number of parameters", "parameters")
    attrs = {
        "targets": targets,
        "sequences": 0 if reason else len(trace),
        "missing": reason or ABSENT,
        "definitions": "grouping and summaries are ours",
    }
    return out.dataset(attrs | ({"reason": reason} if reason else {}), {GROUP: list(GROUPS)})

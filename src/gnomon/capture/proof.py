"""The proof at load: no model is surveyed before its attention was shown to be what gnomon sees.

On a tiny input: every layer's attention is called once and in order; the hidden states under gnomon's attention equal those under the model's own eager
attention; rows of weights sum to one (less a learned sink's share); changing the attention changes the hidden states; and a later token changes
earlier hidden states if and only if the model is bidirectional. What fails is said, and the model is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor

from gnomon.capture.attention import NAME
from gnomon.capture.engine import capture_pass
from gnomon.capture.view import AttentionView, StateView
from gnomon.errors import ModelError, UnsupportedModelError
from gnomon.kernels.problem import AttentionProblem
from gnomon.model import PositionModel

LENGTH: Final = 96  # more than one of the kernel's short blocks
TOLERANCE: Final = {torch.float64: 1e-9, torch.float32: 2e-4, torch.float16: 2e-2, torch.bfloat16: 6e-2}


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was shown, as numbers.

    Attributes:
        deviation: largest difference of hidden states from eager attention, in units of their root mean square.
        row_sum_error: largest deviation of a row's sum from one, learned sinks included.
        effect: how far hidden states move when attention is flattened, in the same units.
        backward_effect: how far earlier hidden states move when a later token changes.
        causal: whether that means causal attention.
        reference: the attention that was compared with.
    """

    deviation: float
    row_sum_error: float
    effect: float
    backward_effect: float
    causal: bool
    reference: str

    def to_json(self) -> dict[str, Any]:
        """For the record of a run."""
        return asdict(self)


def prove(model: PositionModel) -> Proof:
    """Show that what gnomon sees is what the model does, or refuse the model."""
    generator = torch.Generator().manual_seed(0)
    length = min(LENGTH, model.anatomy.max_length or LENGTH)
    tokens = torch.randint(5, max(6, min(model.anatomy.vocab_size, 30000)), (2, length), generator=generator)
    tokens = tokens.clamp_max(model.anatomy.vocab_size - 1)
    lengths = torch.tensor([length, max(1, length - 5)])
    views: list[AttentionView] = []
    ours = _hidden(model, tokens, lengths, on_view=views.append)
    if not torch.isfinite(ours).all():
        raise ModelError(
            f"{model.name} gives hidden states that are not finite; its weights hold NaN or infinite numbers, or overflow {model.dtype}."
        )
    scale = ours.float().pow(2).mean().sqrt().clamp_min(1e-12)
    real = torch.arange(length)[None] < lengths[:, None]

    def distance(other: Tensor) -> float:
        return float(((other - ours).float() / scale).abs()[real].max())

    with eager_attention(model) as reference:
        deviation = distance(_hidden(model, tokens, lengths, observed=False))
    row_sum_error = max(_row_sum_error(view) for view in views)
    flat = _hidden(model, tokens, lengths, edit=_flatten)
    effect = distance(flat)
    changed = tokens.clone()
    changed[0, length - 1] = (changed[0, length - 1] + 1 - 5) % max(1, model.anatomy.vocab_size - 5) + 5
    later = _hidden(model, changed, lengths)
    backward_effect = float(((later - ours).float() / scale).abs()[0, : length - 1].max())
    tolerance = TOLERANCE[model.dtype]
    causal = backward_effect <= tolerance
    proof = Proof(
        deviation=deviation,
        row_sum_error=row_sum_error,
        effect=effect,
        backward_effect=backward_effect,
        causal=causal,
        reference=reference,
    )
    _judge(model, proof, tolerance)
    return proof


def _judge(model: PositionModel, proof: Proof, tolerance: float) -> None:
    if not proof.deviation <= tolerance:
        raise UnsupportedModelError(
            f"{model.name} must give the same hidden states under gnomon's attention as under {proof.reference} attention, "
            f"but they differ by {proof.deviation:.2g} of their size (tolerance {tolerance:g}); its mask or bias is not one that gnomon knows."
        )
    if not proof.row_sum_error <= tolerance:
        raise UnsupportedModelError(f"{model.name} has attention rows that miss a sum of one by {proof.row_sum_error:.2g}.")
    if not proof.effect > 10 * torch.finfo(torch.float32).eps:
        raise UnsupportedModelError(
            f"{model.name} does not change when its attention is changed; what gnomon sees is not what it uses."
        )
    if model.anatomy.causal and not proof.causal:
        raise UnsupportedModelError(
            f"{model.name} should be causal, but a later token moved earlier hidden states by {proof.backward_effect:.2g} of their size."
        )


def _hidden(model: PositionModel, tokens: Tensor, lengths: Tensor, *, observed: bool = True, **options: Any) -> Tensor:
    """Last level of the residual stream."""
    levels: list[Tensor] = []

    def keep(view: StateView) -> None:
        levels[:] = [view.hidden]

    if observed:
        capture_pass(model, tokens, lengths, on_states=keep, **options)
    else:
        with torch.no_grad():
            handle = model.layers[-1].register_forward_hook(lambda module, args, output: levels.append(_first(output)))
            try:
                model.run(tokens.to(model.device), lengths.to(model.device))
            finally:
                handle.remove()
    return levels[-1].detach().cpu()


def _first(output: Any) -> Tensor:
    hidden: Tensor = output[0] if isinstance(output, tuple) else output
    return hidden


@contextmanager
def eager_attention(model: PositionModel) -> Iterator[str]:
    """The model's own attention for a while: eager through the interface, or its own code where an adapter replaced it."""
    adapter = model.adapter
    if adapter is not None:
        adapter.uninstall()
        try:
            yield "its own"
        finally:
            adapter.install()
        return
    model.set_attention("eager")
    try:
        yield "eager"
    finally:
        model.set_attention(NAME)


def _flatten(layer: int, problem: AttentionProblem) -> AttentionProblem:
    return replace(problem, query=torch.zeros_like(problem.query), bias=None)


def _row_sum_error(view: AttentionView) -> float:
    shortest = int(view.lengths.min())
    queries = torch.arange(shortest, device=view.lse.device)
    sums = view.rows(queries).sum(-1)
    sinks = view.problem.sinks
    if sinks is not None:
        sums = sums + torch.exp(sinks.detach().float()[None, :, None] - view.lse[:, :, queries])
    return float((sums - 1).abs().max())

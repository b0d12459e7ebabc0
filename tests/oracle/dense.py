"""Attention views with known logits: queries are rows of the identity, so that key j is column j of the logits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gnomon.capture.view import AttentionView, StateView
from gnomon.corpus import FirstToken, Windows
from gnomon.kernels.problem import AttentionProblem, MaskStructure
from gnomon.kernels.quantities import Needs
from gnomon.kernels.reference import attention_statistics
from gnomon.measure.protocol import Measure, Observed, Subject


def dense_view(
    logits_BHTT: Tensor,
    needs: Needs,
    *,
    causal: bool = True,
    lengths: Tensor | None = None,
    window: int | None = None,
    chunk: int | None = None,
    special: Tensor | None = None,
    value: Tensor | None = None,
    sinks: Tensor | None = None,
    layer: int = 0,
) -> AttentionView:
    """A view of one layer whose logits are the given ones, its quantities from the float64 reference.

    Values default to the identity, so that the output is the matrix of weights.
    """
    batch, heads, length, _ = logits_BHTT.shape
    logits = logits_BHTT.double()
    identity = torch.eye(length, dtype=torch.float64).expand(batch, heads, length, length)
    problem = AttentionProblem(
        query=identity,
        key=logits.transpose(-1, -2).contiguous(),
        value=identity if value is None else value,
        scaling=1.0,
        mask=MaskStructure(
            causal=causal,
            lengths=torch.full((batch,), length) if lengths is None else lengths,
            window=window,
            chunk=chunk,
        ),
        sinks=sinks,
    )
    marks = torch.zeros(batch, length, dtype=torch.bool) if special is None else special
    return AttentionView(layer=layer, problem=problem, quantities=attention_statistics(problem, needs, marks), special=marks)


def weights_of(view: AttentionView) -> Tensor:
    """The dense weights ``[B, H, T, T]`` of a view made by :func:`dense_view` with identity values, NaN on padded queries."""
    real = torch.arange(view.problem.length)[None] < view.lengths[:, None]
    return view.quantities.output.masked_fill(~real[:, None, :, None], torch.nan)


def observed_of(measure: Measure, layers: list[AttentionView], states: list[StateView] | None = None) -> Observed:
    """What the engine would have kept of one batch, with windows of matching shape."""
    view = layers[0]
    lengths = view.lengths.numpy()
    real = np.arange(view.problem.length) < lengths[:, None]
    nothing = FirstToken(policy="auto", placed=False, id=None, text=None, special=False, why="")
    windows = Windows(
        tokens=np.where(real, 5, 0),
        lengths=lengths,
        special=view.special.numpy() & real,
        document=np.full(len(lengths), -1),
        start=np.zeros(len(lengths)),
        source="made",
        seed=0,
        first_token=nothing,
        pad_id=0,
    )
    kept = [measure.observe(layer) for layer in layers]
    levels = [measure.observe_states(state) for state in states or []]
    return Observed(
        layers={name: torch.stack([one[name] for one in kept], 1).numpy() for name in kept[0]},
        states={name: torch.stack([one[name] for one in levels], 1).numpy() for name in levels[0]} if levels else {},
        subject=Subject(anatomy=None, scheme=None, windows=windows),  # type: ignore[arg-type]
    )

"""Attention whose matrix is given: zero queries and keys, and a bias that is the logarithm of the weights."""

from types import SimpleNamespace

import numpy as np
import torch

from gnomon.capture.view import AttentionView
from gnomon.corpus.first_token import FirstToken
from gnomon.corpus.windows import Windows
from gnomon.kernels import AttentionProblem, DenseBias, MaskStructure, Needs
from gnomon.kernels.reference import attention_statistics
from gnomon.measure.protocol import Observed, Subject


def view_of(matrix, *, causal, lengths=None, special=None, value=None, output_weight=None, layer=0, window=None):
    """View of a layer whose weights are ``matrix [B, H, T, T]`` (rows sum to one over visible keys)."""
    matrix = torch.tensor(matrix, dtype=torch.float64)
    batch, heads, length, _ = matrix.shape
    lengths = torch.full((batch,), length) if lengths is None else torch.as_tensor(lengths)
    special = torch.zeros(batch, length, dtype=torch.bool) if special is None else torch.as_tensor(special)
    nothing = torch.zeros(batch, heads, length, 1, dtype=torch.float64)
    problem = AttentionProblem(
        query=nothing,
        key=nothing,
        value=nothing if value is None else torch.as_tensor(value),
        scaling=1.0,
        mask=MaskStructure(causal=causal, lengths=lengths, window=window),
        bias=DenseBias(matrix.clamp_min(1e-30).log()),
    )
    needs = Needs(received=True, first_keys=1, special=True)
    return AttentionView(
        layer=layer,
        problem=problem,
        quantities=attention_statistics(problem, needs, special),
        special=special,
        output_weight=output_weight,
    )


def windows_of(lengths, width, *, tokens=None, special=None):
    lengths = np.asarray(lengths)
    real = np.arange(width)[None] < lengths[:, None]
    tokens = np.arange(width)[None] + 5 if tokens is None else tokens
    return Windows(
        tokens=np.where(real, tokens, 0),
        lengths=lengths,
        special=np.zeros((len(lengths), width), bool) if special is None else special,
        document=np.arange(len(lengths)),
        start=np.zeros(len(lengths), int),
        source="constructed",
        seed=0,
        first_token=FirstToken(policy="never", placed=False, id=None, text=None, special=False, why="constructed"),
        pad_id=0,
    )


def finished(measure, views, windows=None, *, causal=True):
    """Dataset of a measure that saw one view per layer."""
    kept = [measure.observe(view) for view in views]
    layers = {name: torch.stack([torch.as_tensor(part[name]) for part in kept], 1).numpy() for name in kept[0]}
    if windows is None:
        windows = windows_of(views[0].lengths.numpy(), views[0].problem.length)
    heads = views[0].problem.num_heads
    anatomy = SimpleNamespace(causal=causal, num_layers=len(views), num_heads=heads)
    return measure.finish(Observed(layers=layers, subject=Subject(anatomy=anatomy, scheme=None, windows=windows, seed=0)))


def star(length, mass, place=0, *, causal=True):
    """All rows give ``mass`` to one key (where they see it) and the rest evenly to what they see."""
    rows = np.ones((length, length))
    rows = np.tril(rows) if causal else rows
    rows /= rows.sum(1, keepdims=True)
    target = np.zeros((length, length))
    target[:, place] = 1.0
    target = np.tril(target) if causal else target
    return target * mass + (1 - mass * target.sum(1, keepdims=True)) * rows

"""P3: do aligned phases amplify and sharpen, misaligned phases weaken?

A phase difference phi is imposed by turning every rotary pair of every query by phi, for the model's own text, all around the circle: a positive
phi acts as if the query stood later. ``local``: each layer by itself, its inputs unchanged, at a sample of its queries. ``global``: all layers at once through an edit of the attention problem, so that later layers see the
consequences. Per phase: entropy of the rows, largest weight, norm of the heads' outputs; globally also the norm that the feed-forwards add.

The control turns *other* planes of the same features by the same angle. At phi = pi both are the same map (the features change sign), so that
contrast says only that a dot product was reversed: it holds for every model, with RoPE or without. At a quarter turn (the mean of both
directions) they differ, and what rotary pairs do beyond arbitrary planes is the part that belongs to position.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from gnomon.capture import AttentionView, capture_pass
from gnomon.corpus import Windows
from gnomon.kernels.problem import AttentionProblem
from gnomon.kernels.quantities import Needs, Quantities
from gnomon.kernels.sampling import row_logits
from gnomon.measure.oscillation import rotate
from gnomon.model import PositionModel
from gnomon.study.experiment import Arrays
from gnomon.study.phase_inputs import rotation_of

NUM_PHASES: Final = 8
PHASES: Final = tuple(math.pi * (step / 4 if step <= 4 else step / 4 - 2) for step in range(NUM_PHASES))
OPPOSED: Final = (4,)
QUARTER: Final = (2, 6)
PLANES: Final = ("rotary", "other")
QUANTITIES: Final = ("entropy", "peak", "norm")
FIRST_QUERY: Final = 8
NUM_QUERIES: Final = 32
_NEEDS = Needs(moments=frozenset({"entropy", "peak"}))


def alignment(model: PositionModel, windows: Windows, *, batch_size: int, seed: int) -> Arrays:
    """Responses to imposed phases.

    Returns:
        ``local [sequence, layer, head, quantity, planes, phase]``, ``global [sequence, layer, head, quantity, phase]`` and
        ``feed_forward [sequence, layer, phase]``.
    """
    layers, heads = model.anatomy.num_layers, model.anatomy.num_heads
    local = np.full((len(windows), layers, heads, len(QUANTITIES), len(PLANES), NUM_PHASES), np.nan)
    edited = np.full((len(windows), layers, heads, len(QUANTITIES), NUM_PHASES), np.nan)
    added = np.full((len(windows), layers, NUM_PHASES), np.nan)
    planes = [_planes(model, layer, seed) for layer in range(layers)]
    for chosen in windows.batches(batch_size):
        batch = windows.take(chosen).trimmed()
        inputs = [torch.from_numpy(array.copy()) for array in (batch.tokens, batch.lengths, batch.special)]
        tokens, lengths, special = inputs

        def look(view: AttentionView, chosen: Any = chosen) -> None:
            for kind, pairs in enumerate(planes[view.layer]):
                for step, phase in enumerate(PHASES):
                    local[chosen, view.layer, :, :, kind, step] = _local_response(_turned(view.problem, pairs, phase))

        capture_pass(model, tokens, lengths, special, Needs(), look)
        for step, phase in enumerate(PHASES):

            def keep(view: AttentionView, chosen: Any = chosen, step: int = step) -> None:
                edited[chosen, view.layer, :, :, step] = _response(view.problem, view.quantities)

            def edit(layer: int, problem: AttentionProblem, phase: float = phase) -> AttentionProblem:
                return _turned(problem, planes[layer][0], phase)

            with _feed_forward_norms(model, lengths) as norms:
                capture_pass(model, tokens, lengths, special, _NEEDS, keep, edit=edit)
            for layer, values in norms.items():
                added[chosen, layer, step] = values.cpu().numpy()
    return {"local": local, "global": edited, "feed_forward": added}


def _planes(model: PositionModel, layer: int, seed: int) -> tuple[Tensor, Tensor]:
    """The layer's rotary pairs, and as many other planes of the same features, none of which is a rotary pair."""
    pairs = rotation_of(model, layer).pairs
    generator = torch.Generator().manual_seed(seed + layer)
    order = torch.randperm(len(pairs), generator=generator)
    other = torch.empty_like(pairs)
    other[order, 0] = pairs[order, 0]
    other[order, 1] = pairs[order.roll(1), 1]
    return pairs, other


def _turned(problem: AttentionProblem, pairs: Tensor, phase: float) -> AttentionProblem:
    return problem if phase == 0 else replace(problem, query=rotate(problem.query, pairs.to(problem.query.device), phase))


def _local_response(problem: AttentionProblem) -> Any:
    """Mean of entropy, peak and output norm over a sample of queries of each sequence, ``[B, H, 3]``."""
    device = problem.query.device
    spread = torch.linspace(FIRST_QUERY, problem.length - 1, min(NUM_QUERIES, problem.length - FIRST_QUERY))
    queries = spread.round().long().to(device)
    scores = row_logits(problem, queries)
    total = torch.logsumexp(scores, -1, keepdim=True)
    if problem.sinks is not None:
        total = torch.logaddexp(total, problem.sinks.float()[None, :, None, None])
    weights = torch.exp(scores - total)
    value = problem.value.float()
    grouped = weights.reshape(len(weights), problem.num_kv_heads, -1, weights.shape[-1])
    output = (grouped @ value).reshape(*weights.shape[:3], -1)
    stacked = torch.stack([torch.special.entr(weights).sum(-1), weights.amax(-1), output.norm(dim=-1)], -1).double()
    real = (queries < problem.mask.lengths.to(device)[:, None])[:, None, :, None]
    return (torch.where(real, stacked, 0.0).sum(2) / real.sum(2)).cpu().numpy()


def _response(problem: AttentionProblem, quantities: Quantities) -> Any:
    """Mean over real queries from ``FIRST_QUERY`` on of entropy, peak and output norm, ``[B, H, 3]``."""
    positions = torch.arange(problem.length, device=problem.query.device)
    lengths = problem.mask.lengths.to(positions.device)
    real = ((positions >= FIRST_QUERY) & (positions < lengths[:, None]))[:, None].double()
    norm = quantities.output.double().norm(dim=-1)
    stacked = torch.stack([quantities.moments["entropy"].double(), quantities.moments["peak"].double(), norm], -1)
    total = (torch.where(real[..., None] > 0, stacked, 0.0)).sum(2)
    return (total / real.sum(2)[..., None]).cpu().numpy()


@contextmanager
def _feed_forward_norms(model: PositionModel, lengths: Tensor) -> Iterator[dict[int, Tensor]]:
    """Mean norm of what each feed-forward adds, per sequence, filled in while the context lasts."""
    norms: dict[int, Tensor] = {}

    def keep(layer: int) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            result = output[0] if isinstance(output, tuple) else output
            if result.ndim != 3:
                return
            size = result.double().norm(dim=-1)
            positions = torch.arange(size.shape[1], device=size.device)
            real = (positions >= FIRST_QUERY) & (positions < lengths.to(size.device)[:, None])
            norms[layer] = (size * real).sum(1) / real.sum(1)

        return hook

    handles = [module.register_forward_hook(keep(layer)) for layer, module in enumerate(model.feed_forwards)]
    try:
        yield norms
    finally:
        for handle in handles:
            handle.remove()

"""P1: does rotation make the stream oscillate? One token repeated, so that any change along position is the model's own.

Two inputs per token: ``bare``, the token alone from position 0 on, and ``after_first``, the same after the text's own first token. In a RoPE model the bare input
gives *equal* hidden states at every position (values are equal, so their average is, whatever the weights): queries and keys turn, the stream stands
still. Per layer:

- ``query_line``, ``key_line``: share of each pair's motion that is the tone of its own rotary frequency, over pairs that turn at least twice;
- ``logit_contrast``: power of the last query's logits over offsets on the rotary frequencies against between them;
- ``stream_contrast``: the same for the stream entering the layer, and ``stream_variation``, how much it moves along position at all.

Layers without rotation are measured at the frequencies that base 10 000 would give: the control.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture import AttentionView, StateView, capture_pass
from gnomon.corpus import Windows
from gnomon.kernels.problem import AttentionProblem
from gnomon.measure.oscillation import line_contrast, line_share, relative_variation, resolved_frequencies
from gnomon.model import PositionModel
from gnomon.study.experiment import Arrays
from gnomon.study.phase_inputs import Rotation, content_tokens, full_lengths, longest_input, rotation_of

CONDITIONS = ("bare", "after_first")
QUANTITIES = ("query_line", "key_line", "logit_contrast", "stream_contrast", "stream_variation")
SKIPPED = 8
MIN_TURNS = 2


def oscillation(model: PositionModel, windows: Windows, *, num_tokens: int, length: int, batch_size: int, seed: int) -> Arrays:
    """Each quantity ``[token, condition, layer]``."""
    tokens = content_tokens(windows, num_tokens, seed)
    length = longest_input(model, length)
    first = int(windows.tokens[0, 0])
    out = {name: np.full((len(tokens), len(CONDITIONS), model.anatomy.num_layers), np.nan) for name in QUANTITIES}
    for place, condition in enumerate(CONDITIONS):
        for start in range(0, len(tokens), batch_size):
            chosen = slice(start, min(start + batch_size, len(tokens)))
            batch = np.repeat(tokens[chosen, None], length, axis=1)
            if condition == "after_first":
                batch[:, 0] = first
            for name, values in _observe(model, batch).items():
                out[name][chosen, place] = values
    return out


def _observe(model: PositionModel, tokens: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    rows: dict[str, list[Tensor]] = {name: [] for name in QUANTITIES}
    length = tokens.shape[1]
    rotations = [rotation_of(model, layer) for layer in range(model.anatomy.num_layers)]

    def on_view(view: AttentionView) -> None:
        rotation = rotations[view.layer]
        rows["query_line"].append(_own_line(view.problem.query, rotation))
        rows["key_line"].append(_own_line(view.problem.key, rotation))
        rows["logit_contrast"].append(_logit_contrast(view.problem, rotation))

    def on_states(state: StateView) -> None:
        if state.level == len(rotations):
            return
        stream = state.hidden[:, SKIPPED:].double().cpu().transpose(1, 2)
        lines = resolved_frequencies(rotations[state.level].frequencies.tolist(), stream.shape[-1])
        rows["stream_contrast"].append(line_contrast(stream, *lines))
        rows["stream_variation"].append(relative_variation(stream))

    capture_pass(model, torch.from_numpy(tokens), full_lengths(*tokens.shape), None, None, on_view, on_states)
    assert length > SKIPPED
    return {name: torch.stack(values, -1).numpy() for name, values in rows.items()}


def _own_line(vectors: Tensor, rotation: Rotation) -> Tensor:
    """Mean over heads and turning pairs of the share of each pair's motion at its own frequency, ``[B]``."""
    moving = vectors[:, :, SKIPPED:].double().cpu()
    turning = rotation.frequencies * moving.shape[2] >= 2 * math.pi * MIN_TURNS
    pairs = rotation.pairs[turning]
    if not len(pairs):
        return torch.full((len(vectors),), torch.nan, dtype=torch.float64)
    signal = torch.complex(moving[..., pairs[:, 0]], moving[..., pairs[:, 1]]).movedim(2, -1)  # B H pair T
    return line_share(signal, rotation.frequencies[turning]).mean((1, 2))


def _logit_contrast(problem: AttentionProblem, rotation: Rotation) -> Tensor:
    """Contrast of the last query's logits over the keys it sees, position 0 and its neighbours left out, ``[B]``."""
    last = problem.length - 1
    first, _ = problem.mask.key_range(torch.tensor([last]))
    start = max(SKIPPED, int(first[0]))
    query = problem.query[:, :, last].double().cpu()
    key = problem.key[:, :, start:].double().cpu().repeat_interleave(problem.group, dim=1)
    logits = torch.einsum("bhd,bhtd->bht", query, key) * problem.scaling
    lines = resolved_frequencies(rotation.frequencies.tolist(), logits.shape[-1])
    return line_contrast(logits, *lines)

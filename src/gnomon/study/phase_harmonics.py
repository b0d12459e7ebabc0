"""P2: do feed-forward nonlinearities make harmonics of a periodic content?

The embedding swings between two tokens a and b as one pure tone, ``e(t) = (a + b)/2 + (a - b)/2 * cos(2 pi t / period)``. After a run-in, power at f, 2f, 3f, ...
is taken over whole periods at five sites of each layer: the activation function's input (``pre``) and output (``post``), its output if it were its own
tangent at the mean over positions (``post_linear``), the feed-forward's output (``output``) and that of the feed-forward's tangent
(``output_linear``). Harmonics that attention, norms and earlier layers have made already pass through the tangent too, so the
difference is what this nonlinearity adds. Where a family's feed-forward is no module of its own (BERT), its last map is ``output`` and there is no
tangent of it. Sites that a family does not have as modules (experts, fused activations) are NaN.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from gnomon.capture import capture_pass
from gnomon.corpus import Windows
from gnomon.measure.oscillation import harmonic_power, linearised
from gnomon.model import PositionModel
from gnomon.study.experiment import Arrays
from gnomon.study.phase_inputs import content_tokens, embed, full_lengths, longest_input

SITES: Final = ("pre", "post", "post_linear", "output", "output_linear")
PERIODS: Final = (32, 16, 8)
NUM_HARMONICS: Final = 5
ANALYSED: Final = 128
RUN_IN: Final = 64
_ACTIVATION = re.compile(r"gelu|silu|relu|swish|mish|tanh|sigmoid|activation", re.IGNORECASE)


def harmonics(model: PositionModel, windows: Windows, *, num_pairs: int, batch_size: int, seed: int) -> Arrays:
    """``power [pair of tokens, layer, period, site, harmonic]``."""
    tokens = content_tokens(windows, 2 * num_pairs, seed)
    pairs = tokens[: len(tokens) // 2 * 2].reshape(-1, 2)
    length = longest_input(model, RUN_IN + ANALYSED)
    run_in = max(0, length - ANALYSED)
    analysed = (length - run_in) // max(PERIODS) * max(PERIODS)
    power = np.full((len(pairs), model.anatomy.num_layers, len(PERIODS), len(SITES), NUM_HARMONICS), np.nan)
    for start in range(0, len(pairs), batch_size):
        chosen = slice(start, min(start + batch_size, len(pairs)))
        for place, period in enumerate(PERIODS):
            driven = _driven(embed(model, pairs[chosen]), period, run_in + analysed)
            for site, layers in _powers(model, driven, period, analysed).items():
                for layer, values in layers.items():
                    power[chosen, layer, place, SITES.index(site)] = values.cpu().numpy()
    return {"power": power}


def activation_of(model: PositionModel, layer: int) -> nn.Module | None:
    """The one activation function of a layer's feed-forward, or ``None`` when there is none to be found, or several."""
    attention = set(model.attentions[layer].modules())
    found = [
        module
        for module in model.layers[layer].modules()
        if module not in attention and not list(module.children()) and _ACTIVATION.search(type(module).__name__)
    ]
    return found[0] if len(found) == 1 else None


def _driven(ends: Tensor, period: int, length: int) -> Tensor:
    """Embeddings that swing between ``ends [B, 2, E]``, ``[B, length, E]``."""
    swing = torch.cos(2 * math.pi * torch.arange(length, device=ends.device) / period).to(ends.dtype)
    middle, half = (ends[:, 0] + ends[:, 1]) / 2, (ends[:, 0] - ends[:, 1]) / 2
    return middle[:, None] + half[:, None] * swing[None, :, None]


def _powers(model: PositionModel, driven: Tensor, period: int, analysed: int) -> dict[str, dict[int, Tensor]]:
    found: dict[str, dict[int, Tensor]] = {site: {} for site in SITES}
    batch, length = driven.shape[:2]
    expected = (batch, length)
    tangent: list[bool] = []  # not empty while a tangent is being taken, which calls the same modules again

    def keep(names: tuple[str, ...], layer: int) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            given = args[0] if args else None
            result = output[0] if isinstance(output, tuple) else output
            if tangent or not (
                isinstance(given, Tensor) and isinstance(result, Tensor) and given.shape[:2] == expected == result.shape[:2]
            ):
                return
            tail = given[:, -analysed:].contiguous()

            def call(values: Tensor) -> Tensor:
                answer = module.forward(values)
                first: Tensor = answer[0] if isinstance(answer, tuple) else answer
                return first

            sites = {"pre": given, "post": result, "output": result}
            for name in names:
                tangent.append(True)
                values = linearised(call, tail) if name.endswith("_linear") else sites[name][:, -analysed:]
                tangent.clear()
                found[name][layer] = harmonic_power(values, period, NUM_HARMONICS)

        return hook

    with _hooked(model, keep):
        capture_pass(model, torch.zeros(batch, length, dtype=torch.long), full_lengths(batch, length), inputs_embeds=driven)
    return found


@contextmanager
def _hooked(model: PositionModel, keep: Callable[[tuple[str, ...], int], Callable[..., None]]) -> Iterator[None]:
    """Hooks on activations and feed-forwards, gone afterwards."""
    handles = []
    for layer in range(model.anatomy.num_layers):
        activation = activation_of(model, layer)
        if activation is not None:
            handles.append(activation.register_forward_hook(keep(("pre", "post", "post_linear"), layer)))
    for layer, feed_forward in enumerate(model.feed_forwards):
        activation = activation_of(model, layer)
        whole = activation is None or activation in set(feed_forward.modules())  # some families' module is the last map alone
        handles.append(feed_forward.register_forward_hook(keep(("output", "output_linear") if whole else ("output",), layer)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

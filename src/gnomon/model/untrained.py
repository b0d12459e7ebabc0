"""The untrained twin of a model: same configuration, fresh weights.

What a measure finds in the twin comes from the architecture (mask, rotation, width) and not from training, so the twin is the natural
control of every claim about what a model has learned. Weights are drawn by the family's own initialisation from a seeded generator on the CPU: the same
seed gives the same twin on every device. The twin has no adapter and no attention function but the one it is asked to be built with.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from gnomon.errors import ModelError
from gnomon.model.position_model import PositionModel, through_interface


def untrained_like(model: PositionModel, seed: int = 0, *, attn_implementation: str | None = None) -> PositionModel:
    """Builds the untrained twin of ``model``.

    Args:
        model: whose configuration, tokenizer, dtype and device to take.
        seed: of the initialisation.
        attn_implementation: attention implementation of the twin; that of ``model`` when left out. Classes with attention code of their
            own keep it and need their adapter anew.
    """
    architecture: Any = type(model.hf)
    if not hasattr(architecture, "_from_config"):
        raise ModelError(f"`model` must be a transformers model to be built anew, got {architecture.__name__}.")
    config = copy.deepcopy(model.config)
    own = not through_interface(type(model.attentions[0]))
    implementation = "eager" if own else attn_implementation or getattr(model.config, "_attn_implementation", None) or "eager"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        hf = architecture._from_config(config, attn_implementation=implementation, dtype=torch.float32)
    hf = hf.to(device=model.device, dtype=model.dtype).eval().requires_grad_(False)
    return PositionModel.of(
        hf,
        tokenizer=model.tokenizer,
        name=f"{model.name} (untrained, seed {seed})",
        stack=model.anatomy.stack,
        provenance={"source": f"untrained:{model.provenance.get('source', model.name)}", "seed": seed},
    )

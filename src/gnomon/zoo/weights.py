"""Weights on disk: one signed byte per entry of a matrix and one scale per row, loaded exactly as they were stored.

Rounding to 127 steps of a row's largest entry costs a trained model of this size nothing that its loss shows, and a quarter of the bytes. A member of the zoo is a folder
``config.json``, ``tokenizer.json``, ``weights.int8.safetensors`` and ``card.json``; its checkpoints lie beside it as ``step-N``. The model that gnomon surveys
is the stored one: reading gives the same float32 numbers everywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gnomon.errors import ModelError
from gnomon.zoo.card import model_card
from gnomon.zoo.catalog import read_card

FILE: Final = "weights.int8.safetensors"
BYTES: Final = ".int8"
SCALE: Final = ".scale"


def quantised(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as bytes and row scales, vectors as they are."""
    stored: dict[str, Tensor] = {}
    for name, values in state.items():
        values = values.detach().float().cpu()
        if values.ndim != 2:
            stored[name] = values.contiguous()
            continue
        scale = values.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
        stored[name + BYTES] = torch.round(values / scale).to(torch.int8).contiguous()
        stored[name + SCALE] = scale.squeeze(1).contiguous()
    return stored


def restored(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Float32 weights from what :func:`quantised` gave."""
    state = {name: values for name, values in stored.items() if not name.endswith((BYTES, SCALE))}
    for name, values in stored.items():
        if name.endswith(BYTES):
            base = name.removesuffix(BYTES)
            state[base] = values.float() * stored[base + SCALE][:, None]
    return state


def save(folder: Path, model: Any, tokenizer: Any, card: dict[str, Any]) -> None:
    """Write a member of the zoo; the folder appears whole or not at all."""
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    temporary.mkdir(parents=True, exist_ok=True)
    state = {name: values for name, values in model.state_dict().items() if name != "lm_head.weight"}
    save_file(quantised(state), temporary / FILE)
    digest = hashlib.sha256((temporary / FILE).read_bytes()).hexdigest()
    model.config.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    (temporary / "card.json").write_text(json.dumps({**card, "sha256": digest}, indent=1, sort_keys=True) + "\n")
    (temporary / "README.md").write_text(model_card(card), encoding="utf-8")
    if folder.exists():
        import shutil

        shutil.rmtree(folder)
    temporary.rename(folder)


def read(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Model in eval mode, tokenizer and card of a member of the zoo.

    Raises:
        ModelError: if a file is missing, truncated or not the one that the card names.
    """
    from transformers import AutoTokenizer

    from gnomon.zoo.body import ZooConfig, ZooForCausalLM, ZooForMaskedLM

    path = folder / FILE
    if not path.is_file():
        raise ModelError(f"the zoo model in {folder} must have {FILE}, which is missing; train or install it again.")
    card = read_card(folder)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != card.get("sha256"):
        raise ModelError(
            f"the weights in {path} must have SHA-256 {str(card.get('sha256'))[:12]}..., got {digest[:12]}...; they are damaged, train or install them again."
        )
    config = ZooConfig.from_pretrained(folder)
    built = (ZooForMaskedLM if config.bidirectional else ZooForCausalLM)._from_config(config, attn_implementation="sdpa")
    missing, unexpected = built.load_state_dict(restored(load_file(path)), strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ModelError(f"the weights in {path} do not fit their config.json; they are of another version of the zoo.")
    built.tie_weights()
    return built.eval().requires_grad_(False), AutoTokenizer.from_pretrained(folder), card

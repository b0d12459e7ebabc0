"""Training a member of the zoo: deterministic for a seed and a device, resumable, with its losses kept.

The state after every ``keep_every`` steps (weights, optimizer, step) replaces the one before in one rename; a run that was killed goes on from there and, since windows
are a function of the step, ends with the same weights as one that was not.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gnomon.zoo.body import ZooConfig, ZooForCausalLM, ZooForMaskedLM
from gnomon.zoo.data import as_transformers, batch_at
from gnomon.zoo.recipes import Recipe, Schedule
from gnomon.zoo.weights import save

STATE = "training-state.pt"
LOG = "losses.jsonl"
Progress = Callable[[int, int, float], None]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What is trained on.

    Attributes:
        train: tokens in a row.
        held_out: tokens for evaluation.
        tokenizer: of the ``tokenizers`` package.
        sources: what the text is and under which licences, for the card.
    """

    train: NDArray[np.uint16]
    held_out: NDArray[np.uint16]
    tokenizer: Any
    sources: str = ""


def learning_rate(schedule: Schedule, step: int) -> float:
    """Linear warm-up, then a cosine to a tenth of the peak."""
    if step < schedule.warmup:
        return schedule.peak_rate * (step + 1) / schedule.warmup
    done = (step - schedule.warmup) / max(1, schedule.steps - schedule.warmup)
    return schedule.peak_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done))))


def build(recipe: Recipe, vocab_size: int) -> nn.Module:
    """The untrained model of a recipe, from its seed."""
    config = ZooConfig(**recipe.config(vocab_size), bos_token_id=1, eos_token_id=2, pad_token_id=0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        body = ZooForMaskedLM if recipe.masked else ZooForCausalLM
        model: nn.Module = body._from_config(config, attn_implementation="sdpa")
    return model


def train(
    recipe: Recipe,
    corpus: Corpus,
    out: Path,
    *,
    device: str = "cpu",
    keep_every: int = 500,
    log_every: int = 50,
    compiled: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Train a recipe and write its folder; returns the folder.

    Args:
        recipe: which.
        corpus: on what.
        out: folder of the zoo; the member becomes ``out/NAME``, its checkpoints ``out/NAME/step-N``.
        device: where.
        keep_every: steps between states to resume from.
        log_every: steps between logged losses.
        compiled: whether to compile the model.
        progress: called with (step, steps, loss).
    """
    folder = out / recipe.name
    folder.mkdir(parents=True, exist_ok=True)
    model = build(recipe, corpus.tokenizer.get_vocab_size()).to(device).train()
    optimizer = _optimizer(model, recipe.schedule, device)
    step = _resume(folder, model, optimizer, device)
    _trim_log(folder, step)
    run: Any = torch.compile(model) if compiled else model
    tokenizer = as_transformers(corpus.tokenizer, masked=recipe.masked)
    begun = time.perf_counter()
    while step < recipe.schedule.steps:
        if step in recipe.checkpoints:
            _keep_checkpoint(folder, model, tokenizer, recipe, corpus, step, device)
        loss = _step(run, optimizer, recipe, corpus, step, device)
        step += 1
        if step % log_every == 0 or step == recipe.schedule.steps:
            _log(folder, {"step": step, "loss": round(float(loss), 5), "seconds": round(time.perf_counter() - begun, 2)})
            if progress is not None:
                progress(step, recipe.schedule.steps, float(loss))
        if step % keep_every == 0:
            _keep_state(folder, model, optimizer, step)
    return _finish(folder, out, model, tokenizer, recipe, corpus, device)


@torch.no_grad()
def evaluate(model: nn.Module, recipe: Recipe, corpus: Corpus, device: str, batches: int = 8) -> float:
    """Mean loss on held-out text, on windows that are the same for every recipe, in nats per token."""
    was_training = model.training
    model.eval()
    losses = []
    for index in range(batches):
        inputs, labels = _batch(recipe, corpus.held_out, index, device, seed=1_000_003)
        losses.append(float(model(input_ids=inputs, labels=labels).loss))
    model.train(was_training)
    return sum(losses) / len(losses)


def _batch(recipe: Recipe, tokens: NDArray[np.uint16], step: int, device: str, *, seed: int) -> tuple[Tensor, Tensor]:
    schedule = recipe.schedule
    inputs, labels = batch_at(tokens, step, batch=schedule.batch, context=schedule.context, seed=seed, masked=recipe.masked)
    return torch.from_numpy(inputs).to(device), torch.from_numpy(labels).to(device)


def _step(model: Any, optimizer: torch.optim.Optimizer, recipe: Recipe, corpus: Corpus, step: int, device: str) -> Tensor:
    schedule = recipe.schedule
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(schedule, step)
    inputs, labels = _batch(recipe, corpus.train, step, device, seed=schedule.data_seed)
    with torch.autocast(device_type=torch.device(device).type, dtype=torch.bfloat16, enabled=device.startswith("cuda")):
        loss: Tensor = model(input_ids=inputs, labels=labels).loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), schedule.clip)
    optimizer.step()
    return loss.detach()


def _optimizer(model: nn.Module, schedule: Schedule, device: str) -> torch.optim.Optimizer:
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": schedule.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=schedule.peak_rate, betas=(0.9, 0.95), fused=device.startswith("cuda"))


def _resume(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> int:
    path = folder / STATE
    if not path.is_file():
        return 0
    state = torch.load(path, map_location=device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def _keep_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    temporary = folder / f".{STATE}"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, temporary)
    os.replace(temporary, folder / STATE)


def _keep_checkpoint(
    folder: Path, model: nn.Module, tokenizer: Any, recipe: Recipe, corpus: Corpus, step: int, device: str
) -> None:
    save(folder / f"step-{step}", model, tokenizer, _card(model, recipe, corpus, step, device))


def _finish(folder: Path, out: Path, model: nn.Module, tokenizer: Any, recipe: Recipe, corpus: Corpus, device: str) -> Path:
    """The trained member beside its log and checkpoints, and no state to resume from."""
    whole = out / f".{recipe.name}.whole"
    save(whole, model, tokenizer, _card(model, recipe, corpus, recipe.schedule.steps, device))
    for file in whole.iterdir():
        os.replace(file, folder / file.name)
    whole.rmdir()
    (folder / STATE).unlink(missing_ok=True)
    return folder


def _card(model: nn.Module, recipe: Recipe, corpus: Corpus, step: int, device: str) -> dict[str, Any]:
    return {
        "recipe": recipe.to_json(),
        "step": step,
        "held_out_loss": round(evaluate(model, recipe, corpus, device), 5),
        "tokens_seen": step * recipe.schedule.batch * recipe.schedule.context,
        "training_tokens": len(corpus.train),
        "sources": corpus.sources,
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        "torch": torch.__version__,
    }


def _log(folder: Path, row: dict[str, Any]) -> None:
    with (folder / LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _trim_log(folder: Path, step: int) -> None:
    """Drop what was logged after the state that training resumes from."""
    path = folder / LOG
    if path.is_file():
        kept = [line for line in path.read_text().splitlines() if json.loads(line)["step"] <= step]
        path.write_text("".join(line + "\n" for line in kept))

"""Training a member of the zoo: deterministic for a seed and a device, resumable, with its losses kept.

The state after every ``keep_every`` steps (weights, optimizer, step) replaces the one before in one rename; a run that was killed goes on from there and, since windows
are a function of the step, ends with the same weights as one that was not. A state or a member that was made of another recipe or text is refused, never gone on with, and a folder has one trainer at a time.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from torch import Tensor, nn

from gnomon.errors import ConfigError, ModelError, ResourceError
from gnomon.zoo.body import ZooConfig, ZooForCausalLM, ZooForMaskedLM
from gnomon.zoo.catalog import CARD, STATE, read_card
from gnomon.zoo.data import as_transformers, batch_at
from gnomon.zoo.recipes import Recipe, Schedule
from gnomon.zoo.weights import save

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

    def digest(self) -> str:
        """The same for the same tokens and tokenizer."""
        blob = hashlib.sha256(self.tokenizer.to_str().encode())
        for part in (self.train, self.held_out):
            blob.update(np.ascontiguousarray(part).tobytes())
        return blob.hexdigest()


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
    with _only_trainer(out, recipe.name):
        return _trained(folder, out, recipe, corpus, device, keep_every, log_every, compiled, progress)


def _trained(
    folder: Path,
    out: Path,
    recipe: Recipe,
    corpus: Corpus,
    device: str,
    keep_every: int,
    log_every: int,
    compiled: bool,
    progress: Progress | None,
) -> Path:
    made_of = hashlib.sha256(json.dumps([recipe.to_json(), corpus.digest()], sort_keys=True).encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    if _is_finished(folder, made_of):
        return folder
    model = build(recipe, corpus.tokenizer.get_vocab_size()).to(device).train()
    optimizer = _optimizer(model, recipe.schedule, device)
    step = _resume(folder, model, optimizer, device, made_of)
    _trim_log(folder, step)
    run: Any = torch.compile(model) if compiled else model
    tokenizer = as_transformers(corpus.tokenizer, masked=recipe.masked)
    begun = time.perf_counter()
    while step < recipe.schedule.steps:
        if step in recipe.checkpoints:
            save(folder / f"step-{step}", model, tokenizer, _card(model, recipe, corpus, step, device, made_of))
        loss = _step(run, optimizer, recipe, corpus, step, device)
        step += 1
        if step % log_every == 0 or step == recipe.schedule.steps:
            _log(folder, {"step": step, "loss": round(float(loss), 5), "seconds": round(time.perf_counter() - begun, 2)})
            if progress is not None:
                progress(step, recipe.schedule.steps, float(loss))
        if step % keep_every == 0:
            _keep_state(folder, model, optimizer, step, made_of)
    return _finish(folder, out, model, tokenizer, _card(model, recipe, corpus, step, device, made_of))


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


@contextmanager
def _only_trainer(out: Path, name: str) -> Iterator[None]:
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = FileLock(out / f".{name}.lock", timeout=0)
        lock.acquire()
    except Timeout as reason:
        raise ResourceError(
            f"`out` must not be in use, but another process trains {name} in {out}; wait for it to end."
        ) from reason
    except OSError as reason:
        raise ResourceError(
            f"`out` must be a folder that can be written, got {out} ({reason.strerror}); choose another."
        ) from reason
    try:
        yield
    finally:
        lock.release()


def _is_finished(folder: Path, made_of: str) -> bool:
    """Whether this very member is there; another one in its place is refused."""
    if not (folder / CARD).is_file():
        return False
    if read_card(folder).get("made_of") != made_of:
        raise ConfigError(
            f"`out` must not hold another {folder.name}, but {folder} was trained with other options or text; choose another folder or remove it."
        )
    return True


def _resume(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, device: str, made_of: str) -> int:
    path = folder / STATE
    if not path.is_file():
        return 0
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, pickle.UnpicklingError) as reason:
        raise ModelError(
            f"{path} must be a state to resume from, but it is damaged; delete it to train from the start."
        ) from reason
    if state.get("made_of") != made_of:
        raise ConfigError(
            f"`out` must be new or hold the same training, but {folder} was begun with other options or text; choose another folder or remove it."
        )
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])


def _keep_state(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int, made_of: str) -> None:
    temporary = folder / f".{STATE}"
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "made_of": made_of}
    torch.save(state, temporary)
    os.replace(temporary, folder / STATE)


def _finish(folder: Path, out: Path, model: nn.Module, tokenizer: Any, card: dict[str, Any]) -> Path:
    """The trained member beside its log and checkpoints, and no state to resume from; the card, which says that it is whole, comes last."""
    whole = out / f".{folder.name}.whole"
    save(whole, model, tokenizer, card)
    for file in sorted(whole.iterdir(), key=lambda file: file.name == CARD):
        os.replace(file, folder / file.name)
    whole.rmdir()
    (folder / STATE).unlink(missing_ok=True)
    return folder


def _card(model: nn.Module, recipe: Recipe, corpus: Corpus, step: int, device: str, made_of: str) -> dict[str, Any]:
    return {
        "recipe": recipe.to_json(),
        "step": step,
        "held_out_loss": round(evaluate(model, recipe, corpus, device), 5),
        "tokens_seen": step * recipe.schedule.batch * recipe.schedule.context,
        "training_tokens": len(corpus.train),
        "sources": corpus.sources,
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        "torch": torch.__version__,
        "made_of": made_of,
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

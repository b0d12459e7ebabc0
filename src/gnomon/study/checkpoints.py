"""Which checkpoints there are of a model, and at which step of training each was taken.

Three sources: revisions of a hub model, a folder of folders, and the zoo. Steps are read from names, ``step3000`` (Pythia and its kin), ``step-3000`` (the zoo), ``checkpoint-3000``
(transformers' Trainer), ``iter_0003000`` or ``global_step3000``; a name that tells none has an unknown step, and its checkpoint counts in no fit over steps. ``main`` is the end of training: for Pythia
step 143000, for others unknown. Pythia's step 0 and step 1 hold the same weights, since the first update had a learning rate of zero; when both are given they must give the same numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gnomon.errors import ConfigError, ModelError
from gnomon.model.names import zoo_roots
from gnomon.zoo.catalog import checkpoint_steps, read_card

_STEP: Final = re.compile(r"(?:^|[^a-z])(?:global_?step|step|checkpoint|iter|ckpt)[-_]?(\d+)", re.IGNORECASE)
_LAST_OF_PYTHIA: Final = 143000
_MAIN: Final = ("main", "master")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One state of a model in training.

    Attributes:
        name: short and distinct, such as ``step3000``.
        model: what to open.
        step: of training; NaN when not known.
        loading: what else the loader needs, such as the revision.
    """

    name: str
    model: str
    step: float = math.nan
    loading: dict[str, Any] = field(default_factory=dict)


def of_revisions(model: str, revisions: Sequence[str]) -> list[Checkpoint]:
    """Revisions of a hub model, in order of their steps."""
    names = [name.strip() for name in revisions if name.strip()]
    if len(set(names)) != len(names) or not names:
        raise ConfigError(f"`revisions` must be different names joined by commas, got {','.join(revisions)!r}.")
    return ordered(
        [Checkpoint(name=name, model=model, step=revision_step(model, name), loading={"revision": name}) for name in names]
    )


def of_folder(folder: str | Path) -> list[Checkpoint]:
    """Model folders inside a folder, and the folder itself where it is one, as the Trainer and the zoo leave them."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise ConfigError(f"`checkpoints` must be a folder of checkpoints, got {str(folder)!r}, which is no folder.")
    inner = [entry for entry in sorted(root.iterdir()) if entry.is_dir() and not entry.name.startswith(".")]
    found = [Checkpoint(name=entry.name, model=str(entry), step=_folder_step(entry)) for entry in inner if _looks_like_one(entry)]
    if (root / "config.json").is_file():
        found.append(Checkpoint(name="last", model=str(root), step=_folder_step(root)))
    if not found:
        raise ConfigError(f"`checkpoints` must be a folder with model folders inside, got {str(folder)!r} without any.")
    return ordered(found)


def of_zoo(name: str) -> list[Checkpoint]:
    """The checkpoints of a member of the zoo and its last weights."""
    model = name.removeprefix("zoo:")
    if "@" in model:
        raise ConfigError(
            f"`model` must be a member of the zoo without a step, got {name!r}; leave out @{model.partition('@')[2]}."
        )
    for root in zoo_roots():
        folder = root / model
        if model and "/" not in model and folder.is_dir():
            found = [Checkpoint(name=f"step-{step}", model=f"zoo:{model}@{step}", step=step) for step in checkpoint_steps(folder)]
            if (folder / "config.json").is_file():
                found.append(Checkpoint(name="last", model=f"zoo:{model}", step=_folder_step(folder)))
            if found:
                return ordered(found)
    raise ModelError(
        f"`model` must be a zoo model that is here, got {name!r}; `gnomon zoo` lists them, `gnomon zoo train` makes them."
    )


def ordered(checkpoints: Sequence[Checkpoint]) -> list[Checkpoint]:
    """By step, those without one at the end in the order given."""
    return sorted(checkpoints, key=lambda one: (math.isnan(one.step), one.step if not math.isnan(one.step) else 0.0))


def step_of(name: str) -> float:
    """The step that a name tells; NaN when it tells none."""
    match = _STEP.search(name)
    return float(match[1]) if match else float(name) if name.isdecimal() else math.nan


def revision_step(model: str, revision: str) -> float:
    """The step of a revision; ``main`` of Pythia is its last step."""
    if revision in _MAIN and is_pythia(model):
        return float(_LAST_OF_PYTHIA)
    return step_of(revision)


def is_pythia(model: str) -> bool:
    """Whether the conventions of Pythia apply."""
    return "pythia" in model.lower()


def _looks_like_one(folder: Path) -> bool:
    """A folder that is a checkpoint, or was meant to be one: what is damaged is named later, not passed over."""
    return (folder / "config.json").is_file() or any(folder.glob("*.safetensors")) or not math.isnan(step_of(folder.name))


def _folder_step(folder: Path) -> float:
    told = step_of(folder.name)
    if not math.isnan(told):
        return told
    state = folder / "trainer_state.json"
    try:
        if state.is_file():
            return float(json.loads(state.read_text(encoding="utf-8"))["global_step"])
        if (folder / "card.json").is_file():
            return float(read_card(folder)["step"])
    except (OSError, ValueError, KeyError, TypeError, ModelError):
        return math.nan
    return math.nan

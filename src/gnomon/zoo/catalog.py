"""What of the zoo is here: for every recipe where it lies, how far it was trained, how well, and how large it is.

A member of the zoo is a folder with ``card.json``; this module reads cards and sizes, not weights, so that listing costs nothing. Whether weights are what their card says is
checked when they are opened.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gnomon.errors import ModelError
from gnomon.model.names import zoo_roots
from gnomon.zoo.recipes import RECIPES

CARD: Final = "card.json"
STATE: Final = "training-state.pt"
_STEP: Final = re.compile(r"step-(\d+)")


@dataclass(frozen=True, kw_only=True)
class Member:
    """One recipe, or one folder in the zoo that no recipe names.

    Attributes:
        name: as in ``zoo:NAME``.
        summary: its scheme in a few words.
        folder: where it is; ``None`` when it is not here.
        steps: what it was trained for; ``None`` when it is not here or not finished.
        held_out_loss: in nats per token; NaN when not known.
        size: bytes of the last weights.
        checkpoints: steps kept on the way.
        problem: what is wrong with the folder, in one sentence; empty when nothing is.
    """

    name: str
    summary: str
    folder: Path | None = None
    steps: int | None = None
    held_out_loss: float = math.nan
    size: int = 0
    checkpoints: tuple[int, ...] = ()
    problem: str = ""


def members() -> list[Member]:
    """All recipes in their order, then what else lies in the folders of the zoo."""
    here: dict[str, Path] = {}
    for root in zoo_roots():
        for folder in sorted(root.iterdir()) if root.is_dir() else []:
            if folder.is_dir() and not folder.name.startswith(".") and _is_member(folder):
                here.setdefault(folder.name, folder)
    names = [*RECIPES, *(name for name in here if name not in RECIPES)]
    return [member(name, here.get(name)) for name in names]


def member(name: str, folder: Path | None) -> Member:
    """What one folder holds."""
    summary = RECIPES[name].summary if name in RECIPES else "a recipe of another version"
    if folder is None:
        return Member(name=name, summary=summary)
    steps = checkpoint_steps(folder)
    if not (folder / CARD).is_file():
        problem = "training is not finished" if (folder / STATE).is_file() or steps else f"{folder} has no {CARD}"
        return Member(name=name, summary=summary, folder=folder, checkpoints=steps, problem=problem)
    try:
        card = read_card(folder)
        loss = float(card.get("held_out_loss", math.nan))
        return Member(
            name=name,
            summary=str(card.get("recipe", {}).get("summary", summary)),
            folder=folder,
            steps=int(card["step"]),
            held_out_loss=loss,
            size=sum(file.stat().st_size for file in folder.glob("weights.*")),
            checkpoints=steps,
        )
    except (ModelError, KeyError, TypeError, ValueError, AttributeError) as reason:
        said = str(reason) if isinstance(reason, ModelError) else f"{folder / CARD} is damaged; train or install it again."
        return Member(name=name, summary=summary, folder=folder, checkpoints=steps, problem=said)


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a member or checkpoint.

    Raises:
        ModelError: if it is missing or damaged.
    """
    path = folder / CARD
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise ModelError(
            f"{path} must be the card of a zoo model, got none that can be read; train or install it again."
        ) from reason
    if not isinstance(card, dict):
        raise ModelError(f"{path} must be the card of a zoo model, got something else; train or install it again.")
    return card


def checkpoint_steps(folder: Path) -> tuple[int, ...]:
    """Steps of the checkpoints beside the last weights, ascending."""
    found = (_STEP.fullmatch(entry.name) for entry in folder.iterdir() if entry.is_dir())
    return tuple(sorted(int(match[1]) for match in found if match))


def _is_member(folder: Path) -> bool:
    return (
        (folder / CARD).is_file()
        or (folder / "config.json").is_file()
        or (folder / STATE).is_file()
        or bool(checkpoint_steps(folder))
    )

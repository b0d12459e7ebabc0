"""The model card of a member: what a person should know before using it, from what training recorded."""

from __future__ import annotations

from typing import Any

_NOTE = (
    "One of the little models of the zoo of gnomon: one body, trained on the same windows in the same order, so that members differ in their positional scheme and in nothing else. "
    "It is made for measuring, not for use: it is far too small to be right about anything."
)


def model_card(card: dict[str, Any]) -> str:
    """The card in Markdown."""
    recipe, schedule = card.get("recipe", {}), card.get("recipe", {}).get("schedule", {})
    facts = {
        "scheme": recipe.get("summary"),
        "objective": "masked tokens" if recipe.get("masked") else "next token",
        "step": f"{card.get('step')} of {schedule.get('steps')}",
        "windows": f"{schedule.get('batch')} of {schedule.get('context')} tokens a step",
        "tokens seen": card.get("tokens_seen"),
        "tokens of text": card.get("training_tokens"),
        "held-out loss": f"{card.get('held_out_loss')} nats per token",
        "text": card.get("sources") or "not recorded",
        "seed of the weights": recipe.get("seed"),
        "seed of the data": schedule.get("data_seed"),
        "trained on": f"{card.get('device')}, torch {card.get('torch')}",
        "weights": "one signed byte per entry of a matrix and a scale per row; the model that is surveyed is the stored one",
    }
    rows = "\n".join(f"| {name} | {_cell(value)} |" for name, value in facts.items() if value is not None)
    return f"# zoo:{recipe.get('name')}\n\n{_NOTE}\n\n| | |\n|---|---|\n{rows}\n"


def _cell(value: object) -> str:
    """Text that stays within its cell."""
    return " ".join(str(value).split()).replace("|", "\\|")

"""What ``gnomon model`` shows: everything known of a model before anything is measured, as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gnomon.model.position_model import PositionModel

_SPECIAL = ("bos", "eos", "pad", "cls", "sep", "mask", "unk")


def describe_model(model: PositionModel) -> dict[str, Any]:
    """Name, origin, weights, anatomy, scheme and tokenizer of ``model``, ready for strict JSON."""
    return {
        "name": model.name,
        "summary": {"anatomy": model.anatomy.describe(), "scheme": model.scheme.describe()},
        "provenance": {**model.provenance, "weight_hash": model.weight_hash()},
        "dtype": str(model.dtype).removeprefix("torch."),
        "device": str(model.device),
        "anatomy": asdict(model.anatomy),
        "scheme": asdict(model.scheme),
        "tokenizer": describe_tokenizer(model.tokenizer),
    }


def describe_tokenizer(tokenizer: Any) -> dict[str, Any] | None:
    """Special tokens, and which of them the tokenizer adds by itself around a text."""
    if tokenizer is None:
        return None
    ids = {name: getattr(tokenizer, f"{name}_token_id", None) for name in _SPECIAL}
    added = tokenizer("a")["input_ids"]
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    start = next((k for k in range(len(added) - len(plain) + 1) if added[k : k + len(plain)] == plain), 0)
    return {
        "class": type(tokenizer).__name__,
        "vocabulary": len(tokenizer),
        "special": {name: {"id": i, "text": tokenizer.convert_ids_to_tokens(i)} for name, i in ids.items() if i is not None},
        "adds_before": tokenizer.convert_ids_to_tokens(added[:start]),
        "adds_after": tokenizer.convert_ids_to_tokens(added[start + len(plain) :]),
        "chat_template": getattr(tokenizer, "chat_template", None) is not None,
    }

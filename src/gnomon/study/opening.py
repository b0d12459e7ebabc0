"""Opening a model under whatever name: what ``gnomon.load`` is.

Capture opens models of transformers; members of the zoo are stored in a layout of their own, whose reader lives with the zoo, which is built on models and
so cannot be imported by them. Here the two meet.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon import capture

if TYPE_CHECKING:
    from gnomon.model import PositionModel


def open_model(source: Any, *, tokenizer: Any = None, **options: Any) -> PositionModel:
    """A model ready to be surveyed: loaded, its attention routed through gnomon, and proved.

    Args:
        source: hub id, local folder, GGUF file, a name known to ``gnomon fetch``, ``zoo:NAME[@STEP]``, or a model in memory.
        tokenizer: the tokenizer of a model in memory.
        **options: ``revision``, ``device``, ``device_map``, ``dtype``, ``trust_remote_code``, ``stack``: see :func:`gnomon.model.load`.
    """
    return capture.open_model(source, tokenizer=tokenizer, **{"zoo_reader": read_member, **options})


def read_member(folder: Path) -> tuple[Any, Any, dict[str, Any]]:
    """Model, tokenizer and card of a member of the zoo."""
    from gnomon.zoo.weights import read

    return read(folder)

"""Opening a model: load it, route its attention through gnomon, and prove that what is seen is what the model does."""

from __future__ import annotations

from typing import Any

from gnomon.capture.adapters import adapter_for
from gnomon.capture.attention import NAME
from gnomon.capture.proof import prove
from gnomon.errors import UnsupportedModelError
from gnomon.model import PositionModel, load


def open_model(source: Any, *, tokenizer: Any = None, **options: Any) -> PositionModel:
    """A model ready to be surveyed.

    Args:
        source: hub id, local folder, GGUF file, a name known to ``gnomon fetch``, ``zoo:NAME``, or a model in memory.
        tokenizer: the tokenizer of a model in memory.
        **options: ``revision``, ``device``, ``device_map``, ``dtype``, ``trust_remote_code``, ``stack``: see :func:`gnomon.model.load`.
    """
    if isinstance(source, PositionModel):
        return source if source.proof is not None else install(source)
    return install(load(source, tokenizer=tokenizer, attn_implementation=NAME, **options))


def install(model: PositionModel) -> PositionModel:
    """Route the attention of a loaded model through gnomon and prove it."""
    adapter = adapter_for(model)
    if adapter is not None:
        adapter.install()
        model.adapter = adapter
    else:
        try:
            model.set_attention(NAME)
        except ValueError as reason:
            raise UnsupportedModelError(
                f"{model.name} ({model.anatomy.architecture}) does not pass through transformers' attention interface and has no adapter; it is not supported."
            ) from reason
    model.proof = prove(model)
    return model

"""Access to the parts of a transformers model that every family has under some name: configuration, stacks, embeddings, linear maps."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from gnomon.errors import ModelError, UnsupportedModelError

Stack = Literal["encoder", "decoder"]


def text_config(hf: nn.Module) -> Any:
    """The configuration of the text model, also where a model sees images too."""
    config = getattr(hf, "config", None)
    if config is None:
        raise UnsupportedModelError(
            f"`source` must be a transformers model, got {type(hf).__name__} without a config; pass a PreTrainedModel."
        )
    inner = getattr(config, "text_config", None)
    return config if inner is None else inner


def resolve_stack(hf: nn.Module, stack: Stack | None) -> Stack | None:
    """The stack to survey: ``None`` for single-stack models, the encoder by default for encoder-decoders."""
    two = bool(getattr(getattr(hf, "config", None), "is_encoder_decoder", False)) and hasattr(hf, "get_decoder")
    encoder_only = two and not isinstance(getattr(hf.base_model, "decoder", None), nn.Module)
    if stack == "decoder" and (not two or encoder_only):
        raise ModelError(
            f"`stack` must be left out for {type(hf).__name__}, which has no decoder beside an encoder, got 'decoder'."
        )
    if stack not in (None, "encoder", "decoder"):
        raise ModelError(f"`stack` must be 'encoder' or 'decoder', got {stack!r}.")
    return (stack or "encoder") if two else None


def backbone_of(hf: nn.Module, stack: Stack | None = None) -> nn.Module:
    """The module that turns tokens into hidden states: the model without its head, or one stack of an encoder-decoder."""
    base = getattr(hf, "base_model", hf)
    if stack is not None:
        inner = getattr(base, stack, None)
        return inner if isinstance(inner, nn.Module) else base
    if base is hf and isinstance(getattr(hf, "model", None), nn.Module):
        base = hf.model
    inner = getattr(base, "language_model", None)
    return inner if isinstance(inner, nn.Module) else base


def embedding_of(hf: nn.Module, backbone: nn.Module) -> nn.Embedding:
    """The token embedding that the surveyed stack calls."""
    embedding = called(backbone, "get_input_embeddings") or called(hf, "get_input_embeddings")
    if not isinstance(embedding, nn.Embedding):
        raise UnsupportedModelError(
            f"`source` must be a language model over tokens, got {type(hf).__name__}, which has no token embedding."
        )
    return embedding


def called(module: nn.Module, getter: str) -> nn.Module | None:
    """What a getter of transformers returns, where the class has it."""
    method: Any = getattr(module, getter, None)
    found = method() if callable(method) else None
    return found if isinstance(found, nn.Module) else None


def map_weight(module: nn.Module) -> Tensor | None:
    """Weight ``[out, in]`` of a linear map: ``nn.Linear``, or GPT-2's ``Conv1D`` which keeps it transposed; ``None`` for other modules."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim != 2 or isinstance(module, nn.Embedding):
        return None
    if isinstance(module, nn.Linear):
        return weight
    return weight.T if type(module).__name__ == "Conv1D" else None


def linear_maps(module: nn.Module) -> list[nn.Module]:
    """All linear maps below a module, in order."""
    return [inner for inner in module.modules() if map_weight(inner) is not None]


def map_shape(module: nn.Module) -> tuple[int, int]:
    """Widths ``(out, in)`` of a linear map."""
    weight = map_weight(module)
    assert weight is not None
    return int(weight.shape[0]), int(weight.shape[1])


def position_table(backbone: nn.Module) -> nn.Embedding | None:
    """The embedding of absolute positions, if the stack has one."""
    for name, module in backbone.named_modules():
        leaf = name.rsplit(".", 1)[-1].lower()
        if isinstance(module, nn.Embedding) and (leaf == "wpe" or "position" in leaf) and "relative" not in leaf:
            return module
    return None

"""Loading: a name or an object in, a :class:`PositionModel` out, or one sentence that says why not.

What the user asked for is found (``names``), read (``weights``, ``gguf``), moved to its device, and its parts and scheme are read. Everything
that transformers and its readers raise on the way becomes a :class:`ModelError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch
from huggingface_hub import constants as hub
from torch import nn
from transformers import AutoConfig, AutoTokenizer

from gnomon.errors import ConfigError, MissingExtraError, ModelError, ResourceError
from gnomon.model.gguf import facts_of, unpacked
from gnomon.model.names import OFFLINE_CHOICES, Located, hub_reachable, locate
from gnomon.model.parts import Stack, text_config
from gnomon.model.position_model import PositionModel, through_interface
from gnomon.model.reading import Translated, quiet, reason_of
from gnomon.model.weights import check_finite, check_text, read_weights

ZooReader = Callable[[Path], tuple[Any, Any, dict[str, Any]]]
_TOKENIZER_FILES: Final = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.json",
    "vocab.txt",
)


def load(
    source: str | os.PathLike[str] | nn.Module,
    *,
    tokenizer: Any = None,
    revision: str | None = None,
    device: str | torch.device | None = None,
    device_map: str | dict[str, Any] | None = None,
    dtype: str | torch.dtype | None = None,
    trust_remote_code: bool = False,
    stack: Stack | None = None,
    attn_implementation: str = "eager",
    zoo_reader: ZooReader | None = None,
) -> PositionModel:
    """Loads a model quietly, in eval mode.

    Args:
        source: hub id, local folder, GGUF file, a name known to ``gnomon fetch``, ``zoo:NAME[@STEP]``, or a transformers model in memory.
        tokenizer: a tokenizer, or where to load one from; the model's own when left out.
        revision: branch, tag or commit of a hub id.
        device: where to put the model; a GPU when there is one.
        device_map: placement over several devices (``"auto"``), by accelerate.
        dtype: of the weights; float32 on the CPU and what the files hold elsewhere when left out.
        trust_remote_code: whether code of the repository may run.
        stack: ``"encoder"`` or ``"decoder"`` of an encoder-decoder.
        attn_implementation: attention of classes that pass through transformers' interface; others keep their own.
        zoo_reader: reads the folder of a zoo member (``gnomon.zoo.weights.read``); the zoo is built on models, so models cannot import it.

    Raises:
        ModelError: when the model cannot be found, read or trusted.
    """
    if isinstance(source, nn.Module):
        return _in_memory(source, tokenizer, device, stack, attn_implementation)
    if not isinstance(source, (str, os.PathLike)):
        raise ModelError(f"`source` must be a name, a path or a transformers model, got {type(source).__name__}.")
    located = locate(source)
    place, number = _device(device, device_map), _dtype(dtype, _device(device, device_map))
    options = {"trust_remote_code": trust_remote_code, **_reading(located, revision)}
    if located.kind == "zoo":
        return _zoo_member(located, zoo_reader, tokenizer, place, number, attn_implementation)
    folder = unpacked(located.path) if located.kind == "gguf" else None
    facts = {} if folder is None else facts_of(folder)
    place_read = located.location if folder is None else str(folder)
    config = _config(located, place_read, options)
    hf, unused = read_weights(located, place_read, config, options, number, device_map)
    check_finite(hf, located.name)
    if device_map is None:
        hf = _moved(hf, place, located.name)
    model = PositionModel.of(
        hf.eval().requires_grad_(False),
        tokenizer=_tokenizer(located, place_read, tokenizer, options),
        name=located.name,
        stack=stack,
        provenance={**_origin(located, config, revision), **facts, **({"unused_weights": unused} if unused else {})},
    )
    _use_attention(model, attn_implementation)
    return model


def _in_memory(hf: nn.Module, tokenizer: Any, device: Any, stack: Stack | None, attn_implementation: str) -> PositionModel:
    """A model that the user holds: put into eval mode, its weights and gradients left alone."""
    check_text(type(hf), type(hf).__name__)
    if isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _read_tokenizer(str(tokenizer), {"local_files_only": not _online()})
    if device is not None:
        hf = _moved(hf, _device(device, None), type(hf).__name__)
    check_finite(hf, type(hf).__name__)
    name = str(getattr(text_config(hf), "_name_or_path", "") or type(hf).__name__)
    model = PositionModel.of(hf.eval(), tokenizer=tokenizer, name=name, stack=stack, provenance={"source": "memory"})
    _use_attention(model, attn_implementation)
    return model


def _zoo_member(
    located: Located, reader: ZooReader | None, tokenizer: Any, place: torch.device, number: Any, attn_implementation: str
) -> PositionModel:
    """A member of the zoo, whose weights are in the zoo's own layout."""
    if reader is None:
        raise ModelError(
            f"{located.name!r} is a member of the zoo and needs its reader; open it with `gnomon.load` or pass zoo_reader=."
        )
    with (
        quiet(),
        Translated(
            lambda failure: ModelError(f"{located.name!r} cannot be read ({reason_of(failure)}); train or install it again.")
        ),
    ):
        hf, own, card = reader(located.path)
    check_finite(hf, located.name)
    hf = _moved(hf.to(number) if isinstance(number, torch.dtype) else hf, place, located.name)
    model = PositionModel.of(
        hf, tokenizer=tokenizer or own, name=located.name, provenance={**_origin(located, hf.config, None), "card": card}
    )
    _use_attention(model, attn_implementation)
    return model


def _use_attention(model: PositionModel, name: str) -> None:
    if through_interface(type(model.attentions[0])):
        model.set_attention(name)


def _online() -> bool:
    return not hub.HF_HUB_OFFLINE and hub_reachable(hub.ENDPOINT)


def _reading(located: Located, revision: str | None) -> dict[str, Any]:
    if located.kind != "hub":
        if revision is not None:
            raise ModelError(f"`revision` must be left out for {located.name!r}, which is no hub id, got {revision!r}.")
        return {"local_files_only": True}
    return {"revision": revision, "local_files_only": not _online()}


def _device(device: str | torch.device | None, device_map: Any) -> torch.device:
    if device_map is not None:
        if device is not None:
            raise ConfigError("`device` must be left out when `device_map` is given, got both.")
        if find_spec("accelerate") is None:
            raise MissingExtraError("accelerate", "accelerate", "`device_map`")
    try:
        chosen = torch.device(device if device is not None else "cuda" if torch.cuda.is_available() else "cpu")
    except RuntimeError as reason:
        raise ConfigError(f"`device` must be a torch device such as 'cpu' or 'cuda:0', got {device!r}.") from reason
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f"`device` must be a device of this machine, got {device!r} without a CUDA device; leave it out or give 'cpu'."
        )
    return chosen


def _dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype | str:
    if dtype is None:
        return torch.float32 if device.type == "cpu" else "auto"
    found = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype).removeprefix("torch."), None)
    if dtype == "auto":
        return "auto"
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ConfigError(f"`dtype` must be float32, float64, bfloat16, float16 or auto, got {dtype!r}.")
    return found


def _config(located: Located, place: str, options: dict[str, Any]) -> Any:
    def explain(failure: BaseException) -> ModelError:
        if located.kind == "hub" and options["local_files_only"]:
            return ModelError(
                f"`source` {located.name!r} must be in the local Hugging Face cache when {hub.ENDPOINT} cannot be reached, got nothing there; give "
                f"{OFFLINE_CHOICES}."
            )
        if "trust_remote_code" in str(failure):
            return ModelError(
                f"{located.name!r} needs code from its own repository; pass trust_remote_code=True if you trust it."
            )
        what = "the hub id and revision" if located.kind == "hub" else "config.json"
        return ModelError(f"{located.name!r} has no configuration that can be read ({reason_of(failure)}); check {what}.")

    with quiet(), Translated(explain):
        return AutoConfig.from_pretrained(place, **options)


def _moved(hf: nn.Module, device: torch.device, name: str) -> nn.Module:
    try:
        return hf.to(device)
    except torch.OutOfMemoryError as reason:
        raise ResourceError(
            f"{name!r} must fit into the memory of {device}, got {reason_of(reason)}; give a smaller dtype or device_map='auto'."
        ) from reason


def _tokenizer(located: Located, place: str, tokenizer: Any, options: dict[str, Any]) -> Any:
    if isinstance(tokenizer, (str, os.PathLike)):
        return _read_tokenizer(
            str(tokenizer), {"trust_remote_code": options["trust_remote_code"], "local_files_only": not _online()}
        )
    if tokenizer is not None:
        return tokenizer
    if located.kind != "hub" and not any((Path(place) / file).is_file() for file in _TOKENIZER_FILES):
        return None
    return _read_tokenizer(place, options)


def _read_tokenizer(place: str, options: dict[str, Any]) -> Any:
    def explain(failure: BaseException) -> ModelError:
        return ModelError(f"the tokenizer of {place!r} cannot be read ({reason_of(failure)}); pass tokenizer=.")

    with quiet(), Translated(explain):
        return AutoTokenizer.from_pretrained(place, **options)


def _origin(located: Located, config: Any, revision: str | None) -> dict[str, Any]:
    """Source, revision and files, for the record of a run."""
    if located.kind == "hub":
        return {"source": located.name, "revision": getattr(config, "_commit_hash", None) or revision, "files": {}}
    path = located.path
    files = [path] if path.is_file() else sorted(p for p in path.iterdir() if p.suffix in (".safetensors", ".json"))
    return {
        "source": located.name,
        "revision": None,
        "path": str(path),
        "files": {file.name: file.stat().st_size for file in files},
    }

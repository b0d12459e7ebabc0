"""Weights from files: which class they belong to, whether all of them are there, and whether they are numbers.

Weights come from safetensors or GGUF only; a pickle can run code when it is read and is refused. Weights that the files lack are
not filled in with random numbers, as transformers would: a survey of half a model would be a wrong number without a word.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from torch import nn
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from gnomon.errors import GnomonError, ModelError, ResourceError, UnsupportedModelError
from gnomon.model.names import Located
from gnomon.model.reading import Translated, quiet, reason_of

_log = logging.getLogger(__name__)
_PICKLES: Final = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_UNREAD_PARTS: Final = ("pooler", "position_ids", "seq_relationship", "classifier")
_AUTO: Final[dict[str, Any]] = {
    "CausalLM": AutoModelForCausalLM,
    "LMHeadModel": AutoModelForCausalLM,
    "MaskedLM": AutoModelForMaskedLM,
    "ForPreTraining": AutoModelForMaskedLM,
    "Seq2SeqLM": AutoModelForSeq2SeqLM,
}


def read_weights(
    located: Located, place: str, config: Any, options: dict[str, Any], dtype: Any, device_map: Any
) -> tuple[nn.Module, list[str]]:
    """The model and the names of weights in the files that it has no place for."""
    auto = _architecture(config, located.name)
    if located.kind != "hub":
        _refuse_pickles(Path(place), located.name)
    placing = {} if device_map is None else {"device_map": device_map}
    with quiet(), Translated(lambda failure: _why_unreadable(located, failure)):
        hf, info = auto.from_pretrained(
            place,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            attn_implementation="eager",
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are reported below, and refused
            **placing,
            **options,
        )
    check_text(type(hf), located.name)
    missing = sorted(name for name in info["missing_keys"] if not any(part in name for part in _UNREAD_PARTS))
    missing += sorted(str(key[0] if isinstance(key, tuple) else key) for key in info.get("mismatched_keys", ()))
    if missing:
        raise ModelError(
            f"{located.name!r} must hold every weight of {type(hf).__name__}, but {len(missing)} are missing or of another shape, the first "
            f"{missing[0]}; the files are incomplete or config.json belongs to another model."
        )
    unused = sorted(map(str, info.get("unexpected_keys", ())))
    if unused:
        _log.warning(
            "%s holds %d weights that %s has no place for, the first %s", located.name, len(unused), type(hf).__name__, unused[0]
        )
    return hf, unused


def _why_unreadable(located: Located, failure: BaseException) -> GnomonError:
    said = reason_of(failure)
    if isinstance(failure, (torch.OutOfMemoryError, MemoryError)):
        return ResourceError(f"{located.name!r} must fit into memory, got {said}; give a smaller dtype or device_map='auto'.")
    if "safetensors" in str(failure) and ("does not appear to have" in str(failure) or "no file named" in str(failure)):
        return ModelError(
            f"{located.name!r} must hold weights as .safetensors or .gguf, which were not found; pickles (.bin) are never read: convert them once with "
            "save_pretrained, or pass the model in memory."
        )
    return ModelError(
        f"the weights of {located.name!r} cannot be read ({said}); the files are damaged or belong to another version of transformers."
    )


def _refuse_pickles(folder: Path, name: str) -> None:
    if any(folder.glob("*.safetensors")):
        return
    pickled = next((file for file in _PICKLES if (folder / file).is_file()), None)
    got = f"only {pickled}, a pickle, which can run code when it is read" if pickled else "none"
    remedy = (
        "convert it once with save_pretrained, or pass the model in memory" if pickled else "check that the download is complete"
    )
    raise ModelError(f"{name!r} must hold weights as .safetensors or .gguf, got {got}; {remedy}.")


def _architecture(config: Any, name: str) -> Any:
    """The class to load: what the configuration names when it is a language model, else the family's backbone."""
    named = str((getattr(config, "architectures", None) or [""])[0])
    remote = getattr(config, "auto_map", None) or {}
    if remote:
        return next((auto for auto in _AUTO.values() if auto.__name__ in remote), AutoModel)
    for ending, auto in _AUTO.items():
        if named.endswith(ending) and _has(auto, config):
            return auto
    if named == "T5EncoderModel" or named.endswith("EncoderModel"):
        return getattr(transformers, named, AutoModel)
    if not named or named.endswith("ForConditionalGeneration"):
        chosen = next(
            (auto for auto in (AutoModelForSeq2SeqLM, AutoModelForCausalLM, AutoModelForMaskedLM) if _has(auto, config)), None
        )
        if chosen is not None:
            return chosen
    if not any(_has(auto, config) for auto in (AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM)):
        kind = getattr(config, "model_type", type(config).__name__)
        raise UnsupportedModelError(
            f"`source` must be a language model over text, got {name!r}, whose architecture is {named or kind}."
        )
    return AutoModel


def _has(auto: Any, config: Any) -> bool:
    return type(config) in auto._model_mapping


def check_text(architecture: type, name: str) -> None:
    """Refuses classes that read anything but tokens."""
    if getattr(architecture, "main_input_name", "input_ids") != "input_ids":
        raise UnsupportedModelError(
            f"`source` must be a language model over text, got {name!r} ({architecture.__name__}), which reads {architecture.main_input_name}."  # type: ignore[attr-defined]
        )


@torch.no_grad()
def check_finite(hf: nn.Module, name: str) -> None:
    """Refuses weights that are not finite, and names them."""
    bad = [
        label
        for label, parameter in hf.named_parameters()
        if parameter.is_floating_point()
        and not parameter.is_meta
        and parameter.numel()
        and not all(map(torch.isfinite, parameter.aminmax()))
    ]
    if bad:
        raise ModelError(
            f"{name!r} must have finite weights, got NaN or infinite numbers in {len(bad)} tensors, the first {bad[0]}."
        )

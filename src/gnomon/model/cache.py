"""Where fetched and unpacked models are kept: ``$GNOMON_CACHE`` or ``~/.cache/gnomon``."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

CHUNK: Final = 1 << 20


def cache_dir() -> Path:
    """The folder; it need not exist yet."""
    chosen = os.environ.get("GNOMON_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "gnomon"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()

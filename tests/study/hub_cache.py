"""A cache of the hub's layout, filled without a hub."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path


def put_in_cache(cache: Path, repo: str, revision: str, folder: Path) -> str:
    """Store a model folder as a revision of a repository; returns its commit."""
    root = cache / f"models--{repo.replace('/', '--')}"
    commit = hashlib.sha1(f"{repo}{revision}".encode()).hexdigest()
    snapshot = root / "snapshots" / commit
    (root / "refs").mkdir(parents=True, exist_ok=True)
    (root / "blobs").mkdir(exist_ok=True)
    (root / "refs" / revision).write_text(commit)
    snapshot.mkdir(parents=True)
    for file in folder.iterdir():
        blob = root / "blobs" / hashlib.sha1(f"{commit}{file.name}".encode()).hexdigest()
        shutil.copyfile(file, blob)
        (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
    return commit

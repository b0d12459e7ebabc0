"""A cap on the disk that downloaded checkpoints take.

Twenty checkpoints of a model are twenty downloads, of which a sweep needs one at a time. Those that a sweep fetched itself are noted in a ledger beside the hub's cache; when the
survey of one is done and those done take more than the cap, the oldest are deleted. What was in the cache before, by anybody's doing, is never touched, and neither is one that another
survey of the sweep still reads. A killed survey leaves its note, so that its download is still the sweep's own when it is tried again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from filelock import FileLock
from huggingface_hub import CacheNotFound, constants, scan_cache_dir

LEDGER: Final = "gnomon-downloads.json"
_WAIT: Final = 60.0


class DiskCap:
    """The ledger of one hub cache.

    Attributes:
        most_bytes: what downloads that are done with may take.
        cache: the hub's cache folder.
    """

    def __init__(self, most_bytes: int, cache: Path | None = None) -> None:
        self.most_bytes = most_bytes
        self.cache = Path(constants.HF_HUB_CACHE) if cache is None else cache

    @contextmanager
    def while_reading(self, repo: str, revision: str | None) -> Iterator[None]:
        """Within it the checkpoint may be downloaded and read; afterwards it counts as done with."""
        name = revision or "main"
        self._begin(repo, name)
        try:
            yield
        finally:
            self._done(repo, name)

    def _begin(self, repo: str, revision: str) -> None:
        with self._ledger() as notes:
            ours = [note for note in notes if (note["repo"], note["revision"]) == (repo, revision)]
            for note in ours:
                note["readers"] += 1
            if not ours and self._cached(repo, revision) is None:
                notes.append({"repo": repo, "revision": revision, "readers": 1})

    def _done(self, repo: str, revision: str) -> None:
        with self._ledger() as notes:
            for note in [note for note in notes if (note["repo"], note["revision"]) == (repo, revision)]:
                note["readers"] = 0
                notes.remove(note)
                notes.append(note)
            self._prune(notes)

    def _prune(self, notes: list[dict[str, Any]]) -> None:
        """Delete the longest done until the rest fits; ``notes`` are in the order in which they were done."""
        sizes = [(note, self._cached(note["repo"], note["revision"])) for note in notes if not note["readers"]]
        kept = [(note, found) for note, found in sizes if found is not None]
        total = sum(size for _, (_, size) in kept)
        for note, (commit, size) in kept:
            if total <= self.most_bytes:
                return
            scan_cache_dir(self.cache).delete_revisions(commit).execute()
            notes.remove(note)
            total -= size

    def _cached(self, repo: str, revision: str) -> tuple[str, int] | None:
        """Commit and bytes of a revision in the cache."""
        try:
            repos = scan_cache_dir(self.cache).repos
        except CacheNotFound:
            return None
        for entry in repos:
            for one in entry.revisions if entry.repo_id == repo and entry.repo_type == "model" else ():
                if revision in one.refs or one.commit_hash == revision:
                    return one.commit_hash, one.size_on_disk
        return None

    @contextmanager
    def _ledger(self) -> Iterator[list[dict[str, Any]]]:
        self.cache.mkdir(parents=True, exist_ok=True)
        path = self.cache / LEDGER
        with FileLock(f"{path}.lock", timeout=_WAIT):
            try:
                notes: list[dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else []
            except ValueError:
                notes = []
            yield notes
            temporary = path.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(notes, indent=1))
            os.replace(temporary, path)

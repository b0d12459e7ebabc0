"""Writing that leaves either the old or the new state, never something between.

A file is written under a temporary name in the same folder, flushed to the disk and renamed over its place; the folder is flushed
after it. A full disk is the one failure that users meet: it becomes a sentence, and what was there before stays.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from gnomon.errors import ResourceError, RunError

TEMPORARY = ".tmp-"
FLUSHED_AT_ONCE = 16
FULL = (errno.ENOSPC, errno.EDQUOT)
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns a full or read-only disk into an error of one sentence that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise ResourceError(
                f"the disk that holds {path} must have space left, got '{error.strerror}'; "
                "free some and run the same command again: nothing that was finished is lost."
            ) from error
        if error.errno in FORBIDDEN:
            raise RunError(f"{path} must be writable, got '{error.strerror}'; choose another folder for the run.") from error
        raise


def write_file(path: Path, fill: Callable[[BinaryIO], None]) -> None:
    """Calls ``fill`` on a temporary file and puts that file in the place of ``path`` once it is on the disk."""
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    with disk_errors(path):
        try:
            with temporary.open("wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        flush_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    write_file(path, lambda file: _write_all(file, text.encode("utf-8")))


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Calls ``fill`` on a temporary folder and puts that folder in the place of ``path`` once its files are on the disk.

    Where ``path`` exists it is set aside first, so that for a moment neither is in place; callers that replace a folder keep the
    means to write it again until this returns.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    aside = path.with_name(f"{TEMPORARY}{os.getpid()}-old-{path.name}")
    with disk_errors(path):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            fill(temporary)
            flush_tree(temporary)
            if path.exists():
                os.replace(path, aside)
            os.replace(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        flush_folder(path.parent)
        shutil.rmtree(aside, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Removes temporary files that a killed process left in ``folder``; only for the holder of its lock."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def flush_tree(folder: Path) -> None:
    """Flushes every file and folder below ``folder`` to the disk, many at once: the disk gathers what waits together."""
    walked = [(Path(directory), names) for directory, _, names in os.walk(folder)]
    with ThreadPoolExecutor(FLUSHED_AT_ONCE) as pool:
        list(pool.map(_flush_file, [directory / name for directory, names in walked for name in names]))
        list(pool.map(flush_folder, [directory for directory, _ in walked]))


def _flush_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Flushes the entries of a folder, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(file: BinaryIO, data: bytes) -> None:
    file.write(data)

"""One writer per run folder.

The lock belongs to the open file, so the system releases it when the process ends, however it ends: a killed run leaves no lock
behind that somebody would have to delete.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gnomon.errors import RunError
from gnomon.result.atomic import disk_errors

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FolderLock:
    """An exclusive lock on a folder, held until :meth:`release` or the end of the process."""

    def __init__(self, folder: Path, *, name: str = ".lock") -> None:
        path = folder / name
        with disk_errors(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if sys.platform == "win32":
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise RunError(
                f"`out` must not be in use, but another process is writing {folder}; wait for it to end or choose another folder."
            ) from error
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Lets others write; harmless when called twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

"""What an unfinished run has so far: one file of arrays per key, each whole or absent.

A key names a batch and a measure, such as ``batch-0003/sinks``. Files are numpy's own archive format without pickles, so that
reading a folder from somebody else runs none of their code.
"""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import RunError
from gnomon.result.atomic import disk_errors, write_file

Arrays = dict[str, NDArray[np.generic]]
SUFFIX = ".npz"


class Parts(Protocol):
    """Arrays by key, kept until a run is finished."""

    def __contains__(self, key: str) -> bool:
        """Whether the part is there, whole."""

    def keys(self) -> list[str]:
        """Keys of all parts, sorted."""

    def read(self, key: str) -> Arrays:
        """The arrays of one part."""

    def write(self, key: str, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Keeps one part, in place of an earlier one of the same key."""

    def clear(self) -> None:
        """Drops everything."""


class MemoryParts:
    """Parts of a run that has no folder."""

    def __init__(self) -> None:
        self._kept: dict[str, Arrays] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def keys(self) -> list[str]:
        """See :class:`Parts`."""
        return sorted(self._kept)

    def read(self, key: str) -> Arrays:
        """See :class:`Parts`."""
        return self._kept[key]

    def write(self, key: str, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """See :class:`Parts`."""
        self._kept[key] = _checked(key, arrays)

    def clear(self) -> None:
        """See :class:`Parts`."""
        self._kept.clear()


class DiskParts:
    """Parts as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __contains__(self, key: str) -> bool:
        path = self._path(key)
        return path.is_file() and zipfile.is_zipfile(path)

    def keys(self) -> list[str]:
        """See :class:`Parts`."""
        return sorted(unquote(path.name.removesuffix(SUFFIX)) for path in self.folder.glob(f"[!.]*{SUFFIX}"))

    def read(self, key: str) -> Arrays:
        """See :class:`Parts`."""
        path = self._path(key)
        try:
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise RunError(
                f"{path} must hold what a batch contributed, but it cannot be read; delete that file and run again."
            ) from error

    def write(self, key: str, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """See :class:`Parts`."""
        checked = _checked(key, arrays)
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self._path(key), lambda file: _write_archive(file, checked))

    def clear(self) -> None:
        """See :class:`Parts`."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self.folder / (quote(key, safe="") + SUFFIX)


def _checked(key: str, arrays: Mapping[str, NDArray[np.generic]]) -> Arrays:
    out = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in out.items():
        if array.dtype.hasobject:
            raise TypeError(f"part {key!r} must hold numbers or text, got an object array under {name!r}; convert it first.")
    return out


def _write_archive(file: BinaryIO, arrays: Arrays) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)

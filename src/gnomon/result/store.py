"""Datasets on disk: one Zarr (version 3) group per measure, and a digest of each group's files.

Text is stored with Zarr's variable-length strings, the only text type with a settled place in the format, and handed back as
numpy text. Attributes are made strict JSON on the way in. Arrays of a few megabytes are one chunk, so that a survey is
hundreds of small files, not thousands.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gnomon.errors import RunError
from gnomon.result.atomic import write_folder
from gnomon.result.strict_json import strict

if TYPE_CHECKING:
    import xarray as xr

ONE_CHUNK_BYTES = 16 * 2**20


def write_store(path: Path, datasets: Mapping[str, xr.Dataset]) -> dict[str, dict[str, Any]]:
    """Writes all datasets, whole or not at all, and says for each how many files and bytes it has and their digest."""
    summary: dict[str, dict[str, Any]] = {}

    def fill(folder: Path) -> None:
        folder.mkdir()
        root = {"zarr_format": 3, "node_type": "group", "attributes": {}}
        (folder / "zarr.json").write_text(json.dumps(root), encoding="utf-8")
        for name, dataset in datasets.items():
            _write_group(folder, name, dataset)
            summary[name] = {**group_summary(folder / name), "variables": [str(key) for key in dataset.data_vars]}

    write_folder(path, fill)
    return summary


def read_group(path: Path, name: str, expected: Mapping[str, Any]) -> xr.Dataset:
    """One measure's dataset, its arrays read when they are used.

    Args:
        path: the store.
        name: of the measure.
        expected: what :func:`write_store` said of the group; a group that differs is damaged.
    """
    import xarray as xr

    group = path / name
    damaged = f"{group} must hold the arrays of {name}, but they are damaged or missing; make the run again."
    found = group_summary(group)
    if any(found[key] != expected.get(key) for key in found):
        raise RunError(damaged)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            dataset = xr.open_zarr(path, group=name, consolidated=False, chunks=None, zarr_format=3)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(damaged) from error
    # Zarr lists a group in no particular order; the record keeps the measure's own.
    return _with_numpy_text(dataset)[[name for name in expected.get("variables", []) if name in dataset]]


def group_summary(group: Path) -> dict[str, Any]:
    """Number of files, their bytes, and the SHA-256 over names and contents in sorted order."""
    sha, files, size = hashlib.sha256(), 0, 0
    for path in sorted(_files(group), key=lambda file: file.relative_to(group).as_posix()):
        data = path.read_bytes()
        sha.update(f"{path.relative_to(group).as_posix()}\0{len(data)}\0".encode())
        sha.update(data)
        files, size = files + 1, size + len(data)
    return {"files": files, "bytes": size, "sha256": sha.hexdigest()}


def strict_attributes(dataset: xr.Dataset) -> xr.Dataset:
    """The same dataset with attributes that are strict JSON and text as variable-length strings."""
    out = dataset.copy()
    out.attrs = strict(dict(dataset.attrs))
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "OSTU":
            text = np.asarray(variable.values).astype(str).astype(object)
            replaced = (variable.dims, text, strict(dict(variable.attrs)))
            out = out.assign_coords({name: replaced}) if name in dataset.coords else out.assign({name: replaced})
        else:
            out[name].attrs = strict(dict(variable.attrs))
            out[name].encoding = {}
    return out


def _write_group(store: Path, name: str, dataset: xr.Dataset) -> None:
    if not name or name.startswith(".") or set(name) & set("/\\"):
        raise ValueError(f"a measure's name must serve as a folder's name, got {name!r}.")
    ready = strict_attributes(dataset)
    encoding = {
        key: {"chunks": variable.shape}
        for key, variable in ready.variables.items()
        if variable.ndim and variable.size and variable.nbytes <= ONE_CHUNK_BYTES
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ready.to_zarr(store, group=name, mode="a", zarr_format=3, consolidated=False, encoding=encoding)


def _with_numpy_text(dataset: xr.Dataset) -> xr.Dataset:
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "OT":
            replaced = (variable.dims, np.asarray(variable.values).astype(object).astype(str), variable.attrs)
            dataset = dataset.assign_coords({name: replaced}) if name in dataset.coords else dataset.assign({name: replaced})
    return dataset


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())

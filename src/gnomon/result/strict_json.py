"""JSON that any parser reads: no NaN, no infinity, no numpy, keys in a stable order.

Python's own writer emits ``NaN``, which is not JSON; readers then fail or, worse, read a missing number as zero. Here a number
that is not finite becomes ``null`` and the place and reason are kept beside it, under the top-level key ``missing``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np

from gnomon.statistics import Estimate

Json = Any


def strict(tree: Any, missing: dict[str, str] | None = None, path: str = "") -> Json:
    """The same tree in JSON's own types; non-finite numbers become ``None`` and are named, with why, in ``missing``.

    Estimates carry their own reasons; dataclasses, mappings, sequences, sets, numpy values, enumerations and paths are
    converted; anything else is written as its text.
    """
    missing = {} if missing is None else missing
    if tree is None or (isinstance(tree, bool | str | int) and not isinstance(tree, Enum)):
        return tree
    if isinstance(tree, float | np.floating):
        return _number(float(tree), missing, path)
    if isinstance(tree, Estimate):
        return tree.to_json()
    if isinstance(tree, np.integer | np.bool_):
        return tree.item()
    if isinstance(tree, Enum):
        return strict(tree.value, missing, path)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        tree = {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
    if isinstance(tree, Mapping):
        return {str(key): strict(value, missing, f"{path}.{key}" if path else str(key)) for key, value in tree.items()}
    if isinstance(tree, np.ndarray):
        tree = tree.tolist()
    if isinstance(tree, set | frozenset):
        tree = sorted(tree, key=str)
    if isinstance(tree, list | tuple):
        return [strict(value, missing, f"{path}[{index}]") for index, value in enumerate(tree)]
    if not isinstance(tree, list):
        return tree.as_posix() if isinstance(tree, PurePath) else str(tree)
    return tree


def dumps(tree: Mapping[str, Any]) -> str:
    """Strict, indented JSON of a mapping, with a ``missing`` key where numbers were not finite."""
    missing: dict[str, str] = {}
    out = strict(tree, missing)
    if missing:
        out["missing"] = missing
    return json.dumps(out, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def digest(tree: Any) -> str:
    """SHA-256 of the canonical form of a tree: equal trees, equal digests, whatever the order of their keys."""
    canonical = json.dumps(strict(tree), sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _number(value: float, missing: dict[str, str], path: str) -> float | None:
    if math.isfinite(value):
        return value
    missing[path or "."] = "not a number" if math.isnan(value) else "infinite"
    return None

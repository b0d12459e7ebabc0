"""Finding what a dataset says of each head, whatever else its variables range over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gnomon.dims import HEAD, LAYER
from gnomon.result.survey import format_number

if TYPE_CHECKING:
    import xarray as xr


def per_head(dataset: xr.Dataset, names: Sequence[str]) -> tuple[str, NDArray[np.float64]] | None:
    """The first of ``names`` that has one value per layer and head, as ``[layer, head]``; ``None`` if there is none.

    Variables with further dimensions are not averaged here: a report shows what was computed, with the interval it was given.
    """
    for name in names:
        if name in dataset and set(dataset[name].dims) == {LAYER, HEAD}:
            return name, np.asarray(dataset[name].transpose(LAYER, HEAD).values, dtype=np.float64)
    return None


def strongest(values: NDArray[np.float64], count: int) -> list[tuple[int, int]]:
    """Layer and head of the largest values, largest first; places without a value are left out."""
    flat = np.where(np.isfinite(values), values, -np.inf).ravel()
    order = [int(index) for index in np.argsort(-flat, kind="stable")[:count] if np.isfinite(flat[index])]
    return [(index // values.shape[1], index % values.shape[1]) for index in order]


def bounds(dataset: xr.Dataset, name: str, layer: int, head: int) -> str:
    """The interval of one cell, as text; empty where the dataset has none."""
    if f"{name}_low" not in dataset or f"{name}_high" not in dataset:
        return ""
    low, high = (float(dataset[f"{name}_{end}"].isel(layer=layer, head=head)) for end in ("low", "high"))
    return f"[{format_number(low)}, {format_number(high)}]" if low == low and high == high else ""

"""Taking variables out of a dataset as figures need them, without computing anything.

A variable may be absent, lack its interval, or hold nothing but NaN; every function here says ``None`` then, and the figure leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.dims import HEAD, LAYER
from gnomon.report.figures.kinds import Axis, Floats, HeadCurve, HeadField, Line, Palette, Role

if TYPE_CHECKING:
    import xarray as xr

BOUNDS = ("_low", "_high")
NO_UNITS = ("", "1", "none")
LOG_AXES = {"offset", "offset_band", "position", "position_band", "query", "lag", "distance", "step", "threshold", "tokens"}
WORDS = {"query_band": "queries", "query": "query position"}


def array(dataset: xr.Dataset, name: str, dims: Sequence[str]) -> Floats | None:
    """The variable in the order of ``dims``; ``None`` unless it exists, has these dimensions and holds a number."""
    if name not in dataset.variables or set(dataset[name].dims) != set(dims) or dataset[name].dtype.kind not in "fiub":
        return None
    values = np.asarray(dataset[name].transpose(*dims).values, dtype=np.float64)
    return values if np.isfinite(values).any() else None


def bounds(dataset: xr.Dataset, name: str, dims: Sequence[str]) -> tuple[Floats | None, Floats | None]:
    """The interval of a variable, or two ``None``."""
    low, high = (array(dataset, name + suffix, dims) for suffix in BOUNDS)
    return (low, high) if low is not None and high is not None else (None, None)


def label_of(dataset: xr.Dataset, name: str) -> str:
    """The long name of a variable, or its name as words."""
    return str(dataset[name].attrs.get("long_name") or name.replace("_", " "))


def units_of(dataset: xr.Dataset, name: str) -> str:
    """Units, empty for a plain number."""
    units = str(dataset[name].attrs.get("units", ""))
    return "" if units in NO_UNITS else units.replace("^2", "²")


def head_field(
    dataset: xr.Dataset,
    name: str,
    *,
    at: Mapping[str, Any] | None = None,
    label: str = "",
    domain: tuple[float, float] | None = None,
    palette: Palette = "sequential",
    names: tuple[str, ...] = (),
) -> HeadField | None:
    """A variable of layer and head as a field of a map, after choosing ``at`` on its other dimensions."""
    if name not in dataset.variables:
        return None
    chosen = _select(dataset, name, at or {})
    if chosen is None:
        return None
    values = array(chosen, name, (LAYER, HEAD))
    if values is None:
        return None
    low, high = bounds(chosen, name, (LAYER, HEAD))
    key = "-".join([name, *(str(value) for value in (at or {}).values())])
    text = label or label_of(dataset, name)
    return HeadField(
        key=key,
        label=text,
        values=values,
        low=low,
        high=high,
        units=units_of(dataset, name),
        domain=domain,
        palette=palette,
        names=names,
    )


def head_fields(dataset: xr.Dataset, names: Iterable[str], **same: Any) -> list[HeadField]:
    """Those of the fields that exist."""
    return [field for name in names if (field := head_field(dataset, name, **same)) is not None]


def head_curve(
    dataset: xr.Dataset, name: str, along: str, *, at: Mapping[str, Any] | None = None, label: str = "", role: Role = "value"
) -> HeadCurve | None:
    """A variable of layer, (head) and one more dimension as a curve of each head."""
    if name not in dataset.variables:
        return None
    chosen = _select(dataset, name, at or {})
    if chosen is None:
        return None
    for dims in ((LAYER, HEAD, along), (LAYER, along)):
        values = array(chosen, name, dims)
        if values is not None:
            low, high = bounds(chosen, name, dims)
            return HeadCurve(name=label or label_of(dataset, name), values=values, low=low, high=high, role=role)
    return None


def line(
    dataset: xr.Dataset, name: str, along: str, *, at: Mapping[str, Any] | None = None, label: str = "", role: Role = "value"
) -> Line | None:
    """A variable of one dimension as a line."""
    if name not in dataset.variables:
        return None
    chosen = _select(dataset, name, at or {})
    values = None if chosen is None else array(chosen, name, (along,))
    if chosen is None or values is None:
        return None
    low, high = bounds(chosen, name, (along,))
    return Line(name=label or label_of(dataset, name), values=values, low=low, high=high, role=role)


def axis_of(dataset: xr.Dataset, dim: str) -> tuple[Axis, Floats]:
    """An axis for a dimension and where its entries stand: names for text, numbers otherwise."""
    size = dataset.sizes[dim]
    label = WORDS.get(dim, dim.replace("_", " "))
    if dim not in dataset.coords:
        return Axis(label=label, whole=True), np.arange(size, dtype=np.float64)
    coordinate = dataset[dim]
    label = str(coordinate.attrs.get("long_name") or label)
    if coordinate.dtype.kind not in "fiu":
        return Axis(label=label, names=tuple(str(value).replace("_", " ") for value in coordinate.values)), np.arange(
            size, dtype=np.float64
        )
    values = np.asarray(coordinate.values, dtype=np.float64)
    whole = coordinate.dtype.kind in "iu"
    log = dim in LOG_AXES and _spread(values)
    return Axis(label=label, units=units_of(dataset, dim), log=log, whole=whole), values


def coordinate_labels(dataset: xr.Dataset, dim: str) -> tuple[Any, ...]:
    """Values of a dimension's coordinate, or indices."""
    return tuple(dataset[dim].values.tolist()) if dim in dataset.coords else tuple(range(dataset.sizes[dim]))


def _spread(values: NDArray[np.float64]) -> bool:
    """Whether a logarithmic axis serves: positive numbers over more than a factor of ten, with or without a zero in front."""
    positive = values[values > 0]
    return bool(len(positive) > 2 and (values >= 0).all() and positive.max() / positive.min() > 10)


def _select(dataset: xr.Dataset, name: str, at: Mapping[str, Any]) -> xr.Dataset | None:
    """The variable and its bounds at some labels; ``None`` where a label does not exist."""
    wanted = [key for key in (name, *(name + suffix for suffix in BOUNDS)) if key in dataset.variables]
    part = dataset[wanted]
    for dim, value in at.items():
        if dim not in part.dims:
            return None
        labels = coordinate_labels(dataset, dim)
        if value not in labels:
            return None
        part = part.isel({dim: labels.index(value)})
    return part

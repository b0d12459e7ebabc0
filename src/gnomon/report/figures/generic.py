"""Figures for a measure that nobody wrote figures for: what the dimensions of its variables suggest.

Variables of layer and head become fields of one map; of layer, head and one more dimension, curves of the chosen head (fields of the map
where that dimension is short); of layer alone or of
one other dimension, curves; of layer and a short dimension, one line for each of its entries. A variable whose name ends in ``_uniform``,
``_shuffled``, ``_chance`` or ``_null``, or begins with ``null_``, is drawn with the one it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from gnomon.dims import HEAD, LAYER, SEQUENCE
from gnomon.report.figures.kinds import (
    Axis,
    Curves,
    Figure,
    HeadCurve,
    HeadCurves,
    HeadField,
    HeadMap,
    IntervalRow,
    Intervals,
    Line,
    Role,
)
from gnomon.report.figures.reading import (
    BOUNDS,
    axis_of,
    coordinate_labels,
    head_curve,
    head_field,
    head_fields,
    label_of,
    line,
    units_of,
)
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr

NULLS: dict[str, Role] = {"_uniform": "chance", "_shuffled": "null", "_chance": "chance", "_null": "null"}
MOST_LINES = 8
MOST_FIGURES = 5
MOST_NULLS = 4
FEW = 4
NULL_WORDS = {"uniform": "uniform attention", "shuffled": "shuffled", "chance": "chance", "null": "null"}
DEPTH_DIMS = (LAYER, "level")


def figures_by_shape(dataset: xr.Dataset, measure: str) -> list[Figure]:
    """Figures of every variable of a dataset."""
    names = [str(name) for name in dataset.data_vars if _is_quantity(dataset, str(name))]
    fields = [field for name in names for field in _fields(dataset, name)]
    found: list[Figure] = []
    if fields:
        found.append(HeadMap(key=f"{measure}-map", title=f"{_words(measure)}, every head", fields=tuple(fields)))
    curves = [figure for name in names if not null_role(name) for figure in _curves(dataset, measure, name)]
    return found + curves[:MOST_FIGURES]


def figures_against_nulls(numbers: Mapping[str, Estimate], measure: str) -> list[Figure]:
    """Headline numbers that have a null beside them, each with its null on one axis."""
    found: list[Figure] = []
    for key, number in numbers.items():
        nulls = [(numbers[key + suffix], suffix.strip("_"), role) for suffix, role in NULLS.items() if key + suffix in numbers]
        if number.is_missing or not nulls:
            continue
        rows = [IntervalRow(label="measured", number=number)]
        rows += [IntervalRow(label=NULL_WORDS[word], number=null, role=role) for null, word, role in nulls]
        name = f"{measure}-{key.replace('/', '-')}-null"
        title = f"{_words(key.replace('/', ', '))}, against its null"
        found.append(Intervals(key=name, title=title, x=Axis(label=_words(key.rsplit("/", 1)[-1]).lower()), rows=tuple(rows)))
    return found[:MOST_NULLS]


def _fields(dataset: xr.Dataset, name: str) -> list[HeadField]:
    """A variable as fields of a map: as it is, or at each of a few entries of its third dimension, or at the one that the headline takes."""
    rest = [str(dim) for dim in dataset[name].dims if dim not in (LAYER, HEAD)]
    if not {LAYER, HEAD} <= set(dataset[name].dims) or len(rest) > 1:
        return []
    if not rest:
        return head_fields(dataset, [name])
    entries = coordinate_labels(dataset, rest[0])
    chosen = dataset.attrs.get(f"headline_{rest[0]}")
    wanted = [entry for entry in entries if entry == chosen] or (list(entries) if len(entries) < FEW else [])
    found = [
        head_field(dataset, name, at={rest[0]: entry}, label=f"{label_of(dataset, name)}, {rest[0]} {entry}") for entry in wanted
    ]
    return [field for field in found if field is not None]


def _words(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def null_role(name: str) -> Role | None:
    """What kind of reference a variable is, by its name."""
    if name.startswith("null_"):
        return "null"
    return next((role for suffix, role in NULLS.items() if name.endswith(suffix)), None)


def nulls_of(dataset: xr.Dataset, name: str) -> Iterator[tuple[str, Role, str]]:
    """The references that belong to a variable: name, role and a word for the legend."""
    for suffix, role in NULLS.items():
        for candidate in (name + suffix, name.removesuffix("_by_band") + suffix + "_by_band"):
            if candidate in dataset and candidate != name:
                yield candidate, role, suffix.strip("_")
                break
    if f"null_{name}" in dataset:
        yield f"null_{name}", "null", "null"


def _curves(dataset: xr.Dataset, measure: str, name: str) -> Iterator[Figure]:
    dims = [str(dim) for dim in dataset[name].dims]
    rest = [dim for dim in dims if dim not in (LAYER, HEAD)]
    if {LAYER, HEAD} <= set(dims) and len(rest) == 1 and dataset.sizes[rest[0]] >= FEW:
        figure: Figure | None = _of_head(dataset, measure, name, rest[0])
    elif len(dims) == 1:
        figure = _over(dataset, measure, name, dims[0])
    elif len(dims) == 2 and HEAD not in dims and any(dim in DEPTH_DIMS for dim in dims):
        depth = next(dim for dim in DEPTH_DIMS if dim in dims)
        figure = _by_entry(dataset, measure, name, depth, next(dim for dim in dims if dim != depth))
    else:
        figure = None
    if figure is not None:
        yield figure


def _of_head(dataset: xr.Dataset, measure: str, name: str, along: str) -> HeadCurves | None:
    main = head_curve(dataset, name, along, label="this head")
    if main is None or dataset.sizes[along] < 2:
        return None
    nulls = [head_curve(dataset, null, along, label=NULL_WORDS[word], role=role) for null, role, word in nulls_of(dataset, name)]
    x, at = axis_of(dataset, along)
    lines: tuple[HeadCurve, ...] = (main, *(null for null in nulls if null is not None))
    y = Axis(label=_words(name).lower(), units=units_of(dataset, name))
    return HeadCurves(key=f"{measure}-{name}", title=_words(label_of(dataset, name)), x=x, y=y, at=at, lines=lines)


def _over(dataset: xr.Dataset, measure: str, name: str, along: str) -> Curves | None:
    main = line(dataset, name, along)
    if main is None or dataset.sizes[along] < 2:
        return None
    nulls = [line(dataset, null, along, label=NULL_WORDS[word], role=role) for null, role, word in nulls_of(dataset, name)]
    return _assembled(dataset, measure, name, along, [main, *(null for null in nulls if null is not None)])


def _by_entry(dataset: xr.Dataset, measure: str, name: str, depth: str, along: str) -> Curves | None:
    if not 1 < dataset.sizes[along] <= MOST_LINES:
        return None
    lines = [line(dataset, name, depth, at={along: entry}, label=str(entry)) for entry in coordinate_labels(dataset, along)]
    return _assembled(dataset, measure, name, depth, [found for found in lines if found is not None])


def _assembled(dataset: xr.Dataset, measure: str, name: str, along: str, lines: list[Line]) -> Curves | None:
    if not lines:
        return None
    x, at = axis_of(dataset, along)
    y = Axis(label=_words(name).lower(), units=units_of(dataset, name))
    return Curves(key=f"{measure}-{name}", title=_words(label_of(dataset, name)), x=x, y=y, at=at, lines=tuple(lines))


def _is_quantity(dataset: xr.Dataset, name: str) -> bool:
    variable = dataset[name]
    is_bound = name.endswith(BOUNDS) and name.rsplit("_", 1)[0] in dataset
    many = int(np.prod(variable.shape)) > 1
    return variable.dtype.kind in "fiub" and not is_bound and SEQUENCE not in variable.dims and many

"""Figures of rows: what the chosen head looks at, and how alike heads are over texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gnomon.dims import HEAD, LAYER, QUERY
from gnomon.report.figures.kinds import Axis, Curves, Figure, Floats, HeadMap, HeadRows
from gnomon.report.figures.reading import array, head_field, line

if TYPE_CHECKING:
    import xarray as xr

KEY_BIN: Final = "key_bin"
CELLS: Final = (LAYER, HEAD, QUERY, KEY_BIN)
NOTE: Final = "A row's weights add up to one; colours follow their square root. Hatched: keys that the query cannot see."
ALIKE: Final = (
    "1: the same row whatever the text says, be it a sink, a fixed offset or no preference at all. 0: no key in common."
)
UNIT: Final = Axis(label="likeness", low=0.0, high=1.0)


def row_figures(dataset: xr.Dataset) -> list[Figure]:
    """The rows of the chosen head; likeness of every head, and over depth."""
    found = (_rows(dataset), _likeness(dataset), _over_depth(dataset))
    return [figure for figure in found if figure is not None]


def with_tokens(figure: HeadRows, info: Mapping[str, Any]) -> HeadRows:
    """The figure with the token strings that the record has of its example."""
    corpus = info.get("corpus")
    example = corpus.get("example") if isinstance(corpus, Mapping) else None
    if figure.example is None or not isinstance(example, Mapping) or example.get("sequence") != figure.sequence:
        return figure
    tokens = example.get("tokens")
    return replace(figure, tokens=tuple(str(text) for text in tokens)) if isinstance(tokens, list) else figure


def _rows(dataset: xr.Dataset) -> HeadRows | None:
    values = array(dataset, "row", CELLS)
    first, last, offset = (_places(dataset, f"bin_{name}") for name in ("first", "last", "offset"))
    if values is None or first is None or last is None or offset is None or QUERY not in dataset.coords:
        return None
    example = array(dataset, "row_example", CELLS)
    sequence = int(dataset["row_example"].attrs.get("sequence", 0)) if example is not None else 0
    return HeadRows(
        key="rows-head",
        title="Where the head looks, by query",
        note=" ".join(filter(None, [_sentence(str(dataset.attrs.get("bins", ""))), NOTE])),
        queries=np.asarray(dataset[QUERY].values, dtype=np.float64),
        first=first,
        last=last,
        offset=offset,
        values=values,
        example=example,
        sequence=sequence,
    )


def _places(dataset: xr.Dataset, name: str) -> Floats | None:
    """What the bins are; unlike other variables it may be NaN throughout."""
    if name not in dataset or dataset[name].dims != (KEY_BIN,):
        return None
    return np.asarray(dataset[name].values, dtype=np.float64)


def _likeness(dataset: xr.Dataset) -> HeadMap | None:
    field = head_field(dataset, "likeness", label="likeness of its rows in two texts", domain=(0.0, 1.0))
    return None if field is None else HeadMap(key="rows-map", title="How alike a head is over texts", fields=(field,), note=ALIKE)


def _over_depth(dataset: xr.Dataset) -> Curves | None:
    other = line(dataset, "likeness_other_heads", LAYER, label="two heads of the layer, two texts")
    if other is None:
        return None
    x = Axis(label="layer", whole=True)
    title = "How alike two heads of a layer are"
    return Curves(key="rows-depth", title=title, x=x, y=UNIT, at=np.arange(len(other.values), dtype=np.float64), lines=(other,))


def _sentence(text: str) -> str:
    return f"Across: {text}." if text else ""

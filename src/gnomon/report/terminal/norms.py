"""Norms: what position 0 holds, level by level, against what other positions hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from gnomon.dims import LEVEL
from gnomon.report.terminal.tables import headline_table, number, table

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import RenderableType

    from gnomon.result import Survey

MOST_ROWS = 12


def section(survey: Survey) -> RenderableType:
    """Headline, and a table with one value per level of the residual stream for every such variable."""
    dataset = survey["norms"]
    parts: list[RenderableType] = [headline_table(survey, "norms")]
    names = _by_level(dataset)
    if names:
        parts += [Text(""), by_level_table(dataset, names)]
    return Group(*parts)


def by_level_table(dataset: xr.Dataset, names: list[str]) -> RenderableType:
    """One row per level, thinned to a dozen, first and last included."""
    size = dataset.sizes[LEVEL]
    shown = np.unique(np.linspace(0, size - 1, min(size, MOST_ROWS)).round().astype(int))
    values = {name: np.asarray(dataset[name].values, dtype=np.float64) for name in names}
    rows = [[int(index), *(number(values[name][index]) for name in names)] for index in shown]
    return table([LEVEL, *(_short(dataset, name) for name in names)], rows)


def _by_level(dataset: xr.Dataset) -> list[str]:
    return [
        str(name)
        for name, variable in dataset.data_vars.items()
        if variable.dims == (LEVEL,) and variable.dtype.kind in "fiu" and not str(name).endswith(("_low", "_high"))
    ]


def _short(dataset: xr.Dataset, name: str) -> str:
    units = dataset[name].attrs.get("units")
    return f"{name} ({units})" if units not in (None, "1") else name

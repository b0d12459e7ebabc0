"""Reads of position 0: maps of all heads by what they carry from there, and the strongest carriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.head_map import HeadMap
from gnomon.report.terminal.tables import headline_table, number, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey

STRONGEST = 8
QUANTITIES = ("mass", "carried", "share", "value_ratio")


def section(survey: Survey) -> RenderableType:
    """Headline, a map by what is carried, and the heads that carry most."""
    dataset = survey["reads"]
    carried = dataset["carried"].values
    order = np.argsort(-np.nan_to_num(carried), axis=None, kind="stable")[:STRONGEST]
    rows = []
    for place in order:
        layer, head = (int(index) for index in np.unravel_index(place, carried.shape))
        at = dataset.isel(layer=layer, head=head)
        bounds = f"[{number(float(at['carried_low']))}, {number(float(at['carried_high']))}]"
        rows.append((f"{layer}.{head}", *(number(float(at[name])) for name in QUANTITIES), bounds))
    columns = ("carriers (layer.head)", *(name.replace("_", " ") for name in QUANTITIES), "95 % interval of carried")
    title = "carried from position 0, relative to the head's output"
    parts = [headline_table(survey, "reads"), Text(""), HeadMap(carried, title, high=1.0), Text(""), table(columns, rows)]
    return Group(*parts)

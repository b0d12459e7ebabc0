"""Attention: how sharp and how far-reaching heads are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.head_map import HeadMap
from gnomon.report.terminal.per_head import per_head
from gnomon.report.terminal.tables import headline_table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey

MAPS = ("relative_entropy", "offset_mean")


def section(survey: Survey) -> RenderableType:
    """Headline, and maps of all heads by entropy and by mean offset."""
    dataset = survey["attention"]
    parts: list[RenderableType] = [headline_table(survey, "attention")]
    for wanted in MAPS:
        found = per_head(dataset, [wanted])
        if found is not None:
            name, values = found
            title = str(dataset[name].attrs.get("long_name", name))
            units = dataset[name].attrs.get("units")
            parts += [Text(""), HeadMap(values, f"{title} ({units})" if units not in (None, "1") else title)]
    return Group(*parts)

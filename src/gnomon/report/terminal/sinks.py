"""Sinks: how much of their attention heads give to position 0, and which heads give most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.head_map import HeadMap
from gnomon.report.terminal.per_head import bounds, per_head, strongest
from gnomon.report.terminal.tables import headline_table, number, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey

STRONGEST = 8
MASS = "position_0_mass"


def section(survey: Survey) -> RenderableType:
    """Headline, map of all heads by their mean weight on position 0, and the strongest heads with intervals."""
    dataset = survey["sinks"]
    parts: list[RenderableType] = [headline_table(survey, "sinks")]
    found = per_head(dataset, [MASS])
    if found is None:
        return Group(*parts)
    name, mass = found
    title = str(dataset[name].attrs.get("long_name", "mean weight on position 0"))
    parts += [Text(""), HeadMap(mass, title, high=1.0), Text("")]
    rows = [
        (f"{layer}.{head}", number(mass[layer, head]), bounds(dataset, name, layer, head))
        for layer, head in strongest(mass, STRONGEST)
    ]
    parts.append(table(("strongest (layer.head)", "weight", "95 % interval"), rows))
    return Group(*parts)

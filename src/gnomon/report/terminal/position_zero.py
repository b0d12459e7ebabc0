"""Position 0 under study: its trajectory, what a shift does, and what interventions remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from gnomon.dims import CONDITION, LAYER, LEVEL, QUERY_BAND, SHIFT
from gnomon.report.terminal.tables import facts, headline_table, number, table

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import RenderableType

    from gnomon.result import Survey

MOST_ROWS = 12


def trajectory_section(survey: Survey) -> RenderableType:
    """Deviation, spread over tokens, accuracy and massive activations by level."""
    dataset = survey["trajectory"]
    size = dataset.sizes[LEVEL]
    shown = np.unique(np.linspace(0, size - 1, min(size, MOST_ROWS)).round().astype(int))
    columns = ("level", "deviation", "between tokens", "named", "named later", "cosine to last", "largest", "median")
    rows = []
    for level in shown:
        at = dataset.isel(level=int(level))
        names = ("hidden_deviation", "hidden_between", "hidden_accuracy", "later_accuracy", "cosine_to_final")
        largest = number(float(at["largest"].isel(rank=0)))
        rows.append((str(level), *(number(float(at[name])) for name in names), largest, number(float(at["median"]))))
    chance = facts([("chance", number(float(dataset.attrs["chance"]))), ("rounding", number(float(dataset.attrs["tolerance"])))])
    return Group(headline_table(survey, "trajectory"), Text(""), table(columns, rows), chance)


def invariance_section(survey: Survey) -> RenderableType:
    """Largest relative change by shift."""
    dataset = survey["invariance"]
    rows = []
    for place, shift in enumerate(dataset[SHIFT].values):
        at = dataset.isel({SHIFT: place})
        values = (float(at["logit_error"].max(LAYER)), float(at["output_error"]), float(at["tolerance"]))
        rows.append((str(int(shift)), *(number(value) for value in values)))
    columns = ("shift", "attention logits", "output logits", "rounding may do")
    parts: list[RenderableType] = [
        headline_table(survey, "invariance"),
        Text(""),
        table(columns, rows, title="largest relative change"),
    ]
    if dataset.attrs.get("missing"):
        parts.append(Text(str(dataset.attrs["missing"]), "dim"))
    return Group(*parts)


def intervention_section(survey: Survey) -> RenderableType:
    """A row per condition: fraction of the residual component removed by band, sinks and loss."""
    dataset = survey["intervention"]
    bands = [str(band) for band in dataset[QUERY_BAND].values]
    rows = [
        (_label(dataset, place), *(_bounded(dataset, place, "removed_residual", band) for band in bands))
        for place in _changed(dataset)
    ]
    first = table(("condition", *bands), rows, title="fraction of the residual component removed")
    columns = ("condition", "residual early", "mask early", "weight on 0", "heads > 0.3", "loss", "change of loss")
    effects = []
    for place in range(dataset.sizes[CONDITION]):
        at = dataset.isel({CONDITION: place})
        early = at.sel({QUERY_BAND: bands[0]})
        values = (early["residual"], early["mask"], at["sink_mass"], at["sink_share"], at["loss"])
        effects.append(
            (_label(dataset, place), *(number(float(value)) for value in values), _bounded(dataset, place, "loss_change"))
        )
    heads = [(key, value) for key, value in dataset.attrs.items() if str(key).startswith("heads ")]
    parts: list[RenderableType] = [first, Text(""), table(columns, effects, title="effects")]
    if heads:
        parts += [Text(""), facts((str(key), value) for key, value in heads)]
    return Group(*parts)


def _changed(dataset: xr.Dataset) -> list[int]:
    return [place for place, label in enumerate(dataset[CONDITION].values) if str(label) != "none"]


def _label(dataset: xr.Dataset, place: int) -> str:
    return str(dataset[CONDITION].values[place])


def _bounded(dataset: xr.Dataset, place: int, name: str, band: str | None = None) -> str:
    at = dataset.isel({CONDITION: place})
    at = at if band is None else at.sel({QUERY_BAND: band})
    value, low, high = (float(at[name + end]) for end in ("", "_low", "_high"))
    return f"{number(value)} [{number(low)}, {number(high)}]" if np.isfinite(value) else "-"

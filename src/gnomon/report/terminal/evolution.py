"""An evolution: what could not be surveyed, in which order things appeared, and the trajectories."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from gnomon.dims import CHECKPOINT
from gnomon.report.terminal.tables import DIM, number, plain, table
from gnomon.result.survey import format_number

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import RenderableType

    from gnomon.result import Survey

QUANTITY = "quantity"
MOST_COLUMNS = 9


def section(survey: Survey) -> RenderableType:
    """Order of appearance, trajectories, words."""
    dataset = survey["evolution"]
    parts: list[RenderableType] = []
    if dataset.attrs.get("steps_0_and_1"):
        parts.append(Text(plain(dataset.attrs["steps_0_and_1"]), DIM))
    parts += [order_table(dataset), Text(""), trajectory_table(dataset)]
    if dataset.sizes.get("label"):
        parts += [Text(""), words_table(dataset)]
    return Group(*parts)


def order_table(dataset: xr.Dataset) -> RenderableType:
    """What emerged, in order, each with its interval and how surely it came before the next; then what turned."""
    emerged = dataset.isel({QUANTITY: np.flatnonzero(dataset["rank"].values >= 0)}).sortby("rank")
    named = json.loads(dataset.attrs.get("appearing", "{}"))
    rows = []
    for index, quantity in enumerate(emerged[QUANTITY].values.tolist()):
        at = emerged.isel({QUANTITY: index})
        rows.append(
            (
                quantity,
                named.get(quantity, ""),
                _step(float(at["emergence"])),
                _between(at, "emergence_low", "emergence_high"),
                _between(at, "emergence_after", "emergence_before"),
                f"{number(float(at['first']))} -> {number(float(at['last']))}",
                number(float(at["before_next"]), 2),
            )
        )
    if not rows:
        return Text("nothing changed between the first and the last checkpoint with confidence", DIM)
    columns = ("quantity", "", "half at step", "95 % of resamples", "between checkpoints", "first -> last", "before next")
    parts: list[RenderableType] = [table(columns, rows, title="order of emergence", left=2)]
    turned = dataset.isel({QUANTITY: np.flatnonzero(np.isfinite(dataset["turning"].values))}).sortby("turning")
    if turned.sizes[QUANTITY]:
        lines: list[tuple[str, ...]] = [
            (
                quantity,
                _step(float(turned["turning"][index])),
                _between(turned.isel({QUANTITY: index}), "turning_low", "turning_high"),
                f"{float(turned['turning_excess'][index]):+.3g}",
            )
            for index, quantity in enumerate(turned[QUANTITY].values.tolist())
        ]
        headings = ("quantity", "at step", "95 % of resamples", "beyond the nearer end")
        parts += [Text(""), table(headings, lines, title="peaks and troughs on the way")]
    return Group(*parts)


def trajectory_table(dataset: xr.Dataset) -> RenderableType:
    """Values of the quantities that are told by name, at checkpoints thinned to what fits."""
    named = json.loads(dataset.attrs.get("appearing", "{}"))
    chosen = [name for name in named if name in dataset[QUANTITY].values] or dataset[QUANTITY].values.tolist()[:12]
    size = dataset.sizes[CHECKPOINT]
    shown = np.unique(np.linspace(0, size - 1, min(size, MOST_COLUMNS)).round().astype(int))
    rows = [(name, *(number(float(v)) for v in dataset["value"].sel({QUANTITY: name}).values[shown])) for name in chosen]
    headings = [plain(str(name)) for name in dataset[CHECKPOINT].values[shown]]
    return table(("quantity", *headings), rows, title=f"values ({len(shown)} of {size} checkpoints)")


def words_table(dataset: xr.Dataset) -> RenderableType:
    """Answers that are words, where they change."""
    rows = []
    names = dataset[CHECKPOINT].values.tolist()
    for index, label in enumerate(dataset["label"].values.tolist()):
        words = dataset["word"].values[index].tolist()
        told = [(name, word) for name, word in zip(names, words, strict=True) if word]
        changes = [f"{name}: {word}" for i, (name, word) in enumerate(told) if i == 0 or word != told[i - 1][1]]
        rows.append((label, "; ".join(changes)))
    return table(("label", "from checkpoint on"), rows, left=2)


def _step(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.0f}" if value >= 10 else format_number(value, 2)


def _between(at: xr.Dataset, low: str, high: str) -> str:
    return f"{_step(float(at[low]))} to {_step(float(at[high]))}"

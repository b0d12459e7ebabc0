"""A survey's spectra beside the nearest published models, each marked as the same or another model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from gnomon.report.published_spectra import SOURCE, PublishedRow, nearest_rows, same_model
from gnomon.report.terminal.tables import DIM, number, table
from gnomon.result.survey import format_estimate

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey

QUANTITIES = {
    "spectra/paper/spectral_entropy": "spectral entropy, nats",
    "spectra/paper/selectivity": "selectivity",
    "spectra/paper/rho": "position-spectrum correlation",
    "spectra/paper/window_entropy_16": "window entropy, 16",
    "spectra/paper/window_entropy_32": "window entropy, 32",
    "spectra/paper/window_entropy_64": "window entropy, 64",
    "spectra/paper/reconstruction_error": "reconstruction error",
    "scale/paper/0.5": "scale sensitivity, 0.5",
    "scale/paper/0.25": "scale sensitivity, 0.25",
}


def against_paper(survey: Survey) -> RenderableType:
    """Our ``paper`` figures beside the published rows of the nearest models."""
    found = {key: label for key, label in QUANTITIES.items() if _has(survey, key)}
    if not found:
        return Text("no spectral figure in this run; survey with --measures spectra,scale to compare with the published ones.")
    rows = nearest_rows(
        survey.model_name, _text(survey.info, "scheme", "kind"), _number(survey.info, "anatomy", "num_parameters")
    )
    cells = [
        (label, format_estimate(_here(survey, key)), *(number(row.values.get(key, float("nan"))) for row in rows))
        for key, label in found.items()
    ]
    heads = ("paper convention", f"{survey.model_name} (here)", *(_heading(survey, row) for row in rows))
    notes = [f"{row.model}: {row.note}." for row in rows if row.note]
    lengths = str(survey["spectra"].attrs.get("lengths", "")) if "spectra" in survey else ""
    where = f"Published: {SOURCE}, means over heads, other texts, no interval."
    here = f" Here: texts of {lengths}; every figure but the correlation depends on their length." if lengths else ""
    return Group(table(heads, cells), Text(where + here, DIM), *(Text(note, DIM) for note in notes))


def _heading(survey: Survey, row: PublishedRow) -> str:
    return f"{row.model} (published{'' if same_model(survey.model_name, row) else ', another model'})"


def _has(survey: Survey, key: str) -> bool:
    measure, quantity = key.split("/", 1)
    return quantity in survey.headline.get(measure, {})


def _here(survey: Survey, key: str) -> Any:
    measure, quantity = key.split("/", 1)
    return survey.headline[measure][quantity]


def _text(info: Mapping[str, Any], group: str, key: str) -> str | None:
    tree = info.get(group)
    return str(tree[key]) if isinstance(tree, Mapping) and tree.get(key) else None


def _number(info: Mapping[str, Any], group: str, key: str) -> float | None:
    tree = info.get(group)
    return float(tree[key]) if isinstance(tree, Mapping) and tree.get(key) else None

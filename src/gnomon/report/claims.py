"""Verdicts on published claims, as they were stored: reading ``claims.json``, and rows for a table.

``gnomon claims`` keeps its verdicts beside the runs that they rest on; a report of such a run shows them. Here they are mappings as in the file: nothing is
judged again, and a file of another making is refused rather than shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from gnomon.errors import RunError
from gnomon.result.survey import format_number

if TYPE_CHECKING:
    from gnomon.result import Survey

CLAIMS_FILE: Final = "claims.json"
NEEDED: Final = ("id", "verdict", "why", "rule")
COLUMNS: Final = ("id", "model", "statement", "verdict", "effect", "low", "high", "null", "n", "published", "why")
Row = Mapping[str, Any]


def read_claims(path: str | Path) -> list[Row]:
    """The verdicts of a file, or of the file in a folder.

    Raises:
        RunError: there is none, or it is not a list of verdicts.
    """
    place = Path(path)
    place = place / CLAIMS_FILE if place.is_dir() else place
    try:
        rows = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise RunError(
            f"{place} must be a list of verdicts as `gnomon claims` writes it, but it cannot be read ({reason})."
        ) from reason
    if not isinstance(rows, list) or not all(isinstance(row, dict) and all(key in row for key in NEEDED) for row in rows):
        raise RunError(f"{place} must be a list of verdicts as `gnomon claims` writes it, got something else; make it again.")
    return rows


def claims_beside(surveys: Sequence[Survey]) -> list[Row] | None:
    """Verdicts stored in the folders of these runs or beside them, on their models; ``None`` when there are none."""
    places = dict.fromkeys(
        folder / CLAIMS_FILE for survey in surveys if survey.path is not None for folder in (survey.path, survey.path.parent)
    )
    names = [survey.model_name for survey in surveys]
    rows = [row for place in places if place.is_file() for row in read_claims(place)]
    return [row for row in rows if any(name in str(row.get("model", "")) for name in names)] or None


def table_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows of equal keys for the page, without what only a file needs (rules and sources); the model where there are several."""
    several = len({row.get("model") for row in rows}) > 1
    return [{name: row.get(name) for name in COLUMNS if several or name != "model"} for row in rows]


def interval_text(row: Row) -> str:
    """The effect with its interval, ``-`` where there is none."""
    effect, low, high = (row.get(key) for key in ("effect", "low", "high"))
    if not _is_number(effect):
        return "-"
    bounds = f" [{format_number(low)}, {format_number(high)}]" if _is_number(low) and _is_number(high) else ""
    return f"{format_number(effect)}{bounds}"


def null_text(row: Row) -> str:
    """What the effect was compared with, ``-`` where there is none."""
    null = row.get("null")
    return format_number(null) if _is_number(null) else "-"


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)

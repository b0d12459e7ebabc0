"""From the record of a run to rows of the catalog's tables.

A record is a file that somebody else may have written, by hand or by another version: a field of the wrong kind is an empty cell here, never an error, and a record that
:func:`~gnomon.result.reading.open_run` would refuse is a row that says why. Times are UTC without a zone, so that SQL can subtract them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from gnomon.errors import RunError
from gnomon.result.folder import COMPLETE, RunFolder
from gnomon.result.parts import DiskParts
from gnomon.result.reading import survey_of
from gnomon.result.survey import Survey

Row = dict[str, Any]

DAMAGED: Final = "damaged"

RUN_COLUMNS: Final[dict[str, str]] = {
    "run": "string",
    "path": "string",
    "status": "string",
    "reason": "string",
    "model": "string",
    "weights": "string",
    "scheme": "string",
    "scheme_description": "string",
    "layers": "int",
    "corpus": "string",
    "corpus_digest": "string",
    "sequences": "int",
    "length": "int",
    "tokens": "int",
    "first_token": "string",
    "first_token_why": "string",
    "measures": "strings",
    "untrained": "bool",
    "dtype": "string",
    "device": "string",
    "backend": "string",
    "seed": "int",
    "started": "time",
    "finished": "time",
    "seconds": "float",
    "gnomon": "string",
    "torch": "string",
    "transformers": "string",
    "python": "string",
    "commit": "string",
    "changed": "bool",
}
"""Columns of ``runs`` and their kinds; ``run`` is the folder relative to the catalog's, and names the run in every other table."""

HEADLINE_COLUMNS: Final[dict[str, str]] = {
    "run": "string",
    "model": "string",
    "scheme": "string",
    "measure": "string",
    "quantity": "string",
    "value": "float",
    "low": "float",
    "high": "float",
    "n": "int",
    "reason": "string",
}
"""Columns of ``headline``: a row per run, measure and quantity; a missing number is NULL and has a reason."""

LABEL_COLUMNS: Final[dict[str, str]] = {
    "run": "string",
    "model": "string",
    "scheme": "string",
    "measure": "string",
    "quantity": "string",
    "label": "string",
}
"""Columns of ``labels``: answers that are words."""


class RunRows(NamedTuple):
    """What one run adds to each table."""

    run: Row
    headline: list[Row]
    labels: list[Row]


def rows_of(name: str, path: Path) -> RunRows:
    """The rows of the run at ``path``; one that is not complete or not whole gives its reason and no numbers."""
    folder = RunFolder(path)
    row: Row = dict.fromkeys(RUN_COLUMNS)
    row |= {"run": name, "path": readable(path)}
    try:
        record = folder.read_record()
        row |= _facts(record)
        if record["status"] != COMPLETE:
            kept = len(DiskParts(folder.parts_path).keys())
            why = _text(record, "reason") or f"{kept} parts done; the same command resumes"
            return RunRows({**row, "reason": why}, [], [])
        survey = survey_of(folder, record)
    except RunError as error:
        return RunRows({**row, "status": DAMAGED, "reason": " ".join(str(error).split())}, [], [])
    row["measures"] = [readable(name) for name in survey.measures]
    return RunRows(row, _headline(row, survey), _labels(row, survey))


def readable(path: Path | str) -> str:
    """A path as text that can be stored, whatever bytes it is made of."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def _headline(row: Row, survey: Survey) -> list[Row]:
    shared = {key: row[key] for key in ("run", "model", "scheme")}
    return [
        {
            **shared,
            "measure": measure,
            "quantity": quantity,
            "value": _finite(number.value),
            "low": _finite(number.low),
            "high": _finite(number.high),
            "n": number.n,
            "reason": (number.reason or "not finite") if number.is_missing else None,
        }
        for measure, numbers in survey.headline.items()
        for quantity, number in numbers.items()
    ]


def _labels(row: Row, survey: Survey) -> list[Row]:
    shared = {key: row[key] for key in ("run", "model", "scheme")}
    return [
        {**shared, "measure": measure, "quantity": quantity, "label": readable(str(label))}
        for measure, labels in survey.labels.items()
        for quantity, label in labels.items()
    ]


def _facts(record: Mapping[str, Any]) -> Row:
    """What the record says of model, text, machine and time."""
    model, scheme, corpus, times = (_map(record, key) for key in ("model", "scheme", "corpus", "times"))
    anatomy, first, versions, git = (
        _map(record, "anatomy"),
        _map(corpus, "first_token"),
        _map(record, "versions"),
        _map(record, "git"),
    )
    return {
        "status": _text(record, "status"),
        "model": _text(model, "name") or _text(record, "model"),
        "weights": _text(model, "weights"),
        "scheme": _text(scheme, "kind") or _text(scheme, "name"),
        "scheme_description": _text(scheme, "description"),
        "layers": _whole(anatomy, "num_layers"),
        "corpus": _text(corpus, "source"),
        "corpus_digest": _text(corpus, "digest"),
        "sequences": _whole(corpus, "sequences"),
        "length": _whole(corpus, "length"),
        "tokens": _whole(corpus, "tokens"),
        "first_token": _text(first, "text"),
        "first_token_why": _text(first, "why"),
        "untrained": _flag(_map(record, "fingerprint"), "untrained"),
        "dtype": _text(record, "dtype"),
        "device": _text(record, "device"),
        "backend": _text(record, "backend"),
        "seed": _whole(record, "seed"),
        "started": _time(times, "started"),
        "finished": _time(times, "finished"),
        "seconds": _number(times, "seconds"),
        **{name: _text(versions, name) for name in ("gnomon", "torch", "transformers", "python")},
        "commit": _text(git, "commit"),
        "changed": _flag(git, "changed"),
    }


def _map(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tree.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(tree: Mapping[str, Any], key: str) -> str | None:
    found = tree.get(key)
    return readable(found) if isinstance(found, str) and found else None


def _whole(tree: Mapping[str, Any], key: str) -> int | None:
    found = tree.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 2**63 else None


def _flag(tree: Mapping[str, Any], key: str) -> bool | None:
    found = tree.get(key)
    return found if isinstance(found, bool) else None


def _number(tree: Mapping[str, Any], key: str) -> float | None:
    found = tree.get(key)
    return (
        _finite(float(found)) if isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 1e300 else None
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _time(tree: Mapping[str, Any], key: str) -> datetime | None:
    found = _text(tree, key)
    if found is None:
        return None
    try:
        parsed = datetime.fromisoformat(found)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None

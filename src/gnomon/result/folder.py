"""The layout of a run folder and the reading of its record, ``run.json``.

Keys of ``run.json``: ``schema`` (version of this layout), ``status`` (``running``, ``interrupted``, ``failed``, ``complete``),
``fingerprint`` (what must agree for a run to be resumed), ``times``, ``versions``, ``git``, ``machine``, ``warnings``, whatever
the survey says of itself (``command``, ``arguments``, ``model``, ``anatomy``, ``scheme``, ``corpus``, ``dtype``,
``attention_backend``, ``seed``), ``headline`` (measure → quantity → value, low, high, n) and ``store`` (files, bytes and SHA-256
of each measure's group).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gnomon.errors import RunError
from gnomon.result.atomic import write_text
from gnomon.result.strict_json import dumps

SCHEMA: Final = 1
RECORD: Final = "run.json"
STORE: Final = "survey.zarr"
PARTS: Final = "parts"
REPORT: Final = "report.html"

RUNNING: Final = "running"
INTERRUPTED: Final = "interrupted"
FAILED: Final = "failed"
COMPLETE: Final = "complete"
STATUSES: Final = (RUNNING, INTERRUPTED, FAILED, COMPLETE)


@dataclass(frozen=True)
class RunFolder:
    """Where the pieces of a run lie."""

    path: Path

    @property
    def record_path(self) -> Path:
        """``run.json``."""
        return self.path / RECORD

    @property
    def store_path(self) -> Path:
        """``survey.zarr``."""
        return self.path / STORE

    @property
    def parts_path(self) -> Path:
        """``parts/``, while the run is unfinished."""
        return self.path / PARTS

    @property
    def report_path(self) -> Path:
        """``report.html``, once a report was made."""
        return self.path / REPORT

    def read_record(self) -> dict[str, Any]:
        """The record, checked for schema and status.

        Raises:
            RunError: if there is none, it is damaged, or it was made by a newer gnomon.
        """
        path = self.record_path
        if not path.is_file():
            found = "a folder without one" if self.path.is_dir() else "no such folder"
            raise RunError(f"{self.path} must be a run folder with a {RECORD}, got {found}; `gnomon survey --out` makes one.")
        try:
            record = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        except (ValueError, OSError) as error:
            raise RunError(f"{path} must be readable JSON, but it is damaged ({error}); make the run again.") from error
        if not isinstance(record, dict) or not isinstance(record.get("schema"), int):
            raise RunError(f"{path} must be the record of a run, but it names no schema version; make the run again.")
        if record["schema"] != SCHEMA:
            made = (
                "a newer gnomon; upgrade with `pip install -U gnomon`"
                if record["schema"] > SCHEMA
                else "an older gnomon; make the run again"
            )
            raise RunError(f"{path} must have schema version {SCHEMA}, got {record['schema']}: it was made by {made}.")
        if record.get("status") not in STATUSES:
            raise RunError(
                f"{path} must have one of the statuses {', '.join(STATUSES)}, got {record.get('status')!r}; make the run again."
            )
        return record

    def write_record(self, record: dict[str, Any]) -> None:
        """Puts a new record in place of the old one."""
        write_text(self.record_path, dumps(record))


def is_run(path: Path | str) -> bool:
    """Whether ``path`` looks like a run folder, readable or not."""
    return (Path(path) / RECORD).is_file()


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")

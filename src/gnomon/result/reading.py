"""Opening a run: only a complete one, of this schema, whose files are what the record says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from gnomon.errors import RunError
from gnomon.result.folder import COMPLETE, RunFolder
from gnomon.result.parts import DiskParts
from gnomon.result.store import read_group
from gnomon.result.survey import Survey
from gnomon.statistics import Estimate


def open_run(path: str | Path) -> Survey:
    """Opens a run folder.

    Args:
        path: the folder that ``gnomon survey --out`` wrote.

    Raises:
        RunError: if there is no run, it is unfinished, damaged, or of another schema version.
    """
    folder = RunFolder(Path(path))
    record = folder.read_record()
    if record["status"] != COMPLETE:
        kept = len(DiskParts(folder.parts_path).keys())
        raise RunError(
            f"{folder.path} must be a complete run, but its status is {record['status']!r} with {kept} parts done; "
            "run the same command again to finish it."
        )
    return survey_of(folder, record)


def survey_of(folder: RunFolder, record: dict[str, Any]) -> Survey:
    """The survey that a complete record describes; its datasets are checked when they are first read."""
    try:
        headline = {
            str(measure): {str(key): Estimate.from_json(number) for key, number in numbers.items()}
            for measure, numbers in record["headline"].items()
        }
        store = dict(record["store"])
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise RunError(
            f"{folder.record_path} must list headline numbers and stored measures, but it is damaged; make the run again."
        ) from error
    absent = [name for name in store if not (folder.store_path / name).is_dir()]
    if absent:
        raise RunError(f"{folder.store_path} must hold {', '.join(absent)}, but that is missing; make the run again.")
    info = {key: value for key, value in record.items() if key != "headline"}
    datasets = {name: partial(read_group, folder.store_path, name, store[name]) for name in store}
    return Survey(info, headline, datasets, folder.path)

"""Making a run: start or resume, keep what each batch gave, finish.

The order of writes is what makes a kill harmless. ``run.json`` says ``running`` first; then parts, one file each; at the end the
store takes its place in one rename, then ``run.json`` says ``complete``, and only then are the parts removed. Whatever the moment
of the kill, the same command finds either parts to go on from or a finished run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import GnomonError, RunError
from gnomon.result import provenance
from gnomon.result.atomic import disk_errors, remove_leftovers
from gnomon.result.folder import COMPLETE, FAILED, INTERRUPTED, RUNNING, SCHEMA, RunFolder
from gnomon.result.lock import FolderLock
from gnomon.result.parts import DiskParts, MemoryParts, Parts
from gnomon.result.reading import survey_of
from gnomon.result.store import write_store
from gnomon.result.strict_json import strict
from gnomon.result.survey import Survey
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import xarray as xr


class RunWriter:
    """One run in the making; make it with :meth:`start`, use it as a context manager.

    Leaving the context without :meth:`finish` marks the run as interrupted (or failed, with the error's sentence) and keeps its
    parts, so that the same command resumes.

    Attributes:
        survey: the finished survey, if the folder already held this very run; then there is nothing to do.
        resumed: whether there were parts of this run to go on from.
    """

    def __init__(self, folder: RunFolder | None, record: dict[str, Any], parts: Parts, lock: FolderLock | None) -> None:
        self.folder = folder
        self.record = record
        self.parts = parts
        self.resumed = bool(parts.keys())
        self.survey: Survey | None = None
        self._lock = lock
        self._begun = time.perf_counter()

    @classmethod
    def start(cls, folder: str | Path | None, fingerprint: Mapping[str, Any], info: Mapping[str, Any]) -> RunWriter:
        """Starts a run in ``folder``, resumes the same run there, or refuses.

        Args:
            folder: where to write; ``None`` keeps everything in memory.
            fingerprint: what decides the numbers (weight hash, corpus digest, options, measures); a folder that holds a run with
                another fingerprint is refused, never mixed.
            info: what ``run.json`` shall say of the run beyond versions, machine and times.

        Raises:
            RunError: if the folder holds another run, something else, or is being written by another process.
        """
        record = {
            "schema": SCHEMA,
            "status": RUNNING,
            **info,
            "fingerprint": strict(fingerprint),
            "versions": provenance.package_versions(),
            "git": provenance.git_state(),
            "machine": provenance.machine(),
            "times": {"started": provenance.now(), "resumed": [], "seconds": 0.0},
        }
        if folder is None:
            return cls(None, record, MemoryParts(), None)
        run = RunFolder(Path(folder))
        _make_folder(run.path)
        lock = FolderLock(run.path)
        try:
            return cls._start_on_disk(run, record, lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _start_on_disk(cls, run: RunFolder, record: dict[str, Any], lock: FolderLock) -> RunWriter:
        writer = cls(run, record, DiskParts(run.parts_path), lock)
        if run.record_path.exists():
            earlier = run.read_record()
            _refuse_other(run, earlier.get("fingerprint", {}), record["fingerprint"])
            if earlier["status"] == COMPLETE:
                writer.record, writer.survey = earlier, survey_of(run, earlier)
                writer.close()
                return writer
            times = earlier.get("times", {})
            record["times"] = {**times, "resumed": [*times.get("resumed", []), provenance.now()]}
        elif writer.parts.keys():
            raise RunError(
                f"`out` must be a new folder or a run, but {run.path} has parts without a record; remove it or choose another."
            )
        remove_leftovers(run.path)
        remove_leftovers(run.parts_path)
        run.write_record(record)
        return writer

    def has_part(self, key: str) -> bool:
        """Whether this part was written, whole, now or before an interruption."""
        return key in self.parts

    def read_part(self, key: str) -> dict[str, NDArray[np.generic]]:
        """The arrays of a part."""
        return self.parts.read(key)

    def write_part(self, key: str, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Keeps the arrays of a part; once this returns a kill does not lose them."""
        self.parts.write(key, arrays)

    def finish(
        self,
        datasets: Mapping[str, xr.Dataset],
        headline: Mapping[str, Mapping[str, Estimate]],
        info_updates: Mapping[str, Any] | None = None,
    ) -> Survey:
        """Writes everything, marks the run complete, drops its parts, and returns the survey."""
        times = dict(self.record["times"])
        times |= {
            "finished": provenance.now(),
            "seconds": round(times.get("seconds", 0.0) + time.perf_counter() - self._begun, 3),
        }
        record = {**self.record, **(info_updates or {}), "status": COMPLETE, "times": times}
        record["headline"] = strict({measure: dict(numbers) for measure, numbers in headline.items()})
        if self.folder is None:
            info = {key: value for key, value in strict(record).items() if key != "headline"}
            kept = {name: partial(_same, dataset) for name, dataset in datasets.items()}
            self.survey = Survey(info, headline, kept)
        else:
            record["store"] = write_store(self.folder.store_path, datasets)
            self.folder.write_record(record)
            self.survey = survey_of(self.folder, self.folder.read_record())
        self.record = record
        self.parts.clear()
        self.close()
        return self.survey

    def interrupt(self) -> None:
        """Marks the run as interrupted; its parts stay."""
        self._stop(INTERRUPTED, None)

    def fail(self, reason: str = "") -> None:
        """Marks the run as failed, with a reason; its parts stay, and the same command tries again from there."""
        self._stop(FAILED, reason or None)

    def close(self) -> None:
        """Lets others write the folder; harmless when called twice."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.record["status"] == RUNNING:
            if isinstance(error, Exception):
                self.fail(str(error))
            else:
                self.interrupt()
        self.close()

    def _stop(self, status: str, reason: str | None) -> None:
        times = dict(self.record["times"])
        times["seconds"] = round(times.get("seconds", 0.0) + time.perf_counter() - self._begun, 3)
        self.record = {**self.record, "status": status, "times": times, **({"reason": reason} if reason else {})}
        if self.folder is not None and self._lock is not None:
            # A full disk must not hide the error that led here; "running" without a holder of the lock reads the same.
            with contextlib.suppress(GnomonError):
                self.folder.write_record(self.record)
            self.close()


def _make_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise RunError(f"`out` must be a folder, got the file {path}; choose another name.")
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    names = {entry.name for entry in path.iterdir()}
    if names - {".lock"} and "run.json" not in names and not all(name.startswith(".tmp-") or name == ".lock" for name in names):
        raise RunError(f"`out` must be a new or empty folder or a run, but {path} holds other files; choose another name.")


def _refuse_other(run: RunFolder, earlier: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    differing = sorted(key for key in {*earlier, *wanted} if earlier.get(key) != wanted.get(key))
    if differing:
        raise RunError(
            f"`out` must be a new folder or a run of the same survey, but {run.path} was made with another "
            f"{', '.join(differing)}; choose another folder or repeat the arguments it was made with."
        )


def _same(dataset: xr.Dataset) -> xr.Dataset:
    return dataset

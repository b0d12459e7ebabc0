"""Many surveys: models by checkpoints, each a task that writes a run folder of its own.

A task is data (a name to open, text, measures, a folder), so that it can be sent to another process or machine. Finished tasks are recognised by their record and skipped without opening the
model; unfinished ones resume at the batch they stopped at. What a user can cause or mend (a missing checkpoint, damaged weights) ends one task with a sentence, and the others go on.

``workers`` above one, or an address, spreads tasks over Ray (:mod:`gnomon.study.sweep_on_ray`); without, they run one after the other in this process. Folders lie where the driver says: on
a cluster that must be a file system that all machines share.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from gnomon.corpus import CorpusSpec, Windows
from gnomon.errors import GnomonError, RunError
from gnomon.model.names import locate
from gnomon.result import RunFolder
from gnomon.result.folder import COMPLETE
from gnomon.result.lock import FolderLock
from gnomon.result.strict_json import digest
from gnomon.study.disk_cap import DiskCap
from gnomon.study.observing import Progress
from gnomon.study.survey import survey

BUSY_SECONDS: Final = 120.0
LOCK: Final = ".sweep-lock"


@dataclass(frozen=True, kw_only=True)
class Task:
    """One survey of a sweep.

    Attributes:
        name: for people.
        model: what to open: a name or path.
        folder: of its run.
        corpus: windows, or what text to make them of.
        measures: names.
        options: parameters by measure.
        batch_size: sequences per forward pass; chosen by length when not given.
        seed: of everything random.
        loading: for the loader.
        arguments: what the caller was asked for, for the record.
    """

    name: str
    model: str
    folder: Path
    corpus: Windows | CorpusSpec | None = None
    measures: tuple[str, ...] = ("default",)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    batch_size: int | None = None
    seed: int = 0
    loading: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)

    def digest(self) -> str:
        """The same for the same work; other files under the same name are other work."""
        text = self.corpus.digest() if isinstance(self.corpus, Windows) else self.corpus and self.corpus.to_json()
        return digest(
            {
                "model": self.model,
                "files": local_files(self.model),
                "text": text,
                "measures": self.measures,
                "options": self.options,
                "batch_size": self.batch_size,
                "seed": self.seed,
                "loading": self.loading,
            }
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a task.

    Attributes:
        name: of the task.
        folder: of its run.
        error: why there is no run, in one sentence; empty when there is one.
        skipped: whether it was finished before.
        seconds: spent.
    """

    name: str
    folder: Path
    error: str = ""
    skipped: bool = False
    seconds: float = 0.0


def sweep(
    tasks: Sequence[Task],
    *,
    workers: int = 1,
    ray_address: str | None = None,
    disk_cap: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run all tasks; the outcomes in the order of the tasks.

    Args:
        tasks: with folders of their own.
        workers: how many at once; more than one needs Ray.
        ray_address: of a cluster (``auto`` or ``HOST:PORT``) instead of this machine alone.
        disk_cap: bytes that checkpoints downloaded for this sweep may take once they are done with.
        progress: called with (stage, done, total).
    """
    if not tasks:
        return []
    told: Callable[[int], None] = lambda done: progress("checkpoints", done, len(tasks)) if progress is not None else None  # noqa: E731
    if (workers > 1 or ray_address is not None) and not all(map(_surely_finished, tasks)):
        from gnomon.study.sweep_on_ray import sweep_on_ray

        return sweep_on_ray(tasks, workers=workers, address=ray_address, disk_cap=disk_cap, told=told)
    outcomes: list[Outcome] = []
    for task in tasks:
        told(len(outcomes))
        outcomes.append(run_task(task, disk_cap=disk_cap, progress=progress))
    told(len(outcomes))
    return outcomes


def run_task(task: Task, *, disk_cap: int | None = None, progress: Progress | None = None, threads: int | None = None) -> Outcome:
    """Run one task here, unless it is finished."""
    begun = time.perf_counter()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        wait_until_free(task.folder)
        if is_finished(task):
            return Outcome(name=task.name, folder=task.folder, skipped=True)
        with _reading(task, disk_cap):
            survey(
                task.model,
                corpus=task.corpus,
                measures=",".join(task.measures),
                options=task.options or None,
                out=task.folder,
                batch_size=task.batch_size,
                seed=task.seed,
                replicates=True,
                progress=None if progress is None else lambda stage, done, total: progress(f"{task.name} {stage}", done, total),
                arguments={**task.arguments, "task": task.digest()},
                **task.loading,
            )
    except GnomonError as reason:
        return Outcome(
            name=task.name, folder=task.folder, error=" ".join(str(reason).split()), seconds=time.perf_counter() - begun
        )
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return Outcome(name=task.name, folder=task.folder, seconds=time.perf_counter() - begun)


def is_finished(task: Task) -> bool:
    """Whether the folder holds the complete run of this very task."""
    folder = RunFolder(task.folder)
    if not folder.record_path.is_file():
        return False
    record = folder.read_record()
    arguments = record.get("arguments")
    return record["status"] == COMPLETE and isinstance(arguments, dict) and arguments.get("task") == task.digest()


def _surely_finished(task: Task) -> bool:
    try:
        return is_finished(task)
    except GnomonError:
        return False


def wait_until_free(folder: Path, seconds: float = BUSY_SECONDS) -> None:
    """Wait while another process writes the folder: after a driver was killed, its workers take a moment to end."""
    if not folder.is_dir():
        return
    deadline = time.monotonic() + seconds
    while True:
        try:
            FolderLock(folder).release()
        except RunError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def local_files(model: str) -> dict[str, list[int]]:
    """Sizes and times of the files of a model that lies here; empty for models of the hub and for what cannot be found."""
    with contextlib.suppress(GnomonError, OSError):
        located = locate(model)
        if located.kind != "hub":
            path = located.path
            files = [path] if path.is_file() else sorted(file for file in path.iterdir() if file.is_file())
            return {file.name: [file.stat().st_size, file.stat().st_mtime_ns] for file in files}
    return {}


def _reading(task: Task, disk_cap: int | None) -> contextlib.AbstractContextManager[None]:
    if disk_cap is None or locate(task.model).kind != "hub":
        return contextlib.nullcontext()
    return DiskCap(disk_cap).while_reading(task.model, task.loading.get("revision"))

"""Sweeps: finished tasks are skipped unopened, failed ones named, killed ones completed; in one process and on Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from gnomon.corpus import CorpusSpec
from gnomon.errors import ConfigError, MissingExtraError, RunError
from gnomon.result import open_run
from gnomon.result.lock import FolderLock
from gnomon.study.survey import survey
from gnomon.study.sweep import Task, is_finished, run_task, sweep, wait_until_free
from tests.study.sweeping import MODELS, tasks

SEQUENCES = 40
WORKERS = [1, pytest.param(2, marks=pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed (extra `sweep`)"))]
posix = pytest.mark.skipif(os.name != "posix", reason="kills processes by signal")


def drive(out: Path, workers: int, sequences: int = SEQUENCES) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.study.sweeping", str(out), str(workers), str(sequences)]
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_parts(out: Path, process: subprocess.Popen, number: int = 3) -> Path:
    """The first run under way that has so many parts; fails when the driver ends before."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for folder in sorted(out.glob("run-*")):
            if len(list(folder.glob("parts/*.npz"))) >= number:
                return folder
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    raise AssertionError("no run got under way")


def holder_of(folder: Path) -> int:
    """The process that has the lock of a run open."""
    import psutil

    for process in psutil.process_iter():
        try:
            if any(str(folder / ".lock") == file.path for file in process.open_files()):
                return process.pid
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    raise AssertionError(f"nobody holds {folder}")


def same_as_alone(out: Path, sequences: int = SEQUENCES) -> None:
    """Every run is complete and says what one survey by itself says: nothing lost, nothing counted twice."""
    for index, model in enumerate(MODELS):
        run = open_run(out / f"run-{index}")
        assert run.info["corpus"]["sequences"] == sequences
        assert run.headline["sinks"]["position_0_mass"].n == sequences
        assert not (run.path / "parts").exists()
        if index in (0, 3):
            alone = survey(model, corpus=CorpusSpec(sequences=sequences, length=40), measures="sinks", batch_size=1)
            assert alone.headline == run.headline


def test_one_process_skips_what_is_finished_without_opening_it(zoo, tmp_path, monkeypatch):
    some = tasks(tmp_path, 4)
    first = sweep(some)
    assert not any(outcome.error or outcome.skipped for outcome in first)
    monkeypatch.setattr("gnomon.study.sweep.survey", lambda *given, **options: pytest.fail("opened a finished task"))
    assert all(outcome.skipped for outcome in sweep(some))
    assert all(outcome.skipped for outcome in sweep(some, workers=4)), "and without starting Ray"


def test_other_work_in_the_folder_is_refused_not_skipped(zoo, tmp_path):
    task = tasks(tmp_path, 4)[0]
    run_task(task)
    other = Task(**{**vars(task), "model": "zoo:rope@5"})
    assert not is_finished(other)
    outcome = run_task(other)
    assert "made with another weights" in outcome.error
    assert open_run(task.folder).model_name == "zoo:rope@0"


def test_a_failure_is_one_sentence_and_the_rest_goes_on(zoo, tmp_path):
    some = tasks(tmp_path, 4)
    some[1] = Task(**{**vars(some[1]), "model": "zoo:rope@77"})
    some[2] = Task(**{**vars(some[2]), "corpus": CorpusSpec(sequences=4, length=4000)})
    outcomes = sweep(some)
    assert [bool(outcome.error) for outcome in outcomes] == [False, True, True, False]
    assert all("\n" not in outcome.error and outcome.error.endswith(".") for outcome in outcomes[1:3])


def test_a_busy_folder_is_waited_for(tmp_path):
    lock = FolderLock(tmp_path)
    with pytest.raises(RunError, match="in use"):
        wait_until_free(tmp_path, seconds=0.1)
    lock.release()
    wait_until_free(tmp_path, seconds=0.1)
    wait_until_free(tmp_path / "nowhere")


@posix
@pytest.mark.parametrize("workers", WORKERS)
def test_a_killed_driver_is_made_up_for(zoo, tmp_path, workers):
    process = drive(tmp_path, workers)
    wait_for_parts(tmp_path, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    second = drive(tmp_path, workers)
    said, _ = second.communicate(timeout=240)
    assert second.returncode == 0, said
    same_as_alone(tmp_path)


@posix
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed (extra `sweep`)")
def test_a_killed_worker_is_replaced(zoo, tmp_path):
    process = drive(tmp_path, 2)
    folder = wait_for_parts(tmp_path, process)
    kept = {part.name: part.stat().st_mtime_ns for part in folder.glob("parts/*.npz")}
    worker = holder_of(folder)
    assert worker != process.pid
    os.kill(worker, signal.SIGKILL)
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    same_as_alone(tmp_path)
    times = open_run(folder).info["times"]
    assert len(kept) >= 3
    assert len(times["resumed"]) == 1


@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed (extra `sweep`)")
def test_an_address_without_a_cluster_is_named(zoo, tmp_path):
    with pytest.raises(ConfigError, match="`ray_address` must be the address of a running Ray cluster"):
        sweep(tasks(tmp_path, 4), ray_address="auto")


def test_without_ray_the_extra_is_named(zoo, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"gnomon\[sweep\]"):
        sweep(tasks(tmp_path, 4), workers=2)

"""A sweep on Ray: one task per survey, on this machine or on a cluster.

Ray keeps the workers, moves tasks to them and tries a task again when its worker is lost (killed, out of memory, its machine gone); what the task had written is still in its run folder, so the second
attempt goes on where the first stopped. Nothing is returned through Ray but a sentence: results are the run folders. Each worker computes with its share of the processors, since surveys with as many threads as cores each would
slow one another down; with GPUs each task gets one, or a share where there are more workers than GPUs on this machine.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from gnomon.errors import ConfigError, MissingExtraError
from gnomon.study.sweep import Outcome, Task, run_task

ATTEMPTS: Final = 3


def sweep_on_ray(
    tasks: Sequence[Task], *, workers: int, address: str | None, disk_cap: int | None, told: Callable[[int], None]
) -> list[Outcome]:
    """Run all tasks on Ray; the outcomes in the order of the tasks."""
    ray = load_ray()
    started = not ray.is_initialized()
    if started:
        connect(ray, workers, address)
    try:
        return _run(ray, tasks, workers=workers, address=address, disk_cap=disk_cap, told=told)
    finally:
        if started:
            ray.shutdown()


def load_ray() -> Any:
    """The package, or one sentence on how to install it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as reason:
        raise MissingExtraError("ray", "sweep", "a sweep over several workers") from reason
    return ray


def connect(ray: Any, workers: int, address: str | None) -> None:
    """Start Ray here with as many processors as workers, or join a cluster."""
    quiet = {"include_dashboard": False} if address is None else {}
    try:
        ray.init(
            address=address or "local",
            num_cpus=workers if address is None else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **quiet,
        )
    except (ConnectionError, ValueError, RuntimeError) as reason:
        raise ConfigError(
            f"`ray_address` must be the address of a running Ray cluster, got {address!r} ({str(reason).splitlines()[0]}); start one with `ray start --head`."
        ) from reason


def _run(
    ray: Any, tasks: Sequence[Task], *, workers: int, address: str | None, disk_cap: int | None, told: Callable[[int], None]
) -> list[Outcome]:
    gpus = float(ray.cluster_resources().get("GPU", 0))
    share = 0.0 if not gpus else min(1.0, gpus / workers) if address is None else 1.0
    threads = max(1, (os.cpu_count() or 1) // workers) if address is None else None
    remote = ray.remote(num_cpus=1, num_gpus=share, max_retries=ATTEMPTS - 1)(run_task)
    waiting = {remote.remote(task, disk_cap=disk_cap, threads=threads): index for index, task in enumerate(tasks)}
    outcomes: dict[int, Outcome] = {}
    told(0)
    while waiting:
        (ready,), _ = ray.wait(list(waiting), num_returns=1)
        index = waiting.pop(ready)
        outcomes[index] = _outcome(ray, ready, tasks[index])
        told(len(outcomes))
    return [outcomes[index] for index in range(len(tasks))]


def _outcome(ray: Any, reference: Any, task: Task) -> Outcome:
    lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError)
    try:
        found: Outcome = ray.get(reference)
    except lost:
        error = f"the worker of {task.name} was lost {ATTEMPTS} times; it may need more memory: use fewer workers, then run the same command again."
        return Outcome(name=task.name, folder=task.folder, error=error)
    return found

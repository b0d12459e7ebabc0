"""Evolve: every measure at every checkpoint on the same sequences, then what emerged when.

The text is made once, with the tokenizer of the first checkpoint that opens, and kept beside the runs, so that a sweep that is run again, by whatever worker, shows every checkpoint the same tokens. A
checkpoint that is missing or damaged is named in one sentence and the others go on. The folder holds ``checkpoints/NAME`` (a run each), ``text.npz`` and ``summary`` (a run with the
dataset ``evolution``, made anew from the runs each time).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from gnomon.corpus import CorpusSpec, Windows, build_corpus
from gnomon.corpus.first_token import FirstToken
from gnomon.errors import ConfigError, GnomonError, ModelError, RunError
from gnomon.report.html import write_report
from gnomon.result import RunWriter, Survey, open_run
from gnomon.result.atomic import disk_errors, write_file
from gnomon.result.lock import FolderLock
from gnomon.result.strict_json import digest
from gnomon.study.checkpoints import Checkpoint
from gnomon.study.evolution import NAME, equal_starts, evolution_of, headline_of
from gnomon.study.observing import Progress
from gnomon.study.opening import open_model
from gnomon.study.registry import choose
from gnomon.study.sweep import LOCK, Outcome, Task, sweep

TEXT: Final = "text.npz"
SUMMARY: Final = "summary"
RUNS: Final = "checkpoints"


def evolve(
    checkpoints: Sequence[Checkpoint],
    *,
    out: str | Path,
    corpus: CorpusSpec | Windows | None = None,
    measures: str | Sequence[str] = "default",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    workers: int = 1,
    ray_address: str | None = None,
    disk_cap: int | None = None,
    progress: Progress | None = None,
    arguments: Mapping[str, Any] | None = None,
    **loading: Any,
) -> Survey:
    """Survey every checkpoint and tell what emerged when.

    Args:
        checkpoints: from :mod:`gnomon.study.checkpoints`.
        out: folder of the sweep; the same call on it goes on where it stopped.
        corpus: what text; by default 32 windows of 256 tokens of the built-in prose.
        measures: ``default``, ``all``, or names.
        options: parameters by measure.
        batch_size: sequences per forward pass.
        seed: of everything random.
        workers: checkpoints at once; more than one needs Ray.
        ray_address: of a cluster.
        disk_cap: bytes that downloaded checkpoints may take once they are done with.
        progress: called with (stage, done, total).
        arguments: what the caller was asked for, for the record.
        **loading: ``device``, ``device_map``, ``dtype``, ``trust_remote_code``, ``stack``.

    Returns:
        The summary: a survey with the dataset ``evolution``; its ``info["evolve"]`` lists the runs and what could not be surveyed.
    """
    if len({one.name for one in checkpoints}) != len(checkpoints) or len(checkpoints) < 2:
        raise ConfigError(f"`checkpoints` must be at least two with different names, got {len(checkpoints)}; name more.")
    names = choose(measures if isinstance(measures, str) else list(measures))
    root = Path(out)
    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(root, name=LOCK)
    try:
        windows, unopened = _same_text(root, checkpoints, corpus, seed, loading)
        tasks = [
            Task(
                name=one.name,
                model=_absolute(one.model),
                folder=(root / RUNS / one.name).resolve(),
                corpus=windows,
                measures=tuple(names),
                options={name: dict(values) for name, values in (options or {}).items()},
                batch_size=batch_size,
                seed=seed,
                loading={**loading, **one.loading},
                arguments=dict(arguments or {}),
            )
            for one in checkpoints
            if one.name not in unopened
        ]
        found = sweep(tasks, workers=workers, ray_address=ray_address, disk_cap=disk_cap, progress=progress)
        failures = [Outcome(name=name, folder=root / RUNS / name, error=why) for name, why in unopened.items()]
        return _summary(root, checkpoints, [*failures, *found], seed, arguments)
    finally:
        lock.release()


def _same_text(
    root: Path, checkpoints: Sequence[Checkpoint], corpus: CorpusSpec | Windows | None, seed: int, loading: Mapping[str, Any]
) -> tuple[Windows, dict[str, str]]:
    """The windows, made or read back, and checkpoints that could not be opened on the way."""
    spec = corpus if isinstance(corpus, Windows) else corpus or CorpusSpec(seed=seed)
    asked = digest({"windows": spec.digest()} if isinstance(spec, Windows) else spec.to_json())
    path = root / TEXT
    if path.is_file():
        return _read_text(path, asked), {}
    if isinstance(spec, Windows):
        _keep_text(path, spec, asked)
        return spec, {}
    failures: dict[str, str] = {}
    for one in checkpoints:
        try:
            opened = open_model(one.model, **{**loading, **one.loading})
        except ModelError as reason:
            failures[one.name] = " ".join(str(reason).split())
            continue
        windows = build_corpus(spec, opened.tokenizer, encoder=not opened.anatomy.causal)
        _keep_text(path, windows, asked)
        return windows, failures
    raise ModelError(
        f"`checkpoints` must have at least one that opens, got none of {len(checkpoints)}; the first said: {next(iter(failures.values()))}"
    )


def _keep_text(path: Path, windows: Windows, asked: str) -> None:
    about = {"asked": asked, "source": windows.source, "seed": windows.seed, "pad_id": windows.pad_id}
    about["first_token"] = asdict(windows.first_token)
    arrays = {name: getattr(windows, name) for name in ("tokens", "lengths", "special", "document", "start")}
    write_file(path, lambda file: np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays))


def _read_text(path: Path, asked: str) -> Windows:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(str(arrays.pop("about")))
    except (OSError, ValueError, KeyError, EOFError) as reason:
        raise RunError(f"{path} must hold the text of this sweep, but it is damaged; delete it and run again.") from reason
    if about.pop("asked") != asked:
        raise RunError(
            f"`out` must be a new folder or a sweep on the same text, but {path.parent} was made with another text; choose another folder."
        )
    return Windows(**arrays, **{**about, "first_token": FirstToken(**about["first_token"])})


def _summary(
    root: Path, checkpoints: Sequence[Checkpoint], outcomes: Sequence[Outcome], seed: int, arguments: Mapping[str, Any] | None
) -> Survey:
    by_name = {outcome.name: outcome for outcome in outcomes}
    surveys = [_opened(by_name[one.name]) for one in checkpoints]
    failures = {name: outcome.error for name, outcome in by_name.items() if outcome.error}
    first = next((survey for survey in surveys if survey is not None), None)
    if first is None:
        raise ModelError(
            f"`checkpoints` must have at least one that can be surveyed, got none of {len(checkpoints)}; the first said: {next(iter(failures.values()))}"
        )
    starts = equal_starts(checkpoints, surveys)
    dataset = evolution_of(checkpoints, surveys, seed=seed)
    dataset.attrs |= {"failures": json.dumps(failures), "steps_0_and_1": starts}
    made_of = {
        one.name: None if survey is None else survey.info.get("store") for one, survey in zip(checkpoints, surveys, strict=True)
    }
    info: dict[str, Any] = {
        key: first.info[key] for key in ("corpus", "scheme", "anatomy", "dtype", "device", "backend", "seed") if key in first.info
    }
    info |= {
        "model": {"name": f"{_family(checkpoints)} over {len(checkpoints)} checkpoints"},
        "arguments": dict(arguments or {}),
        "warnings": [f"{name}: {why}" for name, why in failures.items()]
        + ([starts] if "must be" in starts and "differ" in starts else []),
        "evolve": {
            "runs": {one.name: f"{RUNS}/{one.name}" for one in checkpoints if one.name not in failures},
            "steps": {one.name: one.step for one in checkpoints},
            "failures": failures,
        },
    }
    fingerprint = {
        "runs": digest(made_of),
        "steps": digest([one.step for one in checkpoints]),
        "failures": failures,
        "seed": seed,
    }
    return _written(root / SUMMARY, fingerprint, info, dataset)


def _written(folder: Path, fingerprint: Mapping[str, Any], info: Mapping[str, Any], dataset: Any) -> Survey:
    """The summary's run; one of other runs is replaced, since it can be made again."""
    try:
        earlier = open_run(folder)
    except RunError:
        earlier = None
    if folder.exists() and (earlier is None or earlier.info.get("fingerprint") != fingerprint):
        shutil.rmtree(folder)
    with RunWriter.start(folder, fingerprint, info) as writer:
        if writer.survey is not None:
            return writer.survey
        finished = writer.finish({NAME: dataset}, {NAME: headline_of(dataset)})
    write_report(finished)
    return finished


def _opened(outcome: Outcome) -> Survey | None:
    if outcome.error:
        return None
    try:
        return open_run(outcome.folder)
    except GnomonError:
        return None


def _family(checkpoints: Sequence[Checkpoint]) -> str:
    """What the checkpoints are of: the model, or the folder they lie in."""
    models = {one.model.partition("@")[0] for one in checkpoints}
    return models.pop() if len(models) == 1 else Path(checkpoints[0].model).parent.name


def _absolute(model: str) -> str:
    """Paths as seen from anywhere; names as they are."""
    return str(Path(model).resolve()) if Path(model).exists() else model

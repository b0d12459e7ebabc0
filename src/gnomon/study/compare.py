"""Compare: runs that exist, and models that are surveyed first, in one table.

Models are surveyed on text made the same way for each. Models that share a tokenizer (the zoo, checkpoints, a family) then see the same tokens, and their differences are paired; with other tokenizers
they see the same places of the same documents at best, and differences are unpaired, which the table says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnomon.corpus import CorpusSpec
from gnomon.errors import ConfigError, ModelError
from gnomon.result import Survey, is_run, open_run
from gnomon.result.comparison import Comparison, compare_runs
from gnomon.study.observing import Progress
from gnomon.study.registry import choose
from gnomon.study.sweep import Outcome, Task, sweep


def compare(
    sources: Sequence[str | Path | Survey],
    *,
    out: str | Path | None = None,
    corpus: CorpusSpec | None = None,
    measures: str | Sequence[str] = "default",
    only: Sequence[str] | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    workers: int = 1,
    ray_address: str | None = None,
    disk_cap: int | None = None,
    progress: Progress | None = None,
    arguments: Mapping[str, Any] | None = None,
    **loading: Any,
) -> tuple[Comparison, dict[str, str]]:
    """Compare runs and models with the first of them.

    Args:
        sources: surveys, run folders, or models to survey; at least two.
        out: folder for the runs of models; needed when there are models among the sources.
        corpus: what text models are surveyed on.
        measures: for models.
        only: measures to compare; all of them otherwise.
        batch_size: sequences per forward pass.
        seed: of everything random.
        workers: models at once; more than one needs Ray.
        ray_address: of a cluster.
        disk_cap: bytes that downloaded models may take once they are done with.
        progress: called with (stage, done, total).
        arguments: what the caller was asked for, for the record.
        **loading: for the loader.

    Returns:
        The comparison, and what could not be surveyed and why.
    """
    if len(sources) < 2:
        raise ConfigError(f"`runs` must be at least two runs or models, got {len(sources)}; name another.")
    models = [source for source in sources if not isinstance(source, Survey) and not is_run(source)]
    if models and out is None:
        raise ConfigError(f"`out` must be a folder when models are to be surveyed, got none for {', '.join(map(str, models))}.")
    names = tuple(choose(measures if isinstance(measures, str) else list(measures))) if models else ()
    tasks = {
        str(model): Task(
            name=str(model),
            model=_absolute(model),
            folder=(Path(out or ".") / folder_name(str(model))).resolve(),
            corpus=corpus or CorpusSpec(seed=seed),
            measures=names,
            batch_size=batch_size,
            seed=seed,
            loading=dict(loading),
            arguments=dict(arguments or {}),
        )
        for model in models
    }
    found = sweep(list(tasks.values()), workers=workers, ray_address=ray_address, disk_cap=disk_cap, progress=progress)
    outcomes = {outcome.name: outcome for outcome in found}
    failures = {name: outcome.error for name, outcome in outcomes.items() if outcome.error}
    surveys = [(_name(source), _survey(source, outcomes)) for source in sources if str(source) not in failures]
    if len(surveys) < 2:
        raise ModelError(next(iter(failures.values())))
    return compare_runs([survey for _, survey in surveys], [name for name, _ in surveys], only), failures


def folder_name(model: str) -> str:
    """A folder's name for a model's name: short, safe, distinct."""
    from gnomon.result.strict_json import digest

    slug = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[-40:].strip("-") or "model"
    return f"{slug}-{digest(model)[:6]}"


def _survey(source: str | Path | Survey, outcomes: Mapping[str, Outcome]) -> Survey:
    if isinstance(source, Survey):
        return source
    outcome = outcomes.get(str(source))
    return open_run(source if outcome is None else outcome.folder)


def _name(source: str | Path | Survey) -> str:
    if isinstance(source, Survey):
        return source.model_name if source.path is None else source.path.name
    return Path(source).name if is_run(source) else str(source)


def _absolute(model: str | Path) -> str:
    return str(Path(model).resolve()) if Path(model).exists() else str(model)

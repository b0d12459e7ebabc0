"""A driver to be killed: a sweep of the zoo, started as ``python -m tests.study.sweeping OUT WORKERS SEQUENCES``."""

from __future__ import annotations

import sys
from pathlib import Path

from gnomon.corpus import CorpusSpec
from gnomon.study.sweep import Task, sweep

MODELS = ("zoo:rope@0", "zoo:rope@5", "zoo:rope@20", "zoo:rope")


def tasks(out: Path, sequences: int) -> list[Task]:
    """A task per checkpoint, with one sequence per batch, so that there is much to interrupt."""
    corpus = CorpusSpec(sequences=sequences, length=40)
    return [
        Task(name=model, model=model, folder=out / f"run-{index}", corpus=corpus, measures=("sinks",), batch_size=1)
        for index, model in enumerate(MODELS)
    ]


if __name__ == "__main__":
    found = sweep(tasks(Path(sys.argv[1]), int(sys.argv[3])), workers=int(sys.argv[2]))
    failed = [outcome.error for outcome in found if outcome.error]
    print("\n".join(failed) or "done")  # noqa: T201
    sys.exit(bool(failed))

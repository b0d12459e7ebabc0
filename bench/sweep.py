"""What looking during training costs, what replicates cost, and what a sweep on Ray gains, on this machine.

- ``callback``: one look of the Trainer's callback (8 windows of 128 tokens) against one training step (16 windows of 512) of a member of the zoo: processor and wall time.
- ``replicates``: a survey with headlines of sixteen groups left out, against one without.
- ``sweep``: the surveys of several untrained members, one after the other and on Ray with two workers (left out without Ray).

Processor time is reported beside wall time, since the machine may be shared.

    python bench/sweep.py
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import torch
import transformers

from gnomon.corpus import CorpusSpec, build_corpus
from gnomon.study.light import LightSurvey
from gnomon.study.survey import survey
from gnomon.study.sweep import Task, sweep
from gnomon.zoo import recipe_named
from gnomon.zoo.data import as_transformers, batch_at, encode, train_tokenizer
from gnomon.zoo.training import build
from gnomon.zoo.weights import save

RESULT = Path(__file__).parent / "results" / "sweep-cpu.json"
TEXT = [" ".join(f"{word} {number}" for number in range(4000)) for word in ("the gnomon", "its shadow", "an hour")]
MEMBERS = ("rope", "learned", "alibi", "nope")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    tokenizer = train_tokenizer(TEXT, vocab_size=600)
    rows = [*callback_rows(tokenizer, arguments.repeats), *replicate_rows(tokenizer), *sweep_rows(tokenizer)]
    record = {
        "hardware": {"processor": platform.machine(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)},
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__},
        "threads": torch.get_num_threads(),
        "rows": rows,
    }
    arguments.out.parent.mkdir(exist_ok=True)
    arguments.out.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(rows, indent=2))


def timed(work: Callable[[], object]) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return {"processor_seconds": round(time.process_time() - cpu, 3), "wall_seconds": round(time.perf_counter() - wall, 3)}


def fastest(work: Callable[[], object], repeats: int) -> dict[str, float]:
    work()
    return min((timed(work) for _ in range(repeats)), key=lambda row: row["processor_seconds"])


def callback_rows(tokenizer, repeats: int) -> list[dict]:
    recipe = recipe_named("rope")
    model = build(recipe, tokenizer.get_vocab_size()).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.from_numpy(batch_at(encode(TEXT, tokenizer), 0, batch=16, context=512, seed=0, masked=False)[0])

    def step() -> None:
        optimizer.zero_grad()
        model(input_ids=inputs, labels=inputs).loss.backward()
        optimizer.step()

    look = LightSurvey(build_corpus(CorpusSpec(sequences=8, length=128), as_transformers(tokenizer, masked=False)))
    one, other = fastest(step, repeats), fastest(lambda: look(model), repeats)
    ratio = round(other["processor_seconds"] / one["processor_seconds"], 3)
    return [{"mode": "training step", **one}, {"mode": "look of the callback", **other, "steps_per_look": ratio}]


def replicate_rows(tokenizer) -> list[dict]:
    model = build(recipe_named("rope"), tokenizer.get_vocab_size()).eval()
    text = build_corpus(CorpusSpec(sequences=32, length=256), as_transformers(tokenizer, masked=False))
    rows = []
    for replicates in (False, True):
        cost = fastest(lambda: survey(model, corpus=text, replicates=replicates), 1)  # noqa: B023
        rows.append({"mode": "default survey" + (" with replicates" if replicates else ""), **cost})
    return rows


def sweep_rows(tokenizer) -> list[dict]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        zoo = Path(folder) / "zoo"
        for name in MEMBERS:
            save(zoo / name, build(recipe_named(name), tokenizer.get_vocab_size()), as_transformers(tokenizer, masked=False), {})
        for workers in (1, 2) if find_spec("ray") else (1,):
            tasks = [
                Task(
                    name=name,
                    model=str(zoo / name),
                    folder=Path(folder) / f"{workers}" / name,
                    corpus=CorpusSpec(),
                    measures=("default",),
                )
                for name in MEMBERS
            ]
            cost = timed(lambda: sweep(tasks, workers=workers))  # noqa: B023
            cost = {"wall_seconds": cost["wall_seconds"]} if workers > 1 else cost
            rows.append({"mode": f"sweep of {len(MEMBERS)}, {workers} worker{'s' if workers > 1 else ''}", **cost})
    return rows


if __name__ == "__main__":
    main()

"""What the likelihood study costs: processor time of passes and of statistics, on this machine.

The work of a sentence does not depend on how many there are, so that a few hundred give the figure for thousands; processor time is
reported beside wall time, since the machine may be shared.

    python bench/likelihood.py --sentences 200
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import torch
import transformers

from gnomon.capture import open_model
from gnomon.corpus import CorpusSpec, build_corpus
from gnomon.study.experiment import Arrays, Context
from gnomon.study.likelihood import Likelihood
from gnomon.study.likelihood.perturbation import DRAWN

RESULT = Path(__file__).parent / "results" / "likelihood-cpu.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    model = open_model(arguments.model)
    windows = build_corpus(CorpusSpec(), model.tokenizer, encoder=not model.anatomy.causal)
    in_passes = {"cpu": 0.0, "wall": 0.0}

    def stage(key: str, function: object) -> Arrays:
        cpu, wall = time.process_time(), time.perf_counter()
        arrays: Arrays = function()  # type: ignore[operator]
        in_passes["cpu"] += time.process_time() - cpu
        in_passes["wall"] += time.perf_counter() - wall
        return arrays

    cpu, wall = time.process_time(), time.perf_counter()
    dataset = Likelihood(sentences=arguments.sentences).run(model, windows, Context(stage=stage))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    used = dataset.sizes["sequence"]
    row = {
        "model": arguments.model,
        "sentences": used,
        "replacements": len(DRAWN),
        "processor_seconds": round(cpu, 2),
        "processor_seconds_in_passes": round(in_passes["cpu"], 2),
        "wall_seconds": round(wall, 2),
        "processor_seconds_per_sentence_in_passes": round(in_passes["cpu"] / used, 4),
        "threads": torch.get_num_threads(),
    }
    report = {
        "hardware": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__},
        "rows": [row],
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(row, indent=2))


if __name__ == "__main__":
    main()

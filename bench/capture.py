"""What a survey costs beside a plain forward pass, on this machine.

Every mode runs on the same model and the same tokens, in turn, round after round; what is reported is the ratio of medians to the plain sdpa pass of the same rounds.
Peak memory is the largest resident set of a process of its own per mode, model included, from the start of the pass on.

    python bench/capture.py --lengths 512,1024,2048 --rounds 5
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODES = ("sdpa", "gnomon", "eager")
RESULT = Path(__file__).parent / "results" / "capture-cpu.json"


def open_subject(name: str) -> Any:
    """The model, opened once."""
    from gnomon.capture import open_model

    return open_model(name)


def make_pass(model: Any, mode: str, length: int, measures: str) -> Callable[[], None]:
    """One forward pass of a mode, as a function of nothing."""
    import torch

    from gnomon.corpus import CorpusSpec, build_corpus

    windows = build_corpus(CorpusSpec(sequences=1, length=length), model.tokenizer, encoder=False)
    tokens = torch.from_numpy(windows.tokens.copy())
    if mode == "gnomon":
        return _survey_pass(model, windows, measures)

    def plain() -> None:
        with torch.inference_mode():
            model.backbone(input_ids=tokens, use_cache=False, output_attentions=mode == "eager")

    return plain


def _survey_pass(model: Any, windows: Any, measures: str) -> Callable[[], None]:
    import numpy as np

    from gnomon.measure.protocol import Subject
    from gnomon.study.observing import joined_needs, observe_batch
    from gnomon.study.registry import choose, make

    made = make(choose(measures))
    needs = joined_needs(Subject(anatomy=model.anatomy, scheme=model.scheme, windows=windows), made)

    def surveyed() -> None:
        observe_batch(model, windows, np.array([0]), made, needs)

    return surveyed


def set_mode(model: Any, mode: str) -> None:
    """Switch the attention that the model uses."""
    model.set_attention({"sdpa": "sdpa", "gnomon": "gnomon", "eager": "eager"}[mode])


def time_modes(model: Any, length: int, rounds: int, measures: str) -> dict[str, list[float]]:
    """Seconds per mode, interleaved."""
    passes = {mode: make_pass(model, mode, length, measures) for mode in MODES}
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    for turn in range(rounds + 1):
        for mode in MODES:
            set_mode(model, mode)
            begun = time.perf_counter()
            passes[mode]()
            if turn:
                seconds[mode].append(time.perf_counter() - begun)
    return seconds


def peak_memory(model_name: str, mode: str, length: int, measures: str) -> float:
    """Megabytes resident at the peak of a pass, in a fresh process."""
    command = [
        sys.executable,
        __file__,
        "--memory-of",
        mode,
        "--model",
        model_name,
        "--lengths",
        str(length),
        "--measures",
        measures,
    ]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def report_memory(model_name: str, mode: str, length: int, measures: str) -> None:
    """Print the largest resident set during one pass."""
    model = open_subject(model_name)
    set_mode(model, mode)
    run = make_pass(model, mode, length, measures)
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # pages that loading freed do not count
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is resident now
    run()
    print(resident("VmHWM"))


def resident(field: str) -> float:
    """Megabytes resident now (``VmRSS``) or at the peak (``VmHWM``)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return float(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--lengths", default="512,1024,2048")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measures", default="default")
    parser.add_argument("--memory-of")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    lengths = [int(length) for length in options.lengths.split(",")]
    if options.memory_of:
        report_memory(options.model, options.memory_of, lengths[0], options.measures)
        return
    model = open_subject(options.model)
    rows = []
    for length in lengths:
        seconds = time_modes(model, length, options.rounds, options.measures)
        memory = {} if options.no_memory else {mode: peak_memory(options.model, mode, length, options.measures) for mode in MODES}
        base = statistics.median(seconds["sdpa"])
        for mode in MODES:
            ratios = [one / plain for one, plain in zip(seconds[mode], seconds["sdpa"], strict=True)]
            rows.append(
                {
                    "mode": mode,
                    "length": length,
                    "seconds": round(statistics.median(seconds[mode]), 4),
                    "time_ratio": round(statistics.median(seconds[mode]) / base, 3),
                    "time_ratio_range": [round(min(ratios), 3), round(max(ratios), 3)],
                    "peak_mb": round(memory[mode], 1) if memory else None,
                    "memory_ratio": round(memory[mode] / memory["sdpa"], 3) if memory else None,
                }
            )
            print(rows[-1], flush=True)
    write(options, rows)


def write(options: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Results with the hardware and versions behind them."""
    import torch
    import transformers

    tree = {
        "hardware": {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "threads": torch.get_num_threads(),
        },
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__},
        "model": options.model,
        "measures": options.measures,
        "rows": rows,
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(tree, indent=1) + "\n")


if __name__ == "__main__":
    main()

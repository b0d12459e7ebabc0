"""The README's table of costs, written from ``bench/results/capture-cpu.json`` between its two marks.

python bench/table.py
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "bench" / "results" / "capture-cpu.json"
BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->"
NAMES = {"sdpa": "plain pass", "gnomon": "gnomon, default measures", "eager": "eager with `output_attentions`"}


def table() -> str:
    """Markdown of the newest results."""
    rows = json.loads(RESULT.read_text())["rows"]
    lengths = sorted({row["length"] for row in rows})
    found = {(row["mode"], row["length"]): row for row in rows}
    lines = ["| | " + " | ".join(f"T = {length}" for length in lengths) + " |", "|---|" + "---|" * len(lengths)]
    for mode in dict.fromkeys(row["mode"] for row in rows):
        cells = []
        for length in lengths:
            row = found[mode, length]
            if mode == "sdpa":
                cells.append(f"{row['seconds']:.2f} s, {row['peak_mb']:.0f} MB")
                continue
            low, high = row["time_ratio_range"]
            cells.append(f"{row['time_ratio']:.2f} × [{low:.2f}, {high:.2f}], memory {row['memory_ratio']:.2f} ×")
        lines.append(f"| {NAMES.get(mode, mode)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Put the table into the README."""
    readme = ROOT / "README.md"
    text = readme.read_text()
    head, rest = text.split(BEGIN)
    readme.write_text(head + BEGIN + table() + END + rest.split(END)[1])


if __name__ == "__main__":
    main()

"""Draws the rows behind heads of each kind for ``docs/frames.md``: ``python scripts/frame_pictures.py RUN [RUN ...] --out docs/frames.svg``.

Each RUN is a folder of a survey with ``frames``. For each kind, up to three heads with the highest score over all runs are drawn on one sentence: queries downwards, keys to the right, darker for
more weight. A head is drawn only if its label is that kind; for a kind that no head has, constructed attention is drawn and called so.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import gnomon
from gnomon.capture import capture_pass, open_model
from gnomon.corpus import CorpusSpec, build_corpus
from gnomon.kernels import Needs
from gnomon.measure.kinds import KINDS
from gnomon.measure.patterns import constructed
from gnomon.model import PositionModel

EACH = 3
SIDE = 150
GAP = 18
LEVELS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7)


class Drawn(NamedTuple):
    """One head."""

    run: int
    layer: int
    head: int
    score: float


def chosen(runs: list[gnomon.Survey], kind: str) -> list[Drawn]:
    """The heads of a kind with the highest scores over all runs."""
    found = []
    for index, run in enumerate(runs):
        dataset = run["frames"]
        scores = dataset["score"].transpose("layer", "head", "kind").values
        score = scores[..., KINDS.index(kind)]
        for layer, head in np.argwhere(score == scores.max(-1)):
            found.append(Drawn(index, int(layer), int(head), float(score[layer, head])))
    return sorted(found, key=lambda one: -one.score)[:EACH]


def rows_of(model: PositionModel, heads: list[Drawn], length: int) -> dict[tuple[int, int], np.ndarray]:
    """All rows of chosen heads on one sentence of at most ``length`` tokens."""
    spec = CorpusSpec(kind="sentences", sequences=1, shortest=length - 4, longest=length, seed=3)
    windows = build_corpus(spec, model.tokenizer, encoder=not model.anatomy.causal)
    tokens, lengths = torch.from_numpy(windows.tokens.copy()), torch.from_numpy(windows.lengths.copy())
    size, out = int(lengths[0]), {}

    def look(view) -> None:  # noqa: ANN001
        for one in heads:
            if one.layer == view.layer:
                out[one.layer, one.head] = view.rows(torch.arange(size))[0, one.head, :, :size].numpy()

    capture_pass(model, tokens[:, :size], lengths, None, Needs(), look)
    return out


def panel(rows: np.ndarray, left: float, top: float, caption: str) -> str:
    """One head as paths, one per level of darkness."""
    size = len(rows)
    cell = SIDE / size
    paths = []
    for index, level in enumerate(LEVELS):
        above = LEVELS[index + 1] if index + 1 < len(LEVELS) else np.inf
        cells = "".join(f"M{key} {query}h1v1h-1z" for query, key in np.argwhere((rows >= level) & (rows < above)))
        if cells:
            paths.append(f'<path fill-opacity="{(index + 1) / len(LEVELS):.2f}" d="{cells}"/>')
    return (
        f'<g transform="translate({left:.0f} {top:.0f})"><text y="-5">{caption}</text><rect width="{SIDE}" height="{SIDE}" class="frame"/>'
        f'<g transform="scale({cell:.4f})" class="ink">{"".join(paths)}</g></g>'
    )


def main() -> None:
    """Opens the runs, chooses the heads, draws them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--out", default="docs/frames.svg")
    parser.add_argument("--tokens", type=int, default=28)
    given = parser.parse_args()
    runs = [gnomon.open(path) for path in given.runs]
    names = [run.model_name for run in runs]
    by_kind = {kind: chosen(runs, kind) for kind in KINDS}
    rows = {}
    for index, name in enumerate(names):
        heads = [one for some in by_kind.values() for one in some if one.run == index]
        if heads:
            rows |= {(index, *key): values for key, values in rows_of(open_model(name), heads, given.tokens).items()}
    width, lines, top = 110 + EACH * (SIDE + GAP), [], 34.0
    for kind, heads in by_kind.items():
        lines.append(f'<text x="4" y="{top + SIDE / 2:.0f}" class="kind">{kind}</text>')
        for column, one in enumerate(heads):
            caption = f"{names[one.run]} {one.layer}.{one.head}: {one.score:.2f}"
            lines.append(panel(rows[one.run, one.layer, one.head], 105 + column * (SIDE + GAP), top, caption))
        if not heads:
            drawn = [p for seed in range(EACH) for p in constructed(given.tokens, seed, causal=False) if p.kind == kind]
            lines += [panel(p.rows, 105 + column * (SIDE + GAP), top, "constructed") for column, p in enumerate(drawn[:EACH])]
        top += SIDE + 30
    style = "text{font:11px sans-serif;fill:#333}.kind{font-weight:bold;font-size:13px}.frame{fill:#fff;stroke:#999}.ink{fill:#1b3a6b}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:.0f}" role="img"><title>Rows of heads by kind of frame</title>'
    Path(given.out).write_text(f"{head}<style>{style}</style>{''.join(lines)}</svg>\n", encoding="utf-8")


if __name__ == "__main__":
    main()

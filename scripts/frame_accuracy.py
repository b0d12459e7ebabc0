"""How often the label of a frame is right on attention of known kind: prints the tables of ``docs/frames.md``.

Run as ``python scripts/frame_accuracy.py``; takes about a minute.
"""

from collections import Counter

import numpy as np
import torch

from gnomon.kernels import MaskStructure
from gnomon.measure.anchors import AnchorRule, anchors, far_weight, sampled_queries, visible_rows
from gnomon.measure.kinds import KINDS, KindRule, frame_features, kind_scores
from gnomon.measure.patterns import LENGTHS, constructed

DRAWS = 200
SEQUENCES = 8
FIRST_SEED = 10_000  # thresholds were chosen on seeds below


def scores_at(length: int, *, causal: bool) -> tuple[list[str], np.ndarray]:
    """Kinds of the patterns, and scores ``[draw, pattern, kind]``."""
    draws = [constructed(length, FIRST_SEED + seed, causal=causal) for seed in range(DRAWS)]
    rows = torch.from_numpy(np.stack([pattern.rows for draw in draws for pattern in draw]))[None]
    mask, rule = MaskStructure(causal=causal, lengths=torch.tensor([length])), AnchorRule()
    queries = sampled_queries(mask, length)
    visible = visible_rows(mask, queries, length)
    found = anchors(far_weight(rows[:, :, queries], visible, queries, mask, rule), mask.lengths, rule)
    features = frame_features(found.weight_BHK, mask.lengths, causal=causal)
    scores = kind_scores(features, mask.lengths, KindRule())[0].numpy()
    return [p.kind for p in draws[0]], scores.reshape(DRAWS, -1, len(KINDS))


def main() -> None:
    """Accuracy by length, and the confusion of kinds over all lengths."""
    confusion = {1: Counter(), SEQUENCES: Counter()}
    print("| tokens | mask | one sequence | eight sequences | frames found in frameless attention: one, eight |")
    print("|---|---|---|---|---|")
    for length in LENGTHS:
        for causal in (True, False):
            kinds, scores = scores_at(length, causal=causal)
            truth = np.array([KINDS.index(kind) for kind in kinds])
            cells, false = [], []
            for number in (1, SEQUENCES):
                label = scores.reshape(-1, number, *scores.shape[1:]).mean(1).argmax(-1)
                cells.append(f"{100 * (label == truth).mean():.1f} %")
                none = label[:, truth == 0]
                false.append(f"{(none != 0).sum()} of {none.size}")
                for pattern, kind in enumerate(kinds):
                    for found in label[:, pattern]:
                        confusion[number][kind, KINDS[found]] += 1
            print(f"| {length} | {'causal' if causal else 'both ways'} | {cells[0]} | {cells[1]} | {false[0]}, {false[1]} |")
    for number, counts in confusion.items():
        print(f"\n{number} sequence(s): rows the truth, columns the label\n")
        print("| | " + " | ".join(KINDS) + " |\n|---" + "|---" * len(KINDS) + "|")
        for truth_name in KINDS:
            print(f"| {truth_name} | " + " | ".join(str(counts[truth_name, found]) for found in KINDS) + " |")
        right = sum(counts[kind, kind] for kind in KINDS)
        print(f"\nright: {right} of {sum(counts.values())} ({100 * right / sum(counts.values()):.1f} %)")


if __name__ == "__main__":
    main()

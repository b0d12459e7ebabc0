"""One text under several conditions: what a change does to leakage, to sinks and to the loss.

The same sequences run unchanged and under each change, so that every comparison is paired: sequence by sequence for sinks and
loss, and leave-one-sequence-out for the components of leakage, whose fraction removed ``1 - changed / unchanged`` then has an
interval that knows that both come from the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture import AttentionView, capture_pass
from gnomon.corpus import Windows
from gnomon.intervene import Change
from gnomon.measure.leakage_components import LeakageArrays
from gnomon.measure.leakage_grid import LeakageGrid, leakage_grid
from gnomon.measure.leakage_logits import observe_logits
from gnomon.measure.protocol import Subject
from gnomon.measure.reads import Reads
from gnomon.model import PositionModel
from gnomon.statistics.jackknife import Jackknifed

Arrays = Mapping[str, NDArray[Any]]
Told = Callable[[int], None]
KEPT = ("logit", "log_denominator", "mass", "carried")


@dataclass
class _Seen:
    """What the layers of one batch gave."""

    grid: LeakageGrid
    reads: Reads
    kept: dict[str, list[Tensor]] = field(default_factory=lambda: {name: [] for name in KEPT})

    def on_view(self, view: AttentionView) -> None:
        values = {**observe_logits(view.problem, view.lse, self.grid, counterfactuals=False), **self.reads.observe(view)}
        for name, tensors in self.kept.items():
            tensors.append(values[name].detach().float().cpu())


def observe_under(change: Change, model: PositionModel, windows: Windows, *, batch_size: int, told: Told | None = None) -> Arrays:
    """Run the text under a change.

    Args:
        change: what to change; undone afterwards.
        model: an opened model.
        windows: the text.
        batch_size: sequences per forward pass.
        told: called with the number of sequences done.

    Returns:
        ``logit [sequence, layer, head, query, offset]``, ``log_denominator [sequence, layer, head, query]``, ``mass``
        and ``carried`` ``[sequence, layer, head]``, and ``loss [sequence]`` (NaN for models that do not predict the
        next token).
    """
    reads, grid = Reads(), leakage_grid(windows)
    needs = reads.needs(Subject(anatomy=model.anatomy, scheme=model.scheme, windows=windows))
    predicts = model.has_head and model.anatomy.causal
    whole: dict[str, NDArray[np.float32]] = {}
    done = 0
    with change.applied(model) as applied:
        for chosen in windows.batches(batch_size):
            batch = windows.take(chosen).trimmed()
            tokens, lengths = torch.from_numpy(batch.tokens.copy()), torch.from_numpy(batch.lengths.copy())
            seen = _Seen(grid, reads)
            logits = capture_pass(
                model,
                tokens,
                lengths,
                torch.from_numpy(batch.special.copy()),
                needs,
                seen.on_view,
                edit=applied.edit,
                logits=predicts,
                position_ids=applied.position_ids(tokens),
            )
            values = {name: torch.stack(tensors, 1).numpy() for name, tensors in seen.kept.items()}
            values["loss"] = np.full(len(chosen), np.nan, np.float32) if logits is None else losses(logits, tokens, lengths)
            for name, array in values.items():
                whole.setdefault(name, np.full((len(windows), *array.shape[1:]), np.nan, np.float32))[chosen] = array
            done += len(chosen)
            if told is not None:
                told(done)
    return whole


@torch.no_grad()
def losses(logits: Tensor, tokens: Tensor, lengths: Tensor) -> NDArray[np.float32]:
    """Mean loss of the next token over each sequence, in nats, ``[B]``."""
    out = []
    for row, target, length in zip(logits, tokens.to(logits.device), lengths.tolist(), strict=True):
        if length < 2:
            out.append(float("nan"))
            continue
        out.append(float(torch.nn.functional.cross_entropy(row[: length - 1].float(), target[1:length])))
    return np.asarray(out, dtype=np.float32)


def leakage_arrays(arrays: Arrays) -> LeakageArrays:
    """The part that the components of leakage are computed from, without counterfactuals."""
    missing = np.full_like(arrays["log_denominator"], np.nan)
    return LeakageArrays(arrays["logit"], arrays["log_denominator"], missing, missing)


def removed(changed: Jackknifed, unchanged: Jackknifed) -> Jackknifed | None:
    """Fraction of a component that a change removes, ``None`` where the unchanged component is not above zero with confidence."""
    if not unchanged.interval().low > 0:
        return None
    ratio = changed / unchanged
    return Jackknifed(1 - ratio.value, 1 - ratio.without)

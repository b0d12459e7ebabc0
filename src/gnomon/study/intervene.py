"""Interventions: what replacing the first token's embedding, cutting reads of it, or moving positions does to the sense of position.

Each condition runs on the same text as the unchanged model. For each, by band of query positions: the residual, mask
and total components of leakage and the fraction removed; weight on position 0 and the share of heads above 0.3; the
loss. Every replacement of the embedding stands beside noise of the same norm, and ``mean`` also beside the mean
rescaled to the norm that it replaces; heads whose reads are cut stand beside as many random heads of the same layers.
``beyond_control`` is the fraction removed beyond what the control removes.

A fraction is missing where the unchanged component is not above zero: a share of nothing has no meaning; ``change_*``
has the difference itself, which always exists. It is negative where a change makes the component larger, as a zero
embedding does. Fractions say what follows from this change, not what share position 0 "has": two changes may remove
the same part. Claims A6, A7, A8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from gnomon.corpus import Windows
from gnomon.errors import ConfigError
from gnomon.intervene import (
    Change,
    Head,
    HideFirst,
    NarrowWindow,
    ReplaceFirst,
    RotaryBase,
    ShiftPositions,
    Unchanged,
    largest_heads,
    matched_heads,
)
from gnomon.measure.leakage_grid import BANDS
from gnomon.model import PositionModel
from gnomon.statistics import Estimate
from gnomon.study.conditions import Arrays, observe_under
from gnomon.study.experiment import Context, Experiment
from gnomon.study.intervene_dataset import intervention_dataset

NOISE = "noise"
DEFAULT_REPLACEMENTS = "mean,zero,noise,random"


@dataclass(frozen=True)
class Condition:
    """A change, and the label of the condition that controls for it."""

    change: Change
    control: str | None = None

    @property
    def label(self) -> str:
        """Its name in the dataset."""
        return self.change.label


class Intervention(Experiment):
    """Paired comparison of changes with the unchanged model."""

    name: ClassVar[str] = "intervention"
    title: ClassVar[str] = "Interventions"
    claims: ClassVar[tuple[str, ...]] = ("A6", "A7", "A8")

    def __init__(
        self,
        *,
        bos: str | None = None,
        ablate_sink_reads: str | None = None,
        shift: int | None = None,
        rope_base: float | None = None,
        window: int | None = None,
        seed: int = 0,
    ) -> None:
        """Choose conditions; with none given, replacements of the first embedding.

        Args:
            bos: replacements of the embedding at position 0, joined by commas: ``mean``, ``mean_rescaled``, ``zero``,
                ``noise``, ``random``, ``token:ID``.
            ablate_sink_reads: heads whose reads of position 0 are cut: ``top:K`` by weight, ``carriers:K`` by what
                they carry, or ``3.1,4.5``.
            shift: constant added to position ids.
            rope_base: another base of the rotary frequencies.
            window: another window for every layer.
            seed: of noise, random tokens and control heads.
        """
        others = (ablate_sink_reads, shift, rope_base, window)
        if bos is None and all(option is None for option in others):
            bos = DEFAULT_REPLACEMENTS
        self.seed = seed
        self.conditions = [*replacements(bos or "", seed)]
        moved: list[Change | None] = [
            None if shift is None else ShiftPositions(shift),
            None if rope_base is None else RotaryBase(rope_base),
            None if window is None else NarrowWindow(window),
        ]
        self.conditions += [Condition(change) for change in moved if change is not None]
        self.reads = None if ablate_sink_reads is None else HeadChoice.parse(ablate_sink_reads)

    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """Every condition on the same text."""
        total = len(windows) * (1 + len(self.conditions) + 2 * (self.reads is not None))
        runs: dict[str, Arrays] = {}

        def run_one(change: Change) -> Arrays:
            before = len(runs) * len(windows)
            runs[change.label] = context.stage(
                f"condition-{len(runs):02d}",
                lambda: observe_under(
                    change,
                    model,
                    windows,
                    batch_size=context.batch_size,
                    told=lambda done: context.progress(before + done, total),
                ),
            )
            return runs[change.label]

        for condition in self.conditions:
            with condition.change.applied(model):
                pass
        base = run_one(Unchanged())
        conditions = [*self.conditions, *self._head_conditions(base)]
        for condition in conditions:
            run_one(condition.change)
        controls = {condition.label: condition.control for condition in conditions}
        dataset = intervention_dataset(runs, windows, controls, seed=context.seed)
        heads = {c.label: " ".join(map(str, c.change.heads)) for c in conditions if isinstance(c.change, HideFirst)}
        dataset.attrs.update({f"heads {label}": listed for label, listed in heads.items()})
        return dataset

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Fractions removed under the first condition by band, its effect on the loss, and the same for every condition by label."""
        labels = [str(label) for label in dataset["condition"].values if label != Unchanged().label]
        out: dict[str, Estimate] = {}
        for label in labels:
            numbers = _numbers(dataset.sel(condition=label))
            if label == labels[0]:
                out.update(numbers)
            out.update({f"{label}/{key}": estimate for key, estimate in numbers.items()})
        return out

    def _head_conditions(self, base: Arrays) -> list[Condition]:
        if self.reads is None:
            return []
        shape = base["mass"].shape[1:]
        heads = self.reads.choose(base)
        others = matched_heads(heads, (int(shape[0]), int(shape[1])), self.seed)
        if not others:
            return [Condition(HideFirst(heads, self.reads.text))]
        control = HideFirst(others, f"{self.reads.text} control")
        return [Condition(HideFirst(heads, self.reads.text), control.label), Condition(control)]


@dataclass(frozen=True)
class HeadChoice:
    """Which heads to cut: the ``count`` largest of a quantity, or a list."""

    text: str
    quantity: str | None = None
    count: int = 0
    listed: tuple[Head, ...] = ()

    @classmethod
    def parse(cls, text: str) -> HeadChoice:
        """Reads ``top:K``, ``carriers:K`` or ``layer.head,layer.head``."""
        kind, _, number = text.partition(":")
        if kind in ("top", "carriers") and number.isdecimal() and int(number):
            return cls(text, "mass" if kind == "top" else "carried", int(number))
        pairs = [part.strip().split(".") for part in text.split(",")]
        if all(len(pair) == 2 and pair[0].isdecimal() and pair[1].isdecimal() for pair in pairs):
            return cls(text, listed=tuple(sorted({Head(int(layer), int(head)) for layer, head in pairs})))
        raise ConfigError(
            f"`ablate_sink_reads` must be top:K, carriers:K or heads like 3.1,4.5 (layer.head), got {text!r}; K is at least 1."
        )

    def choose(self, base: Arrays) -> tuple[Head, ...]:
        """The heads, from what the unchanged model showed."""
        if self.quantity is None:
            return self.listed
        values = base[self.quantity]
        finite = np.isfinite(values)
        return largest_heads(np.where(finite, values, 0).sum(0) / np.maximum(finite.sum(0), 1), self.count)


def replacements(text: str, seed: int) -> list[Condition]:
    """The conditions of ``--bos``, with their controls."""
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wanted = list(names)
    if "mean" in wanted and "mean_rescaled" not in wanted:
        wanted.insert(wanted.index("mean") + 1, "mean_rescaled")
    if names and NOISE not in wanted:
        wanted.append(NOISE)
    control = ReplaceFirst(NOISE, seed).label
    return [Condition(ReplaceFirst(name, seed), None if name == NOISE else control) for name in wanted]


def _numbers(at: xr.Dataset) -> dict[str, Estimate]:
    out = {}
    for label in BANDS:
        band = at.sel(query_band=label)
        reason = str(at.attrs.get(f"missing_{label}", ""))
        out[f"removed_{label}"] = _estimate(band, "removed_residual", reason)
        out[f"change_{label}"] = _estimate(band, "change_residual", reason)
    out["loss_change"] = _estimate(at, "loss_change", "the model does not predict the next token")
    out["sink_mass_change"] = _estimate(at, "sink_mass_change", "no sequence is long enough")
    return out


def _estimate(at: xr.Dataset | Mapping[str, xr.DataArray], name: str, reason: str) -> Estimate:
    value, low, high = (float(at[name + suffix]) for suffix in ("", "_low", "_high"))
    number = int(at["num_sequences"])
    return (
        Estimate(value, low, high, number)
        if np.isfinite(value)
        else Estimate.missing(reason or "not above zero unchanged", number)
    )

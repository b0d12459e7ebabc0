"""Runs side by side: every headline number of each, and its difference from the first run's.

Where two runs saw the same sequences (same digest of the text) and both kept their headlines with groups of sequences left out, differences are paired; elsewhere they
come from the two intervals alone, which is said in words. P-values are corrected by Holm over everything that is tested in the table: all quantities of all runs but the
first. A quantity that is missing on one side, or has no interval, has no test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gnomon.errors import ConfigError
from gnomon.result.strict_json import strict
from gnomon.statistics import Estimate, holm
from gnomon.statistics.difference import Difference, paired_difference, unpaired_difference
from gnomon.statistics.jackknife import Jackknifed

if TYPE_CHECKING:
    import pandas as pd

    from gnomon.result.survey import Survey

CONTROL: Final = "__"
"""Measures with this in their name are controls of another measure and are not compared."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One quantity of one run against the first run's.

    Attributes:
        difference: this run's value less the first's.
        p_corrected: by Holm, over all tests of the comparison.
    """

    difference: Difference
    p_corrected: float

    def to_json(self) -> dict[str, Any]:
        """Strict JSON; numbers that are missing are ``None``."""
        fields = {**self.difference._asdict(), "p_corrected": self.p_corrected}
        return {key: value if isinstance(value, bool) or math.isfinite(value) else None for key, value in fields.items()}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One quantity over all runs, ``None`` where a run does not have it."""

    quantity: str
    values: tuple[Estimate | None, ...]
    compared: tuple[Compared | None, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The table.

    Attributes:
        names: of the runs, the first being what the others are compared with.
        pairing: for each run but the first, whether and why its differences are paired, in words.
        rows: one per quantity, in the order of the runs.
        labels: answers that are words: quantity → one per run, empty where a run has none.
        tests: how many p-values were corrected together.
    """

    names: tuple[str, ...]
    pairing: tuple[str, ...]
    rows: tuple[Row, ...]
    labels: dict[str, tuple[str, ...]]
    tests: int

    def to_json(self) -> dict[str, Any]:
        """One tree: ``runs``, ``pairing``, ``tests``, ``labels`` and, per quantity, ``values`` and ``differences`` by run."""
        quantities = {
            row.quantity: {
                "values": {name: value.to_json() for name, value in zip(self.names, row.values, strict=True) if value},
                "differences": {
                    name: one.to_json() for name, one in zip(self.names[1:], row.compared, strict=True) if one is not None
                },
            }
            for row in self.rows
        }
        tree: dict[str, Any] = strict(
            {
                "runs": self.names,
                "pairing": dict(zip(self.names[1:], self.pairing, strict=True)),
                "tests": self.tests,
                "labels": {key: dict(zip(self.names, words, strict=True)) for key, words in self.labels.items()},
                "quantities": quantities,
            }
        )
        return tree

    def to_dataframe(self) -> pd.DataFrame:
        """A row per quantity and run, with the value, its bounds and the difference from the first run."""
        import pandas as pd

        rows = []
        for row in self.rows:
            for name, value, one in zip(self.names, row.values, (None, *row.compared), strict=True):
                found = value or Estimate.missing("not measured")
                change = one.difference if one else Difference(math.nan)
                corrected = one.p_corrected if one else math.nan
                rows.append(
                    (row.quantity, name, found.value, found.low, found.high, found.n, *change[:4], corrected, change.paired)
                )
        columns = ["quantity", "run", "value", "low", "high", "n"]
        columns += ["difference", "difference_low", "difference_high", "p", "p_corrected", "paired"]
        return pd.DataFrame(rows, columns=columns)


def compare_runs(surveys: Sequence[Survey], names: Sequence[str] | None = None, only: Sequence[str] | None = None) -> Comparison:
    """Compare runs with the first of them.

    Args:
        surveys: two or more.
        names: what to call them; the names of their models otherwise.
        only: measures to compare; all of them otherwise.
    """
    if len(surveys) < 2:
        raise ConfigError(f"`runs` must be at least two, got {len(surveys)}; name another run or model to compare with.")
    called = distinct(names or [survey.model_name for survey in surveys])
    quantities = _quantities(surveys, only)
    first, others = surveys[0], surveys[1:]
    pairing = tuple(why_unpaired(first, other) for other in others)
    found = [
        [_difference(first, other, measure, key, not why) for other, why in zip(others, pairing, strict=True)]
        for measure, key in quantities
    ]
    p = np.array([[math.nan if one is None else one.p for one in row] for row in found], dtype=np.float64)
    corrected = holm(p)
    rows = tuple(
        Row(
            quantity=f"{measure}/{key}",
            values=tuple(survey.headline.get(measure, {}).get(key) for survey in surveys),
            compared=tuple(
                None if one is None else Compared(difference=one, p_corrected=float(value))
                for one, value in zip(row, values, strict=True)
            ),
        )
        for (measure, key), row, values in zip(quantities, found, corrected, strict=True)
    )
    words = tuple("paired: the same sequences" if not why else f"unpaired: {why}" for why in pairing)
    return Comparison(names=called, pairing=words, rows=rows, labels=_labels(surveys, only), tests=int(np.isfinite(p).sum()))


def why_unpaired(first: Survey, other: Survey) -> str:
    """Why two runs cannot be compared sequence by sequence; empty when they can."""
    digests = [str(_mapping(survey.info, "corpus").get("digest", "")) for survey in (first, other)]
    if not digests[0] or digests[0] != digests[1]:
        return "the runs saw different sequences"
    groups = [_mapping(survey.info, "replicates").get("groups") for survey in (first, other)]
    if not all(groups):
        return "a run kept no replicates; survey with --replicates to have them"
    if groups[0] != groups[1]:
        return "the runs grouped their sequences differently"
    return ""


def replicated(survey: Survey, measure: str, key: str) -> Jackknifed | None:
    """A headline number with its leave-one-group-out values; ``None`` where they were not kept or some are missing."""
    value = survey.headline.get(measure, {}).get(key)
    kept = _mapping(_mapping(_mapping(survey.info, "replicates"), "values"), measure).get(key)
    if value is None or value.is_missing or not kept or any(number is None for number in kept):
        return None
    return Jackknifed(np.asarray(value.value, dtype=np.float64), np.asarray(kept, dtype=np.float64))


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, numbered where several are the same."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if list(names).count(name) == 1 else f"{name} ({seen[name]})")
    return tuple(out)


def _difference(first: Survey, other: Survey, measure: str, key: str, paired: bool) -> Difference | None:
    one, two = (survey.headline.get(measure, {}).get(key) for survey in (first, other))
    if one is None or two is None or one.is_missing or two.is_missing:
        return None
    if paired:
        before, after = (replicated(survey, measure, key) for survey in (first, other))
        if before is not None and after is not None:
            return paired_difference(before, after)
    return unpaired_difference(one, two)


def _quantities(surveys: Sequence[Survey], only: Sequence[str] | None) -> list[tuple[str, str]]:
    pairs = [
        (measure, key)
        for survey in surveys
        for measure, numbers in survey.headline.items()
        if CONTROL not in measure
        for key in numbers
    ]
    known = list(dict.fromkeys(measure for measure, _ in pairs))
    unknown = [name for name in only or [] if name not in known]
    if unknown:
        raise ConfigError(f"`measure` must be one of {', '.join(known) or 'none'} in these runs, got {', '.join(unknown)}.")
    ordered = sorted(dict.fromkeys(pairs), key=lambda pair: known.index(pair[0]))
    return [pair for pair in ordered if not only or pair[0] in only]


def _labels(surveys: Sequence[Survey], only: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    keys = dict.fromkeys(
        (measure, key)
        for survey in surveys
        for measure, labels in survey.labels.items()
        if CONTROL not in measure and (not only or measure in only)
        for key in labels
    )
    return {f"{m}/{k}": tuple(survey.labels.get(m, {}).get(k, "") for survey in surveys) for m, k in keys}


def _mapping(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tree.get(key)
    return found if isinstance(found, Mapping) else {}

"""What the ledger reads: runs, put together by the model that they are of.

A **subject** is one model at one point of its training: all runs whose weights have the same hash, so that a run on windows, one on passages and one on
sentences of the same model answer together. Subjects of one name that differ in their step are a **training**; claims about one model are judged
on its last step. Nothing here, or anywhere in the ledger, computes with a model: it reads headline numbers, labels, datasets and
the record of each run, and every reading leaves its source behind (:class:`Reader`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gnomon.result import Survey
from gnomon.statistics import Estimate
from gnomon.study.checkpoints import revision_step
from gnomon.study.checkpoints import step_of as last_step

if TYPE_CHECKING:
    import xarray as xr

WINDOWS: Final = ("windows",)
NATURAL: Final = ("passages", "sentences")
CONTROL: Final = "__untrained"
SUMMARIES: Final = frozenset({"evolution"})
_AT: Final = re.compile(r"@(\d+)$")
_LAST: Final = re.compile(r"[/\\][^/\\]*$")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One model, or one checkpoint, with all runs of it.

    Attributes:
        name: of the model, without its step.
        label: for people: the name, with the step where it is one of several.
        step: training step, ``None`` where the record names none.
        surveys: its runs.
    """

    name: str
    label: str
    step: float | None
    surveys: tuple[Survey, ...]

    @property
    def causal(self) -> bool | None:
        """Whether queries see no later key; ``None`` when the record does not say."""
        found = self.fact("anatomy", "causal")
        return None if found is None else bool(found)

    @property
    def scheme(self) -> str:
        """Kind of positional scheme, or an empty string."""
        return str(self.fact("scheme", "kind") or "")

    @property
    def rotates(self) -> bool | None:
        """Whether any layer rotates queries and keys."""
        layers = self.fact("scheme", "rope_layers")
        return None if layers is None and not self.scheme else self.scheme == "rope" and (layers is None or any(layers))

    @property
    def predicts(self) -> bool | None:
        """Whether the model has a language-model head; ``None`` when the record does not say."""
        anatomy = self._tree("anatomy")
        return None if "head" not in anatomy else anatomy["head"] is not None and anatomy.get("kind") != "encoder-decoder"

    @property
    def size(self) -> float:
        """Number of weights, NaN when the record does not say."""
        found = self.fact("anatomy", "num_parameters")
        return float(found) if isinstance(found, int | float) else math.nan

    def fact(self, group: str, key: str) -> Any:
        """A fact of the record."""
        return self._tree(group).get(key)

    def corpus(self, survey: Survey) -> str:
        """Kind of text of a run: ``windows``, ``passages``, ``sentences``, ..., or an empty string."""
        return corpus_kind(survey)

    def holding(self, measure: str, kinds: Sequence[str] = ()) -> Survey | None:
        """The run to read a measure from: of the kinds of text asked for where there is one, and of most sequences."""
        found = [survey for survey in self.surveys if measure in survey.headline or measure in survey]
        fitting = [survey for survey in found if corpus_kind(survey) in kinds] or found
        return max(fitting, key=_sequences, default=None)

    def _tree(self, group: str) -> Mapping[str, Any]:
        for survey in self.surveys:
            tree = survey.info.get(group)
            if isinstance(tree, Mapping):
                return tree
        return {}


@dataclass(frozen=True)
class Evidence:
    """Every subject of the runs at hand."""

    subjects: tuple[Subject, ...]

    @classmethod
    def of(cls, surveys: Survey | Iterable[Survey]) -> Evidence:
        """Runs put together by name and weights, in the order in which models appear; summaries of sweeps are left out."""
        listed: list[Survey] = [surveys] if isinstance(surveys, Survey) else list(surveys)
        groups: dict[tuple[str, str], list[Survey]] = {}
        for survey in listed:
            if not SUMMARIES.issuperset(survey.headline) or not survey.headline:
                groups.setdefault(_identity(survey), []).append(survey)
        return cls(tuple(_subject(group) for group in groups.values()))

    @property
    def models(self) -> tuple[Subject, ...]:
        """One subject per model: of a training, the last step."""
        last: dict[str, Subject] = {}
        for index, subject in enumerate(self.subjects):
            key = subject.name if subject.step is not None else f"\0{index}"
            if key not in last or (subject.step or 0) > (last[key].step or 0):
                last[key] = subject
        return tuple(last.values())

    @property
    def trainings(self) -> tuple[tuple[Subject, ...], ...]:
        """Subjects of one name at two steps or more, by step."""
        groups: dict[str, list[Subject]] = {}
        for subject in self.subjects:
            if subject.step is not None:
                groups.setdefault(subject.name, []).append(subject)
        return tuple(
            tuple(sorted(group, key=lambda subject: subject.step or 0.0))
            for group in groups.values()
            if len({subject.step for subject in group}) > 1
        )


@dataclass
class Reader:
    """Reads a subject and remembers where.

    Attributes:
        subject: whom to read.
        sources: every place read so far.
    """

    subject: Subject
    sources: list[str] = field(default_factory=list)

    def number(self, measure: str, key: str, kinds: Sequence[str] = ()) -> Estimate:
        """A headline number; missing, with the reason, where it was not measured."""
        survey = self.subject.holding(measure, kinds)
        if survey is None:
            return Estimate.missing(needs(measure))
        found = survey.headline.get(measure, {}).get(key)
        self._note(survey, f"{measure}/headline/{key}")
        return found if found is not None else Estimate.missing(f"the run of {measure} has no {key}")

    def label(self, measure: str, key: str, kinds: Sequence[str] = ()) -> str | None:
        """An answer that is a word."""
        survey = self.subject.holding(measure, kinds)
        if survey is None:
            return None
        self._note(survey, f"{measure}/labels/{key}")
        return survey.labels.get(measure, {}).get(key)

    def dataset(self, measure: str, kinds: Sequence[str] = ()) -> xr.Dataset | None:
        """The dataset of a measure; note what is read from it with :meth:`note`."""
        survey = self.subject.holding(measure, kinds)
        return survey[measure] if survey is not None and measure in survey else None

    def variable(
        self, measure: str, name: str, kinds: Sequence[str] = (), *, n: int | None = None, reason: str = "", **at: Any
    ) -> Estimate:
        """One cell of a dataset variable with its bounds."""
        dataset = self.dataset(measure, kinds)
        if dataset is None:
            return Estimate.missing(needs(measure))
        self.note(measure, name, kinds, **at)
        where = {dim: label for dim, label in at.items() if dim in dataset.coords}
        if name not in dataset or any(label not in dataset[dim].values.tolist() for dim, label in where.items()):
            return Estimate.missing(reason or f"the run of {measure} has no {name}")
        if set(map(str, dataset[name].dims)) - set(where):
            return Estimate.missing(f"{measure} has {name} by {', '.join(map(str, dataset[name].dims))}")
        value, low, high = (
            float(dataset[name + end].sel(where)) if name + end in dataset else math.nan for end in ("", "_low", "_high")
        )
        count = n if n is not None else _count(dataset, where)
        return Estimate(value, low, high, count) if math.isfinite(value) else Estimate.missing(reason or "no value here", count)

    def note(self, measure: str, name: str, kinds: Sequence[str] = (), **at: Any) -> None:
        """Remember that a dataset variable was read."""
        survey = self.subject.holding(measure, kinds)
        if survey is not None:
            place = ",".join(f"{dim}={label}" for dim, label in at.items())
            self._note(survey, f"{measure}/dataset/{name}" + (f"[{place}]" if place else ""))

    def fact(self, group: str, key: str) -> Any:
        """A fact of the record."""
        self._note(self.subject.surveys[0], f"record/{group}/{key}")
        return self.subject.fact(group, key)

    def has(self, *measures: str) -> bool:
        """Whether all of these were measured."""
        return all(self.subject.holding(measure) is not None for measure in measures)

    def absent(self, *measures: str) -> list[str]:
        """Those of the measures that were not made."""
        return [measure for measure in measures if self.subject.holding(measure) is None]

    def text(self, measure: str, kinds: Sequence[str] = ()) -> str:
        """Kind of text that a measure was made on."""
        survey = self.subject.holding(measure, kinds)
        return "" if survey is None else corpus_kind(survey)

    def _note(self, survey: Survey, place: str) -> None:
        source = f"{survey.path if survey.path is not None else survey.model_name}#{place}"
        if source not in self.sources:
            self.sources.append(source)


def needs(*measures: str) -> str:
    """What to say of what was not measured."""
    return f"not measured: needs {', '.join(measures)}"


def corpus_kind(survey: Survey) -> str:
    """Kind of text of a run, from the arguments or from what its corpus calls itself."""
    for tree in (survey.info.get("arguments"), survey.info):
        corpus = tree.get("corpus") if isinstance(tree, Mapping) else None
        if isinstance(corpus, Mapping) and corpus.get("kind"):
            return str(corpus["kind"])
    corpus = survey.info.get("corpus")
    source = str(corpus.get("source", "")) if isinstance(corpus, Mapping) else ""
    ends = {"crops": "windows", "passages": "passages", "sentences": "sentences", "shuffled": "shuffled"}
    return next((kind for end, kind in ends.items() if source.endswith(end)), "")


def step_of(info: Mapping[str, Any]) -> float | None:
    """The training step of a run: as recorded, or as a revision or name tells it, such as ``step1000`` or ``zoo:rope@1000``."""
    model = info.get("model")
    model = model if isinstance(model, Mapping) else {}
    for tree in (info.get("checkpoint"), info, model, model.get("card")):
        if isinstance(tree, Mapping) and isinstance(tree.get("step"), int | float):
            return float(tree["step"])
    name, revision = str(model.get("name") or ""), str(model.get("revision") or "")
    told = (float(found[1]) if (found := _AT.search(name)) else revision_step(name, revision), last_step(name))
    return next((step for step in told if math.isfinite(step)), None)


def _identity(survey: Survey) -> tuple[str, str]:
    model = survey.info.get("model")
    tree = model if isinstance(model, Mapping) else {}
    weights = tree.get("weights") or tree.get("weight_hash") or tree.get("revision") or ""
    return _family(survey), f"{weights} {step_of(survey.info)}"


def _family(survey: Survey) -> str:
    """Name of the model without its step."""
    checkpoint = survey.info.get("checkpoint")
    if isinstance(checkpoint, Mapping) and checkpoint.get("family"):
        return str(checkpoint["family"])
    name = survey.model_name
    return (_LAST.sub("", _AT.sub("", name)) if math.isfinite(last_step(name)) else _AT.sub("", name)).rstrip("-_/ ") or name


def _subject(surveys: Sequence[Survey]) -> Subject:
    first = surveys[0]
    model = first.info.get("model")
    told = bool(first.info.get("checkpoint")) or (isinstance(model, Mapping) and bool(model.get("revision")))
    name, step = _family(first), step_of(first.info)
    label = f"{name}, step {step:g}" if step is not None and (told or first.model_name != name) else first.model_name
    return Subject(name=name, label=label, step=step, surveys=tuple(surveys))


def _sequences(survey: Survey) -> int:
    corpus = survey.info.get("corpus")
    count = corpus.get("sequences") if isinstance(corpus, Mapping) else None
    return int(count) if isinstance(count, int) else 0


def _count(dataset: xr.Dataset, where: Mapping[str, Any]) -> int:
    """Sequences behind a dataset, or behind one of its cells, as it states them."""
    for name in ("num_sequences", "sequences", "sequences_answered"):
        if name in dataset:
            at = {dim: label for dim, label in where.items() if dim in dataset[name].dims}
            return int(dataset[name].sel(at))
        if name in dataset.attrs:
            return int(dataset.attrs[name])
    return 0

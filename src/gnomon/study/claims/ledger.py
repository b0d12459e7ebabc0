"""The ledger: every claim of the four papers, and how runs are judged by it.

Claims about one model are judged on every model at hand (of a training, on its last checkpoint); claims about schemes and sizes on all models together;
claims about training on each training. A claim that speaks of several gets ``not applicable`` from one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from gnomon.errors import ConfigError
from gnomon.statistics import Estimate
from gnomon.study.claims import position, reference, schemes, waves, words
from gnomon.study.claims.claim import Answer, Claim, not_applicable, undecided
from gnomon.study.claims.evidence import Evidence, Reader, Subject, needs
from gnomon.study.claims.verdict import INCONCLUSIVE, Verdict

if TYPE_CHECKING:
    from gnomon.result import Survey

Read = TypeVar("Read")
ORDER: Final = "ABCPD"
LEDGER: Final[tuple[Claim, ...]] = tuple(
    sorted(
        (*position.CLAIMS, *reference.CLAIMS, *schemes.CLAIMS, *waves.CLAIMS, *words.CLAIMS),
        key=lambda claim: (ORDER.index(claim.id[0]), int(claim.id[1:])),
    )
)
IDS: Final = tuple(claim.id for claim in LEDGER)


def choose_claims(only: str | Iterable[str] | None = None) -> tuple[Claim, ...]:
    """Claims by id (``A1,B2``), by paper (``A``), or all, in the order of the ledger."""
    asked = only.split(",") if isinstance(only, str) else list(only or ())
    wanted: set[str] = set()
    for text in (one.strip().upper() for one in asked):
        found = {known for known in IDS if text and (known == text or known[0] == text)}
        if not found and text:
            raise ConfigError(f"`only` must name claims among {', '.join(IDS)} or papers among {', '.join(ORDER)}, got {text!r}.")
        wanted |= found
    return tuple(claim for claim in LEDGER if not wanted or claim.id in wanted)


def judge(surveys: Survey | Iterable[Survey], claims: Sequence[Claim] = LEDGER) -> list[Verdict]:
    """Verdicts of claims on runs, in the order of the ledger, then of the models.

    Args:
        surveys: runs of one model or of several; runs of the same weights are read together.
        claims: which; all when not given.

    Nothing is computed with a model; a verdict rests on the runs alone, and whatever they lack makes it ``inconclusive``.
    """
    evidence = Evidence.of(surveys)
    return [verdict for claim in claims for verdict in _judge(claim, evidence)]


def _judge(claim: Claim, evidence: Evidence) -> list[Verdict]:
    models, trainings = evidence.models, evidence.trainings
    out = []
    if claim.judge is not None:
        for subject in models:
            read = Reader(subject)
            out.append(_verdict(claim, _answer(claim.judge, read), subject.label, [read]))
    if claim.judge_models is not None and len(models) > 1:
        readers = [Reader(subject) for subject in models]
        out.append(_verdict(claim, _answer(claim.judge_models, readers), _together(models), readers))
    if claim.judge_training is not None:
        for steps in trainings:
            readers = [Reader(subject) for subject in steps]
            out.append(
                _verdict(claim, _answer(claim.judge_training, readers), f"{steps[0].name}, {len(steps)} checkpoints", readers)
            )
    if not models:
        out.append(_verdict(claim, undecided("no run to read"), "nothing", []))
    elif not out:
        several = "several models" if claim.judge_models is not None else "several checkpoints of one training"
        out.append(_verdict(claim, not_applicable(f"needs {several}"), _together(models), []))
    return out


def _answer(judge_one: Callable[[Read], Answer], read: Read) -> Answer:
    """What a judge says; a run whose datasets lack what this version reads says nothing."""
    try:
        return judge_one(read)
    except KeyError as absent:
        what = str(absent.args[0] if absent.args else absent).split(". ")[0].split("\n")[0]
        return undecided(f"the run is of another version of gnomon ({what}); make it again")


def _verdict(claim: Claim, answer: Answer, model: str, readers: Sequence[Reader]) -> Verdict:
    effect = answer.effect if answer.effect is not None else Estimate.missing("")
    unmeasured = _unmeasured(claim, readers) if answer.finding.verdict == INCONCLUSIVE and effect.is_missing else ""
    why = unmeasured or answer.finding.why
    null = answer.null.value if isinstance(answer.null, Estimate) else answer.null
    return Verdict(
        id=claim.id,
        paper=claim.paper,
        statement=claim.statement,
        model=model,
        verdict=answer.finding.verdict,
        effect=effect.value,
        low=effect.low,
        high=effect.high,
        quantity=answer.quantity,
        null=None if effect.is_missing else null,
        null_is=answer.null_is or claim.null,
        n=effect.n,
        published=answer.published or claim.published,
        rule=claim.rule,
        why=why,
        differs="; ".join(part for part in (answer.differs, claim.differs) if part),
        sources=tuple(dict.fromkeys(source for read in readers for source in read.sources)),
    )


def _unmeasured(claim: Claim, readers: Sequence[Reader]) -> str:
    """What was not measured, if that is why."""
    absent = list(dict.fromkeys(measure for read in readers for measure in read.absent(*claim.measures)))
    return needs(*absent) if absent else ""


def _together(subjects: Sequence[Subject]) -> str:
    return ", ".join(subject.label for subject in subjects) or "nothing"

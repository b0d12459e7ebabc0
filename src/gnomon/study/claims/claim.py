"""What a claim is: words for people, and one or more functions that judge it.

Three kinds of judge, of which a claim has at least one: of one **model**; of several models side by side (claims about schemes or sizes); of one
**training** (its checkpoints in order). A judge gets readers, never surveys or models, and returns an :class:`Answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gnomon.statistics import Estimate
from gnomon.study.claims.evidence import Reader
from gnomon.study.claims.rules import Finding
from gnomon.study.claims.verdict import INCONCLUSIVE, NOT_APPLICABLE

PAPERS: Final = {
    "A": "arXiv 2606.06160",
    "B": "arXiv 2508.02546",
    "C": "arXiv 2410.18067v4",
    "P": "arXiv 2410.18067v1",
    "D": "arXiv 2303.08288",
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a judge found.

    Attributes:
        finding: the word and why.
        effect: the number that decides, with its interval.
        quantity: what it is.
        null: what it was compared with.
        null_is: what that is, if it is more special than the claim says.
        published: the published figure, if it is more special than the claim says.
        differs: a reason to differ that holds for this run.
    """

    finding: Finding
    effect: Estimate | None = None
    quantity: str = ""
    null: float | Estimate | None = None
    null_is: str = ""
    published: str = ""
    differs: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published claim.

    Attributes:
        id: ``A1`` to ``D2``.
        statement: the claim in a sentence.
        rule: when it is supported, not supported and not applicable.
        null: what its effect is compared with.
        measures: what must have been measured.
        kinds: kinds of text that it is judged on; others do when there is none, unless ``strict``.
        strict: whether other kinds of text make it inconclusive.
        published: what the paper printed.
        differs: why our figures may differ.
        judge: of one model.
        judge_models: of several models.
        judge_training: of the checkpoints of one training.
    """

    id: str
    statement: str
    rule: str
    null: str
    measures: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    strict: bool = False
    published: str
    differs: str
    judge: Callable[[Reader], Answer] | None = None
    judge_models: Callable[[Sequence[Reader]], Answer] | None = None
    judge_training: Callable[[Sequence[Reader]], Answer] | None = None

    @property
    def paper(self) -> str:
        """The publication."""
        return PAPERS[self.id[0]]


def not_applicable(why: str, **parts: object) -> Answer:
    """The claim does not speak of this."""
    return Answer(finding=Finding(NOT_APPLICABLE, why), **parts)  # type: ignore[arg-type]


def undecided(why: str, **parts: object) -> Answer:
    """The claim speaks of this, and what is at hand does not tell."""
    return Answer(finding=Finding(INCONCLUSIVE, why), **parts)  # type: ignore[arg-type]

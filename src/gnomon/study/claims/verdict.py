"""What comes of a claim: one of four words, and everything needed to check why.

A verdict is ``supported``, ``not supported``, ``inconclusive`` or ``not applicable``. Beside it stand the effect with its interval, the null that it was
compared with, the number of sequences, the rule in words, what was published, why ours may differ from that, and every place
that was read: ``RUN#measure/headline/KEY``, ``RUN#measure/dataset/VARIABLE[...]``, ``RUN#measure/labels/KEY`` or ``RUN#record/...``.
Missing numbers are ``None``; nothing that is not finite is ever stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

SUPPORTED: Final = "supported"
NOT_SUPPORTED: Final = "not supported"
INCONCLUSIVE: Final = "inconclusive"
NOT_APPLICABLE: Final = "not applicable"
VERDICTS: Final = (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE, NOT_APPLICABLE)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One claim judged on one model, on several, or on one training.

    Attributes:
        id: of the claim, ``A1`` to ``D2``.
        paper: the publication.
        statement: the claim.
        model: whom it was judged on.
        verdict: one of ``VERDICTS``.
        effect: the number that decides.
        low: lower bound of its 95 % interval, ``None`` where it has none (identities, words).
        high: upper bound.
        quantity: what the effect is, with its unit.
        null: the value that the effect was compared with.
        null_is: what the null is.
        n: sequences (texts, contexts, sentences, models or checkpoints) behind the effect.
        published: what the paper printed.
        rule: how the verdict follows.
        why: how it followed here, with numbers.
        differs: why our number may differ from the published one.
        sources: every place that was read.
    """

    id: str
    paper: str
    statement: str
    model: str
    verdict: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    quantity: str = ""
    null: float | None = None
    null_is: str = ""
    n: int = 0
    published: str = ""
    rule: str
    why: str
    differs: str = ""
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"`verdict` must be one of {', '.join(VERDICTS)}, got {self.verdict!r}.")
        for name in ("effect", "low", "high", "null"):
            object.__setattr__(self, name, finite(getattr(self, name)))

    def to_json(self) -> dict[str, Any]:
        """Strict JSON: every field, in this order."""
        tree = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**tree, "n": int(self.n), "sources": list(self.sources)}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Verdict:
        """The inverse of :meth:`to_json`; keys that a later version added are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{**{key: value for key, value in tree.items() if key in known}, "sources": tuple(tree.get("sources", ()))})


def finite(number: float | None) -> float | None:
    """The number as a float, or ``None`` where it is not finite."""
    return None if number is None or not math.isfinite(number) else float(number)

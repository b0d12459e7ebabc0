"""Writes the claims of the ledger, with their rules, nulls and published figures, below the mark in a page.

Usage: python scripts/claims_reference.py docs/claims.md
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

from gnomon.report.terminal.claims import SUBJECTS
from gnomon.study.claims import LEDGER, Claim

MARK = "<!-- made from the ledger by scripts/claims_reference.py -->"


def described(claim: Claim) -> str:
    """One claim as a section."""
    rows = {
        "rule": claim.rule,
        "null": claim.null,
        "measures": ", ".join(f"`{measure}`" for measure in claim.measures),
        "text": ", ".join(claim.kinds) + (", nothing else" if claim.strict else "") if claim.kinds else "any",
        "published": claim.published,
        "may differ because": claim.differs,
    }
    lines = "\n".join(f"- **{label}:** {text}" for label, text in rows.items())
    return f"### {claim.id}. {claim.statement}\n\n{lines}"


def reference() -> str:
    """All claims, by paper."""
    parts = []
    for letter, group in groupby(LEDGER, key=lambda claim: claim.id[0]):
        listed = list(group)
        parts.append(f"## {letter}: {SUBJECTS[letter]} ({listed[0].paper})")
        parts += [described(claim) for claim in listed]
    return "\n\n".join(parts)


def page(text: str) -> str:
    """The page with everything below the mark made anew."""
    return f"{text.partition(MARK)[0]}{MARK}\n\n{reference()}\n"


def main() -> None:
    """Rewrites the page named on the command line."""
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

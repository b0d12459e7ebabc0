"""Verdicts on published claims: the word, the number that decides, and, folded away, how it was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from gnomon.report.html.sentences import plain
from gnomon.report.html.text import visible
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    from gnomon.result import Survey

FOLDED: Final = {"rule": "Rule", "why": "Here", "differs": "Why it may differ", "paper": "Paper"}
Rows = Sequence[Mapping[str, Any]]


def claims_tree(claims: Rows | None, survey: Survey) -> dict[str, Any] | None:
    """The verdicts that were given, or those that the run's record holds; ``None`` without any."""
    listed = claims if claims is not None else survey.info.get("claims")
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        return None
    rows = [_claim(row) for row in listed]
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    return {"sentence": f"Of {len(rows)} published claims judged on this text: {told}.", "rows": rows}


def _claim(row: Mapping[str, Any]) -> dict[str, Any]:
    effect, null = (_number(row, key) for key in ("effect", "null"))
    number = Estimate(effect, _number(row, "low"), _number(row, "high"))
    said = ""
    if not number.is_missing:
        quantity = visible(row.get("quantity") or "effect")
        against = f", against {visible(row.get('null_is') or 'the null')} {null:.3g}" if null == null else ""
        said = f"{quantity}: {plain(number)}{against}" + (f", n = {row['n']}" if row.get("n") else "")
    return {
        "id": visible(row.get("id", "")),
        "model": visible(row.get("model", "")),
        "verdict": visible(row.get("verdict", "unknown")),
        "statement": visible(row.get("statement", "")),
        "effect": said,
        "published": visible(row["published"]) if row.get("published") else "",
        "more": [(title, visible(row[key])) for key, title in FOLDED.items() if row.get(key)],
        "sources": [visible(place) for place in row.get("sources") or ()],
    }


def _number(row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    return float(value) if isinstance(value, int | float) else float("nan")

"""Paragraphs and sentences of a document, with the place of each.

Paragraphs are separated by empty lines. Sentences end at a full stop, question or exclamation mark that is followed by white
space and what can begin a sentence, unless the stop belongs to a title, an initial or a common abbreviation; Chinese and
Japanese stops end a sentence without white space. A rule of this size errs now and then, which moves a boundary and loses no
text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

ABBREVIATIONS: Final = frozenset(
    (
        *(
            "mr",
            "mrs",
            "ms",
            "dr",
            "st",
            "messrs",
            "mme",
            "prof",
            "rev",
            "hon",
            "esq",
            "gen",
            "col",
            "capt",
            "lieut",
            "sergt",
            "jr",
            "sr",
        ),
        *("no", "vol", "fig", "figs", "eq", "eqs", "ch", "sec", "vs", "etc", "e.g", "i.e", "cf", "al", "viz", "approx"),
        *("jan", "feb", "mar", "apr", "jun", "jul", "aug", "sept", "sep", "oct", "nov", "dec", "u.s", "u.k", "p.m", "a.m"),
    )
)
_STOP = re.compile(r"[.!?]+[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_a-z])|[。！？]+[」』”’）]*")
_BREAK = re.compile(r"\n[ \t]*\n\s*")


class Segment(NamedTuple):
    """A piece of a document and the character at which it begins."""

    start: int
    text: str


def paragraphs(text: str) -> list[Segment]:
    """The paragraphs of a document; white space at their ends is not part of them."""
    return _cut(text, 0, [match.end() for match in _BREAK.finditer(text)])


def sentences(paragraph: Segment) -> list[Segment]:
    """The sentences of a paragraph."""
    ends = [match.end() for match in _STOP.finditer(paragraph.text) if not _abbreviates(paragraph.text, match)]
    return _cut(paragraph.text, paragraph.start, ends)


def _cut(text: str, origin: int, ends: list[int]) -> list[Segment]:
    found = []
    for begin, end in zip([0, *ends], [*ends, len(text)], strict=True):
        piece = text[begin:end]
        if stripped := piece.strip():
            found.append(Segment(origin + begin + len(piece) - len(piece.lstrip()), stripped))
    return found


def _abbreviates(text: str, match: re.Match[str]) -> bool:
    if not match.group().startswith(".") or match.group().startswith(".."):
        return False
    before = text[max(0, match.start() - 12) : match.start()].split()
    word = before[-1].lstrip("\"'“‘([") if before else ""
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")

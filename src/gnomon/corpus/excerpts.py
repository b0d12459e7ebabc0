"""Windows of natural lengths: whole paragraphs or runs of sentences, and single sentences.

The published tables of spectra and of sinks were made from such texts: passages of 16 to 200 tokens, sentences of 6 to 50. Each
is a piece that makes sense by itself and starts where a sentence starts, so position 0 is *not* stationary here: use crops
(:mod:`gnomon.corpus.crops`) where a trend over positions is to be read as the model's own.

A paragraph within the bounds is taken whole. A longer one is divided into runs of sentences whose target lengths are drawn
uniformly between the bounds; shorter ones are joined with those that follow. Lengths are of the whole window, special tokens
included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from gnomon.corpus.assembly import Run, assemble, check_at_least, encode
from gnomon.corpus.crops import characters_per_token
from gnomon.corpus.first_token import BosPolicy, decide_first_token
from gnomon.corpus.segments import Segment, paragraphs, sentences
from gnomon.corpus.sources import Source
from gnomon.corpus.windows import Windows
from gnomon.errors import ConfigError, CorpusError

PASSAGE_BOUNDS: Final = (16, 200)
SENTENCE_BOUNDS: Final = (6, 50)

Divide = Callable[[str, float, float], Iterator[Segment]]


class Candidate(NamedTuple):
    """A piece of a document that may become a window."""

    document: int
    start: int
    text: str


def passages(
    source: Source,
    tokenizer: Any,
    *,
    count: int = 72,
    shortest: int = PASSAGE_BOUNDS[0],
    longest: int = PASSAGE_BOUNDS[1],
    bos: BosPolicy = "auto",
    seed: int = 0,
    encoder: bool = False,
) -> Windows:
    """Whole paragraphs or runs of sentences of ``shortest`` to ``longest`` tokens, each used once.

    Raises:
        CorpusError: fewer than ``count`` such passages.
    """
    generator = np.random.default_rng([seed, 1])

    def divide(text: str, least: float, most: float) -> Iterator[Segment]:
        return _passages_of(text, least, most, generator)

    return _excerpts(source, tokenizer, divide, "passages", count, (shortest, longest), bos, seed, encoder)


def sentence_windows(
    source: Source,
    tokenizer: Any,
    *,
    count: int = 500,
    shortest: int = SENTENCE_BOUNDS[0],
    longest: int = SENTENCE_BOUNDS[1],
    bos: BosPolicy = "auto",
    seed: int = 0,
    encoder: bool = False,
) -> Windows:
    """Single sentences of ``shortest`` to ``longest`` tokens, each used once.

    Raises:
        CorpusError: fewer than ``count`` such sentences.
    """
    return _excerpts(source, tokenizer, _sentences_of, "sentences", count, (shortest, longest), bos, seed, encoder)


def _excerpts(
    source: Source,
    tokenizer: Any,
    divide: Divide,
    kind: str,
    count: int,
    bounds: tuple[int, int],
    bos: BosPolicy,
    seed: int,
    encoder: bool,
) -> Windows:
    shortest, longest = bounds
    check_at_least("count", count, 1)
    check_at_least("shortest", shortest, 2)
    if longest < shortest:
        raise ConfigError(f"`longest` must be at least `shortest` {shortest}, got {longest}; give a larger one.")
    first_token = decide_first_token(tokenizer, bos, encoder=encoder)
    least, most = max(1, shortest - first_token.added), longest - first_token.added
    if most < 1:
        raise ConfigError(
            f"`longest` must leave room for text beside {first_token.added} special tokens, got {longest}; give a larger one."
        )
    rate = characters_per_token(source, tokenizer)
    candidates = [
        Candidate(index, segment.start, segment.text)
        for index, document in enumerate(source.documents)
        for segment in divide(document.text, least * rate, most * rate)
    ]
    runs = _accept(candidates, tokenizer, count, (least, most), np.random.default_rng([seed, 2]))
    if len(runs) < count:
        raise CorpusError(
            f"`sequences` must not exceed the {kind} of {shortest} to {longest} tokens that the text holds, got {count} "
            f"where {source.name} has {len(runs)}; ask for fewer, widen the bounds or give more text."
        )
    return assemble(runs, tokenizer, first_token, source=f"{source.name}, {kind}", seed=seed)


def _accept(
    candidates: Sequence[Candidate], tokenizer: Any, count: int, bounds: tuple[int, int], generator: np.random.Generator
) -> list[Run]:
    """The first ``count`` candidates in random order whose tokens are within bounds; no text is taken twice."""
    runs: list[Run] = []
    seen: set[str] = set()
    order = generator.permutation(len(candidates))
    step = max(32, 2 * count)
    for first in range(0, len(order), step):
        batch = [candidates[i] for i in order[first : first + step]]
        for candidate, tokens in zip(batch, encode(tokenizer, [c.text for c in batch]), strict=True):
            if bounds[0] <= len(tokens) <= bounds[1] and candidate.text not in seen:
                seen.add(candidate.text)
                runs.append(Run(tokens, candidate.document, candidate.start))
                if len(runs) == count:
                    return runs
    return runs


def _sentences_of(text: str, least: float, most: float) -> Iterator[Segment]:
    """Sentences whose characters do not rule them out."""
    for paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            if 0.4 * least <= len(sentence.text) <= 2.5 * most:
                yield sentence


def _passages_of(text: str, least: float, most: float, generator: np.random.Generator) -> Iterator[Segment]:
    """Paragraphs within the bounds (in characters), runs of sentences of longer ones, joins of shorter ones."""
    waiting: Segment | None = None
    for paragraph in paragraphs(text):
        if waiting is not None:
            paragraph = Segment(waiting.start, f"{waiting.text}\n\n{paragraph.text}")
            waiting = None
        if len(paragraph.text) < least:
            waiting = paragraph
        elif len(paragraph.text) <= most:
            yield paragraph
        else:
            yield from _runs_of_sentences(paragraph, least, most, generator)


def _runs_of_sentences(paragraph: Segment, least: float, most: float, generator: np.random.Generator) -> Iterator[Segment]:
    target = generator.uniform(least, most)
    begin: int | None = None
    for sentence in sentences(paragraph):
        begin = sentence.start if begin is None else begin
        end = sentence.start + len(sentence.text)
        if end - begin >= target:
            yield Segment(begin, paragraph.text[begin - paragraph.start : end - paragraph.start])
            begin = None
            target = generator.uniform(least, most)

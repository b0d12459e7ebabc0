"""Words in sentences.

The likelihood study asks of one word in each sentence how likely the model finds it and how much attention it gets from itself.
So its text is a list of (sentence, word) pairs in which the word occurs exactly once, and its unit of replication is the
sentence. Built in are WordNet's own example sentences (20 246 of at least five words; licence beside the data); any table of
sentences and words serves as well. What is unusable is counted by reason.

Claims served: D1, D2.
"""

from __future__ import annotations

import csv
import json
import lzma
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gnomon.errors import ConfigError, CorpusError

MIN_WORDS = 5
COLUMNS = ("sentence", "word")


class WordInSentence(NamedTuple):
    """One word and the sentence it stands in: ``sentence[start:stop]`` is the word, whatever its case."""

    sentence: str
    word: str
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class WordExamples:
    """Words in sentences, with what was left out.

    Attributes:
        examples: the words in their sentences.
        source: what the text is, in a few words.
        left_out: how many entries were unusable, by reason.
    """

    examples: tuple[WordInSentence, ...]
    source: str
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.examples)

    def sample(self, number: int, seed: int = 0) -> WordExamples:
        """At most ``number`` examples drawn without replacement, in their original order."""
        if number < 1:
            raise ConfigError(f"`sentences` must be at least 1, got {number}; ask for more.")
        if number >= len(self):
            return self
        chosen = np.sort(np.random.default_rng(seed).choice(len(self), size=number, replace=False))
        return WordExamples(examples=tuple(self.examples[i] for i in chosen), source=self.source, left_out=self.left_out)


def word_count(sentence: str) -> int:
    """Number of words: pieces between spaces that hold a letter or digit."""
    return sum(any(character.isalnum() for character in piece) for piece in sentence.split())


def find_word(sentence: str, word: str) -> list[tuple[int, int]]:
    """Where ``word`` stands as a whole word, whatever its case: character spans.

    Part of a hyphenated compound or of a form with an apostrophe (``well-known``, ``boy's``) is not the word.
    """
    return [match.span() for match in _pattern(word).finditer(sentence)]


@lru_cache(maxsize=4096)
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?<!\w['’`]){re.escape(word)}(?![\w-]|['’`]\w)", re.IGNORECASE)


@lru_cache(maxsize=1)
def wordnet_examples() -> WordExamples:
    """WordNet 3.0's example sentences of at least five words in which the lemma occurs exactly once."""
    packed = files("gnomon.corpus").joinpath("data", "wordnet_examples.tsv.xz").read_bytes()
    lines = lzma.decompress(packed).decode("utf-8").splitlines()[1:]
    examples = []
    for line in lines:
        word, _, start, sentence = line.split("\t")
        examples.append(WordInSentence(sentence, word, int(start), int(start) + len(word)))
    return WordExamples(examples=tuple(examples), source="WordNet 3.0 example sentences")


def words_from(pairs: Sequence[tuple[str, str]], *, source: str, min_words: int = MIN_WORDS) -> WordExamples:
    """Examples from (sentence, word) pairs; what does not hold its word exactly once, or is too short, is counted."""
    left_out: Counter[str] = Counter()
    examples = []
    for sentence, word in pairs:
        sentence, word = " ".join(sentence.split()), word.strip()
        spans = find_word(sentence, word) if word else []
        if not word:
            left_out["no word given"] += 1
        elif word_count(sentence) < min_words:
            left_out[f"fewer than {min_words} words"] += 1
        elif not spans:
            left_out["the word does not occur"] += 1
        elif len(spans) > 1:
            left_out["the word occurs more than once"] += 1
        else:
            examples.append(WordInSentence(sentence, word, *spans[0]))
    if not examples:
        raise CorpusError(
            f"`words` must hold sentences of {min_words} words or more with their word in them once, got none in {source}"
            f" ({reasons(left_out)}); add such sentences."
        )
    return WordExamples(examples=tuple(examples), source=source, left_out=dict(left_out))


def read_words(path: str | Path, *, min_words: int = MIN_WORDS) -> WordExamples:
    """Examples from a file: ``.tsv`` or ``.csv`` with columns sentence and word, or ``.jsonl`` with those keys.

    A table whose first line does not name the columns is read as sentence, word.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CorpusError(f"`words` must name a readable file, got {str(path)!r} ({error.strerror}); check the path.") from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"`words` must be a UTF-8 text file, got {str(path)!r}; convert it.") from error
    kind = path.suffix.lower()
    if kind in (".jsonl", ".ndjson"):
        pairs = _from_json_lines(text, path)
    elif kind in (".tsv", ".csv"):
        pairs = _from_table(text, path, "\t" if kind == ".tsv" else ",")
    else:
        raise ConfigError(f"`words` must be a .tsv, .csv or .jsonl file, got {str(path)!r}; rename or convert it.")
    return words_from(pairs, source=path.name, min_words=min_words)


def _from_json_lines(text: str, path: Path) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            pairs.append((str(entry["sentence"]), str(entry["word"])))
        except (ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"`words` must have an object with sentence and word on every line, "
                f"got something else on line {number} of {path.name}; mend it."
            ) from error
    return pairs


def _from_table(text: str, path: Path, delimiter: str) -> list[tuple[str, str]]:
    lines = text.splitlines()
    if delimiter == "\t":  # quotation marks in a TSV are part of the text
        rows = [row for row in csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE) if row]
    else:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    names = [cell.strip().lower() for cell in rows[0]] if rows else []
    where = (0, 1)
    if all(column in names for column in COLUMNS):
        where = (names.index("sentence"), names.index("word"))
        rows = rows[1:]
    short = next((number for number, row in enumerate(rows, start=1) if len(row) <= max(where)), None)
    if short is not None:
        raise CorpusError(
            f"`words` must have the columns sentence and word in every row, "
            f"got {rows[short - 1]!r} in row {short} of {path.name}; mend it."
        )
    return [(row[where[0]], row[where[1]]) for row in rows]


def reasons(counts: Mapping[str, int]) -> str:
    """Counts by reason as one phrase."""
    return "; ".join(f"{count} × {reason}" for reason, count in sorted(counts.items())) or "nothing was given"

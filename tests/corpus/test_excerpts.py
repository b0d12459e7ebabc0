"""Passages and sentences are whole, within bounds, and used once."""

import numpy as np
import pytest

from gnomon.corpus import Document, Source, builtin_prose, passages, sentence_windows
from gnomon.corpus.segments import Segment, paragraphs, sentences
from gnomon.errors import ConfigError, CorpusError

TEXT = """Mr. Smith met J. R. Brown at 5 p.m. on Tuesday. "Is it you?" he said. "It is!" Then... nothing happened.

A second paragraph, without a stop

今日は晴れです。明日は雨でしょう。"""


def test_segments_carry_their_places():
    found = paragraphs(TEXT)
    assert [segment.text[:8] for segment in found] == ["Mr. Smit", "A second", "今日は晴れです。"]
    for paragraph in found:
        assert TEXT[paragraph.start : paragraph.start + len(paragraph.text)] == paragraph.text
        for sentence in sentences(paragraph):
            assert TEXT[sentence.start : sentence.start + len(sentence.text)] == sentence.text


def test_sentences_end_where_they_should():
    first, second, third = ([s.text for s in sentences(p)] for p in paragraphs(TEXT))
    assert first == [
        "Mr. Smith met J. R. Brown at 5 p.m. on Tuesday.",
        '"Is it you?" he said.',
        '"It is!"',
        "Then... nothing happened.",
    ]
    assert second == ["A second paragraph, without a stop"]
    assert third == ["今日は晴れです。", "明日は雨でしょう。"]
    assert [s.text for s in sentences(Segment(5, "So did I. And you?"))] == ["So did I.", "And you?"]
    assert paragraphs("") == []


def test_passages_are_within_bounds_and_distinct(llama):
    windows = passages(builtin_prose(), llama, count=72, seed=1)
    assert len(windows) == 72
    assert windows.lengths.min() >= 16
    assert windows.lengths.max() <= 200
    assert windows.lengths.std() > 20
    assert len({tuple(row) for row in windows.tokens.tolist()}) == 72
    assert (windows.tokens[:, 0] == llama.bos_token_id).all()
    for row in range(72):
        text = builtin_prose().documents[windows.document[row]].text
        start = int(windows.start[row])
        first = llama.words(windows.tokens[row, 1:2])[0]
        assert text[start:].startswith(first)
        assert start == 0 or text[start - 1].isspace()


def test_passages_are_cut_by_paragraph_and_by_sentence(neox):
    short = "\n\n".join(f"Alpha{i} beta gamma." for i in range(40))
    long = " ".join(f"Word{i} one two three four five six seven eight." for i in range(60))
    windows = passages(Source("made", (Document("", short), Document("", long))), neox, count=10, shortest=8, longest=30)
    for row, length in zip(windows.tokens, windows.lengths, strict=True):
        words = neox.words(row[:length])
        assert words[0].startswith(("Alpha", "Word"))
        assert words[-1] == "."
    assert set(windows.document.tolist()) == {0, 1}


def test_sentences_are_within_bounds(bert):
    windows = sentence_windows(builtin_prose(), bert, count=60, seed=2, encoder=True)
    assert windows.lengths.min() >= 6
    assert windows.lengths.max() <= 50
    last = windows.tokens[np.arange(60), windows.lengths - 1]
    assert (last == bert.sep_token_id).all()
    assert windows.special.sum(1).tolist() == [2] * 60


def test_too_few(neox):
    source = Source("little", (Document("", "One two three four five six seven. " * 3),))
    with pytest.raises(CorpusError, match="the sentences of 6 to 50 tokens that the text holds, got 5 where little has 1"):
        sentence_windows(source, neox, count=5)
    with pytest.raises(ConfigError, match="`longest` must be at least `shortest` 20"):
        passages(source, neox, shortest=20, longest=10)


def test_seeds(llama):
    first, again, other = (passages(builtin_prose(), llama, count=5, seed=seed) for seed in (1, 1, 2))
    assert first.equals(again)
    assert first.digest() != other.digest()

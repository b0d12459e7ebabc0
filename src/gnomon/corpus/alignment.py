"""Which tokens a word is made of.

A word is found in the characters of its sentence and carried over to tokens by the tokenizer's offsets, so that byte-level,
word-piece and sentence-piece tokenizers need no rules of their own: the word's tokens are those whose characters overlap it.
Offsets may take in the space before a word, never a letter or a mark of its neighbourhood; a token that does (``word.`` merged
into one) makes the sentence unusable. What is unusable is counted by reason and never guessed at.

What stands before and after the text is what the survey's own windows have there
(:class:`~gnomon.corpus.first_token.FirstToken`), so that both speak of the same position 0.

Claims served: D1, D2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.corpus.first_token import FirstToken
from gnomon.corpus.words import WordExamples, WordInSentence, reasons
from gnomon.errors import ConfigError, CorpusError

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

MAX_TOKENS = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedWords:
    """Sentences as tokens, padded on the right, with the tokens of each word.

    Attributes:
        tokens: token ids, ``[sequence, position]``; ``pad_id`` beyond each length.
        lengths: real tokens of each sentence.
        special: which tokens were put around the text, ``[sequence, position]``.
        first: position of the word's first token.
        stop: one past the position of its last.
        index: which example each sentence is.
        pad_id: token id of the padding.
        left_out: how many examples could not be aligned, by reason.
    """

    tokens: Ints
    lengths: Ints
    special: Bools
    first: Ints
    stop: Ints
    index: Ints
    pad_id: int
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def word_tokens(self) -> Ints:
        """Number of tokens of each word."""
        return self.stop - self.first

    def take(self, indices: NDArray[np.integer[Any]], left_out: Mapping[str, int] | None = None) -> AlignedWords:
        """The chosen sentences, in the order given, without columns that are padding in all of them."""
        width = int(self.lengths[indices].max(initial=1))
        return AlignedWords(
            tokens=self.tokens[indices, :width],
            lengths=self.lengths[indices],
            special=self.special[indices, :width],
            first=self.first[indices],
            stop=self.stop[indices],
            index=self.index[indices],
            pad_id=self.pad_id,
            left_out=self.left_out if left_out is None else left_out,
        )

    def batches(self, size: int, cells: int) -> Iterator[Ints]:
        """Indices of at most ``size`` sentences of like length, and at most ``cells`` padded tokens (one sentence at least)."""
        if size < 1:
            raise ConfigError(f"`batch_size` must be at least 1, got {size}.")
        order = np.argsort(-self.lengths, kind="stable")
        first = 0
        while first < len(order):
            width = int(self.lengths[order[first]])
            count = max(1, min(size, cells // width))
            yield order[first : first + count]
            first += count


def align_words(
    words: WordExamples, tokenizer: Any, first_token: FirstToken, *, pad_id: int = 0, max_tokens: int = MAX_TOKENS
) -> AlignedWords:
    """Tokenize every sentence and find the tokens of its word.

    Args:
        words: the examples.
        tokenizer: a fast tokenizer in the manner of transformers (it must give offsets).
        first_token: what to put before and after the text, as decided for the survey's own windows.
        pad_id: what to fill up with.
        max_tokens: sentences with more tokens are left out.

    Raises:
        CorpusError: the tokenizer gives no offsets, or no sentence can be aligned.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise CorpusError(
            f"`tokenizer` must give character offsets, got the slow tokenizer {type(tokenizer).__name__}; "
            "load the model's fast tokenizer."
        )
    encoded = tokenizer(
        [example.sentence for example in words.examples], add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    unknown = getattr(tokenizer, "unk_token_id", None)
    before = [first_token.id] if first_token.id is not None else []
    after = [first_token.closing_id] if first_token.closing_id is not None else []
    left_out: Counter[str] = Counter()
    kept: list[tuple[int, list[int], int, int]] = []
    for index, (example, ids, offsets) in enumerate(
        zip(words.examples, encoded["input_ids"], encoded["offset_mapping"], strict=True)
    ):
        span = _token_span(example, offsets)
        if isinstance(span, str):
            left_out[span] += 1
        elif unknown is not None and unknown in ids[span[0] : span[1]]:
            left_out["the tokenizer does not know the word"] += 1
        elif len(ids) + len(before) + len(after) > max_tokens:
            left_out[f"more than {max_tokens} tokens"] += 1
        else:
            kept.append((index, [*before, *ids, *after], span[0] + len(before), span[1] + len(before)))
    if not kept:
        raise CorpusError(
            f"`words` must have sentences that can be aligned with tokens, got none ({reasons(left_out)}); use others."
        )
    return _pack(kept, len(before), len(after), pad_id, dict(left_out))


def _token_span(example: WordInSentence, offsets: Sequence[tuple[int, int]]) -> tuple[int, int] | str:
    """First token of the word and one past its last, or why there is no such thing."""
    inside = [i for i, (start, stop) in enumerate(offsets) if start < example.stop and stop > example.start and stop > start]
    if not inside:
        return "no token covers the word"
    if inside[-1] - inside[0] + 1 != len(inside):
        return "the word's tokens are not next to each other"
    start, stop = min(offsets[i][0] for i in inside), max(offsets[i][1] for i in inside)
    if start > example.start or stop < example.stop:
        return "no token covers part of the word"
    outside = example.sentence[start : example.start] + example.sentence[example.stop : stop]
    if outside.strip():
        return "a token holds the word and something beside it"
    return inside[0], inside[-1] + 1


def _pack(
    kept: list[tuple[int, list[int], int, int]], before: int, after: int, pad_id: int, left_out: dict[str, int]
) -> AlignedWords:
    lengths = np.array([len(ids) for _, ids, _, _ in kept], dtype=np.int64)
    tokens = np.full((len(kept), int(lengths.max())), pad_id, dtype=np.int64)
    for row, (_, ids, _, _) in enumerate(kept):
        tokens[row, : len(ids)] = ids
    position = np.arange(tokens.shape[1])[None]
    special = (position < before) | ((position >= lengths[:, None] - after) & (position < lengths[:, None]))
    return AlignedWords(
        tokens=tokens,
        lengths=lengths,
        special=special,
        first=np.array([first for _, _, first, _ in kept], dtype=np.int64),
        stop=np.array([stop for _, _, _, stop in kept], dtype=np.int64),
        index=np.array([index for index, _, _, _ in kept], dtype=np.int64),
        pad_id=pad_id,
        left_out=left_out,
    )

"""Windows of equal length, cropped at random places inside documents.

Cropping at random is what makes the input *stationary*: content then has the same distribution at every position of a window, so
that whatever changes with position is the model's own doing. A window that began where its document begins would break that.

Documents are chosen with a weight proportional to the room that they still have, and within a document the windows are laid out
at random without overlap: n windows of size s in a document of size L start at ``u_i + i s`` with u the sorted uniform draws
from ``[0, L - n s]``, which is uniform over all layouts without overlap. Only when the text is too short for that do windows
overlap, and the source then says so.

A long document is not tokenised whole: for each window a span of characters with a margin is cut out, and its first ``MARGIN``
tokens are dropped, so that a word cut in two or a tokenizer's treatment of the start of a text leaves no trace at position 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from gnomon.corpus.assembly import Run, assemble, check_at_least, encode
from gnomon.corpus.first_token import BosPolicy, decide_first_token
from gnomon.corpus.sources import Document, Source
from gnomon.corpus.windows import Windows
from gnomon.errors import CorpusError

MARGIN: Final = 8
SPAN_FACTOR: Final = 1.3
PROBE_CHARACTERS: Final = 1000
PROBES: Final = 8
ROUNDS: Final = 64


@dataclass
class Room:
    """A document while windows are being cut from it.

    Attributes:
        index: of the document in its source.
        document: its title and text.
        size: its tokens: estimated from its characters, or counted once it has been tokenised whole.
        tokens: its tokens, once it has been tokenised whole.
        runs: the windows cut so far.
    """

    index: int
    document: Document
    size: float
    tokens: list[int] | None = None
    runs: list[Run] = field(default_factory=list)


def crop_windows(
    source: Source,
    tokenizer: Any,
    *,
    sequences: int = 32,
    length: int = 256,
    bos: BosPolicy = "auto",
    seed: int = 0,
    encoder: bool = False,
) -> Windows:
    """Windows of ``length`` tokens, first and closing token included, cropped at random places.

    Args:
        source: the documents.
        tokenizer: a tokenizer in the manner of transformers.
        sequences: how many windows.
        length: tokens of each window.
        bos: what stands at position 0.
        seed: of the choice of places.
        encoder: whether windows are opened and closed as an encoder expects.

    Raises:
        CorpusError: no document is long enough for one window.
    """
    first_token = decide_first_token(tokenizer, bos, encoder=encoder)
    check_at_least("sequences", sequences, 1)
    check_at_least("length", length, first_token.added + 2, " (two tokens of text beside the special ones)")
    runs, overlapping = crop_runs(source, tokenizer, sequences=sequences, length=length - first_token.added, seed=seed)
    name = f"{source.name}, random crops" + (" that overlap because the text is short" if overlapping else "")
    return assemble(runs, tokenizer, first_token, source=name, seed=seed)


def crop_runs(source: Source, tokenizer: Any, *, sequences: int, length: int, seed: int) -> tuple[list[Run], bool]:
    """Runs of exactly ``length`` text tokens in random order, and whether any of them overlap."""
    generator = np.random.default_rng([seed, length])
    rate = characters_per_token(source, tokenizer)
    rooms = [Room(i, document, len(document.text) / rate) for i, document in enumerate(source.documents)]
    for _ in range(ROUNDS):
        missing = sequences - sum(len(room.runs) for room in rooms)
        if not missing:
            break
        asked = _allot(rooms, missing, length, generator)
        if not asked:
            break
        for index, extra in sorted(asked.items()):
            room = rooms[index]
            room.runs = _lay_out(room, tokenizer, len(room.runs) + extra, length, rate, generator)
    runs = [run for room in rooms for run in room.runs]
    overlapping = len(runs) < sequences
    if overlapping:
        runs += _overlapping_runs(rooms, tokenizer, sequences - len(runs), length, generator)
    return [runs[i] for i in generator.permutation(len(runs))], overlapping


def characters_per_token(source: Source, tokenizer: Any) -> float:
    """Mean number of characters of a token, from a few places spread evenly over the source."""
    text_ends = np.cumsum([len(document.text) for document in source.documents])
    pieces = []
    for place in (np.arange(PROBES) + 0.5) / PROBES * text_ends[-1]:
        index = int(np.searchsorted(text_ends, place, side="right"))
        text = source.documents[index].text
        begin = max(0, min(int(place) - (int(text_ends[index]) - len(text)), len(text) - PROBE_CHARACTERS))
        pieces.append(text[begin : begin + PROBE_CHARACTERS])
    num_tokens = sum(map(len, encode(tokenizer, pieces)))
    if num_tokens == 0:
        raise CorpusError(f"`text` must give tokens, got none from {source.name}; give other text or another tokenizer.")
    return sum(map(len, pieces)) / num_tokens


def _allot(rooms: list[Room], missing: int, length: int, generator: np.random.Generator) -> dict[int, int]:
    """How many more windows to cut from which documents, drawn with weights equal to the room left; empty when there is none."""
    size = np.array([room.size for room in rooms])
    taken = np.array([len(room.runs) for room in rooms]) * float(length)
    asked: dict[int, int] = {}
    for _ in range(missing):
        left = size - taken
        weights = np.where(left >= length, left, 0.0)
        total = weights.sum()
        if total == 0:
            break
        index = int(np.searchsorted(np.cumsum(weights), generator.random() * total, side="right"))
        asked[index] = asked.get(index, 0) + 1
        taken[index] += length
    return asked


def _lay_out(room: Room, tokenizer: Any, count: int, length: int, rate: float, generator: np.random.Generator) -> list[Run]:
    """Up to ``count`` runs without overlap; the document is tokenised whole when spans would cover half of it anyway."""
    text = room.document.text
    factor = SPAN_FACTOR
    while room.tokens is None:
        span = int((length + MARGIN) * rate * factor) + 1
        if 2 * span * count >= len(text):
            _tokenise_whole(room, tokenizer)
            break
        begins = _starts(len(text), span, count, generator)
        pieces = encode(tokenizer, [text[begin : begin + span] for begin in begins])
        if all(len(piece) >= length + MARGIN for piece in pieces):
            starts = [min(begin, len(text)) for begin in begins]
            return [Run(piece[MARGIN : MARGIN + length], room.index, start) for piece, start in zip(pieces, starts, strict=True)]
        factor *= 1.5
    tokens = room.tokens or []
    fitting = min(count, len(tokens) // length)
    return [_run_at(room, start, length) for start in _starts(len(tokens), length, fitting, generator)]


def _starts(size: int, window: int, count: int, generator: np.random.Generator) -> list[int]:
    """Starts of ``count`` windows, uniform over all layouts without overlap."""
    gaps = np.sort(generator.integers(0, size - count * window + 1, size=count))
    return [int(gap) + i * window for i, gap in enumerate(gaps)]


def _tokenise_whole(room: Room, tokenizer: Any) -> None:
    room.tokens = encode(tokenizer, [room.document.text])[0]
    room.size = float(len(room.tokens))


def _run_at(room: Room, start: int, length: int) -> Run:
    """The run of a document that was tokenised whole; its place in characters is interpolated."""
    tokens = room.tokens or []
    return Run(tokens[start : start + length], room.index, round(start / len(tokens) * len(room.document.text)))


def _overlapping_runs(rooms: list[Room], tokenizer: Any, count: int, length: int, generator: np.random.Generator) -> list[Run]:
    """Runs at independent places, for a text that is too short to do without overlap."""
    for room in sorted(rooms, key=lambda room: -room.size)[:ROUNDS]:
        if room.tokens is None and len(room.document.text) > 0:
            _tokenise_whole(room, tokenizer)
    usable = [room for room in rooms if room.tokens is not None and len(room.tokens) >= length]
    if not usable:
        longest = max(room.size for room in rooms)
        total = sum(room.size for room in rooms)
        raise CorpusError(
            f"`length` must fit the text, got windows of {length} text tokens where the longest of {len(rooms)} documents "
            f"has {longest:.0f} and all together about {total:.0f}; ask for a shorter length or give longer documents."
        )
    places = np.array([room.size - length + 1 for room in usable])
    chosen = generator.choice(len(usable), size=count, p=places / places.sum())
    return [_run_at(usable[i], int(generator.integers(0, int(places[i]))), length) for i in chosen]

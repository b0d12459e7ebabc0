"""Replacing a word by likelier and less likely ones.

For each token of the word the model's own distribution over its place (masked for encoders, given what precedes it for decoders) ranks the candidates:
tokens that are letters, not special, not the token itself, and open or continue a word as it does (so that length and word boundary stay).
With c candidates the five bands are equal steps of the logarithm of rank: ``highest`` are ranks 1 to c^(1/5), ``high`` up to c^(2/5), and so
on; ``lowest`` is the rest beyond c^(4/5), nine tenths of the vocabulary and more.

Within a band every candidate is as likely to be drawn as any other, anew for each sentence. The draw is by a seeded random order over
the whole vocabulary, the first candidate of the order that lies in the band, so that rounding of the logits can change it only by
moving that candidate across an edge of the band.

``lowest_matched`` serves the question that the five bands leave open, whether it is only rarity that matters: a token of the lowest band
that is as frequent as the one drawn for ``highest``, or as nearly so as the band allows. Claim D2.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BANDS: Final = ("lowest", "low", "mid", "high", "highest")
MATCHED: Final = "lowest_matched"
DRAWN: Final = (*BANDS, MATCHED)
MIN_CANDIDATES: Final = 2 ** len(BANDS)
WORD_OPENERS: Final = ("Ġ", "▁")
CONTINUATION: Final = "##"

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Candidates:
    """What may stand in for a token.

    Attributes:
        kind: how each token of the vocabulary stands to words: 1 opens one by its mark, 2 continues one by its mark, 0 bears no mark.
        usable: whether it may be drawn: letters only, not special.
        log_frequency: log relative frequency of each token in the corpus sample, half a count added to each.
    """

    kind: NDArray[np.int8]
    usable: NDArray[np.bool_]
    log_frequency: Floats

    @classmethod
    def of(cls, tokenizer: Any, size: int, counts: Ints) -> Candidates:
        """The tokens of a tokenizer as candidates; ``size`` is the width of the model's output, ``counts`` the corpus sample's."""
        known = min(size, len(tokenizer))
        texts = [str(text) for text in tokenizer.convert_ids_to_tokens(list(range(known)))]
        kind, usable = np.zeros(size, dtype=np.int8), np.zeros(size, dtype=bool)
        kind[:known] = [1 if text.startswith(WORD_OPENERS) else 2 if text.startswith(CONTINUATION) else 0 for text in texts]
        usable[:known] = [_body(text).isalpha() for text in texts]
        usable[[token for token in tokenizer.all_special_ids if token < size]] = False
        return cls(kind, usable, np.log((counts[:size] + 0.5) / (counts.sum() + 0.5 * size)))

    def like(self, token: int) -> Ints:
        """Ids that may replace ``token``."""
        fit = self.usable & (self.kind == self.kind[token])
        fit[token] = False
        return np.flatnonzero(fit)


def _body(text: str) -> str:
    return text[len(CONTINUATION) :] if text.startswith(CONTINUATION) else text.lstrip("".join(WORD_OPENERS))


def band_edges(count: int) -> Ints:
    """Ranks at which the bands begin and end, from the likeliest: ``[0, c^(1/5), ..., c]``."""
    edges = np.round(float(count) ** (np.arange(len(BANDS) + 1) / len(BANDS))).astype(np.int64)
    edges[0] = 0
    return edges


def draw(log_probabilities: Floats, token: int, candidates: Candidates, generator: np.random.Generator) -> Ints | None:
    """One replacement of ``token`` per entry of ``DRAWN``, or ``None`` where there are fewer than ``MIN_CANDIDATES``."""
    pool = candidates.like(token)
    order = generator.permutation(len(candidates.usable))  # over the whole vocabulary: does not depend on the pool
    if len(pool) < MIN_CANDIDATES:
        return None
    ranked = pool[np.argsort(-log_probabilities[pool], kind="stable")]
    edges = band_edges(len(pool))
    bands = [ranked[start:end] for start, end in pairwise(edges)][::-1]
    priority = np.empty(len(order), dtype=np.int64)
    priority[order] = np.arange(len(order))
    chosen = [int(band[np.argmin(priority[band])]) for band in bands]
    lowest = bands[0]
    distance = np.abs(candidates.log_frequency[lowest] - candidates.log_frequency[chosen[-1]])
    chosen.append(int(lowest[np.lexsort((priority[lowest], distance))[0]]))
    return np.array(chosen, dtype=np.int64)


def token_counts(sentences: list[Ints], size: int) -> Ints:
    """How often each token occurs, ``[size]``."""
    joined = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sentences]) if sentences else np.zeros(0, dtype=np.int64)
    return np.bincount(joined[joined < size], minlength=size).astype(np.int64)

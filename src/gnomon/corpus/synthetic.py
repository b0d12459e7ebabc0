"""Windows without meaning: uniform random tokens, one token repeated, shuffled text.

Each takes away one thing that text has. *Random* tokens keep neither words nor frequencies, so that what attention still does
with positions is the architecture's and the weights' own. *Repeated* gives every position the same content, so that in a model
without absolute positions nothing but the mask tells positions apart; in its pure form (``bos="never"``) position 0 holds the
repeated token too. *Shuffled* text keeps each window's tokens and destroys their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.corpus.assembly import Run, assemble, check_at_least
from gnomon.corpus.crops import crop_windows
from gnomon.corpus.first_token import BosPolicy, decide_first_token, special_ids
from gnomon.corpus.sources import Source
from gnomon.corpus.windows import Windows
from gnomon.errors import CorpusError


def ordinary_tokens(tokenizer: Any) -> NDArray[np.int64]:
    """Ids of the vocabulary that are not special."""
    special = set(tokenizer.all_special_ids) | special_ids(tokenizer)
    found = np.setdiff1d(np.arange(len(tokenizer), dtype=np.int64), np.array(sorted(special), dtype=np.int64))
    if len(found) == 0:
        raise CorpusError("`tokenizer` must have tokens that are not special, got none; give another tokenizer.")
    return found


def random_windows(
    tokenizer: Any, *, sequences: int = 32, length: int = 256, bos: BosPolicy = "auto", seed: int = 0, encoder: bool = False
) -> Windows:
    """Windows of tokens drawn uniformly from the vocabulary, special tokens excepted."""
    first_token = decide_first_token(tokenizer, bos, encoder=encoder)
    check_at_least("sequences", sequences, 1)
    check_at_least("length", length, first_token.added + 1)
    generator = np.random.default_rng([seed, 3])
    drawn = generator.choice(ordinary_tokens(tokenizer), size=(sequences, length - first_token.added))
    runs = [Run(row.tolist(), -1, 0) for row in drawn]
    return assemble(runs, tokenizer, first_token, source="uniform random tokens", seed=seed)


def repeated_windows(
    tokenizer: Any, *, sequences: int = 32, length: int = 256, bos: BosPolicy = "auto", seed: int = 0, encoder: bool = False
) -> Windows:
    """Windows of one token repeated, another random one in each; pure, with nothing in front, under ``bos="never"``."""
    first_token = decide_first_token(tokenizer, bos, encoder=encoder)
    check_at_least("sequences", sequences, 1)
    check_at_least("length", length, first_token.added + 1)
    generator = np.random.default_rng([seed, 4])
    ordinary = ordinary_tokens(tokenizer)
    chosen = generator.choice(ordinary, size=sequences, replace=sequences > len(ordinary))
    runs = [Run([int(token)] * (length - first_token.added), -1, 0) for token in chosen]
    return assemble(runs, tokenizer, first_token, source="one token repeated", seed=seed)


def shuffled_windows(
    source: Source,
    tokenizer: Any,
    *,
    sequences: int = 32,
    length: int = 256,
    bos: BosPolicy = "auto",
    seed: int = 0,
    encoder: bool = False,
) -> Windows:
    """Random crops whose text tokens are put in random order within each window; first and closing tokens stay in place."""
    crops = crop_windows(source, tokenizer, sequences=sequences, length=length, bos=bos, seed=seed, encoder=encoder)
    generator = np.random.default_rng([seed, 5])
    first = int(crops.first_token.placed)
    last = crops.length - int(crops.first_token.closing_id is not None)
    shuffled = generator.permuted(crops.tokens[:, first:last], axis=1)
    runs = [Run(row.tolist(), int(d), int(s)) for row, d, s in zip(shuffled, crops.document, crops.start, strict=True)]
    return assemble(runs, tokenizer, crops.first_token, source=f"{crops.source}, shuffled", seed=seed)

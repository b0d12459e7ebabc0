"""From runs of text tokens to :class:`Windows`: the first token in front, the closing one behind, padding, specials marked.

Special tokens are those the tokenizer calls special, wherever they stand, without the token for the unknown: an unknown word is
text. (GPT-2's unknown token is its end-of-text token, which stays special.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.corpus.first_token import FirstToken, special_ids
from gnomon.corpus.windows import Windows
from gnomon.errors import ConfigError


class Run(NamedTuple):
    """Text tokens cut from one place of one document (-1 where there is none)."""

    tokens: Sequence[int]
    document: int
    start: int


def encode(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Token ids of each text, without special tokens, truncation or padding."""
    if not texts:
        return []
    found = tokenizer(list(texts), add_special_tokens=False, truncation=False, padding=False, verbose=False)["input_ids"]
    return [list(map(int, ids)) for ids in found]


def pad_id(tokenizer: Any) -> int:
    """Id to pad with: the tokenizer's own, else its end-of-text token, else 0; padding is never attended to."""
    for name in ("pad_token_id", "eos_token_id"):
        found = getattr(tokenizer, name, None)
        if found is not None:
            return int(found)
    return 0


def check_at_least(name: str, value: int, least: int, reason: str = "") -> None:
    """Raise unless an argument is an integer of at least ``least``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ConfigError(f"`{name}` must be an integer of at least {least}{reason}, got {value!r}; give a larger one.")


def assemble(runs: Sequence[Run], tokenizer: Any, first_token: FirstToken, *, source: str, seed: int) -> Windows:
    """Windows of the given runs, each between the first and the closing token, padded to the longest."""
    opening = [] if first_token.id is None else [first_token.id]
    closing = [] if first_token.closing_id is None else [first_token.closing_id]
    rows = [[*opening, *run.tokens, *closing] for run in runs]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    padding = pad_id(tokenizer)
    tokens: NDArray[np.int64] = np.full((len(rows), int(lengths.max(initial=0))), padding, dtype=np.int64)
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    place = np.arange(tokens.shape[1])[None, :]
    added = (place < len(opening)) | (place >= lengths[:, None] - len(closing))
    special = (np.isin(tokens, sorted(special_ids(tokenizer))) | added) & (place < lengths[:, None])
    return Windows(
        tokens=tokens,
        lengths=lengths,
        special=special,
        document=np.array([run.document for run in runs], dtype=np.int64),
        start=np.array([run.start for run in runs], dtype=np.int64),
        source=source,
        seed=seed,
        first_token=first_token,
        pad_id=padding,
    )

"""Token windows: the only form in which text reaches a model.

A window is one sequence of tokens, padded on the right; position 0 is always a real token. It is also the unit of replication of
every statistic that gnomon reports, so a :class:`Windows` carries beside its tokens what is needed to judge them: which tokens
are special, which document and place each window was cut from, and what stands at position 0 and why. It is plain numpy, so that
text can be prepared, hashed and stored where there is no torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnomon.corpus.first_token import FirstToken
from gnomon.errors import ConfigError, CorpusError

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """Sequences of tokens, padded on the right, with what is known of their origin.

    Attributes:
        tokens: token ids, ``[sequence, position]``; ``pad_id`` beyond each length.
        lengths: real tokens of each sequence.
        special: which real tokens are special (BOS, EOS, CLS, SEP, ...), ``[sequence, position]``; False on padding.
        document: index of the document that each window was cut from, -1 where there is none.
        start: place of the window's first text token within its document (in characters for text, 0 where there is none).
        source: what the text is, in a few words.
        seed: of the choice of windows.
        first_token: what stands at position 0 and why.
        pad_id: token id of the padding.
    """

    tokens: Ints
    lengths: Ints
    special: Bools
    document: Ints
    start: Ints
    source: str
    seed: int
    first_token: FirstToken
    pad_id: int

    def __post_init__(self) -> None:
        for name, dtype in (
            ("tokens", np.int64),
            ("lengths", np.int64),
            ("special", np.bool_),
            ("document", np.int64),
            ("start", np.int64),
        ):
            array = np.array(getattr(self, name), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check_shapes()
        self._check_values()

    def _check_shapes(self) -> None:
        if self.tokens.ndim != 2 or 0 in self.tokens.shape:
            raise CorpusError(
                f"`tokens` must have shape [sequence, position] and not be empty, got {self.tokens.shape}; give more text."
            )
        expected = {"lengths": self.tokens.shape[:1], "special": self.tokens.shape, "document": self.tokens.shape[:1]}
        for name, shape in {**expected, "start": self.tokens.shape[:1]}.items():
            got = getattr(self, name).shape
            if got != shape:
                raise CorpusError(f"`{name}` must have shape {shape} to match tokens {self.tokens.shape}, got {got}.")

    def _check_values(self) -> None:
        width = self.tokens.shape[1]
        if self.lengths.min() < 1 or self.lengths.max() > width:
            raise CorpusError(f"`lengths` must lie in 1..{width}, got {self.lengths.min()}..{self.lengths.max()}.")
        real = self.real
        if (self.tokens[~real] != self.pad_id).any():
            raise CorpusError(
                f"`tokens` must be padded on the right with `pad_id` {self.pad_id}, got other tokens beyond `lengths`."
            )
        if self.tokens[real].min() < 0:
            raise CorpusError(f"`tokens` must be at least 0, got {self.tokens[real].min()}.")
        if (self.special & ~real).any():
            raise CorpusError("`special` must be False on padding, got True beyond `lengths`.")

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def length(self) -> int:
        """Width of ``tokens``: the longest sequence that fits."""
        return int(self.tokens.shape[1])

    @property
    def real(self) -> Bools:
        """Which cells hold a real token, ``[sequence, position]``."""
        return np.arange(self.length)[None, :] < self.lengths[:, None]

    @property
    def num_tokens(self) -> int:
        """Real tokens in all."""
        return int(self.lengths.sum())

    def digest(self) -> str:
        """Stable sha256 of what a model is shown and a measure told: real tokens, lengths, specials and the width."""
        blob = hashlib.sha256(b"gnomon windows 1\0")
        blob.update(np.array(self.tokens.shape, dtype="<i8").tobytes())
        blob.update(self.lengths.astype("<i8").tobytes())
        blob.update(np.where(self.real, self.tokens, -1).astype("<i8").tobytes())
        blob.update(self.special.astype("u1").tobytes())
        return blob.hexdigest()

    def batches(self, size: int) -> Iterator[Ints]:
        """Indices of at most ``size`` sequences each, like lengths together, the longest first; the same on every call."""
        if size < 1:
            raise ConfigError(f"`size` of a batch must be at least 1, got {size}.")
        order = np.argsort(-self.lengths, kind="stable")
        for first in range(0, len(order), size):
            yield order[first : first + size]

    def take(self, indices: ArrayLike) -> Windows:
        """The chosen sequences, in the order given, at the same width."""
        chosen = np.asarray(indices, dtype=np.int64)
        names = ("tokens", "lengths", "special", "document", "start")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def trimmed(self) -> Windows:
        """The same sequences without the columns that are padding in all of them."""
        width = int(self.lengths.max())
        return replace(self, tokens=self.tokens[:, :width], special=self.special[:, :width])

    def equals(self, other: Windows) -> bool:
        """Whether every field is the same."""
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

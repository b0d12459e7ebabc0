"""What the three parts of ``phase`` share: the tokens to build inputs from, the pairs that are rotated, and batches of embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.corpus import Windows
from gnomon.measure.rotary_pairs import pair_features
from gnomon.model import PositionModel

ASSUMED_BASE = 10_000.0


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """The rotation of one layer, or the one assumed as a control where the layer has none.

    Attributes:
        pairs: features turned together, ``[P, 2]``.
        frequencies: radians per token of each pair.
        actual: whether the layer really rotates.
    """

    pairs: Tensor
    frequencies: Tensor
    actual: bool


def rotation_of(model: PositionModel, layer: int) -> Rotation:
    """The layer's rotation; without one, pairs over the whole head and the frequencies of base 10 000."""
    frequencies = model.scheme.inverse_frequencies[layer]
    actual = len(frequencies) > 0
    if not actual:
        count = model.anatomy.head_dim // 2
        frequencies = tuple((ASSUMED_BASE ** (-np.arange(count) / count)).tolist())
    pairs = pair_features(len(frequencies), interleaved=model.scheme.rotary_interleaved)
    return Rotation(pairs=torch.from_numpy(pairs), frequencies=torch.tensor(frequencies, dtype=torch.float64), actual=actual)


def content_tokens(windows: Windows, count: int, seed: int) -> NDArray[np.int64]:
    """Different ordinary tokens of the text, drawn at random among the distinct ones."""
    tokens = np.unique(windows.tokens[windows.real & ~windows.special])
    return np.random.default_rng([seed, 7]).permutation(tokens)[:count]


def longest_input(model: PositionModel, wanted: int) -> int:
    """``wanted`` tokens, or as many as the model takes."""
    limit = model.anatomy.max_length
    return wanted if limit is None else min(wanted, limit)


def embed(model: PositionModel, tokens: NDArray[np.int64]) -> Tensor:
    """Rows of the token embedding as the model looks them up, ``[..., E]``."""
    with torch.no_grad():
        rows: Tensor = model.embedding(torch.from_numpy(tokens).to(model.device))
    return rows


def full_lengths(count: int, length: int) -> Tensor:
    """Lengths of ``count`` sequences without padding."""
    return torch.full((count,), length, dtype=torch.long)

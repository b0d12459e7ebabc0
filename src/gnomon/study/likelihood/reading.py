"""How likely the model finds a word: the readings.

============  ==========================================================================================================
reading       log-probability of each of the word's tokens
============  ==========================================================================================================
``unmasked``  encoders: read at the token's own position with the token in plain sight. The published reading; what it measures
              is how surely the model repeats a token that it sees, given its surroundings.
``masked``    encoders: read at the token's own position with all of the word's tokens masked (pseudo-likelihood)
``causal``    decoders: read at the position before the token, from what precedes it
============  ==========================================================================================================

All in nats. A word of several tokens has a **joint** log-likelihood (their sum, which falls with the number of tokens) and a **mean**
one. The joint of the masked reading treats the word's tokens as independent given the rest. Claims D1, D2.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from gnomon.model import PositionModel

AGGREGATES: Final = ("joint", "mean")
UNMASKED: Final = "unmasked"
MASKED: Final = "masked"
CAUSAL: Final = "causal"


def readings(model: PositionModel) -> tuple[str, ...]:
    """The readings that a model allows, the one that its published counterpart is compared with first."""
    if model.anatomy.causal:
        return (CAUSAL,)
    return (UNMASKED,) if mask_id(model) is None else (UNMASKED, MASKED)


def mask_id(model: PositionModel) -> int | None:
    """Id of the tokenizer's mask token."""
    found: Any = getattr(model.tokenizer, "mask_token_id", None)
    return None if found is None else int(found)


def refusal(model: PositionModel) -> str | None:
    """Why the likelihood of a word cannot be read from this model, if it cannot.

    A head that the model's files do not hold is none: gnomon never fills in weights when it loads a model.
    """
    anatomy = model.anatomy
    if anatomy.kind == "encoder-decoder":
        return f"{model.name} is an encoder-decoder, and no single stack of it gives the likelihood of a word in its sentence"
    if anatomy.head is None:
        return (
            f"{model.name} is a {anatomy.architecture} without a language-model head, so it gives no likelihoods; "
            "use a model trained to predict tokens"
        )
    if model.tokenizer is None:
        return f"{model.name} was opened without a tokenizer, so words cannot be found among its tokens"
    if not getattr(model.tokenizer, "is_fast", False):
        return f"the tokenizer of {model.name} gives no character offsets, so words cannot be aligned with tokens"
    return None


def masked(tokens: Tensor, first: Tensor, stop: Tensor, mask_token: int) -> Tensor:
    """Tokens with each sequence's word replaced by mask tokens, ``[B, T]``."""
    return tokens.masked_fill(in_word(tokens, first, stop), mask_token)


def in_word(tokens: Tensor, first: Tensor, stop: Tensor) -> Tensor:
    """Which positions are the word, ``[B, T]``."""
    positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
    return (positions >= first[:, None]) & (positions < stop[:, None])


def predictions(logits_BTV: Tensor, tokens: Tensor, first: Tensor, stop: Tensor, *, causal: bool) -> Tensor:
    """Log-probabilities over the vocabulary for every token of every word, ``[tokens of all words, V]``, sequence by sequence."""
    sequence, position = in_word(tokens, first, stop).nonzero(as_tuple=True)
    return torch.log_softmax(logits_BTV[sequence, position - 1 if causal else position].float(), dim=-1)


def aggregate(log_probabilities: Tensor, word_tokens: Tensor) -> Tensor:
    """Joint and mean log-likelihood of each word from those of its tokens (flat, sequence by sequence), ``[B, 2]``."""
    owner = torch.repeat_interleave(torch.arange(len(word_tokens), device=word_tokens.device), word_tokens)
    joint = torch.zeros(len(word_tokens), dtype=torch.float64, device=word_tokens.device)
    joint = joint.index_add_(0, owner, log_probabilities.double())
    return torch.stack([joint, joint / word_tokens], dim=1)

"""The forward passes of the likelihood study: the sentences as they are, and with their words replaced.

What one batch yields is plain arrays whose first axis is the sentence, so that a part of the work can be kept on disk and taken up
again. Random draws are seeded by sentence, not by batch: how sentences are batched changes nothing but rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture import AttentionView, capture_pass
from gnomon.corpus.alignment import AlignedWords
from gnomon.kernels.quantities import Needs
from gnomon.model import PositionModel
from gnomon.study.likelihood.attention import MODES, word_attention
from gnomon.study.likelihood.perturbation import DRAWN, Candidates, draw
from gnomon.study.likelihood.reading import CAUSAL, MASKED, aggregate, mask_id, masked, predictions, readings

Arrays = dict[str, NDArray[Any]]
INNER = MODES.index("inner")


class WordBatch(NamedTuple):
    """Some sentences as tensors on the model's device."""

    tokens: Tensor
    lengths: Tensor
    special: Tensor
    first: Tensor
    stop: Tensor

    @classmethod
    def of(cls, words: AlignedWords, model: PositionModel) -> WordBatch:
        """The sentences of ``words``."""
        arrays = (words.tokens, words.lengths, words.special, words.first, words.stop)
        return cls(*(torch.from_numpy(np.array(array)).to(model.device) for array in arrays))


def read_sentences(model: PositionModel, words: AlignedWords, candidates: Candidates | None, *, widest: int, seed: int) -> Arrays:
    """Likelihood and attention of the words of one batch and, with ``candidates``, what to replace them by.

    ``widest`` is the number of tokens of the longest word of the study.

    Returns:
        ``attention [B, layer, head, condition, mode]``, ``log_likelihood [B, reading, aggregate]``, ``probability [B, reading]`` (mean
        over the word's tokens), and per entry of ``DRAWN``: ``drawn [B, drawn, token]`` (-1 where there is none),
        ``drawn_log_likelihood`` and ``drawn_log_frequency [B, drawn]`` (means over the word's tokens).
    """
    batch = WordBatch.of(words, model)
    causal = model.anatomy.causal
    attention, logits = _attention(model, batch, batch.tokens, logits=True)
    assert logits is not None
    over_vocabulary = {readings(model)[0]: predictions(logits, batch.tokens, batch.first, batch.stop, causal=causal)}
    del logits
    mask_token = mask_id(model)
    if not causal and mask_token is not None:
        hidden = masked(batch.tokens, batch.first, batch.stop, mask_token)
        logits = capture_pass(model, hidden, batch.lengths, batch.special, logits=True)
        assert logits is not None
        over_vocabulary[MASKED] = predictions(logits, batch.tokens, batch.first, batch.stop, causal=False)
        del logits
    out: Arrays = {"attention": attention, **_likelihoods(over_vocabulary, words)}
    if candidates is not None:
        source = CAUSAL if causal else (MASKED if MASKED in over_vocabulary else readings(model)[0])
        out |= _draws(over_vocabulary[source].cpu().numpy(), words, candidates, widest, seed)
    return out


def read_replaced(model: PositionModel, words: AlignedWords, drawn: NDArray[np.int64]) -> NDArray[np.float32]:
    """Inner attention of one batch with its words replaced by ``drawn [B, token]``: ``[B, layer, head, condition]``."""
    batch = WordBatch.of(words, model)
    tokens = np.array(words.tokens)
    position = np.arange(tokens.shape[1])[None]
    inside = (position >= words.first[:, None]) & (position < words.stop[:, None])
    usable = drawn[:, 0] >= 0
    flat = drawn[drawn >= 0]
    tokens[inside & usable[:, None]] = flat
    attention, _ = _attention(model, batch, torch.from_numpy(tokens).to(model.device), logits=False)
    inner = attention[..., INNER]
    inner[~usable] = np.nan
    return inner


def _attention(
    model: PositionModel, batch: WordBatch, tokens: Tensor, *, logits: bool
) -> tuple[NDArray[np.float32], Tensor | None]:
    layers: list[Tensor] = []

    def keep(view: AttentionView) -> None:
        device = view.lse.device
        layers.append(word_attention(view, batch.first.to(device), batch.stop.to(device)).float().cpu())

    result = capture_pass(model, tokens, batch.lengths, batch.special, Needs(), keep, logits=logits)
    return torch.stack(layers, dim=1).numpy(), result


def _likelihoods(over_vocabulary: dict[str, Tensor], words: AlignedWords) -> Arrays:
    word_tokens = torch.from_numpy(np.array(words.word_tokens))
    own = torch.from_numpy(own_tokens(words))
    log_likelihood, probability = [], []
    for log_probabilities in over_vocabulary.values():
        flat = log_probabilities.gather(1, own.to(log_probabilities.device)[:, None])[:, 0].cpu()
        log_likelihood.append(aggregate(flat, word_tokens).numpy())
        probability.append(aggregate(flat.exp(), word_tokens).numpy()[:, 1])
    return {"log_likelihood": np.stack(log_likelihood, axis=1), "probability": np.stack(probability, axis=1)}


def own_tokens(words: AlignedWords) -> NDArray[np.int64]:
    """The tokens of all words, sentence by sentence."""
    position = np.arange(words.tokens.shape[1])[None]
    return words.tokens[(position >= words.first[:, None]) & (position < words.stop[:, None])]


def _draws(log_probabilities: NDArray[np.float32], words: AlignedWords, candidates: Candidates, widest: int, seed: int) -> Arrays:
    drawn = np.full((len(words), len(DRAWN), widest), -1, dtype=np.int64)
    log_likelihood = np.full((len(words), len(DRAWN)), np.nan)
    log_frequency = np.full((len(words), len(DRAWN)), np.nan)
    starts = np.concatenate([[0], np.cumsum(words.word_tokens)])
    own = own_tokens(words)
    for row, (example, start, stop) in enumerate(zip(words.index, starts[:-1], starts[1:], strict=True)):
        choices = [
            draw(
                log_probabilities[place], int(own[place]), candidates, np.random.default_rng([seed, int(example), place - start])
            )
            for place in range(start, stop)
        ]
        found = [choice for choice in choices if choice is not None]
        if len(found) == len(choices):
            ids = np.stack(found, axis=1)
            drawn[row, :, : len(found)] = ids
            log_likelihood[row] = log_probabilities[np.arange(start, stop)[None], ids].mean(1)
            log_frequency[row] = candidates.log_frequency[ids].mean(1)
    return {"drawn": drawn, "drawn_log_likelihood": log_likelihood, "drawn_log_frequency": log_frequency}

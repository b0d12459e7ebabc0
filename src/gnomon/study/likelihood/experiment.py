"""The likelihood study: what a model finds likely, and what it attends to.

Papers on encoders report that the likelihood of a word goes with the attention that the word gives itself, and that unexpected words
attend less to themselves, most so in late layers. Here both are measured on any model with a language-model head, decoders included,
with what the published figures lack: other readings of likelihood, controls for position, length and frequency, a correction for
picking the best layer, paired replacements, and intervals over sentences throughout.

Quantities: :mod:`~gnomon.study.likelihood.reading`, :mod:`~gnomon.study.likelihood.attention`. Statistics:
:mod:`~gnomon.study.likelihood.relation` (D1), :mod:`~gnomon.study.likelihood.contrast` (D2). None of it shows which way an influence runs between
likelihood and attention in D1; D2 changes the word, so there the direction is known, but a word differs from another in
more than its likelihood.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.corpus import Windows
from gnomon.corpus.alignment import MAX_TOKENS, AlignedWords, align_words
from gnomon.corpus.words import WordExamples, read_words, wordnet_examples
from gnomon.dims import BAND, CONDITION, HEAD, LAYER, SEQUENCE
from gnomon.errors import ConfigError, CorpusError
from gnomon.model import PositionModel
from gnomon.statistics import Estimate, bootstrap_mean
from gnomon.statistics.correlation import MIN_ROWS
from gnomon.study.experiment import Arrays, Context, Experiment
from gnomon.study.likelihood import headline as headlines
from gnomon.study.likelihood.attention import CONDITIONS, MODES
from gnomon.study.likelihood.contrast import CONTROL, CONTROLLED, contrast
from gnomon.study.likelihood.passes import own_tokens, read_replaced, read_sentences
from gnomon.study.likelihood.perturbation import DRAWN, Candidates, token_counts
from gnomon.study.likelihood.reading import AGGREGATES, readings, refusal
from gnomon.study.likelihood.relation import AGGREGATE, CONTROLS, LIKELIHOOD_DIMS, MODE, READING, Variables, Words, put, relation

LOGITS_PER_PASS: Final = 2**27
TOKENS_PER_PASS: Final = 2048
BATCHES_PER_PART: Final = 8
AT_SAME_TIME: Final = 8
Batches = list[list[NDArray[np.int64]]]


class Likelihood(Experiment):
    """Attention against the likelihood of words, and after replacing them.

    Args:
        sentences: how many to draw from the built-in or given ones.
        words: a file of sentences and words (``.tsv``, ``.csv``, ``.jsonl``) instead of the built-in WordNet examples.
        replace: whether to replace words by likelier and less likely ones (six more passes).
        max_tokens: longer sentences are left out.
        draws: shuffles and sign flips behind the corrected p-values.
    """

    name: ClassVar[str] = "likelihood"
    title: ClassVar[str] = "Attention and the likelihood of words"
    claims: ClassVar[tuple[str, ...]] = ("D1", "D2")

    def __init__(
        self,
        *,
        sentences: int = 1000,
        words: str | Path | None = None,
        replace: bool = True,
        max_tokens: int = MAX_TOKENS,
        draws: int = 1000,
    ) -> None:
        for name, value, least in (("sentences", sentences, MIN_ROWS), ("max_tokens", max_tokens, 2), ("draws", draws, 99)):
            if value < least:
                raise ConfigError(f"`{name}` must be at least {least}, got {value}; ask for more.")
        self.sentences, self.words, self.replace, self.max_tokens, self.draws = sentences, words, replace, max_tokens, draws

    def run(self, model: PositionModel, windows: Windows, context: Context) -> xr.Dataset:
        """Read the sentences as they are and with their words replaced; then the statistics."""
        reason = refusal(model)
        if reason is not None:
            return self._missing(reason)
        examples = wordnet_examples() if self.words is None else read_words(self.words)
        sample = examples.sample(self.sentences, context.seed)
        words = self._aligned(model, windows, sample)
        if len(words) < MIN_ROWS:
            return self._missing(f"{len(words)} sentences could be used, and fewer than {MIN_ROWS} give no correlation")
        candidates = _candidates(model, windows, examples)
        passes = _Passes(model, words, candidates if self.replace else None, context)
        arrays = passes.originals()
        own = candidates.log_frequency[own_tokens(words)]
        log_frequency = np.add.reduceat(own, np.concatenate([[0], np.cumsum(words.word_tokens)[:-1]])) / words.word_tokens
        controls = np.stack([words.first, words.lengths, words.word_tokens, log_frequency], axis=1)
        found = Words(arrays["log_likelihood"], arrays["attention"], controls)
        variables = relation(found, draws=self.draws, seed=context.seed)
        attrs: dict[str, Any] = {
            "text": sample.source,
            "left_out": json.dumps({**sample.left_out, **words.left_out}, sort_keys=True),
        }
        if self.replace:
            self._contrast(variables, attrs, arrays, passes, context)
        _describe(variables, arrays, words, controls, context.seed)
        return self._dataset(variables, attrs, model)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """See :mod:`gnomon.study.likelihood.headline`."""
        return headlines.headline(dataset)

    def _aligned(self, model: PositionModel, windows: Windows, sample: WordExamples) -> AlignedWords:
        longest = min(self.max_tokens, model.anatomy.max_length or self.max_tokens)
        words = align_words(sample, model.tokenizer, windows.first_token, pad_id=max(0, windows.pad_id), max_tokens=longest)
        if not model.anatomy.causal:
            return words
        preceded = words.first > 0
        left_out = dict(words.left_out)
        if not preceded.all():
            left_out["nothing precedes the word"] = int((~preceded).sum())
        if not preceded.any():
            raise CorpusError("`words` must have sentences in which something precedes the word, got none; use others.")
        return words.take(np.flatnonzero(preceded), left_out=left_out)

    def _contrast(self, variables: Variables, attrs: dict[str, Any], arrays: Arrays, passes: _Passes, context: Context) -> None:
        usable = arrays["drawn"][:, 0, 0] >= 0
        attrs["replaced_sentences"] = int(usable.sum())
        if usable.sum() < MIN_ROWS:
            attrs["missing_contrast"] = (
                f"{int(usable.sum())} words have enough tokens like their own to draw a replacement from; {MIN_ROWS} are needed"
            )
            return
        replaced = passes.replacements(arrays["drawn"])[usable]
        inner = arrays["attention"][usable][..., MODES.index("inner")]
        variables |= contrast(inner, replaced, arrays["drawn_log_frequency"][usable], draws=self.draws, seed=context.seed)
        for name, title in (
            ("drawn_log_likelihood", "log-likelihood"),
            ("drawn_log_frequency", "log frequency in the corpus sample"),
        ):
            interval = bootstrap_mean(arrays[name][usable], seed=context.seed)
            put(variables, name, (BAND,), interval, f"{title} of the tokens drawn", units="nat")

    def _missing(self, reason: str) -> xr.Dataset:
        return xr.Dataset(attrs={"title": self.title, "claims": ", ".join(self.claims), "missing": reason})

    def _dataset(self, variables: Variables, attrs: dict[str, Any], model: PositionModel) -> xr.Dataset:
        labels: dict[str, Any] = {
            READING: list(readings(model)),
            AGGREGATE: list(AGGREGATES),
            CONDITION: list(CONDITIONS),
            MODE: list(MODES),
            LAYER: np.arange(model.anatomy.num_layers),
            HEAD: np.arange(model.anatomy.num_heads),
        }
        if any(BAND in variable.dims for variable in variables.values()):
            labels |= {BAND: list(DRAWN), CONTROL: list(CONTROLLED)}
        return xr.Dataset(variables, labels, {"title": self.title, "claims": ", ".join(self.claims), **attrs})


class _Passes:
    """The forward passes, in parts that are kept as they are done."""

    def __init__(self, model: PositionModel, words: AlignedWords, candidates: Candidates | None, context: Context) -> None:
        self.model, self.words, self.candidates, self.context = model, words, candidates, context
        cells = max(1, min(TOKENS_PER_PASS, LOGITS_PER_PASS // model.anatomy.vocab_size))
        batches = list(words.batches(max(1, context.batch_size) * AT_SAME_TIME, cells))
        self.parts = [batches[start : start + BATCHES_PER_PART] for start in range(0, len(batches), BATCHES_PER_PART)]
        self.total = len(batches) * (1 if candidates is None else 1 + len(DRAWN))
        self.done = 0

    def originals(self) -> dict[str, NDArray[Any]]:
        """Everything read from the sentences as they are, in their order."""
        widest = int(self.words.word_tokens.max())

        def read(batch: NDArray[np.int64]) -> Arrays:
            return read_sentences(self.model, self.words.take(batch), self.candidates, widest=widest, seed=self.context.seed)

        return self._all("original", read)

    def replacements(self, drawn: NDArray[np.int64]) -> NDArray[np.float32]:
        """Inner attention with each kind of replacement, ``[N, drawn, layer, head, condition]``."""
        bands = []
        for index, name in enumerate(DRAWN):

            def read(batch: NDArray[np.int64], index: int = index) -> Arrays:
                return {"inner": read_replaced(self.model, self.words.take(batch), drawn[batch, index])}

            bands.append(self._all(name, read)["inner"])
        return np.stack(bands, axis=1)

    def _all(self, key: str, read: Callable[[NDArray[np.int64]], Arrays]) -> dict[str, NDArray[Any]]:
        pieces = []
        for number, batches in enumerate(self.parts):
            pieces.append(self.context.stage(f"{key}-{number:04d}", partial(self._part, batches, read)))
            self.done += len(batches)
            self.context.progress(self.done, self.total)
        order = np.argsort(np.concatenate([batch for batches in self.parts for batch in batches]), kind="stable")
        return {name: np.concatenate([piece[name] for piece in pieces])[order] for name in pieces[0]}

    def _part(self, batches: list[NDArray[np.int64]], read: Callable[[NDArray[np.int64]], Arrays]) -> Arrays:
        read_ones = []
        for number, batch in enumerate(batches, start=1):
            read_ones.append(read(batch))
            self.context.progress(self.done + number, self.total)
        return {name: np.concatenate([one[name] for one in read_ones]) for name in read_ones[0]}


def _candidates(model: PositionModel, windows: Windows, examples: WordExamples) -> Candidates:
    """The vocabulary with its frequencies in all sentences at hand and the survey's own text."""
    size = model.anatomy.vocab_size
    encoded = model.tokenizer([example.sentence for example in examples.examples], add_special_tokens=False, verbose=False)
    text = windows.tokens[windows.real & ~windows.special]
    return Candidates.of(model.tokenizer, size, token_counts([*map(np.asarray, encoded["input_ids"]), text], size))


def _describe(variables: Variables, arrays: Arrays, words: AlignedWords, controls: NDArray[Any], seed: int) -> None:
    """What each sentence is and what was read from it."""
    titles = (
        "position of the word's first token",
        "tokens of the sentence",
        "tokens of the word",
        "mean log frequency of the word's tokens",
    )
    for name, column, title in zip(CONTROLS, controls.T, titles, strict=True):
        units = "nat" if name == "log_frequency" else "token"
        variables[name] = xr.Variable((SEQUENCE,), column.astype(np.float32), {"long_name": title, "units": units})
    variables["example"] = xr.Variable((SEQUENCE,), words.index, {"long_name": "which of the sampled sentences", "units": "1"})
    variables["log_likelihood"] = xr.Variable(
        (SEQUENCE, *LIKELIHOOD_DIMS),
        arrays["log_likelihood"].astype(np.float32),
        {"long_name": "log-likelihood of the word", "units": "nat"},
    )
    variables["attention"] = xr.Variable(
        (SEQUENCE, LAYER, CONDITION, MODE),
        arrays["attention"].mean(axis=2).astype(np.float32),
        {"long_name": "attention of the word, heads averaged", "units": "1"},
    )
    interval = bootstrap_mean(arrays["probability"], seed=seed)
    put(variables, "mean_probability", (READING,), interval, "probability of the word's tokens, mean over tokens, then sentences")

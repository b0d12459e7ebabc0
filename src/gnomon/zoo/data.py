"""Text to training windows: a tokenizer, one long array of tokens, and a fixed order of windows.

Step s of every recipe sees the same windows: their places are drawn from a generator seeded by ``(data_seed, s)``, so a resumed run goes on as if it had not
stopped, and recipes differ in nothing but themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import CorpusError

SPECIAL: Final = {"pad": "<pad>", "bos": "<s>", "eos": "</s>", "mask": "<mask>"}
VOCABULARY: Final = 4096
MASKED_SHARE: Final = 0.15


def train_tokenizer(texts: list[str], vocab_size: int = VOCABULARY) -> Any:
    """A byte-level BPE with pad, bos, eos and mask as tokens 0 to 3; BOS is put first (and EOS last for pairs of CLS and SEP)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def as_transformers(tokenizer: Any, *, masked: bool) -> Any:
    """The tokenizer as transformers knows it: BOS first for causal models, BOS and EOS as CLS and SEP for masked ones."""
    from tokenizers import Tokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    copy = Tokenizer.from_str(tokenizer.to_str())
    single = f"{SPECIAL['bos']} $A {SPECIAL['eos']}" if masked else f"{SPECIAL['bos']} $A"
    ids = [(token, copy.token_to_id(token)) for token in (SPECIAL["bos"], SPECIAL["eos"])]
    copy.post_processor = TemplateProcessing(single=single, special_tokens=ids)
    names = {"bos_token": SPECIAL["bos"], "eos_token": SPECIAL["eos"], "pad_token": SPECIAL["pad"]}
    if masked:
        names |= {"cls_token": SPECIAL["bos"], "sep_token": SPECIAL["eos"], "mask_token": SPECIAL["mask"]}
    return PreTrainedTokenizerFast(tokenizer_object=copy, **names)


def read_texts(folder: str | Path) -> list[str]:
    """All ``.txt`` files of a folder, in order of their names."""
    files = sorted(Path(folder).rglob("*.txt")) if Path(folder).is_dir() else []
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise CorpusError(f"`text` must be a folder with .txt files, got {folder} without any text; name another.")
    return texts


def encode(texts: list[str], tokenizer: Any) -> NDArray[np.uint16]:
    """All documents in a row, an EOS after each."""
    eos = tokenizer.token_to_id(SPECIAL["eos"])
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    return np.concatenate([np.asarray([*encoding.ids, eos], dtype=np.uint16) for encoding in encodings])


def batch_at(
    tokens: NDArray[np.uint16], step: int, *, batch: int, context: int, seed: int, masked: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Inputs and labels of one step, ``[batch, context]``; labels are -100 where nothing is to be predicted."""
    text = context - (2 if masked else 1)
    if len(tokens) <= text:
        raise CorpusError(f"`text` must have more than {text} tokens, got {len(tokens)}; give more text.")
    generator = np.random.default_rng((seed, step))
    starts = generator.integers(0, len(tokens) - text, size=batch)
    inputs = np.empty((batch, context), dtype=np.int64)
    inputs[:, 0] = 1
    inputs[:, 1 : text + 1] = tokens[starts[:, None] + np.arange(text)]
    if not masked:
        return inputs, inputs.copy()
    inputs[:, -1] = 2
    labels = np.full_like(inputs, -100)
    chosen = generator.random((batch, text)) < MASKED_SHARE
    body = inputs[:, 1:-1]
    labels[:, 1:-1][chosen] = body[chosen]
    kind = generator.random((batch, text))
    body[chosen & (kind < 0.8)] = 3
    swap = chosen & (kind >= 0.9)
    body[swap] = generator.integers(4, int(tokens.max()) + 1, size=int(swap.sum()))
    return inputs, labels

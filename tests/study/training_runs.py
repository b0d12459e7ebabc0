"""Checkpoints of little models, made in seconds: a zoo of two members, and text to train on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gnomon.corpus import CorpusSpec
from gnomon.zoo import recipe_named
from gnomon.zoo.data import encode, train_tokenizer
from gnomon.zoo.training import Corpus, train

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = ["the cat sat on the mat and the dog sat on the log. " * 40, "one two three four five six seven. " * 60]
SPEC = CorpusSpec(sequences=8, length=40)
MEASURES = "sinks,attention"


def train_zoo(folder: Path, *names: str, steps: int = 40, checkpoints: tuple[int, ...] = (0, 5, 20)) -> Path:
    """Members of a zoo under ``folder``, each with checkpoints."""
    tokenizer = train_tokenizer(TEXT, vocab_size=300)
    tokens = encode(TEXT, tokenizer)
    corpus = Corpus(train=tokens, held_out=tokens[:600], tokenizer=tokenizer, sources="made for a test")
    for name in names:
        recipe = recipe_named(name).scaled(sizes=SIZES, steps=steps, batch=4, context=48, warmup=4)
        train(replace(recipe, checkpoints=checkpoints), corpus, folder)
    return folder

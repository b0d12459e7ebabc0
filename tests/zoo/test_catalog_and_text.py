"""What of the zoo is here, text tokenised once, and training that is refused rather than mixed up."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

from gnomon.errors import ConfigError, CorpusError, ModelError, ResourceError
from gnomon.zoo import recipe_named
from gnomon.zoo.catalog import CARD, STATE, member, members, read_card
from gnomon.zoo.data import train_tokenizer
from gnomon.zoo.text import prepared, split
from gnomon.zoo.training import train
from gnomon.zoo.weights import read

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
RECIPE = replace(recipe_named("rope").scaled(sizes=SIZES, steps=4, batch=2, context=24, warmup=2), checkpoints=(2,))


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("the cat sat on the mat and the dog sat on the log. " * 100)
    (folder / "b.txt").write_text("one two three four five six seven. " * 120)
    return folder


def test_text_is_tokenised_once_and_again_when_it_changes(texts, tmp_path, monkeypatch):
    one = prepared(texts, tmp_path / "zoo", vocab_size=300)
    assert 0 < len(one.held_out) < 0.03 * len(one.train)
    assert one.sources == "a.txt, b.txt"
    with monkeypatch.context() as patch:
        patch.setattr("gnomon.zoo.text.encode", lambda *given: pytest.fail("tokenised again"))
        again = prepared(texts, tmp_path / "zoo", vocab_size=300)
    assert np.array_equal(one.train, again.train)
    assert one.digest() == again.digest()
    (texts / "a.txt").write_text("other words stand here now, and here. " * 90)
    other = prepared(texts, tmp_path / "zoo", vocab_size=300)
    assert other.digest() != one.digest()
    assert len(list((tmp_path / "zoo").glob(".corpus-*"))) == 2


def test_both_parts_hold_all_of_the_text(texts, tmp_path):
    corpus = prepared(texts, tmp_path / "zoo", vocab_size=300)
    train_text, held_out = (corpus.tokenizer.decode(part.tolist()) for part in (corpus.train, corpus.held_out))
    assert "log." in train_text
    assert "seven." in train_text
    assert held_out.count("sat") > 0
    assert held_out.count("six") > 0
    assert split("one two three", 0.5) == ("one two", "three")
    assert split("oneword", 0.5) == ("oneword", "")


def test_a_tokenizer_that_is_given_is_used_and_checked(texts, tmp_path):
    own = train_tokenizer(["entirely other text " * 20], vocab_size=280)
    own.save(str(tmp_path / "own.json"))
    corpus = prepared(texts, tmp_path / "zoo", tokenizer=tmp_path / "own.json")
    assert corpus.tokenizer.to_str() == own.to_str()
    bad = json.loads(own.to_str())
    bad["model"]["vocab"]["<s>"] = 77
    (tmp_path / "bad.json").write_text(json.dumps(bad))
    with pytest.raises(ConfigError, match="as tokens 0 to 3"):
        prepared(texts, tmp_path / "zoo", tokenizer=tmp_path / "bad.json")
    with pytest.raises(ConfigError, match="which is no file"):
        prepared(texts, tmp_path / "zoo", tokenizer=tmp_path / "none.json")


def test_damaged_tokens_are_named(texts, tmp_path):
    prepared(texts, tmp_path / "zoo", vocab_size=300)
    path = next((tmp_path / "zoo").glob(".corpus-*/train.npy"))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CorpusError, match="delete it and run again"):
        prepared(texts, tmp_path / "zoo", vocab_size=300)


def test_the_catalog_tells_what_is_here(texts, tmp_path, monkeypatch):
    zoo = tmp_path / "zoo"
    monkeypatch.setenv("GNOMON_ZOO", str(zoo))
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path / "cache"))
    corpus = prepared(texts, zoo, vocab_size=300)
    train(RECIPE, corpus, zoo)
    (zoo / "alibi").mkdir()
    (zoo / "alibi" / STATE).write_bytes(b"")
    (zoo / "own").mkdir()
    (zoo / "own" / CARD).write_text("[]")
    found = {one.name: one for one in members()}
    assert found["rope"].steps == 4
    assert found["rope"].checkpoints == (2,)
    assert found["rope"].held_out_loss == read_card(zoo / "rope")["held_out_loss"]
    assert found["rope"].size == (zoo / "rope" / "weights.int8.safetensors").stat().st_size
    assert found["alibi"].problem == "training is not finished"
    assert "must be the card" in found["own"].problem
    assert found["nope"].folder is None
    assert math.isnan(found["nope"].held_out_loss)
    assert list(found)[-1] == "own"
    (zoo / "own" / CARD).write_text('{"step": "x"}')
    assert "damaged" in member("own", zoo / "own").problem


def test_every_member_and_checkpoint_has_a_card_to_read(texts, tmp_path):
    folder = train(RECIPE, prepared(texts, tmp_path / "zoo", vocab_size=300, sources="our | own"), tmp_path / "zoo")
    for place in (folder, folder / "step-2"):
        card, page = read_card(place), (place / "README.md").read_text()
        assert f"| held-out loss | {card['held_out_loss']} nats per token |" in page
        assert "# zoo:rope" in page
        assert read(place)[2] == card
    (folder / CARD).write_text("{")
    with pytest.raises(ModelError, match="must be the card of a zoo model"):
        read(folder)


def test_other_options_or_text_are_refused(texts, tmp_path):
    corpus = prepared(texts, tmp_path / "zoo", vocab_size=300)
    folder = train(RECIPE, corpus, tmp_path / "zoo")
    times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert train(RECIPE, corpus, tmp_path / "zoo") == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == times
    with pytest.raises(ConfigError, match="other options or text"):
        train(RECIPE.scaled(steps=5), corpus, tmp_path / "zoo")
    with pytest.raises(ConfigError, match="other options or text"):
        train(RECIPE, replace(corpus, train=corpus.train[:-1]), tmp_path / "zoo")


def test_a_state_of_another_training_or_a_damaged_one_is_refused(texts, tmp_path):
    corpus = prepared(texts, tmp_path / "zoo", vocab_size=300)

    def stop(step: int, steps: int, loss: float) -> None:
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(RECIPE, corpus, tmp_path / "zoo", keep_every=2, log_every=1, progress=stop)
    with pytest.raises(ConfigError, match="was begun with other options or text"):
        train(RECIPE.scaled(steps=6), corpus, tmp_path / "zoo")
    state = tmp_path / "zoo" / "rope" / STATE
    state.write_bytes(state.read_bytes()[:100])
    with pytest.raises(ModelError, match="delete it to train from the start"):
        train(RECIPE, corpus, tmp_path / "zoo")
    state.unlink()
    assert train(RECIPE, corpus, tmp_path / "zoo").name == "rope"


def hold(path, ready, done) -> None:
    from filelock import FileLock

    with FileLock(path):
        ready.set()
        done.wait(60)


def test_one_trainer_at_a_time(texts, tmp_path):
    corpus = prepared(texts, tmp_path / "zoo", vocab_size=300)
    context = get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(str(tmp_path / "zoo" / ".rope.lock"), ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(ResourceError, match="another process trains rope"):
            train(RECIPE, corpus, tmp_path / "zoo")
    finally:
        done.set()
        other.join()

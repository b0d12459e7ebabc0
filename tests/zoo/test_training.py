"""The zoo trains: deterministically, resumably, on the same windows for every recipe; and its weights read back exactly."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from gnomon.capture import install
from gnomon.errors import ConfigError, CorpusError, ModelError
from gnomon.model import PositionModel
from gnomon.zoo import RECIPES, recipe_named
from gnomon.zoo.data import as_transformers, batch_at, encode, read_texts, train_tokenizer
from gnomon.zoo.recipes import log_spaced
from gnomon.zoo.training import STATE, Corpus, build, evaluate, learning_rate, train
from gnomon.zoo.weights import quantised, read, restored

SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = ["the cat sat on the mat and the dog sat on the log. " * 40, "one two three four five six seven. " * 60]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    tokenizer = train_tokenizer(TEXT, vocab_size=300)
    tokens = encode(TEXT, tokenizer)
    return Corpus(train=tokens, held_out=tokens[:600], tokenizer=tokenizer, sources="made for this test")


def small(name: str, steps: int = 6, **options):
    from dataclasses import replace

    recipe = recipe_named(name).scaled(sizes=SIZES, steps=steps, batch=4, context=24, warmup=2)
    return replace(recipe, checkpoints=(), **options)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_builds_a_model_that_gnomon_can_prove(name, corpus):
    recipe = small(name)
    model = build(recipe, 300).eval()
    opened = install(PositionModel.of(model, name=name))
    assert opened.proof.deviation < 1e-5
    assert opened.proof.causal != recipe.masked
    expected = {
        "nope": "none",
        "learned": "learned",
        "learned-2": "learned",
        "mlm": "learned",
        "alibi": "alibi",
        "t5": "relative",
    }
    assert opened.scheme.kind == expected.get(name, "rope")
    assert opened.scheme.learned_sinks == (name == "sinks")


def test_schemes_are_what_their_names_say():
    schemes = {name: PositionModel.of(build(recipe_named(name).scaled(sizes=SIZES), 300)).scheme for name in RECIPES}
    assert schemes["rope"].rope_base == 1e4
    assert schemes["rope_ntk"].rope_base == 1e6
    assert schemes["rope_dynamic"].rope_scaling == "dynamic"
    assert schemes["rope_partial"].rotary_fraction == 0.25
    assert set(schemes["rope_swa"].windows) == {64}


def test_training_lowers_the_loss_and_reads_back(corpus, tmp_path):
    recipe = small("rope", steps=30)
    before = evaluate(build(recipe, 300), recipe, corpus, "cpu")
    folder = train(recipe, corpus, tmp_path, log_every=10)
    model, tokenizer, card = read(folder)
    assert card["held_out_loss"] < before - 0.5
    assert card["tokens_seen"] == 30 * 4 * 24
    assert evaluate(model, recipe, corpus, "cpu") == pytest.approx(card["held_out_loss"], abs=0.02)
    assert tokenizer("the cat").input_ids[0] == 1
    assert not (folder / STATE).exists()
    assert [json.loads(line)["step"] for line in (folder / "losses.jsonl").read_text().splitlines()] == [10, 20, 30]


def test_an_interrupted_training_ends_with_the_same_weights(corpus, tmp_path):
    recipe = small("alibi", steps=8)
    whole = train(recipe, corpus, tmp_path / "whole", keep_every=3)

    class StopError(Exception):
        pass

    def stop(step: int, steps: int, loss: float) -> None:
        if step == 5:
            raise StopError

    with pytest.raises(StopError):
        train(recipe, corpus, tmp_path / "broken", keep_every=3, log_every=1, progress=stop)
    resumed = train(recipe, corpus, tmp_path / "broken", keep_every=3, log_every=1)
    one, other = (read(folder)[0].state_dict() for folder in (whole, resumed))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert [json.loads(line)["step"] for line in (resumed / "losses.jsonl").read_text().splitlines()] == list(range(1, 9))


def test_checkpoints_are_kept_on_the_way(corpus, tmp_path):
    from dataclasses import replace

    folder = train(replace(small("learned"), checkpoints=(0, 2)), corpus, tmp_path)
    assert sorted(path.name for path in folder.glob("step-*")) == ["step-0", "step-2"]
    assert read(folder / "step-2")[2]["step"] == 2


def test_windows_depend_on_the_step_alone(corpus):
    one = batch_at(corpus.train, 5, batch=3, context=16, seed=0, masked=False)
    again = batch_at(corpus.train, 5, batch=3, context=16, seed=0, masked=False)
    other = batch_at(corpus.train, 6, batch=3, context=16, seed=0, masked=False)
    assert np.array_equal(one[0], again[0])
    assert not np.array_equal(one[0], other[0])
    assert (one[0][:, 0] == 1).all()


def test_masked_windows_have_cls_sep_and_labels_where_masked(corpus):
    inputs, labels = batch_at(corpus.train, 0, batch=64, context=32, seed=0, masked=True)
    assert (inputs[:, 0] == 1).all()
    assert (inputs[:, -1] == 2).all()
    assert (labels[:, [0, -1]] == -100).all()
    chosen = labels != -100
    assert 0.12 < chosen[:, 1:-1].mean() < 0.18
    assert 0.7 < (inputs[chosen] == 3).mean() < 0.9
    assert (inputs[:, 1:-1][~chosen[:, 1:-1]] != 3).all()


def test_quantised_weights_are_within_half_a_step_and_stable():
    generator = torch.Generator().manual_seed(0)
    state = {"m": torch.randn(5, 7, generator=generator), "v": torch.randn(3, generator=generator)}
    back = restored(quantised(state))
    step = state["m"].abs().amax(1, keepdim=True) / 127
    assert ((back["m"] - state["m"]).abs() <= step / 2 + 1e-7).all()
    assert torch.equal(back["v"], state["v"])
    assert torch.equal(restored(quantised(back))["m"], back["m"])


def test_damaged_weights_are_named(corpus, tmp_path):
    folder = train(small("rope", steps=1), corpus, tmp_path)
    path = folder / "weights.int8.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ModelError, match="SHA-256"):
        read(folder)
    path.unlink()
    with pytest.raises(ModelError, match="missing"):
        read(folder)


def test_bad_input_is_named(corpus, tmp_path):
    with pytest.raises(ConfigError, match="recipe"):
        recipe_named("sundial")
    with pytest.raises(CorpusError, match="without any text"):
        read_texts(tmp_path)
    with pytest.raises(CorpusError, match="more than 599 tokens"):
        batch_at(corpus.train[:100], 0, batch=1, context=600, seed=0, masked=False)


def test_the_schedule_warms_up_and_comes_down():
    schedule = recipe_named("rope").schedule
    rates = [learning_rate(schedule, step) for step in (0, schedule.warmup, schedule.steps)]
    assert rates[0] == pytest.approx(schedule.peak_rate / schedule.warmup)
    assert rates[1] == pytest.approx(schedule.peak_rate)
    assert rates[2] == pytest.approx(schedule.peak_rate / 10)


def test_at_least_twelve_checkpoints_dense_where_sinks_emerge():
    steps = log_spaced(30000)
    assert len(steps) >= 12
    assert steps[0] == 0
    assert sum(4000 <= step <= 16500 for step in steps) >= 4


def test_the_masked_tokenizer_closes_its_windows(corpus):
    tokenizer = as_transformers(corpus.tokenizer, masked=True)
    ids = tokenizer("the cat").input_ids
    assert (ids[0], ids[-1]) == (1, 2)
    assert tokenizer.mask_token_id == 3

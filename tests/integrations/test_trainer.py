"""The Trainer's callback: it sees what a survey would, changes nothing to the bit, and reports where the Trainer reports."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from gnomon.corpus import CorpusSpec, build_corpus
from gnomon.errors import ConfigError
from gnomon.integrations import GnomonCallback
from gnomon.study.light import borrowed
from gnomon.study.survey import survey
from tests.families.configs import FAMILIES, byte_tokenizer

pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
SPEC = CorpusSpec(sequences=4, length=40)


class Tokens(Dataset):
    """Sixteen windows of random tokens."""

    def __init__(self) -> None:
        self.rows = torch.randint(4, 270, (16, 24), generator=torch.Generator().manual_seed(3))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def llama(**changes) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    return LlamaForCausalLM(LlamaConfig(vocab_size=272, attention_dropout=0.1, **{**sizes, **changes}))


def trained(folder: Path, callbacks: list, *, model=None, report_to="none", steps=6) -> Trainer:
    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=4, logging_steps=1, seed=1, report_to=report_to,
        save_strategy="no", disable_tqdm=True, use_cpu=True, learning_rate=1e-2,
    )  # fmt: skip
    trainer = Trainer(
        model=model or llama(), args=arguments, train_dataset=Tokens(), processing_class=byte_tokenizer(), callbacks=callbacks
    )
    trainer.train()
    return trainer


def losses(trainer: Trainer) -> list[float]:
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


def looks(trainer: Trainer) -> dict[int, dict[str, float]]:
    return {row["step"]: row for row in trainer.state.log_history if "gnomon/seconds" in row}


def test_losses_and_weights_are_equal_to_the_bit_with_and_without(tmp_path):
    without = trained(tmp_path / "without", [])
    watched = trained(tmp_path / "with", [GnomonCallback(every=2, text=SPEC)])
    assert losses(watched) == losses(without)
    assert len(losses(watched)) == 6
    one, other = without.model.state_dict(), watched.model.state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert watched.model.config._attn_implementation == without.model.config._attn_implementation == "sdpa"
    assert sorted(looks(watched)) == [0, 2, 4, 6]


@pytest.mark.parametrize("scaling", ["dynamic", "longrope"])
def test_rotary_scalings_that_rewrite_their_tables_are_given_back(tmp_path, scaling):
    rope = {"rope_type": scaling, "rope_theta": 1e4, "factor": 2.0}
    if scaling == "longrope":
        rope |= {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4, "original_max_position_embeddings": 16}
    sizes = {"max_position_embeddings": 32, "rope_parameters": rope}
    without = trained(tmp_path / "without", [], model=llama(**sizes), steps=3)
    windows = build_corpus(CorpusSpec(sequences=2, length=32), byte_tokenizer())
    watched = trained(tmp_path / "with", [GnomonCallback(every=1, text=windows)], model=llama(**sizes), steps=3)
    assert losses(watched) == losses(without)


def test_it_logs_what_a_survey_of_the_same_text_says(tmp_path):
    windows = build_corpus(SPEC, byte_tokenizer())
    watched = trained(tmp_path, [GnomonCallback(every=3, text=windows)])
    found = survey(watched.model.eval(), corpus=windows, measures="sinks,attention").headline
    last = looks(watched)[6]
    for key in ("sinks/position_0_mass", "attention/entropy", "sinks/head_share_03"):
        measure, _, name = key.partition("/")
        assert last[f"gnomon/{key}"] == pytest.approx(found[measure][name].value, abs=1e-6)
    assert looks(watched)[0]["gnomon/attention/entropy"] != last["gnomon/attention/entropy"]


def test_tensorboard_gets_the_numbers(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    callback = GnomonCallback(every=2, text=SPEC)
    watched = trained(tmp_path, [callback], report_to="tensorboard")
    events = EventAccumulator(str(tmp_path / "board")).Reload()
    tag = "train/gnomon/sinks/position_0_mass"
    assert [event.step for event in events.Scalars(tag)] == [0, 2, 4, 6]
    logged = [looks(watched)[step]["gnomon/sinks/position_0_mass"] for step in (0, 2, 4, 6)]
    assert [event.value for event in events.Scalars(tag)] == pytest.approx(logged, rel=1e-6)
    assert [event.step for event in events.Scalars("train/loss")] == [1, 2, 3, 4, 5, 6]
    assert 0 < events.Scalars("train/gnomon/seconds")[-1].value < callback.seconds


def test_custom_callbacks_hear_of_it_too(tmp_path):
    class Ear(TrainerCallback):
        def __init__(self) -> None:
            self.heard: list[int] = []

        def on_log(self, args, state, control, logs=None, **given) -> None:
            if "gnomon/seconds" in logs:
                self.heard.append(state.global_step)

    ear = Ear()
    trained(tmp_path, [GnomonCallback(every=4, text=SPEC), ear], steps=5)
    assert ear.heard == [0, 4, 5]


@pytest.mark.parametrize("name", ["bloom", "gpt-neo", "bert", "t5-decoder"])
def test_a_borrowed_model_is_given_back_whatever_its_family(name):
    from gnomon.study.light import LightSurvey

    family = FAMILIES[name]
    model = family.build().train()
    next(model.modules()).eval()
    for index, module in enumerate(model.modules()):
        module.training = bool(index % 3)
    before = [
        (module.training, set(vars(module)), {k: v.clone() for k, v in module._buffers.items() if v is not None})
        for module in model.modules()
    ]
    tokens, implementation = torch.arange(8)[None], model.config._attn_implementation
    given = {"input_ids": tokens, "decoder_input_ids": tokens} if model.config.is_encoder_decoder else {"input_ids": tokens}
    torch.manual_seed(5)
    model.eval()
    expected = model(**given)[0]
    for index, module in enumerate(model.modules()):
        module.training = bool(index % 3)
    state = torch.get_rng_state()
    windows = build_corpus(CorpusSpec(sequences=3, length=24), family.tokenizer(), encoder=not family.causal)
    look = LightSurvey(windows)
    for _ in range(2):
        numbers = look(model)
        assert 0 <= numbers["sinks/position_0_mass"] <= 1
    assert torch.equal(torch.get_rng_state(), state)
    assert model.config._attn_implementation == implementation
    after = [(module.training, set(vars(module)), module._buffers) for module in model.modules()]
    assert [one[:2] for one in before] == [one[:2] for one in after]
    assert all(torch.equal(one[2][key], other[2][key]) for one, other in zip(before, after, strict=True) for key in one[2])
    model.eval()
    assert torch.equal(model(**given)[0], expected)


def test_a_look_that_fails_gives_the_model_back():
    model = llama().train()
    states = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002

    def disturb() -> None:
        with borrowed(model):
            assert not model.training
            model.config._attn_implementation = "eager"
            random.random()
            np.random.random()  # noqa: NPY002
            torch.rand(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        disturb()
    assert model.training
    assert all(module.training for module in model.modules())
    assert model.config._attn_implementation == "sdpa"
    assert random.getstate() == states[0]
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002


def test_bad_input_is_named_before_training(tmp_path):
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ConfigError, match="`every` must be"):
            GnomonCallback(every=wrong)
    arguments = TrainingArguments(output_dir=str(tmp_path), max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    trainer = Trainer(model=llama(), args=arguments, train_dataset=Tokens(), callbacks=[GnomonCallback()])
    with pytest.raises(ConfigError, match="no tokenizer"):
        trainer.train()
    assert trainer.state.global_step == 0

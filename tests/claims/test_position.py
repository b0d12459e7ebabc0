"""Claims A1, A5, A6, A8 and A9 on tiny models of every family: what must hold exactly, holds; what must fail, fails."""

import numpy as np
import pytest
import torch

from gnomon.capture import install
from gnomon.corpus import FirstToken, Windows
from gnomon.model import PositionModel
from gnomon.statistics import Estimate
from gnomon.study.experiment import Context
from gnomon.study.intervene import HeadChoice, Intervention, replacements
from gnomon.study.invariance import Invariance
from gnomon.study.trajectory import Trajectory
from tests.families.configs import FAMILIES

LENGTH = 48


def opened(name):
    family = FAMILIES[name]
    return install(PositionModel.of(family.build(), tokenizer=family.tokenizer(), name=name))


def windows(number=6, length=LENGTH, seed=0):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(8, 264, size=(number, length))
    tokens[:, 0] = 1
    special = np.zeros_like(tokens, dtype=bool)
    special[:, 0] = True
    first = FirstToken(policy="always", placed=True, id=1, text="<s>", special=True, why="test", warning=None, closing_id=None)
    return Windows(
        tokens=tokens,
        lengths=np.full(number, length),
        special=special,
        document=np.zeros(number),
        start=np.zeros(number),
        source="random",
        seed=seed,
        first_token=first,
        pad_id=0,
    )


@pytest.fixture(scope="module")
def llama_intervention():
    model = opened("llama")
    experiment = Intervention(bos="mean,zero", ablate_sink_reads="top:2", shift=5, rope_base=500.0, window=4)
    before = model.weight_hash()
    dataset = experiment.run(model, windows(12), Context(batch_size=12))
    model.provenance.pop("weight_hash")
    assert model.weight_hash() == before
    return experiment, dataset


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_position_0_is_a_closed_system_exactly_where_attention_is_causal(name):
    model = opened(name)
    dataset = Trajectory().run(model, windows(4, 20), Context(batch_size=48))
    closed = FAMILIES[name].causal and FAMILIES[name].stack != "decoder"  # a decoder with an encoder sees all of its source
    assert Trajectory().labels(dataset)["position_0"] == ("closed system" if closed else "not a closed system")
    if closed:
        assert float(dataset["hidden_deviation"].max()) < 2e-5
        assert float(dataset["hidden_within"].max()) < 2e-5
        assert float(dataset["value_accuracy"].min()) == 1


@pytest.mark.parametrize(
    "name", ["llama", "llama-yarn", "mistral", "gemma3", "gpt-neox", "gpt2", "opt", "bloom", "bert", "t5-encoder"]
)
def test_a_shift_of_all_positions(name):
    model = opened(name)
    dataset = Invariance(shifts=(1, 64)).run(model, windows(4, 20), Context())
    expected = {"rope": "invariant", "learned": "not invariant", "alibi": "not applicable", "relative": "not applicable"}
    assert Invariance().labels(dataset)["shift"] == expected[FAMILIES[name].scheme]
    estimate = Invariance().headline(dataset)["logit_error"]
    assert estimate.is_missing is (expected[FAMILIES[name].scheme] == "not applicable")


def test_a_shift_beyond_the_table_is_left_out_with_a_reason():
    dataset = Invariance(shifts=(1, 250)).run(opened("gpt2"), windows(4, 20), Context())
    assert np.isfinite(dataset["logit_error"].sel(shift=1)).all()
    assert np.isnan(dataset["logit_error"].sel(shift=250)).all()
    assert "table of 256 positions" in dataset.attrs["missing"]


def test_conditions_come_with_their_controls(llama_intervention):
    _, dataset = llama_intervention
    assert dataset["condition"].values.tolist() == [
        "none", "bos=mean", "bos=mean_rescaled", "bos=zero", "bos=noise", "shift=5", "rope_base=500", "window=4", "reads=top:2", "reads=top:2 control",
    ]  # fmt: skip
    control = dict(zip(dataset["condition"].values.tolist(), dataset["control"].values.tolist(), strict=True))
    assert control["bos=mean"] == control["bos=zero"] == "bos=noise"
    assert control["reads=top:2"] == "reads=top:2 control"
    chosen, others = (set(dataset.attrs[f"heads reads=top:2{end}"].split()) for end in ("", " control"))
    assert len(chosen) == len(others) == 2
    assert not chosen & others


def test_paired_changes_are_exactly_what_they_must_be(llama_intervention):
    _, dataset = llama_intervention
    assert abs(float(dataset["loss_change"].sel(condition="shift=5"))) < 1e-4
    assert abs(float(dataset["loss_change"].sel(condition="window=4"))) > 1e-3
    change = dataset["loss"] - dataset["loss"].sel(condition="none")
    np.testing.assert_allclose(change.values[1:], dataset["loss_change"].values[1:], atol=1e-6)
    for name in ("residual", "mask", "total"):
        gap = dataset[name] - dataset[name].sel(condition="none")
        np.testing.assert_allclose(dataset[f"change_{name}"].values[1:], gap.values[1:], atol=1e-9)
        share = -gap / dataset[name].sel(condition="none")
        np.testing.assert_allclose(
            dataset[f"removed_{name}"].values[1:], share.where(dataset[f"removed_{name}"].notnull())[1:], atol=1e-9
        )
    cut = dataset["head_mass"].sel(condition="reads=top:2").values
    for head in dataset.attrs["heads reads=top:2"].split():
        layer, number = map(int, head.split("."))
        assert cut[layer, number] == 0
    early = dataset.sel(query_band="early")
    shifted = float(early["residual"].sel(condition="shift=5"))
    np.testing.assert_allclose(shifted, float(early["residual"].sel(condition="none")), rtol=1e-2, atol=1e-4)


def test_headlines_name_every_condition_and_say_why_a_number_is_missing(llama_intervention):
    experiment, dataset = llama_intervention
    headline = experiment.headline(dataset)
    assert headline["removed_late"].is_missing
    assert headline["removed_late"].reason == "too few sequences reach this band"
    assert headline["loss_change"] == headline["bos=mean/loss_change"]
    assert all(isinstance(estimate, Estimate) for estimate in headline.values())


def test_a_planted_bos_direction_is_what_a_replacement_removes():
    """A model whose only source of position is the token at position 0 loses its residual component with it."""
    model = opened("llama")
    text = windows(16)
    kept = torch.get_rng_state()
    dataset = Intervention(bos="token:1").run(model, text, Context(batch_size=16))
    torch.set_rng_state(kept)
    same = dataset.sel(condition="bos=token:1")
    for name in ("removed_total", "removed_mask"):
        known = same[name].values[np.isfinite(same[name].values)]
        np.testing.assert_allclose(known, 0.0, atol=1e-5)
    assert abs(float(same["loss_change"])) < 1e-6


def test_encoders_have_interventions_without_a_loss():
    dataset = Intervention(bos="zero").run(opened("bert"), windows(), Context())
    assert np.isnan(dataset["loss"]).all()
    assert Intervention(bos="zero").headline(dataset)["loss_change"].reason == "the model does not predict the next token"


def test_choices_of_heads_and_replacements_are_read():
    assert HeadChoice.parse("top:3").quantity == "mass"
    assert HeadChoice.parse("carriers:3").quantity == "carried"
    assert [str(head) for head in HeadChoice.parse("4.5,3.1").listed] == ["3.1", "4.5"]
    assert [condition.label for condition in replacements("mean", 0)] == ["bos=mean", "bos=mean_rescaled", "bos=noise"]
    with pytest.raises(ValueError, match="must be top:K"):
        HeadChoice.parse("top:0")

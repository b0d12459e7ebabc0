"""Changes: each does what it says, and none leaves a trace."""

import numpy as np
import pytest
import torch

from gnomon.capture import capture_pass, install
from gnomon.errors import ConfigError
from gnomon.intervene import (
    Head,
    HideFirst,
    NarrowWindow,
    ReplaceFirst,
    RotaryBase,
    ShiftPositions,
    Together,
    Unchanged,
    largest_heads,
    matched_heads,
    mean_embedding,
)
from gnomon.kernels import Needs
from gnomon.model import PositionModel
from tests.families.configs import FAMILIES


def opened(name):
    family = FAMILIES[name]
    return install(PositionModel.of(family.build(), tokenizer=family.tokenizer(), name=name))


@pytest.fixture(scope="module")
def llama():
    return opened("llama")


TOKENS = FAMILIES["llama"].tokens()
LENGTHS = torch.full((len(TOKENS),), TOKENS.shape[1])


def seen(model, change, tokens=TOKENS):
    """Logits, the weight on key 0 by layer, and the first level of the stream, under a change."""
    first, levels = [], []
    with change.applied(model) as applied:
        logits = capture_pass(
            model,
            tokens,
            LENGTHS,
            needs=Needs(first_keys=2, states=True),
            on_view=lambda view: first.append(view.rows(torch.arange(tokens.shape[1]))),
            on_states=lambda view: levels.append(view.hidden.clone()),
            edit=applied.edit,
            logits=True,
            position_ids=applied.position_ids(tokens),
        )
    return logits, torch.stack(first, 1), torch.stack(levels, 1)


CHANGES = (
    ReplaceFirst("mean"),
    ReplaceFirst("mean_rescaled"),
    ReplaceFirst("zero"),
    ReplaceFirst("noise"),
    ReplaceFirst("random"),
    ReplaceFirst("token:9"),
    HideFirst((Head(0, 1), Head(2, 3))),
    NarrowWindow(4),
    RotaryBase(500.0),
    Together((ReplaceFirst("zero"), RotaryBase(500.0), NarrowWindow(4), HideFirst((Head(1, 0),)))),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.label)
def test_a_change_acts_and_leaves_no_trace(llama, change):
    state = {name: value.clone() for name, value in [*llama.hf.named_parameters(), *llama.hf.named_buffers()]}
    before, _, _ = seen(llama, Unchanged())
    during, _, _ = seen(llama, change)
    after, _, _ = seen(llama, Unchanged())
    assert not torch.allclose(before, during, atol=1e-3)
    assert torch.equal(before, after)
    for name, value in [*llama.hf.named_parameters(), *llama.hf.named_buffers()]:
        assert torch.equal(value, state[name]), name
    assert not llama.embedding._forward_hooks


def test_a_change_is_undone_when_the_body_raises(llama):
    before, _, _ = seen(llama, Unchanged())
    with pytest.raises(RuntimeError, match="stop"), Together(CHANGES[:1] + CHANGES[8:9]).applied(llama):
        raise RuntimeError("stop")
    assert torch.equal(before, seen(llama, Unchanged())[0])


def test_replacements_put_what_they_say_at_position_0_and_nowhere_else(llama):
    weight = llama.embedding.weight.double()
    _, _, plain = seen(llama, Unchanged())
    norms = plain[:, 0, 0].norm(dim=-1)
    expected = {
        "zero": torch.zeros(2, 64),
        "mean": weight.mean(0).float().expand(2, -1),
        "token:9": weight[9].float().expand(2, -1),
    }
    for by, vector in expected.items():
        _, _, levels = seen(llama, ReplaceFirst(by))
        torch.testing.assert_close(levels[:, 0, 0], vector, atol=1e-6, rtol=1e-5)
        assert torch.equal(levels[:, 0, 1:], plain[:, 0, 1:])
    for by in ("noise", "mean_rescaled"):
        _, _, levels = seen(llama, ReplaceFirst(by))
        torch.testing.assert_close(levels[:, 0, 0].norm(dim=-1), norms, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(mean_embedding(llama), weight.mean(0))


def test_hidden_reads_are_renormalised_for_the_chosen_heads_only(llama):
    _, plain, _ = seen(llama, Unchanged())
    _, cut, _ = seen(llama, HideFirst((Head(0, 1),)))
    assert cut[:, 0, 1, 1:, 0].abs().max() == 0
    torch.testing.assert_close(cut[:, 0, 1].sum(-1), torch.ones(2, TOKENS.shape[1]), rtol=1e-5, atol=1e-5)
    assert (cut[:, 0, 1, 0, 0] == 1).all()
    others = [0, 2, 3]
    torch.testing.assert_close(cut[:, 0, others], plain[:, 0, others])
    kept = plain[:, 0, 1, 1:, 1:] / (1 - plain[:, 0, 1, 1:, :1])
    torch.testing.assert_close(cut[:, 0, 1, 1:, 1:], kept, rtol=1e-3, atol=1e-5)


def test_a_window_hides_what_lies_before_it(llama):
    _, rows, _ = seen(llama, NarrowWindow(4))
    distance = torch.arange(TOKENS.shape[1])[:, None] - torch.arange(TOKENS.shape[1])[None]
    assert rows[..., distance >= 4].abs().max() == 0


def test_another_rotary_base_is_that_of_a_model_built_with_it():
    import transformers as tf

    family = FAMILIES["llama"]
    one = opened("llama")
    config = family.config()
    config.rope_parameters = {"rope_type": "default", "rope_theta": 777.0}
    other = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    other.load_state_dict(one.hf.state_dict())
    got, _, _ = seen(one, RotaryBase(777.0))
    torch.testing.assert_close(got, other(TOKENS).logits, rtol=1e-3, atol=1e-3)


def test_a_shift_changes_rounding_only_under_rotation_and_everything_under_a_table():
    for name, invariant in (("llama", True), ("gpt2", False)):
        model = opened(name)
        before, _, _ = seen(model, Unchanged())
        during, _, _ = seen(model, ShiftPositions(40))
        assert bool((before - during).abs().max() < 1e-2 * before.abs().max()) is invariant, name


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("bloom", ShiftPositions(3), "takes no position ids"),
        ("gpt2", RotaryBase(100.0), "keeps no rotary frequencies"),
        ("llama-dynamic", RotaryBase(100.0), "change with the length"),
        ("llama", HideFirst((Head(7, 0),)), "count from 0"),
        ("llama", ReplaceFirst("token:100000"), "below the vocabulary"),
    ],
)
def test_what_cannot_be_changed_is_refused(name, change, match):
    with pytest.raises(ConfigError, match=match), change.applied(opened(name)):
        pass


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ReplaceFirst("median"), "`bos` must be"),
        (lambda: ReplaceFirst("token:x"), "`bos` must be"),
        (lambda: ShiftPositions(-1), "`shift` must be"),
        (lambda: RotaryBase(0.5), "`rope_base` must be"),
        (lambda: NarrowWindow(0), "`window` must be"),
        (lambda: largest_heads(np.zeros((2, 2)), 5), "must choose 1 to 4"),
    ],
)
def test_nonsense_is_refused_when_it_is_said(make, match):
    with pytest.raises(ConfigError, match=match):
        make()


def test_heads_are_chosen_by_value_and_matched_by_layer():
    values = np.array([[0.1, 0.9, 0.2], [0.8, np.nan, 0.3]])
    chosen = largest_heads(values, 2)
    assert chosen == (Head(0, 1), Head(1, 0))
    for seed in range(5):
        control = matched_heads(chosen, (2, 3), seed)
        assert not set(control) & set(chosen)
        assert sorted(head.layer for head in control) == [0, 1]
    assert len(matched_heads(largest_heads(values, 4), (2, 3), 0)) == 2

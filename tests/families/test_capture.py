"""Every family under gnomon's attention: proved at load, equal to eager weights, equal to the float64 reference."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from gnomon.capture import capture_pass, install
from gnomon.errors import UnsupportedModelError
from gnomon.kernels import reference
from gnomon.model import PositionModel
from tests.families.configs import FAMILIES
from tests.kernels.problems import ALL_NEEDS

LENGTH = 37  # no multiple of any block


def opened(name: str) -> PositionModel:
    family = FAMILIES[name]
    return install(PositionModel.of(family.build(), name=name, stack=family.stack))


def tokens_of(model: PositionModel) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    length = min(LENGTH, model.anatomy.max_length or LENGTH)
    return torch.randint(5, model.anatomy.vocab_size, (3, length), generator=generator)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_proof_holds(name):
    proof = opened(name).proof
    assert proof.deviation < 1e-5
    assert proof.row_sum_error < 1e-5
    assert proof.effect > 1e-2
    assert proof.causal == FAMILIES[name].causal


@pytest.mark.parametrize("name", FAMILIES)
def test_statistics_equal_the_reference_under_padding(name):
    model = opened(name)
    tokens = tokens_of(model)
    lengths = torch.tensor([tokens.shape[1], tokens.shape[1] - 9, 5])
    special = torch.zeros_like(tokens, dtype=torch.bool)
    special[:, 0] = True
    special[0, 7] = True
    seen = []

    def compare(view) -> None:
        expected = reference.attention_statistics(view.problem, ALL_NEEDS, special)
        for key in ("lse", "first", "special", "offset_mass", "received", "above"):
            got = getattr(view.quantities, key).double()
            assert_close(got, getattr(expected, key), rtol=1e-4, atol=1e-5, equal_nan=True, msg=lambda m, key=key: f"{key}: {m}")
        for key, values in expected.moments.items():
            assert_close(view.moment(key).double(), values, rtol=1e-4, atol=1e-4, equal_nan=True)
        seen.append(view.layer)

    capture_pass(model, tokens, lengths, special, ALL_NEEDS, compare)
    assert seen == list(range(model.anatomy.num_layers))


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.interface and family.stack is None])
def test_rows_are_the_weights_that_transformers_itself_reports(name):
    model = opened(name)
    tokens = tokens_of(model)
    queries = torch.arange(tokens.shape[1])
    rows = []
    capture_pass(model, tokens, torch.full((3,), tokens.shape[1]), on_view=lambda view: rows.append(view.rows(queries)))
    model.set_attention("eager")
    with torch.no_grad():
        attentions = model.backbone(input_ids=tokens, output_attentions=True).attentions
    assert len(rows) == len(attentions)
    for ours, theirs in zip(rows, attentions, strict=True):
        assert_close(ours, theirs[..., : ours.shape[-1]].float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "bert", "bloom"])
def test_padding_changes_nothing(name):
    model = opened(name)
    tokens = tokens_of(model)
    alone, padded = [], []
    capture_pass(model, tokens[:1, :20], torch.tensor([20]), needs=ALL_NEEDS, on_view=lambda v: alone.append(v.moment("entropy")))
    lengths = torch.tensor([20, tokens.shape[1], 9])
    capture_pass(model, tokens, lengths, needs=ALL_NEEDS, on_view=lambda v: padded.append(v.moment("entropy")))
    for one, other in zip(alone, padded, strict=True):
        assert_close(one[0], other[0, :, :20], rtol=1e-4, atol=1e-5)
        assert torch.isnan(other[0, :, 20:]).all()


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "modernbert", "t5-encoder"])
def test_padding_is_kept_outside_of_a_pass_too(name):
    model = opened(name)
    tokens = tokens_of(model)
    lengths = torch.tensor([20, tokens.shape[1], 9])
    hidden = []
    handle = model.layers[-1].register_forward_hook(lambda m, a, o: hidden.append(o[0] if isinstance(o, tuple) else o))
    model.run(tokens, lengths)
    model.run(tokens[:1, :20], torch.tensor([20]))
    handle.remove()
    assert_close(hidden[0][:1, :20], hidden[1], rtol=1e-4, atol=1e-4)


def test_chunks_are_kept_outside_of_a_pass_too():
    model = opened("llama4")
    tokens = tokens_of(model)
    assert any(model.scheme.chunks)
    outside = model.run(tokens, logits=True)
    inside = capture_pass(model, tokens, torch.full((3,), tokens.shape[1]), logits=True)
    assert_close(outside, inside, rtol=1e-5, atol=1e-5)


def test_left_padding_is_refused_and_so_is_a_mask_of_foreign_shape():
    model = opened("bert")
    tokens = tokens_of(model)
    mask = torch.ones_like(tokens)
    mask[0, :4] = 0
    with pytest.raises(UnsupportedModelError, match="on the right"):
        model.backbone(input_ids=tokens, attention_mask=mask)
    dense = torch.zeros(3, 1, tokens.shape[1], tokens.shape[1])
    with pytest.raises(UnsupportedModelError, match="of its own making"):
        model.backbone(input_ids=tokens, attention_mask=dense)


def test_a_bypassing_class_without_its_adapter_is_refused(monkeypatch):
    from gnomon.capture import opening

    monkeypatch.setattr(opening, "adapter_for", lambda model: None)
    with pytest.raises(UnsupportedModelError, match="attention interface"):
        opened("bloom")


def test_hidden_levels_are_those_of_transformers():
    model = opened("llama")
    tokens = tokens_of(model)
    levels = []
    capture_pass(model, tokens, torch.full((3,), tokens.shape[1]), on_states=lambda state: levels.append(state.hidden))
    with torch.no_grad():
        expected = model.backbone(input_ids=tokens, output_hidden_states=True).hidden_states
    for ours, theirs in zip(levels[:-1], expected[:-1], strict=True):
        assert_close(ours, theirs)


def test_an_edit_reaches_the_output_and_is_gone_after():
    from dataclasses import replace

    model = opened("llama")
    tokens = tokens_of(model)
    lengths = torch.full((3,), tokens.shape[1])

    def logits(**options) -> torch.Tensor:
        return capture_pass(model, tokens, lengths, logits=True, **options)

    before = logits()
    edited = logits(edit=lambda layer, problem: replace(problem, scaling=0.5 * problem.scaling) if layer == 1 else problem)
    assert (before - edited).abs().max() > 1e-3
    assert torch.equal(before, logits())

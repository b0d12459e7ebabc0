"""One forward pass, and the weights' fingerprint."""

from __future__ import annotations

import pytest
import torch

from gnomon.errors import ModelError
from gnomon.model import PositionModel
from tests.families.configs import FAMILIES, byte_tokenizer, word_tokenizer


def model_of(name: str) -> PositionModel:
    family = FAMILIES[name]
    return PositionModel.of(family.build(), stack=family.stack, tokenizer=family.tokenizer(), name=name)


def test_run_gives_the_models_logits_or_nothing() -> None:
    model, tokens = model_of("llama"), FAMILIES["llama"].tokens()
    torch.testing.assert_close(model.run(tokens, logits=True), model.hf(tokens).logits)
    assert model.run(tokens) is None


def test_embeddings_in_place_of_tokens() -> None:
    for name in ("llama", "gemma3", "bert", "bloom", "gpt2", "t5-decoder"):
        model, tokens = model_of(name), FAMILIES[name].tokens()
        by_embedding = model.run(tokens, inputs_embeds=model.embedding(tokens), logits=True)
        torch.testing.assert_close(by_embedding, model.run(tokens, logits=True), msg=lambda text, name=name: f"{name}: {text}")


def test_gradients_reach_embeddings_that_ask_for_them() -> None:
    model, tokens = model_of("llama"), FAMILIES["llama"].tokens(1, 5)
    embeddings = model.embedding(tokens).requires_grad_(True)
    logits = model.run(tokens, inputs_embeds=embeddings, logits=True)
    assert logits is not None
    logits[0, -1].sum().backward()
    assert embeddings.grad is not None
    assert embeddings.grad.abs().sum() > 0
    without = model.run(tokens, logits=True)
    assert without is not None
    assert not without.requires_grad


def test_positions_shift_nothing_under_rope_and_much_under_a_table() -> None:
    """Claim A1 in small: RoPE sees offsets only."""
    tokens = FAMILIES["llama"].tokens(1, 12)
    shifted = torch.arange(12)[None] + 37
    for name, moves in (("llama", False), ("mistral", False), ("gpt2", True), ("opt", True)):
        model = model_of(name)
        plain, moved = model.run(tokens, logits=True), model.run(tokens, position_ids=shifted, logits=True)
        assert plain is not None
        assert moved is not None
        assert (float((plain - moved).abs().max()) > 1e-2) is moves, name


def test_unusual_positions_are_not_taken_for_packed_sequences() -> None:
    """Positions that start anew inside a sequence must not cut attention there."""
    model, tokens = model_of("llama"), FAMILIES["llama"].tokens(1, 12)
    positions = torch.arange(12)[None] % 6
    changed = tokens.clone()
    changed[0, 0] = (changed[0, 0] - 8 + 5) % 256 + 8
    one = model.run(tokens, position_ids=positions, logits=True)
    other = model.run(changed, position_ids=positions, logits=True)
    assert one is not None
    assert other is not None
    assert float((one - other)[0, 11].abs().max()) > 1e-3


def test_padding_changes_nothing_for_real_tokens() -> None:
    for name in ("llama", "bert", "modernbert", "roberta", "bloom", "t5-decoder"):
        model, tokens = model_of(name), FAMILIES[name].tokens(1, 14)
        pad = model.config.pad_token_id or 0
        padded = torch.cat([tokens, torch.full((1, 5), pad)], 1)
        alone, together = model.run(tokens, logits=True), model.run(padded, torch.tensor([14]), logits=True)
        assert alone is not None
        assert together is not None
        torch.testing.assert_close(together[:, :14], alone, atol=1e-4, rtol=1e-4)


def test_what_a_model_cannot_do_is_said() -> None:
    tokens = FAMILIES["bert-bare"].tokens()
    with pytest.raises(ModelError, match="must have a language-model head to give logits, got bert-bare, a bare BertModel"):
        model_of("bert-bare").run(tokens, logits=True)
    with pytest.raises(ModelError, match="`position_ids` must be left out for bloom"):
        model_of("bloom").run(tokens, position_ids=torch.zeros_like(tokens))
    with pytest.raises(ValueError, match="must pass through transformers' attention interface, got GPTJForCausalLM"):
        model_of("gpt-j").set_attention("sdpa")


def test_attention_implementations_can_be_chosen() -> None:
    for name in ("llama", "bert", "t5-encoder"):
        model, tokens = model_of(name), FAMILIES[name].tokens()
        kept: list[torch.Tensor] = []
        model.layers[-1].register_forward_hook(lambda m, a, o, kept=kept: kept.append(o[0] if isinstance(o, tuple) else o))
        for implementation in ("eager", "sdpa"):
            model.set_attention(implementation)
            assert model.attentions[0].config._attn_implementation == implementation
            model.run(tokens)
        torch.testing.assert_close(kept[0], kept[1], atol=1e-4, rtol=1e-4)


def test_weight_hash_sees_one_changed_bit_and_two_exchanged_rows() -> None:
    first, second = model_of("llama"), model_of("llama")
    assert first.weight_hash() == second.weight_hash()
    assert first.provenance["weight_hash"] == first.weight_hash()
    third = model_of("llama")
    weight = third.hf.model.layers[2].mlp.down_proj.weight
    weight[63, 95] = torch.nextafter(weight[63, 95], torch.tensor(100.0))
    assert third.weight_hash() != first.weight_hash()
    fourth = model_of("llama")
    table = fourth.embedding.weight
    table[[8, 9]] = table[[9, 8]]
    assert fourth.weight_hash() != first.weight_hash()


def test_weight_hash_is_the_same_in_every_layout_and_differs_by_dtype() -> None:
    model, other, half = model_of("llama"), model_of("llama"), model_of("llama")
    weight = other.hf.lm_head.weight
    other.hf.lm_head.weight = torch.nn.Parameter(weight.T.contiguous().T, requires_grad=False)
    assert other.weight_hash() == model.weight_hash()
    half.hf.bfloat16()
    assert half.weight_hash() != model.weight_hash()


@pytest.mark.parametrize(
    ("style", "before", "after"),
    [("bos", ["<s>"], []), ("bos_off", [], []), ("none", [], []), ("cls", ["<cls>"], ["<sep>"]), ("eos", [], ["</s>"])],
)
def test_the_tokenizers_of_these_tests(style: str, before: list[str], after: list[str]) -> None:
    tokenizer = byte_tokenizer(style)  # type: ignore[arg-type]
    encoded = tokenizer("A b", return_offsets_mapping=True)
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"])
    assert tokens[: len(before)] == before
    assert tokens[len(tokens) - len(after) :] == after
    body = slice(len(before), len(tokens) - len(after))
    assert encoded["offset_mapping"][body] == [(0, 1), (1, 2), (2, 3)]
    assert tokenizer.decode(encoded["input_ids"][body]) == "A b"
    assert (tokenizer.bos_token is None) is (style in ("none", "cls", "eos"))


def test_words_are_tokens() -> None:
    tokenizer = word_tokenizer(["red", "blue"])
    assert tokenizer("blue red green")["input_ids"] == [9, 8, 6]

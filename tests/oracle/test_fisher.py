"""Fisher information by group against autograd on a tiny model."""

import numpy as np
import pytest
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM

from gnomon.capture import open_model
from gnomon.errors import ConfigError
from gnomon.study.experiment import Context
from gnomon.study.fisher import Fisher
from gnomon.study.parameter_groups import GROUPS, parts_of, sizes_of
from tests.oracle.given import windows_of


def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=30,
        hidden_size=16,
        intermediate_size=20,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return open_model(LlamaForCausalLM(config).eval())


def neox():
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=30,
        hidden_size=16,
        intermediate_size=20,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    )
    return open_model(GPTNeoXForCausalLM(config).eval())


def windows(number=3, length=9):
    tokens = np.random.default_rng(0).integers(3, 30, (number, length))
    return windows_of([length] * number, length, tokens=tokens)


def test_traces_are_the_squared_gradients_of_autograd():
    model, text = llama(), windows()
    dataset = Fisher(targets="text").run(model, text, Context())
    gradients = {}
    for index in range(3):
        tokens = torch.from_numpy(text.tokens[index].copy())[None]
        model.hf.requires_grad_(True)
        with torch.enable_grad():
            logits = model.hf(input_ids=tokens).logits[0, :-1].float()
            torch.nn.functional.cross_entropy(logits, tokens[0, 1:], reduction="sum").backward()
        for name, parameter in model.hf.named_parameters():
            gradients.setdefault(name, []).append(float(parameter.grad.square().sum()) / 8)
        model.hf.zero_grad(set_to_none=True)
        model.hf.requires_grad_(False)
    expected = {
        "query_rotated": np.mean(gradients["model.layers.1.self_attn.q_proj.weight"]),
        "value": np.mean(gradients["model.layers.1.self_attn.v_proj.weight"]),
        "output": np.mean(gradients["model.layers.1.self_attn.o_proj.weight"]),
        "feed_forward": sum(np.mean(values) for name, values in gradients.items() if "layers.1.mlp" in name),
        "norm": sum(np.mean(values) for name, values in gradients.items() if "layers.1" in name and "layernorm" in name),
    }
    for group, value in expected.items():
        assert float(dataset["trace"].sel(group=group)[1]) == pytest.approx(value, rel=1e-4)
    assert float(dataset["trace_by_group"].sel(group="embedding")) == pytest.approx(
        np.mean(gradients["model.embed_tokens.weight"]), rel=1e-4
    )
    assert np.isnan(float(dataset["trace"].sel(group="query_plain")[0]))
    assert float(dataset["share"].sum(skipna=True)) == pytest.approx(1, rel=1e-5)


def test_every_parameter_is_in_one_group_and_half_rotated_heads_are_divided():
    for model in (llama(), neox()):
        sizes = sizes_of(model, parts_of(model))
        assert int(sizes.sum()) == sum(parameter.numel() for parameter in model.hf.parameters())
        assert int(sizes[:, GROUPS.index("other")].sum()) == 0
        assert int(sizes[:, GROUPS.index("fused")].sum()) == 0
    # heads of width 8, of which 4 are rotated: 2 heads * 4 features * (16 inputs + bias)
    for group in ("query_rotated", "query_plain", "key_rotated", "key_plain"):
        assert int(sizes[0, GROUPS.index(group)]) == 2 * 4 * 17


def test_labels_drawn_from_the_model_give_the_trace_of_the_fisher_matrix():
    model, text = llama(), windows(1)
    tokens = torch.from_numpy(text.tokens[0].copy())[None]
    weight = model.hf.get_parameter("lm_head.weight")
    weight.requires_grad_(True)
    with torch.enable_grad():
        states = model.hf.model(input_ids=tokens).last_hidden_state[0, :-1].detach()
    weight.requires_grad_(False)
    probabilities = (states @ weight.T).softmax(-1)
    # for the output map the trace is sum_v p_v (1 - p_v) |h|^2 at each place
    expected = float(((1 - probabilities.square().sum(-1)) * states.square().sum(-1)).mean())
    draws = [float(Fisher().run(model, text, Context(seed=seed))["trace_by_group"].sel(group="head")) for seed in range(60)]
    assert np.mean(draws) == pytest.approx(expected, rel=0.1)


def test_model_is_left_as_it_was():
    model = llama()
    flags = [parameter.requires_grad for parameter in model.hf.parameters()]
    Fisher(sequences=1).run(model, windows(), Context())
    assert [parameter.requires_grad for parameter in model.hf.parameters()] == flags
    assert all(parameter.grad is None for parameter in model.hf.parameters())
    assert model.config._attn_implementation == "gnomon"


def test_without_a_head_there_is_a_reason_and_bad_options_are_refused():
    model = open_model(llama().hf.model)
    dataset = Fisher().run(model, windows(), Context())
    headline = Fisher().headline(dataset)
    assert headline["share_embedding"].is_missing
    assert "head" in headline["share_embedding"].reason
    with pytest.raises(ConfigError, match="targets"):
        Fisher(targets="guess")
    with pytest.raises(ConfigError, match="sequences"):
        Fisher(sequences=0)

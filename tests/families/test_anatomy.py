"""Anatomy finds the parts of every family by structure."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
import torch
import transformers as tf
from torch import nn

from gnomon.errors import ModelError, UnsupportedModelError
from gnomon.model.anatomy import read_anatomy
from gnomon.model.position_model import PositionModel
from tests.families.configs import FAMILIES, HIDDEN, VOCABULARY, Family

RMS = {
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3",
    "smollm3",
    "gpt-oss",
    "llama4",
    "t5-encoder",
    "t5-decoder",
}
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@every_family
def test_counts_and_widths(family: Family) -> None:
    hf = family.build()
    anatomy = read_anatomy(hf, family.stack)
    assert anatomy.architecture == type(hf).__name__
    assert anatomy.kind == family.kind
    assert anatomy.causal is family.causal
    assert (anatomy.num_layers, anatomy.num_heads, anatomy.num_kv_heads) == (family.num_layers, family.heads, family.kv_heads)
    assert (anatomy.head_dim, anatomy.value_dim, anatomy.hidden_size) == (family.head_dim, family.head_dim, HIDDEN)
    assert anatomy.vocab_size == VOCABULARY
    assert anatomy.num_parameters == sum(p.numel() for p in set(hf.parameters()))
    assert anatomy.norm == ("rms" if family.name in RMS or family.name.startswith("llama-") else "layer")
    assert anatomy.intermediate_size == (256 if family.name in ("bloom", "mpt") else 96)


@every_family
def test_modules_are_found_in_order_and_called(family: Family) -> None:
    hf = family.build()
    model = PositionModel.of(hf, stack=family.stack)
    called: list[tuple[str, int]] = []
    groups = {
        "layer": model.layers,
        "attention": model.attentions,
        "feed_forward": model.feed_forwards,
        "embedding": [model.embedding],
    }
    for kind, modules in groups.items():
        for index, module in enumerate(modules):
            module.register_forward_hook(lambda *_, kind=kind, index=index: called.append((kind, index)))
    model.run(family.tokens(1, 6))
    for kind, modules in groups.items():
        assert [index for name, index in called if name == kind] == list(range(len(modules))), kind
    assert len(model.attentions) == len(model.layers) == len(model.feed_forwards) == family.num_layers


@every_family
def test_head_outputs_map_to_the_residual_stream(family: Family) -> None:
    """The output weight, applied head by head, gives what the output projection gives."""
    hf = family.build()
    model = PositionModel.of(hf, stack=family.stack)
    weight = model.output_weight(0)
    assert weight is not None
    assert weight.shape == (HIDDEN, family.heads, family.head_dim)
    projection = hf.get_submodule(model.anatomy.outputs[0])
    heads = torch.randn(1, 5, family.heads, family.head_dim, generator=torch.Generator().manual_seed(0))
    bias = getattr(projection, "bias", None)
    expected = projection(heads.flatten(2)) - (0 if bias is None else bias)
    torch.testing.assert_close(torch.einsum("bthd,ehd->bte", heads, weight), expected, atol=1e-5, rtol=1e-5)


def test_the_residual_stream_is_the_sum_of_its_parts() -> None:
    """Embedding plus what attention and feed-forward add: the modules named are those that write to the stream."""
    family = FAMILIES["llama"]
    model = PositionModel.of(family.build())
    kept: dict[str, torch.Tensor] = {}

    def keep(name: str):
        return lambda module, args, output: kept.__setitem__(name, output[0] if isinstance(output, tuple) else output)

    handles = {"start": model.embedding, "a": model.attentions[0], "f": model.feed_forwards[0], "end": model.layers[0]}
    for name, module in handles.items():
        module.register_forward_hook(keep(name))
    model.run(family.tokens(1, 7))
    torch.testing.assert_close(kept["start"] + kept["a"] + kept["f"], kept["end"])


def test_max_length_counts_usable_rows_of_the_table() -> None:
    assert {name: read_anatomy(FAMILIES[name].build()).max_length for name in ("gpt2", "opt", "roberta", "bloom")} == {
        "gpt2": 256,
        "opt": 256,  # the table has 258 rows, two are reserved
        "roberta": 254,  # positions start after the padding row
        "bloom": None,
    }


def test_tied_embeddings_and_missing_heads() -> None:
    assert read_anatomy(FAMILIES["gpt2"].build()).tied_embeddings
    assert not read_anatomy(FAMILIES["llama"].build()).tied_embeddings
    assert read_anatomy(FAMILIES["bert-bare"].build()).head is None
    assert read_anatomy(FAMILIES["t5-encoder"].build(), "encoder").head is None


def test_anatomy_is_immutable() -> None:
    anatomy = read_anatomy(FAMILIES["llama"].build())
    with pytest.raises(FrozenInstanceError, match="num_layers"):
        anatomy.num_layers = 7  # type: ignore[misc]
    assert "3 layers, 4 heads over 2 key/value heads" in anatomy.describe()


def test_models_without_attention_are_refused() -> None:
    mamba = tf.MambaForCausalLM(tf.MambaConfig(hidden_size=32, num_hidden_layers=1, vocab_size=50, state_size=4))
    with pytest.raises(UnsupportedModelError, match="every layer attends, got MambaForCausalLM"):
        read_anatomy(mamba)
    with pytest.raises(UnsupportedModelError, match="must be a transformers model, got Linear"):
        read_anatomy(nn.Linear(3, 3))
    with pytest.raises(ModelError, match="`stack` must be left out for LlamaForCausalLM"):
        read_anatomy(FAMILIES["llama"].build(), "decoder")

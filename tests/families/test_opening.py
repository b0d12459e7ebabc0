"""Every family opens, is proved, and gives under gnomon what it gives by itself; classes that bypass the interface do so through adapters."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gnomon.capture import open_model
from gnomon.capture.adapters import adapter_for
from gnomon.capture.adapters.alibi import KeyBias
from gnomon.capture.attention import NAME
from gnomon.capture.engine import capture_pass
from gnomon.errors import UnsupportedModelError
from gnomon.kernels.problem import AlibiBias
from gnomon.model import PositionModel, load, untrained_like
from tests.families.configs import FAMILIES, Family

every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
BYPASSING = {name: family for name, family in FAMILIES.items() if not family.interface}
bypassing = pytest.mark.parametrize("family", BYPASSING.values(), ids=BYPASSING)


def own_code(family: Family) -> str:
    """Falcon's eager code adds its ALiBi bias twice; its sdpa code adds it once, as the models were trained."""
    return "sdpa" if family.name.startswith("falcon") else "eager"


def logits_of(hf: nn.Module, family: Family, tokens: torch.Tensor) -> torch.Tensor:
    """Logits, or hidden states of stacks without a head; a surveyed decoder has an encoder that reads the first token alone."""
    if family.stack == "encoder":
        return hf.get_encoder()(input_ids=tokens)[0]
    output = hf(input_ids=tokens[:, :1], decoder_input_ids=tokens) if family.stack else hf(input_ids=tokens)
    return output.logits if hasattr(output, "logits") else output[0]


@every_family
def test_outputs_under_gnomon_are_the_models_own(family: Family) -> None:
    tokens = family.tokens(2, 40)
    expected = logits_of(family.build(own_code(family)), family, tokens)
    model = open_model(family.build(), stack=family.stack)
    assert (model.adapter is not None) is not family.interface
    assert model.proof.causal is family.causal
    given = (
        capture_pass(model, tokens, torch.tensor([40, 40]), logits=True)
        if model.has_head
        else logits_of(model.hf, family, tokens)
    )
    torch.testing.assert_close(given, expected, atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize(
    "family", [f for f in FAMILIES.values() if f.name not in ("bert-bare", "t5-encoder")], ids=lambda f: f.name
)
def test_right_padding_changes_no_real_position(family: Family) -> None:
    model = open_model(family.build(), stack=family.stack)
    tokens = family.tokens(1, 20)
    padded = torch.cat([tokens, torch.full((1, 6), model.config.pad_token_id or 0)], 1)
    alone = capture_pass(model, tokens, torch.tensor([20]), logits=True)
    together = capture_pass(model, padded, torch.tensor([20]), logits=True)
    assert alone is not None
    assert together is not None
    torch.testing.assert_close(together[:, :20], alone, atol=2e-4, rtol=2e-4)


@bypassing
def test_adapters_come_off_again(family: Family) -> None:
    hf = family.build(own_code(family))
    tokens = family.tokens(1, 16)
    before = logits_of(hf, family, tokens)
    model = PositionModel.of(hf)
    adapter = adapter_for(model)
    assert adapter is not None
    adapter.install()
    adapter.install()
    assert adapter.installed
    assert hf.config._attn_implementation == NAME
    adapter.uninstall()
    assert not adapter.installed
    assert all("forward" not in vars(m) and "_attn" not in vars(m) for m in model.attentions)
    assert torch.equal(logits_of(hf, family, tokens), before)


@bypassing
def test_adapters_keep_the_causal_mask(family: Family) -> None:
    model = open_model(family.build())
    tokens = family.tokens(1, 16)
    changed = tokens.clone()
    changed[0, 10] = (changed[0, 10] - 8 + 1) % 256 + 8
    one, other = model.run(tokens, logits=True), model.run(changed, logits=True)
    assert one is not None
    assert other is not None
    torch.testing.assert_close(one[:, :10], other[:, :10], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(one[:, 10:], other[:, 10:], atol=1e-3)


@bypassing
def test_one_instance_is_adapted_and_no_other(family: Family) -> None:
    adapted, plain = open_model(family.build()), family.build()
    assert adapted.adapter.installed
    assert all(adapted.adapter.method not in vars(module) for module in PositionModel.of(plain).attentions)


def test_rounded_alibi_is_kept_as_it_is() -> None:
    """On exact slopes the table of a key bias and the ALiBi form agree; rounded, the table keeps the rounding."""
    slopes = torch.tensor([0.5, 0.0625])
    positions = torch.arange(12)
    exact = KeyBias(slopes[:, None] * positions).block(positions, positions)
    torch.testing.assert_close(exact, AlibiBias(slopes).block(positions, positions))
    long = torch.arange(3000)
    rounded = (torch.tensor([0.3])[:, None] * long).bfloat16().float()
    bias = KeyBias(rounded).block(long[-1:], long[-2:])
    assert bias[0, 0, 0, 0] == rounded[0, -2] - rounded[0, -1]


def test_unknown_attention_code_is_refused() -> None:
    class OwnAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.value = nn.Linear(64, 64), nn.Linear(64, 64)

    model = PositionModel.of(FAMILIES["llama"].build())
    model.layers[0].self_attn = OwnAttention()
    with pytest.raises(UnsupportedModelError, match="OwnAttention of LlamaForCausalLM; gnomon cannot observe it faithfully"):
        adapter_for(model)


@pytest.mark.parametrize("name", ["llama", "bloom", "t5-decoder", "falcon"])
def test_untrained_twin_is_reproducible_and_opens(name: str) -> None:
    family = FAMILIES[name]
    model = open_model(family.build(), stack=family.stack)
    twin, again, other = (untrained_like(model, seed) for seed in (3, 3, 4))
    assert twin.weight_hash() == again.weight_hash() != other.weight_hash()
    assert twin.anatomy == model.anatomy
    assert twin.weight_hash() != model.weight_hash()
    assert open_model(twin).proof is not None


def test_load_leaves_bypassing_classes_their_own_attention() -> None:
    model = load(FAMILIES["gpt-j"].build(), attn_implementation=NAME)
    assert model.config._attn_implementation == "eager"

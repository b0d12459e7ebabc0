"""The positional scheme is read from modules, and describes what the model does to its queries and keys."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from gnomon.model.anatomy import read_anatomy
from gnomon.model.position_model import PositionModel
from gnomon.model.scheme import Scheme, read_scheme
from tests.families.configs import FAMILIES, MAX_POSITIONS, Family

every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def scheme_of(name: str) -> Scheme:
    hf = FAMILIES[name].build()
    return read_scheme(hf, read_anatomy(hf, FAMILIES[name].stack))


@every_family
def test_facts_of_every_family(family: Family) -> None:
    hf = family.build()
    scheme = read_scheme(hf, read_anatomy(hf, family.stack))
    layers = family.num_layers
    assert scheme.kind == family.scheme
    assert scheme.windows == family.windows
    assert scheme.chunks == (family.chunks or (None,) * layers)
    assert scheme.rope_layers == (family.rope_layers or (family.scheme == "rope",) * layers)
    assert [bool(f) for f in scheme.inverse_frequencies] == list(scheme.rope_layers)
    assert scheme.softcap == family.softcap
    assert scheme.learned_sinks is family.learned_sinks
    assert scheme.describe()
    assert "\n" not in scheme.describe()


def test_frequencies_follow_the_base() -> None:
    expected = [10000 ** (-2 * k / 16) for k in range(8)]
    scheme = scheme_of("llama")
    assert scheme.inverse_frequencies[0] == pytest.approx(expected)
    assert (scheme.rope_base, scheme.rotary_width, scheme.rotary_fraction) == (10000.0, 16, 1.0)
    assert scheme.rope_scaling is None


@pytest.mark.parametrize("kind", ["linear", "yarn", "llama3"])
def test_scaled_frequencies_are_those_of_the_scaling(kind: str) -> None:
    family = FAMILIES[f"llama-{kind}"]
    scheme = scheme_of(family.name)
    expected, magnitude = ROPE_INIT_FUNCTIONS[kind](family.config(), torch.device("cpu"))
    assert scheme.inverse_frequencies[1] == pytest.approx(expected.tolist())
    assert scheme.rope_magnitude == pytest.approx(magnitude)
    assert scheme.rope_scaling == kind
    assert not scheme.length_dependent
    assert scheme.inverse_frequencies[1] != scheme_of("llama").inverse_frequencies[1]


def test_linear_scaling_divides_and_dynamic_waits() -> None:
    plain = scheme_of("llama").inverse_frequencies[0]
    assert scheme_of("llama-linear").inverse_frequencies[0] == pytest.approx([f / 2 for f in plain])
    dynamic = scheme_of("llama-dynamic")
    assert dynamic.inverse_frequencies[0] == pytest.approx(plain)
    assert dynamic.length_dependent


def test_two_bases_by_layer_type() -> None:
    gemma = scheme_of("gemma3")
    assert gemma.rope_bases == (10000.0, 10000.0, 1000000.0)
    assert gemma.rope_base is None
    assert gemma.inverse_frequencies[2][-1] == pytest.approx(1e6 ** (-14 / 16))
    assert gemma.inverse_frequencies[0][-1] == pytest.approx(1e4 ** (-14 / 16))
    assert scheme_of("modernbert").rope_bases == (160000.0, 10000.0, 10000.0)


@pytest.mark.parametrize(("name", "width", "fraction"), [("gpt-neox", 4, 0.25), ("phi", 8, 0.5), ("gpt-j", 8, 0.5)])
def test_partial_rotation(name: str, width: int, fraction: float) -> None:
    scheme = scheme_of(name)
    assert (scheme.rotary_width, scheme.rotary_fraction) == (width, fraction)
    assert scheme.inverse_frequencies[0] == pytest.approx([10000 ** (-2 * k / width) for k in range(width // 2)], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "interleaved"), [("llama", False), ("gpt-neox", False), ("gpt-oss", False), ("gpt-j", True), ("llama4", True)]
)
def test_which_features_are_paired(name: str, interleaved: bool) -> None:
    assert scheme_of(name).rotary_interleaved is interleaved


def test_declared_frequencies_are_those_that_rotate() -> None:
    """A rotation of the first queries by hand, from the scheme alone, gives the queries the model attends with."""
    family = FAMILIES["llama-yarn"]
    model = PositionModel.of(family.build())
    seen: list[torch.Tensor] = []
    from transformers import AttentionInterface
    from transformers.models.llama.modeling_llama import eager_attention_forward

    def spy(module, query, *args, **options):
        seen.append(query)
        return eager_attention_forward(module, query, *args, **options)

    AttentionInterface.register("spy_on_queries", spy)
    model.set_attention("spy_on_queries")
    raw: list[torch.Tensor] = []
    model.attentions[0].q_proj.register_forward_hook(lambda module, args, output: raw.append(output))
    model.run(family.tokens(1, 9))
    query = raw[0].view(1, 9, 4, 16).transpose(1, 2)
    angle = torch.arange(9.0)[:, None] * torch.tensor(model.scheme.inverse_frequencies[0])
    first, second = query[..., :8], query[..., 8:]
    rotated = torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1)
    torch.testing.assert_close(seen[0], rotated * model.scheme.rope_magnitude, atol=1e-5, rtol=1e-5)


def test_alibi_slopes() -> None:
    published = [2.0 ** (-8 * (h + 1) / 4) for h in range(4)]
    assert scheme_of("bloom").alibi_slopes == pytest.approx(published)
    assert scheme_of("mpt").alibi_slopes == pytest.approx(published)
    assert scheme_of("falcon-alibi").alibi_slopes == pytest.approx([s / math.sqrt(16) for s in published])


def test_tables_and_buckets() -> None:
    assert scheme_of("gpt2").table_size == MAX_POSITIONS
    assert scheme_of("opt").table_size == MAX_POSITIONS + 2
    t5 = scheme_of("t5-encoder")
    assert (t5.relative_buckets, t5.relative_max_distance) == (32, 128)


def test_descriptions() -> None:
    assert scheme_of("gpt-neox").describe() == "RoPE, base 10000, 4 features (25%) of each head rotated"
    assert scheme_of("gemma2").describe() == "RoPE, base 10000; window 8 in 2 of 3 layers; logits soft-capped at 5"
    assert "1 of 4 layers without rotation; chunk 8 in 3 of 4 layers" in scheme_of("llama4").describe()
    assert scheme_of("gpt-oss").describe().endswith("learned sink logits")


def test_no_encoding_at_all() -> None:
    """A model whose every layer goes without rotation still has buffers, but no layer uses them."""
    config = FAMILIES["smollm3"].config()
    config.no_rope_layers = [0, 0, 0, 0]
    hf = AutoModelForCausalLM.from_config(config)
    scheme = read_scheme(hf, read_anatomy(hf))
    assert scheme.kind == "none"
    assert scheme.rope_layers == (False,) * 4
    assert scheme.describe() == "no positional encoding"

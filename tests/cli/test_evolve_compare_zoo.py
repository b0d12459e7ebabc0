"""``gnomon zoo``, ``evolve`` and ``compare`` as they are typed: a zoo trained, listed, surveyed, compared; failures in one sentence."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_bad_input import is_one_sentence

TRAIN = ("--steps", "3", "--batch", "2", "--context", "32", "--quiet")
LOOK = ("--sequences", "6", "--length", "24", "--measures", "sinks", "--quiet")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.txt").write_text("the cat sat on the mat and the dog sat on the log. " * 300)
    (folder / "b.txt").write_text("one two three four five six seven eight nine ten. " * 300)
    return folder


def test_the_zoo_is_trained_listed_evolved_and_compared(gnomon, texts, tmp_path, monkeypatch):
    monkeypatch.setenv("GNOMON_ZOO", str(tmp_path / "zoo"))
    assert "rope_swa-2" in gnomon("zoo").out
    trained = gnomon("zoo", "train", "rope", "alibi", "--text", texts, "--sources", "made | for a test", *TRAIN)
    assert trained.code == 0, trained
    assert trained.out.split() == ["zoo/rope", "zoo/alibi"]
    weights = tmp_path / "zoo" / "rope" / "weights.int8.safetensors"
    before = weights.stat().st_mtime_ns
    assert gnomon("zoo", "train", "rope", "--text", texts, "--sources", "made | for a test", *TRAIN).code == 0
    assert weights.stat().st_mtime_ns == before
    card = json.loads((tmp_path / "zoo" / "rope" / "card.json").read_text())
    listed = next(line for line in gnomon("zoo").out.splitlines() if line.startswith("rope "))
    assert f"{card['held_out_loss']:.4g}" in listed
    assert r"made \| for a test" in (tmp_path / "zoo" / "rope" / "README.md").read_text()
    assert is_one_sentence(
        gnomon("zoo", "train", "rope", "--text", texts, *TRAIN[:-1], "--seed", "0", "--steps", "4", "-q"), 2, "other options"
    )
    described = gnomon("model", "zoo:rope")
    assert described.code == 0
    assert "RoPE, base 10000" in described.out
    compared = gnomon("compare", "zoo:rope", "zoo:alibi", "zoo:nowhere", *LOOK, "--out", tmp_path / "runs", "--json")
    assert compared.code == 0, compared
    tree = json.loads(compared.out)
    assert tree["runs"] == ["zoo:rope", "zoo:alibi"]
    assert tree["pairing"] == {"zoo:alibi": "paired: the same sequences"}
    assert compared.err.startswith("gnomon: zoo:nowhere: ")
    runs = sorted(str(path.parent) for path in (tmp_path / "runs").glob("*/run.json"))
    page = gnomon("compare", *runs, "--measure", "sinks")
    assert page.code == 0
    assert "sinks/position_0_mass" in page.out
    evolved = gnomon("evolve", "zoo:rope", *LOOK, "--out", tmp_path / "evolution")
    assert evolved.code == 0, evolved
    assert "zoo:rope over 2 checkpoints" in evolved.out
    told = json.loads(gnomon("evolve", "zoo:rope", *LOOK, "--out", tmp_path / "evolution", "--json").out)
    assert "3 are needed" in told["evolution"]["sinks/position_0_mass"]["reason"]
    weights.write_bytes(weights.read_bytes()[:-3])
    assert is_one_sentence(gnomon("survey", "zoo:rope", *LOOK), 1, "damaged")
    (tmp_path / "zoo" / "alibi" / "card.json").write_text('{"step": ')
    assert is_one_sentence(gnomon("survey", "zoo:alibi", *LOOK), 1, "card")
    assert "! alibi: " in gnomon("zoo").out


def test_what_cannot_be_is_said_in_one_sentence(gnomon, texts, tmp_path, monkeypatch):
    monkeypatch.setenv("GNOMON_ZOO", str(tmp_path / "zoo"))
    assert is_one_sentence(gnomon("zoo", "train", "sundial", "--text", texts), 2, "`recipe` must be one of")
    assert is_one_sentence(gnomon("zoo", "train", "rope", "--text", tmp_path / "none"), 2, "`text` must be a folder")
    (tmp_path / "empty").mkdir()
    assert is_one_sentence(gnomon("zoo", "train", "rope", "--text", tmp_path / "empty", "-q"), 1, "without any text")
    (tmp_path / "t.json").write_text("{}")
    assert is_one_sentence(
        gnomon("zoo", "train", "rope", "--text", texts, "--tokenizer", tmp_path / "t.json", "-q"), 2, "`tokenizer`"
    )
    (tmp_path / "file").write_text("")
    assert is_one_sentence(
        gnomon("zoo", "train", "rope", "--text", texts, "--out", tmp_path / "file", "-q", "--steps", "1"), 1, "file"
    )
    assert is_one_sentence(gnomon("compare", "zoo:rope", *LOOK), 2, "at least two")
    assert is_one_sentence(gnomon("compare", "zoo:rope", "zoo:nope", *LOOK), 1, "must be a zoo model that is here")
    assert is_one_sentence(gnomon("evolve"), 2, "`model` must be given")
    assert is_one_sentence(gnomon("evolve", "org/model"), 2, "--revisions step0")
    assert is_one_sentence(gnomon("evolve", "zoo:rope"), 1, "must be a zoo model that is here")
    assert is_one_sentence(gnomon("evolve", "--checkpoints", tmp_path / "empty"), 2, "without any")
    assert is_one_sentence(gnomon("evolve", "m", "--checkpoints", tmp_path), 2, "must be given alone")
    assert gnomon("evolve", "--help").code == 0
    assert "Train members of the zoo" in " ".join(gnomon("zoo", "train", "--help").out.split())

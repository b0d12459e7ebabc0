"""Every kind of corpus is made from its specification, and a specification that cannot be honoured is refused."""

from pathlib import Path

import numpy as np
import pytest

from gnomon.corpus import CorpusSpec, build_corpus
from gnomon.errors import ConfigError

LONG = " ".join(f"word{i}" for i in range(3000))


@pytest.mark.parametrize("kind", ["windows", "passages", "sentences", "random", "repeated", "shuffled"])
@pytest.mark.parametrize("name", ["llama", "bert"])
def test_every_kind(kind, name, request):
    tokenizer = request.getfixturevalue(name)
    tokenizer(LONG)
    spec = CorpusSpec(kind=kind, sequences=6, length=24, seed=7)
    first, again = (build_corpus(spec, tokenizer, encoder=name == "bert") for _ in range(2))
    assert first.equals(again)
    assert len(first) == 6
    assert first.special[:, 0].all()
    if kind not in ("passages", "sentences"):
        assert first.lengths.tolist() == [24] * 6
    assert build_corpus(spec.with_(seed=8), tokenizer, encoder=name == "bert").digest() != first.digest()


def test_random_tokens_are_uniform_and_never_special(llama):
    llama(LONG)
    windows = build_corpus(CorpusSpec(kind="random", sequences=50, length=401, seed=1), llama)
    text = windows.tokens[:, 1:]
    assert not np.isin(text, llama.all_special_ids).any()
    counts = np.bincount(text.ravel(), minlength=len(llama))[2:]
    expected = text.size / len(counts)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - len(counts)) < 5 * np.sqrt(2 * len(counts))
    assert windows.document.tolist() == [-1] * 50


def test_repeated_in_its_pure_form_has_nothing_else(llama):
    llama(LONG)
    pure = build_corpus(CorpusSpec(kind="repeated", sequences=5, length=10, bos="never"), llama)
    assert (pure.tokens == pure.tokens[:, :1]).all()
    assert not pure.special.any()
    assert len(np.unique(pure.tokens[:, 0])) == 5
    led = build_corpus(CorpusSpec(kind="repeated", sequences=5, length=10), llama)
    assert (led.tokens[:, 0] == llama.bos_token_id).all()
    assert (led.tokens[:, 1:] == led.tokens[:, 1:2]).all()


def test_shuffling_keeps_the_tokens_and_moves_them(bert):
    spec = CorpusSpec(text=LONG, sequences=4, length=40)
    plain, shuffled = (build_corpus(spec.with_(kind=kind), bert, encoder=True) for kind in ("windows", "shuffled"))
    assert (np.sort(plain.tokens, 1) == np.sort(shuffled.tokens, 1)).all()
    assert (plain.tokens[:, [0, -1]] == shuffled.tokens[:, [0, -1]]).all()
    assert (plain.tokens != shuffled.tokens).mean() > 0.8
    assert (plain.special == shuffled.special).all()


def test_round_trip():
    for spec in (CorpusSpec(), CorpusSpec(kind="passages", text=(Path("a.txt"), "b"), bos="never"), CorpusSpec(text=["x"])):
        again = CorpusSpec.from_json(spec.to_json())
        assert again.to_json() == spec.to_json()
    assert (CorpusSpec(kind="passages").shortest, CorpusSpec(kind="sentences", longest=30).longest) == (16, 30)
    assert CorpusSpec(kind="passages", shortest=300).longest == 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "poems"}, "`kind` must be one of"),
        ({"bos": "perhaps"}, "`bos` must be"),
        ({"sequences": 0}, "`sequences` must be"),
        ({"length": 1}, "`length` must be"),
        ({"length": 2.5}, "`length` must be an integer"),
        ({"seed": -1}, "`seed` must be"),
        ({"shortest": 5}, "`shortest` and `longest` must be left out"),
        ({"kind": "sentences", "shortest": 9, "longest": 5}, "`longest` must be an integer of at least 9"),
        ({"kind": "random", "text": "some"}, "`text` must be left out"),
        ({"text": 5}, "`text` must be None, a path"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ConfigError, match=message):
        CorpusSpec(**arguments)

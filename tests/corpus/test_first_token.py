"""The policy for position 0 does what it says, and says what it did."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from gnomon.corpus import FirstToken, decide_first_token
from gnomon.corpus.first_token import special_ids
from gnomon.errors import ConfigError, CorpusError
from tests.corpus.conftest import WordTokenizer


def test_auto_follows_the_tokenizer(llama, neox, plain):
    placed = decide_first_token(llama)
    assert (placed.placed, placed.text, placed.special, placed.warning) == (True, "<s>", True, None)
    for tokenizer in (neox, plain):
        found = decide_first_token(tokenizer)
        assert (found.placed, found.id, found.warning) == (False, None, None)
    assert "<|endoftext|> exists but is not put in front" in decide_first_token(neox).why


def test_always_warns_where_the_tokenizer_would_not(llama, neox):
    assert decide_first_token(llama, "always").warning is None
    found = decide_first_token(neox, "always")
    assert found.text == "<|endoftext|>"
    assert "end-of-text token" in found.warning
    chat = WordTokenizer(bos="<|im_start|>", eos="<|im_end|>")
    assert "chat message" in decide_first_token(chat, "always").warning
    other = WordTokenizer(bos="<bos>", eos="<eos>")
    assert "not trained with <bos>" in decide_first_token(other, "always").warning


def test_always_without_a_token_names_the_remedy(plain):
    with pytest.raises(CorpusError, match="must be auto or never for this tokenizer"):
        decide_first_token(plain, "always")


def test_never_warns_where_the_tokenizer_would(llama, neox):
    assert "<s> first and `never` leaves it out" in decide_first_token(llama, "never").warning
    found = decide_first_token(neox, "never")
    assert (found.warning, found.placed) == (None, False)


def test_encoders_are_opened_and_closed(bert):
    found = decide_first_token(bert, encoder=True)
    assert (found.text, found.closing_id, found.added) == ("[CLS]", bert.sep_token_id, 2)
    assert decide_first_token(bert, "always", encoder=True).closing_id == bert.sep_token_id
    assert decide_first_token(bert, "never", encoder=True).added == 0


def test_decoders_are_never_closed():
    found = decide_first_token(WordTokenizer(bos="<s>", eos="</s>", adds=(True, True)))
    assert (found.text, found.closing_id) == ("<s>", None)


def test_round_trip_and_validation(llama):
    found = decide_first_token(llama)
    assert FirstToken.from_json(found.to_json()) == found
    with pytest.raises(ConfigError, match="`bos` must be auto, always or never"):
        decide_first_token(llama, "sometimes")
    with pytest.raises(ConfigError, match="exactly when a token is `placed`"):
        FirstToken(policy="auto", placed=True, id=None, text=None, special=False, why="")


def test_added_tokens_marked_special_count_and_the_unknown_does_not(bert, neox):
    bert.added_tokens_decoder = {40: SimpleNamespace(special=True), 41: SimpleNamespace(special=False)}
    found = special_ids(bert)
    assert 40 in found
    assert 41 not in found
    assert bert.unk_token_id not in found
    assert special_ids(neox) == {neox.eos_token_id}


def test_the_package_needs_neither_torch_nor_transformers():
    code = "import sys, gnomon.corpus; sys.exit(bool({'torch', 'transformers', 'xarray', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

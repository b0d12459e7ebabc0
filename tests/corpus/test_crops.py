"""Random crops are exact pieces of the text, do not overlap, are stationary and repeatable."""

import time

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from gnomon.corpus import Document, Source, builtin_prose, crop_windows
from gnomon.errors import ConfigError, CorpusError


def numbered(*sizes):
    """Documents whose every word is different: document d says ``d0x0 d0x1 ...``."""
    return Source(
        "numbers",
        tuple(Document(f"{d}", " ".join(f"d{d}x{i}" for i in range(size))) for d, size in enumerate(sizes)),
    )


def spans(windows, tokenizer):
    """Document, first and last number of every window, checked to be consecutive."""
    found = []
    for row, length in zip(windows.tokens, windows.lengths, strict=True):
        words = [word for word in tokenizer.words(row[:length]) if word.startswith("d")]
        document, numbers = words[0].split("x")[0], [int(word.split("x")[1]) for word in words]
        assert {word.split("x")[0] for word in words} == {document}
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        found.append((document, numbers[0], numbers[-1]))
    return found


@pytest.mark.parametrize("sizes", [(5000, 3000, 10), (200, 200, 200, 40), (900,)])
def test_windows_are_exact_pieces_without_overlap(neox, sizes):
    windows = crop_windows(numbered(*sizes), neox, sequences=12, length=32, seed=3)
    assert windows.tokens.shape == (12, 32)
    assert "overlap" not in windows.source
    used = set()
    for document, first, last in spans(windows, neox):
        numbers = {(document, i) for i in range(first, last + 1)}
        assert len(numbers) == 32
        assert not used & numbers
        used |= numbers


def test_every_place_is_used_exactly_when_the_text_just_suffices(neox):
    windows = crop_windows(numbered(64, 96), neox, sequences=5, length=32)
    assert sorted(spans(windows, neox)) == [("d0", 0, 31), ("d0", 32, 63), ("d1", 0, 31), ("d1", 32, 63), ("d1", 64, 95)]


def test_overlap_only_when_unavoidable_and_said(neox):
    windows = crop_windows(numbered(100), neox, sequences=9, length=32)
    assert len(windows) == 9
    assert "overlap because the text is short" in windows.source


def test_seeds(neox):
    source = numbered(3000, 3000)
    first, again, other = (crop_windows(source, neox, sequences=4, length=16, seed=seed) for seed in (1, 1, 2))
    assert first.equals(again)
    assert first.digest() != other.digest()


def test_bos_is_put_in_front_of_every_window_and_marked(llama, bert):
    windows = crop_windows(numbered(4000), llama, sequences=3, length=16)
    assert windows.tokens[:, 0].tolist() == [llama.bos_token_id] * 3
    assert windows.special.sum(1).tolist() == [1, 1, 1]
    assert windows.special[:, 0].all()
    windows = crop_windows(numbered(4000), bert, sequences=3, length=16, encoder=True)
    assert windows.lengths.tolist() == [16] * 3
    assert windows.tokens[:, -1].tolist() == [bert.sep_token_id] * 3
    assert windows.special.sum(1).tolist() == [2, 2, 2]
    assert windows.special[:, [0, -1]].all()


def test_special_text_inside_is_marked_and_unknown_words_are_not(neox, bert):
    source = Source("marks", (Document("", " ".join(["word <|endoftext|> [UNK]"] * 500)),))
    windows = crop_windows(source, neox, sequences=2, length=30)
    assert (windows.special == (windows.tokens == neox.eos_token_id)).all()
    windows = crop_windows(source, bert, sequences=2, length=30)
    assert not windows.special[:, 1:-1][windows.tokens[:, 1:-1] == bert.unk_token_id].any()


def test_places_are_uniform(neox):
    """Starts of single windows over many seeds: mean and spread of the uniform distribution."""
    source = numbered(400)
    starts = np.array([spans(crop_windows(source, neox, sequences=1, length=40, seed=seed), neox)[0][1] for seed in range(300)])
    assert starts.min() < 12
    assert starts.max() > 330
    assert abs(starts.mean() - 180) < 4 * 104 / np.sqrt(300)
    assert abs(starts.std() - 104) < 12


def test_long_documents_are_drawn_more_often(neox):
    source = numbered(3000, 1000)
    counts = [
        document
        for seed in range(60)
        for document, _, _ in spans(crop_windows(source, neox, sequences=2, length=20, seed=seed), neox)
    ]
    assert 0.62 < counts.count("d0") / len(counts) < 0.87


def test_too_short_says_what_there_is(neox):
    with pytest.raises(
        CorpusError, match="windows of 50 text tokens where the longest of 2 documents has 30 and all together about 40"
    ):
        crop_windows(numbered(30, 10), neox, sequences=1, length=50)
    with pytest.raises(ConfigError, match="`length` must be an integer of at least 2"):
        crop_windows(numbered(30), neox, sequences=1, length=1)
    with pytest.raises(ConfigError, match="`sequences` must be an integer of at least 1"):
        crop_windows(numbered(30), neox, sequences=0)


class ByteLevel:
    """A byte-level tokenizer trained on the prose, behind the interface of transformers."""

    def __init__(self):
        self.inner = Tokenizer(models.BPE())
        self.inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.inner.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
        self.inner.train_from_iterator([builtin_prose().documents[2].text[:60_000]], trainer)
        self.all_special_ids = []

    def __len__(self):
        return self.inner.get_vocab_size()

    def __call__(self, text, **options):
        if isinstance(text, list):
            return {"input_ids": [found.ids for found in self.inner.encode_batch(text)]}
        return {"input_ids": self.inner.encode(text).ids}

    def convert_ids_to_tokens(self, token):
        return self.inner.id_to_token(token)


def test_subword_windows_are_pieces_of_the_tokenised_text_and_quick():
    tokenizer, source = ByteLevel(), builtin_prose()
    began = time.perf_counter()
    windows = crop_windows(source, tokenizer, sequences=32, length=256)
    assert time.perf_counter() - began < 5
    assert windows.tokens.shape == (32, 256)
    for row in range(0, 32, 8):
        text = source.documents[windows.document[row]].text
        place = int(windows.start[row])
        whole = tokenizer(text[max(0, place - 200) : place + 6000])["input_ids"]
        wanted = windows.tokens[row].tolist()
        assert any(whole[i : i + 256] == wanted for i in range(len(whole)))
    assert len(np.unique(windows.document)) > 5

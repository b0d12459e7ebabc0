"""Words in sentences: what is kept, what is counted, and which tokens a word is made of under three kinds of tokenizer."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from gnomon.corpus import decide_first_token
from gnomon.corpus.alignment import align_words
from gnomon.corpus.words import MIN_WORDS, find_word, read_words, word_count, wordnet_examples, words_from
from gnomon.errors import ConfigError, CorpusError


def trained(kind, size=600):
    """A small tokenizer trained on the built-in sentences."""
    text = [example.sentence for example in wordnet_examples().examples[:400]]
    special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
    if kind == "bytes":
        core = Tokenizer(models.BPE())
        core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        )
    elif kind == "pieces":
        core = Tokenizer(models.WordPiece(unk_token="<unk>"))
        core.normalizer, core.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special)
    else:
        core = Tokenizer(models.Unigram())
        core.pre_tokenizer, core.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>")
    core.train_from_iterator(text, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", unk_token="<unk>",
        pad_token="<pad>", mask_token="<mask>",
    )  # fmt: skip


KINDS = ["bytes", "pieces", "sentence"]


def test_built_in_sentences_hold_their_word_once_and_are_long_enough():
    words = wordnet_examples()
    assert len(words) == 20246
    for example in words.examples[::37]:
        assert find_word(example.sentence, example.word) == [(example.start, example.stop)]
        assert example.sentence[example.start : example.stop].lower() == example.word.lower()
        assert word_count(example.sentence) >= MIN_WORDS
    assert len({example.sentence for example in words.examples}) == len(words)


def test_samples_are_seeded_and_in_order():
    words = wordnet_examples()
    first, again, other = words.sample(50, 3), words.sample(50, 3), words.sample(50, 4)
    assert first.examples == again.examples != other.examples
    places = [words.examples.index(example) for example in first.examples]
    assert places == sorted(places)
    with pytest.raises(ConfigError, match="`sentences` must be at least 1"):
        words.sample(0)


@pytest.mark.parametrize(
    ("sentence", "spans"),
    [
        ("The unit is a unit", [(4, 8), (14, 18)]),
        ("a well-unit and the unit's end, Unit", [(32, 36)]),
        ("units reunite", []),
        ("'unit' in quotes", [(1, 5)]),
    ],
)
def test_a_word_is_found_as_a_whole_word_only(sentence, spans):
    assert find_word(sentence, "unit") == spans


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("placed", [False, True])
def test_tokens_of_a_word_decode_to_the_word(kind, placed):
    tokenizer = trained(kind)
    words = wordnet_examples().sample(200, 1)
    aligned = align_words(words, tokenizer, decide_first_token(tokenizer, "always" if placed else "never", encoder=True))
    assert len(aligned) + sum(aligned.left_out.values()) == 200
    assert len(aligned) > 150
    assert aligned.word_tokens.max() > 1
    for row in range(len(aligned)):
        example = words.examples[aligned.index[row]]
        text = tokenizer.decode(aligned.tokens[row, aligned.first[row] : aligned.stop[row]])
        assert text.replace("##", "").replace(" ", "").lower() == example.word.lower()
    assert aligned.special.sum() == (2 * len(aligned) if placed else 0)
    assert (aligned.special[:, 0] == placed).all()


def test_what_cannot_be_aligned_is_counted_by_reason():
    core = Tokenizer(
        models.WordLevel({"<unk>": 0, "well": 1, "said": 2, "the": 3, "man": 4, "old": 5, "old man": 6}, unk_token="<unk>")
    )
    core.pre_tokenizer = pre_tokenizers.Split("|", "removed")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>")
    words = words_from(
        [("well|said|the|man|old", "said"), ("well|said|the|old man", "old"), ("well|saxd|the|man|old", "saxd")],
        source="test",
        min_words=1,
    )
    aligned = align_words(words, tokenizer, decide_first_token(tokenizer, "never"))
    assert aligned.index.tolist() == [0]
    assert (aligned.first[0], aligned.stop[0]) == (1, 2)
    assert aligned.left_out == {
        "a token holds the word and something beside it": 1,
        "the tokenizer does not know the word": 1,
    }
    long = align_words(words_from([("well|said|the|man", "man"), ("well|said", "said")], source="t", min_words=1), tokenizer,
                       decide_first_token(tokenizer, "never"), max_tokens=3)  # fmt: skip
    assert long.left_out == {"more than 3 tokens": 1}


def test_batches_hold_every_sentence_once_within_bounds():
    tokenizer = trained("bytes")
    aligned = align_words(wordnet_examples().sample(100), tokenizer, decide_first_token(tokenizer, "always"))
    batches = list(aligned.batches(7, 150))
    assert sorted(np.concatenate(batches)) == list(range(len(aligned)))
    for batch in batches:
        part = aligned.take(batch)
        assert len(part) <= 7
        assert len(part) == 1 or part.tokens.size <= 150
        assert part.tokens.shape[1] == part.lengths.max()
    with pytest.raises(ConfigError, match="`batch_size` must be at least 1"):
        next(aligned.batches(0, 10))


def test_slow_tokenizers_are_refused():
    with pytest.raises(CorpusError, match="must give character offsets, got the slow tokenizer object"):
        align_words(wordnet_examples().sample(2), object(), decide_first_token(trained("bytes"), "never"))


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl"])
def test_files_of_sentences_and_words_are_read(tmp_path, form):
    pairs = [("the cat sat, down on it", "cat"), ("too short here", "short"), ("no such word in this sentence", "dog"),
             ("a dog is a dog after all", "dog"), ("what stands in here is nothing", " ")]  # fmt: skip
    path = tmp_path / f"words.{form}"
    if form == "jsonl":
        path.write_text("\n".join(json.dumps({"sentence": s, "word": w}) for s, w in pairs) + "\n")
    elif form == "tsv":
        path.write_text("word\tsentence\n" + "".join(f"{w}\t{s}\n" for s, w in pairs))
    else:
        path.write_text("".join(f'"{s}",{w}\n' for s, w in pairs))
    words = read_words(path)
    assert [example[:2] for example in words.examples] == [("the cat sat, down on it", "cat")]
    assert words.source == path.name
    assert dict(words.left_out) == {
        "fewer than 5 words": 1,
        "the word does not occur": 1,
        "the word occurs more than once": 1,
        "no word given": 1,
    }


def test_unusable_files_are_refused(tmp_path):
    with pytest.raises(CorpusError, match="must name a readable file"):
        read_words(tmp_path / "absent.tsv")
    (tmp_path / "words.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"must be a .tsv, .csv or .jsonl file"):
        read_words(tmp_path / "words.txt")
    (tmp_path / "bad.jsonl").write_text('{"sentence": "a"}\n')
    with pytest.raises(CorpusError, match=r"line 1 of bad\.jsonl"):
        read_words(tmp_path / "bad.jsonl")
    (tmp_path / "bad.tsv").write_text("only one column here now\n")
    with pytest.raises(CorpusError, match=r"in row 1 of bad\.tsv"):
        read_words(tmp_path / "bad.tsv")
    (tmp_path / "none.tsv").write_text("far too short\tshort\n")
    with pytest.raises(CorpusError, match=r"got none in none\.tsv"):
        read_words(tmp_path / "none.tsv")
    (tmp_path / "bytes.tsv").write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(CorpusError, match="must be a UTF-8 text file"):
        read_words(tmp_path / "bytes.tsv")

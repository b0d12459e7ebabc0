"""Tokenizers in the manner of transformers, without transformers."""

import re

import pytest


class WordTokenizer:
    """One token per word or mark; ids by order of first appearance. Options say what it puts around a text."""

    def __init__(self, *, bos=None, eos=None, cls=None, sep=None, unk=None, pad=None, adds=(False, False)):
        self.names = {"bos": bos, "eos": eos, "cls": cls, "sep": sep, "unk": unk, "pad": pad}
        self.vocabulary = {}
        for text in self.names.values():
            if text is not None:
                self.vocabulary.setdefault(text, len(self.vocabulary))
        for name, text in self.names.items():
            setattr(self, f"{name}_token_id", None if text is None else self.vocabulary[text])
        self.all_special_ids = sorted({self.vocabulary[text] for text in self.names.values() if text is not None})
        self.adds = adds
        self.characters_seen = 0

    def __len__(self):
        return len(self.vocabulary)

    def __call__(self, text, add_special_tokens=True, **options):
        if isinstance(text, list):
            return {"input_ids": [self(one, add_special_tokens=add_special_tokens)["input_ids"] for one in text]}
        self.characters_seen += len(text)
        ids = [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in re.findall(r"<[^<>\s]+>|\w+|[^\w\s]", text)]
        if add_special_tokens:
            first = self.cls_token_id if self.cls_token_id is not None else self.bos_token_id
            last = self.sep_token_id if self.sep_token_id is not None else self.eos_token_id
            ids = ([first] if self.adds[0] else []) + ids + ([last] if self.adds[1] else [])
        return {"input_ids": ids}

    def convert_ids_to_tokens(self, token):
        return next(text for text, index in self.vocabulary.items() if index == token)

    def words(self, ids):
        names = {index: text for text, index in self.vocabulary.items()}
        return [names[int(token)] for token in ids]


@pytest.fixture
def llama():
    """Puts BOS first."""
    return WordTokenizer(bos="<s>", eos="</s>", adds=(True, False))


@pytest.fixture
def neox():
    """Has one special token, which it adds nowhere."""
    return WordTokenizer(bos="<|endoftext|>", eos="<|endoftext|>", unk="<|endoftext|>")


@pytest.fixture
def bert():
    """Puts CLS first and SEP last."""
    return WordTokenizer(cls="[CLS]", sep="[SEP]", unk="[UNK]", pad="[PAD]", adds=(True, True))


@pytest.fixture
def plain():
    """Has no special token at all."""
    return WordTokenizer()

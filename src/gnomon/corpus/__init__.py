"""Text in, token windows out: numpy alone.

``build_corpus(CorpusSpec(...), tokenizer, encoder=...)`` is the way in; the makers behind it can be called by themselves.
"""

from gnomon.corpus.crops import crop_windows
from gnomon.corpus.excerpts import passages, sentence_windows
from gnomon.corpus.first_token import BosPolicy, FirstToken, decide_first_token
from gnomon.corpus.sources import Document, Source, builtin_prose, open_source
from gnomon.corpus.spec import CorpusSpec, build_corpus
from gnomon.corpus.synthetic import random_windows, repeated_windows, shuffled_windows
from gnomon.corpus.windows import Windows

__all__ = [
    "BosPolicy",
    "CorpusSpec",
    "Document",
    "FirstToken",
    "Source",
    "Windows",
    "build_corpus",
    "builtin_prose",
    "crop_windows",
    "decide_first_token",
    "open_source",
    "passages",
    "random_windows",
    "repeated_windows",
    "sentence_windows",
    "shuffled_windows",
]

"""A folder of text, tokenised once.

Training text is encoded the first time it is used and kept under the folder of the zoo as ``.corpus-DIGEST``: tokens for training, held-out tokens, and the tokenizer. The digest covers every
file's name and content, the tokenizer and the split, so that other text can never be mistaken for it. The last hundredth of every file is held out, so that both parts hold all sources.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

import numpy as np

from gnomon.errors import ConfigError, CorpusError, ResourceError
from gnomon.zoo.data import SPECIAL, VOCABULARY, encode, read_texts, train_tokenizer
from gnomon.zoo.training import Corpus

HELD_OUT: Final = 0.01
LARGEST_VOCABULARY: Final = 65536
_LAYOUT: Final = 1
_CHUNK: Final = 2**20


def prepared(
    folder: str | Path, cache: Path, *, tokenizer: str | Path | None = None, vocab_size: int = VOCABULARY, sources: str = ""
) -> Corpus:
    """What to train on, made of the ``.txt`` files of a folder or read back from an earlier time.

    Args:
        folder: of the text.
        cache: folder of the zoo.
        tokenizer: a ``tokenizer.json`` whose first tokens are pad, bos, eos and mask; one is trained on the text otherwise.
        vocab_size: of a tokenizer that is trained.
        sources: what the text is and under which licences, for the card; the names of the files otherwise.
    """
    files = sorted(Path(folder).rglob("*.txt")) if Path(folder).is_dir() else []
    given = None if tokenizer is None else Path(tokenizer)
    if given is not None and not given.is_file():
        raise ConfigError(f"`tokenizer` must be a tokenizer.json, got {str(tokenizer)!r}, which is no file.")
    digests = {str(file.relative_to(folder)): _sha256(file) for file in files}
    about: dict[str, Any] = {"files": digests, "layout": _LAYOUT, "held_out": HELD_OUT}
    about |= {"tokenizer": None if given is None else _sha256(given), "vocab_size": None if given is not None else vocab_size}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    target = cache / f".corpus-{digest[:24]}"
    if not (target / "about.json").is_file():
        _make(folder, target, given, vocab_size, {**about, "digest": digest})
    return _read(target, sources or ", ".join(sorted(digests)[:20]))


def split(text: str, share: float = HELD_OUT) -> tuple[str, str]:
    """A text without its end, and its end, parted at a blank."""
    place = text.find(" ", round(len(text) * (1 - share)))
    return (text, "") if place < 0 else (text[:place], text[place + 1 :])


def _make(folder: str | Path, target: Path, given: Path | None, vocab_size: int, about: dict[str, Any]) -> None:
    parts = [split(text) for text in read_texts(folder)]
    tokenizer = _tokenizer(given) if given is not None else train_tokenizer([train for train, _ in parts], vocab_size)
    temporary = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        temporary.mkdir(parents=True, exist_ok=True)
        np.save(temporary / "train.npy", encode([train for train, _ in parts], tokenizer))
        np.save(temporary / "held_out.npy", encode([end for _, end in parts], tokenizer))
        tokenizer.save(str(temporary / "tokenizer.json"))
        (temporary / "about.json").write_text(json.dumps(about, indent=1, sort_keys=True))
        if target.exists():
            shutil.rmtree(target)
        temporary.rename(target)
    except OSError as reason:
        raise ResourceError(
            f"{target.parent} must be writable and have room for the tokens, got {reason}; choose another `out`."
        ) from reason
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _read(target: Path, sources: str) -> Corpus:
    from tokenizers import Tokenizer

    try:
        train, held_out = (np.load(target / f"{part}.npy", allow_pickle=False) for part in ("train", "held_out"))
    except (OSError, ValueError, EOFError) as reason:
        raise CorpusError(
            f"{target} must hold the tokens of the text, but they are damaged; delete it and run again."
        ) from reason
    return Corpus(train=train, held_out=held_out, tokenizer=Tokenizer.from_file(str(target / "tokenizer.json")), sources=sources)


def _tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    # The package raises bare Exceptions; what the file holds is checked here before it gets to see it.
    try:
        vocabulary = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        ids = [vocabulary.get(token, -1) if isinstance(vocabulary, dict) else -1 for token in SPECIAL.values()]
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise ConfigError(f"`tokenizer` must be a tokenizer.json, got {str(path)!r}, which cannot be read as one.") from reason
    if ids != list(range(len(SPECIAL))) or len(vocabulary) > LARGEST_VOCABULARY:
        raise ConfigError(
            f"`tokenizer` must have {', '.join(SPECIAL.values())} as tokens 0 to 3 and at most {LARGEST_VOCABULARY} in all, got {ids} and {len(vocabulary)}."
        )
    return Tokenizer.from_file(str(path))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()

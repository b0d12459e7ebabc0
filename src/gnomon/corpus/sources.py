"""Where text comes from: the built-in prose, files and folders, datasets of the hub, or strings in memory.

Everything becomes a :class:`Source`: a name and documents. A document is text that belongs together, so that no window crosses
from one into the next: a text file, a line of a JSONL file, a row of a table. At most ``MAX_CHARACTERS`` are read, which is far
more than any survey uses; a source that was cut there says so in its name.
"""

from __future__ import annotations

import functools
import gzip
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

from gnomon.errors import CorpusError, MissingExtraError

MAX_CHARACTERS: Final = 64_000_000
TEXT_SUFFIXES: Final = (".txt", ".md", ".text")
LINE_SUFFIXES: Final = (".jsonl", ".ndjson")
SUFFIXES: Final = (*TEXT_SUFFIXES, *LINE_SUFFIXES, ".parquet")
HUB_PREFIX: Final = "hf:"
RECORD: Final = "\x1e"

logger = logging.getLogger(__name__)


class Document(NamedTuple):
    """Text that belongs together, and what to call it."""

    title: str
    text: str


@dataclass(frozen=True)
class Source:
    """Documents and where they are from."""

    name: str
    documents: tuple[Document, ...]

    def __post_init__(self) -> None:
        if not any(document.text.strip() for document in self.documents):
            raise CorpusError(f"`text` must hold some text, got nothing but empty documents in {self.name}; give another file.")

    @property
    def num_characters(self) -> int:
        """Characters in all documents."""
        return sum(len(document.text) for document in self.documents)


@functools.cache
def builtin_prose() -> Source:
    """English prose of seven authors and six presidents' addresses, in the public domain (see ``corpus/data/README.md``)."""
    packed = resources.files("gnomon.corpus").joinpath("data/prose.txt.gz").read_bytes()
    documents = []
    for record in gzip.decompress(packed).decode("utf-8").split(RECORD):
        heading, text = record.split("\n", 1)
        title, author, year = heading.split("\t")
        documents.append(Document(f"{title} ({author}, {year})", text))
    return Source("built-in public-domain prose", tuple(documents))


def open_source(text: str | Path | Sequence[str | Path] | None = None, *, field: str = "text") -> Source:
    """Documents from whatever the user named.

    Args:
        text: ``None`` for the built-in prose; a path (or a string that names an existing file or folder); ``hf:owner/name`` or
            ``hf:owner/name:split`` for a dataset of the hub; any other string is itself a document; or a sequence of these.
        field: name of the field or column that holds the text in JSONL, Parquet and hub datasets.

    Raises:
        CorpusError: nothing there, nothing readable, or no such field.
    """
    if text is None:
        return builtin_prose()
    items = [text] if isinstance(text, (str, Path)) else list(text)
    if not items:
        raise CorpusError(
            "`text` must name at least one file, folder, dataset or string, got an empty list; leave it out for the prose."
        )
    documents: list[Document] = []
    names: list[str] = []
    budget = MAX_CHARACTERS
    strings = 0
    for item in items:
        if isinstance(item, str) and item.startswith(HUB_PREFIX):
            names.append(item)
            stream = _from_hub(item.removeprefix(HUB_PREFIX), field)
        elif (path := _as_path(item)) is not None:
            names.append(str(path))
            stream = _from_path(path, field)
        else:
            strings += 1
            stream = iter([Document(f"string {strings}", str(item))])
        budget = _read_within(stream, documents, budget)
    if strings:
        names.append(f"{strings} string{'s' if strings > 1 else ''} given")
    name = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    if budget <= 0:
        name += f" (the first {MAX_CHARACTERS // 1_000_000} million characters)"
        logger.warning(
            "the text is long: only the first %d million characters of %s are used", MAX_CHARACTERS // 1_000_000, names[0]
        )
    return Source(name, tuple(documents))


def _read_within(stream: Iterable[Document], documents: list[Document], budget: int) -> int:
    """Add documents until the budget of characters is spent; returns what is left of it."""
    if budget <= 0:
        return budget
    for document in stream:
        documents.append(Document(document.title, document.text[:budget]))
        budget -= len(document.text)
        if budget <= 0:
            break
    return budget


def _as_path(item: str | Path) -> Path | None:
    """The path that an item names, or None where the item is a text of its own."""
    if isinstance(item, Path):
        return item
    if len(item) > 1000 or "\n" in item:
        return None
    path = Path(item).expanduser()
    looks_like_file = not any(map(str.isspace, item)) and item.removesuffix(".gz").endswith(SUFFIXES)
    return path if looks_like_file or path.exists() else None


def _from_path(path: Path, field: str) -> Iterator[Document]:
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file() and f.name.removesuffix(".gz").endswith(SUFFIXES))
        if not files:
            raise CorpusError(f"`text` must be a folder with {', '.join(SUFFIXES)} files, got {path} with none; name a file.")
        for file in files:
            yield from _from_file(file, field)
    elif path.is_file():
        yield from _from_file(path, field)
    else:
        raise CorpusError(f"`text` must name an existing file or folder, got {path}; check the path.")


def _from_file(path: Path, field: str) -> Iterator[Document]:
    name = path.name.removesuffix(".gz")
    if path.stat().st_size == 0:
        raise CorpusError(f"`text` must not be empty, got {path} of 0 bytes; give another file.")
    if name.endswith(".parquet"):
        yield from _from_parquet(path, field)
    elif name.endswith(LINE_SUFFIXES):
        yield from _from_lines(path, _decode(path), field)
    else:
        yield Document(path.name, _decode(path))


def _decode(path: Path) -> str:
    try:
        blob = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = blob.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        raise CorpusError(
            f"`text` must be UTF-8, got byte 0x{bad:02x} at offset {error.start} of {path}; convert it, for instance with iconv."
        ) from error
    except (OSError, EOFError) as error:
        raise CorpusError(f"`text` must be readable, got {path}: {error}; check the file.") from error
    if "\0" in text:
        raise CorpusError(f"`text` must be a text file, got {path} with NUL characters, which is binary; give plain text.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _from_lines(path: Path, text: str, field: str) -> Iterator[Document]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise CorpusError(
                f"`text` must hold one JSON object per line, got {error.msg} in line {number} of {path}."
            ) from error
        value = row.get(field) if isinstance(row, dict) else None
        if not isinstance(value, str):
            found = ", ".join(map(str, row)) if isinstance(row, dict) else type(row).__name__
            raise CorpusError(
                f"`field` must name a string in every line, got {field!r} where line {number} of {path} has "
                f"{found or 'no fields'}; name another field."
            )
        yield Document(f"{path.name}:{number}", value)


def _from_parquet(path: Path, field: str) -> Iterator[Document]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"`text` must be a readable Parquet file, got {path}: {error}; check the file.") from error
    columns = table.schema_arrow.names
    if field not in columns:
        raise CorpusError(
            f"`field` must be a column of {path}, got {field!r} where there are {', '.join(columns)}; name another."
        )
    row = 0
    for batch in table.iter_batches(batch_size=1000, columns=[field]):
        for value in batch.column(0).to_pylist():
            if isinstance(value, str):
                yield Document(f"{path.name}:{row}", value)
            elif value is not None:
                raise CorpusError(
                    f"`field` must be a column of strings, got {type(value).__name__} in {field!r} of {path}; name another."
                )
            row += 1


def _from_hub(name: str, field: str) -> Iterator[Document]:
    """Rows of a dataset of the Hugging Face hub, streamed so that no more is fetched than is read."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("datasets", "datasets", f"reading the dataset {name}") from error
    repository, _, split = name.partition(":")
    try:
        rows = datasets.load_dataset(repository, split=split or "train", streaming=True)
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"`text` must name a readable dataset, got {name}: {str(error).splitlines()[0]}; check name and split."
        ) from error
    for number, row in enumerate(rows):
        if not isinstance(row.get(field), str):
            raise CorpusError(
                f"`field` must be a column of strings of {name}, got {field!r} among {', '.join(row)}; name another."
            )
        yield Document(f"{repository}:{number}", row[field])

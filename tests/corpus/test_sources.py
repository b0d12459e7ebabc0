"""Text is read from wherever it is, and what cannot be read is said in one sentence."""

import gzip
import hashlib
import json
import sys
import types

import pyarrow
import pyarrow.parquet
import pytest

from gnomon.corpus import builtin_prose, open_source
from gnomon.corpus import sources as module
from gnomon.errors import CorpusError, MissingExtraError


def test_builtin_prose_is_what_the_record_says():
    source = builtin_prose()
    assert len(source.documents) == 13
    text = "\x1e".join(document.text for document in source.documents)
    assert 1_900_000 < source.num_characters < 1_950_000
    assert hashlib.sha256(text.encode()).hexdigest() == "495afb6ce297a14b54750b5ffadd8c3d6d56979896f6e7641ebc863cfa94872d"
    for word in ("Gutenberg", "trademark", "\n\nCHAPTER", "\r"):
        assert word not in text
    readme = (module.resources.files("gnomon.corpus") / "data/README.md").read_text()
    for document in source.documents:
        author = document.title.rsplit("(", 1)[1].split(",")[0]
        assert author in readme
        assert document.title.split(" (")[0] in readme


def test_files_of_every_kind_and_folders(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\ntwo é".encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"packed"))
    (tmp_path / "c.jsonl").write_text('{"text": "line 1", "n": 1}\n\n{"text": "line 2"}\n')
    pyarrow.parquet.write_table(pyarrow.table({"text": ["row 1", None, "row 3"]}), tmp_path / "d.parquet")
    (tmp_path / "e.bin").write_bytes(b"\0")
    found = open_source(tmp_path)
    assert [document.text for document in found.documents] == [
        "one\ntwo é",
        "packed",
        "line 1",
        "line 2",
        "row 1",
        "row 3",
    ]
    assert [document.title for document in found.documents][-3:] == ["c.jsonl:3", "d.parquet:0", "d.parquet:2"]
    assert open_source(str(tmp_path / "a.txt")).documents == found.documents[:1]
    assert len(open_source([tmp_path / "a.txt", "a text of its own"]).documents) == 2


def test_other_fields(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"body": "words"}))
    assert open_source(path, field="body").documents[0].text == "words"
    with pytest.raises(CorpusError, match=r"`field` must name a string in every line, got 'text' where line 1 of .* has body"):
        open_source(path)
    table = tmp_path / "y.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"body": ["words"], "n": [1]}), table)
    with pytest.raises(CorpusError, match=r"`field` must be a column of .* there are body, n"):
        open_source(table)
    with pytest.raises(CorpusError, match="column of strings, got int"):
        open_source(table, field="n")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("broken.txt", b"good \xff bad", "must be UTF-8, got byte 0xff at offset 5"),
        ("binary.txt", b"a\0b", "NUL characters"),
        ("empty.txt", b"", "must not be empty"),
        ("blank.txt", b" \n ", "nothing but empty documents"),
        ("bad.jsonl", b"{not json}", "one JSON object per line, got .* in line 1"),
        ("list.jsonl", b"[1]", "has list"),
        ("bad.parquet", b"PAR0nothing", "must be a readable Parquet file"),
        ("bad.txt.gz", b"not packed", "must be readable"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message) as raised:
        open_source(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_missing_paths(tmp_path):
    with pytest.raises(CorpusError, match="must name an existing file or folder"):
        open_source("nowhere.txt")
    with pytest.raises(CorpusError, match="must name an existing file or folder"):
        open_source(tmp_path / "nowhere")
    with pytest.raises(CorpusError, match="must be a folder with"):
        open_source(tmp_path)
    with pytest.raises(CorpusError, match="got an empty list"):
        open_source([])


def test_long_sources_are_cut_and_say_so(monkeypatch, caplog):
    monkeypatch.setattr(module, "MAX_CHARACTERS", 10)
    found = open_source(["12345678", "90ab", "never read"])
    assert [document.text for document in found.documents] == ["12345678", "90"]
    assert "million characters" in found.name
    assert "the text is long" in caplog.text


def test_datasets_of_the_hub_are_streamed(monkeypatch):
    asked = []
    fake = types.ModuleType("datasets")
    fake.load_dataset = lambda name, split, streaming: (
        asked.append((name, split, streaming)) or iter([{"text": "a"}, {"text": "b"}])
    )
    monkeypatch.setitem(sys.modules, "datasets", fake)
    found = open_source("hf:owner/name:validation")
    assert [document.text for document in found.documents] == ["a", "b"]
    assert asked == [("owner/name", "validation", True)]
    with pytest.raises(CorpusError, match="must be a column of strings of owner/name, got 'body' among text"):
        open_source("hf:owner/name", field="body")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"gnomon\[datasets\]"):
        open_source("hf:owner/name")

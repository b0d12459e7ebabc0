"""The catalog finds every run, tells what is wrong with the others, keeps up with changes, and lets nobody write."""

import json
import os
import shutil
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr

import gnomon.result.catalog as module
from gnomon.errors import ConfigError, RunError
from gnomon.result import RunWriter
from gnomon.result.catalog import CACHE, find_runs, open_catalog
from gnomon.statistics import Estimate

HOSTILE = ("it's", 'a "quoted" one', "x'); DROP TABLE runs; --", "star*[ab]?", "s3:", "%40{}", "new\nline", "naïve ☃", "=1+1")


def make_run(path, *, value=0.5, model="tiny", values=None, info=None):
    heads = np.arange(6.0).reshape(2, 3) if values is None else values
    sinks = xr.Dataset({"mass": (("layer", "head"), heads)}, coords={"layer": [0, 1], "head": [0, 1, 2]})
    headline = {"sinks": {"share": Estimate(value, value - 0.1, value + 0.1, 8), "late": Estimate.missing("too few queries")}}
    described = {
        "model": {"name": model, "weights": "abc"},
        "scheme": {"kind": "rope", "description": "RoPE, base 10000"},
        "anatomy": {"num_layers": 2},
        "corpus": {
            "source": "prose",
            "sequences": 8,
            "length": 64,
            "first_token": {"text": "<s>", "why": "the tokenizer puts it"},
        },
        "labels": {"sinks": {"kind": "centralized"}},
        "seed": 3,
        **(info or {}),
    }
    with RunWriter.start(path, {"value": value, "model": model}, described) as writer:
        return writer.finish({"sinks": sinks}, headline)


def rows(catalog, sql):
    return catalog.query(sql).rows


def test_every_run_is_found_with_its_numbers(tmp_path):
    make_run(tmp_path / "a", value=0.25)
    make_run(tmp_path / "deep" / "er" / "b", value=0.75, model="other")
    (tmp_path / ".hidden").mkdir()
    make_run(tmp_path / ".hidden" / "c")
    catalog = open_catalog(tmp_path)
    assert find_runs(tmp_path) == ["a", "deep/er/b"]
    assert rows(
        catalog,
        "SELECT run, status, model, scheme, sequences, length, first_token, seed, layers, measures FROM runs ORDER BY run",
    ) == [
        ("a", "complete", "tiny", "rope", 8, 64, "<s>", 3, 2, ["sinks"]),
        ("deep/er/b", "complete", "other", "rope", 8, 64, "<s>", 3, 2, ["sinks"]),
    ]
    found = rows(catalog, "SELECT run, value, low, high, n, reason FROM headline WHERE quantity = 'share' ORDER BY run")
    assert found == [("a", 0.25, 0.15, 0.35, 8, None), ("deep/er/b", 0.75, 0.65, 0.85, 8, None)]
    assert rows(catalog, "SELECT DISTINCT value, reason FROM headline WHERE quantity = 'late'") == [(None, "too few queries")]
    assert rows(catalog, "SELECT label FROM labels WHERE run = 'a'") == [("centralized",)]
    assert rows(catalog, "SELECT epoch(finished - started) < 60, seconds < 60, torch IS NOT NULL FROM runs")[0] == (
        True,
        True,
        True,
    )


def test_measures_are_tables(tmp_path, monkeypatch):
    make_run(tmp_path / "a")
    make_run(tmp_path / "b", values=np.full((2, 3), 7.0))
    catalog = open_catalog(tmp_path)
    assert catalog.measures == ["sinks"]
    assert rows(catalog, "SELECT run, avg(mass), count(*) FROM sinks GROUP BY run ORDER BY run") == [("a", 2.5, 6), ("b", 7.0, 6)]
    assert rows(catalog, "SELECT mass FROM Sinks WHERE run = 'a' AND layer = 1 AND head = 2") == [(5.0,)]
    make_run(tmp_path / "c", values=np.zeros((2, 3)))
    opened = []
    real = module.open_run
    monkeypatch.setattr(module, "open_run", lambda path: opened.append(path.name) or real(path))
    assert rows(open_catalog(tmp_path), "SELECT count(*) FROM sinks") == [(18,)]
    assert opened == ["c"]
    shutil.rmtree(tmp_path / "b")
    assert rows(open_catalog(tmp_path), "SELECT run, avg(mass) FROM sinks GROUP BY run ORDER BY run") == [("a", 2.5), ("c", 0.0)]
    assert opened == ["c"]
    with pytest.raises(ConfigError, match="`table` must be one of runs, headline, labels, sinks, got 'norms'"):
        catalog.table("norms")


def test_columns_that_differ_between_runs_are_brought_together(tmp_path):
    make_run(tmp_path / "a")
    with RunWriter.start(tmp_path / "b", {}, {}) as writer:
        words = xr.Dataset({"mass": (("layer",), np.array(["x", "y"])), "extra": (("layer",), np.arange(2))})
        writer.finish({"sinks": words}, {})
    catalog = open_catalog(tmp_path)
    assert rows(catalog, "SELECT mass, extra FROM sinks WHERE run = 'b' ORDER BY layer") == [("x", 0), ("y", 1)]
    assert rows(catalog, "SELECT CAST(mass AS DOUBLE), extra FROM sinks WHERE run = 'a' AND layer = 0 AND head = 1") == [
        (1.0, None)
    ]


def test_what_is_not_whole_is_listed_with_its_reason(tmp_path):
    make_run(tmp_path / "good")
    half = RunWriter.start(tmp_path / "half", {}, {"model": {"name": "tiny"}})
    half.write_part("a", {"x": np.zeros(2)})
    half.interrupt()
    RunWriter.start(tmp_path / "failed", {}, {}).fail("memory ran out")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text('{"schema": 1, "sta')
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "run.json").write_text("[1, 2]")
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / "run.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder" / "run.json").mkdir(parents=True)
    make_run(
        tmp_path / "odd",
        info={"model": "a name", "corpus": 3, "times": None, "seed": "x", "labels": [], "anatomy": {"num_layers": 2**70}},
    )
    make_run(tmp_path / "gone")
    os.rename(tmp_path / "gone" / "survey.zarr", tmp_path / "elsewhere")
    found = {
        run: (status, reason) for run, status, reason in rows(open_catalog(tmp_path), "SELECT run, status, reason FROM runs")
    }
    assert found["good"] == ("complete", None)
    assert found["half"] == ("interrupted", "1 parts done; the same command resumes")
    assert found["failed"] == ("failed", "memory ran out")
    assert found["odd"][0] == "complete"
    for name in ("cut", "list", "bytes", "folder", "gone"):
        assert found[name][0] == "damaged", name
        assert found[name][1], name
    assert {row[0] for row in rows(open_catalog(tmp_path), "SELECT DISTINCT run FROM headline")} == {"good", "odd"}


def test_a_run_whose_arrays_are_damaged_is_left_out_of_its_measure_only(tmp_path):
    make_run(tmp_path / "a")
    make_run(tmp_path / "b")
    chunk = next((tmp_path / "b" / "survey.zarr" / "sinks" / "mass").rglob("c/*/*"))
    chunk.write_bytes(b"no")
    catalog = open_catalog(tmp_path)
    assert rows(catalog, "SELECT DISTINCT run FROM sinks") == [("a",)]
    assert rows(catalog, "SELECT count(DISTINCT run) FROM headline") == [(2,)]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_folders_are_never_part_of_a_statement(tmp_path, name):
    folder = tmp_path / name
    make_run(folder / name, model=name)
    make_run(folder / "plain")
    for _ in range(2):
        catalog = open_catalog(folder)
        assert rows(catalog, "SELECT model FROM runs WHERE run <> 'plain'") == [(name,)]
        assert {row[0] for row in rows(catalog, "SELECT DISTINCT run FROM sinks")} == {name, "plain"}


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX systems only")
def test_names_that_are_no_text(tmp_path):
    make_run(tmp_path / os.fsdecode(b"a\xff"))
    for _ in range(2):
        assert rows(open_catalog(tmp_path), "SELECT run, status FROM runs") == [("a\\udcff", "complete")]
    assert rows(open_catalog(tmp_path), "SELECT count(*) FROM sinks WHERE run = 'a\udcff'") == [(6,)]


def test_hostile_names_of_measures(tmp_path):
    make_run(tmp_path / "a")
    record = json.loads((tmp_path / "a" / "run.json").read_text())
    for name in ("Runs", 'x"; DROP VIEW runs; --', "a, b"):
        record["store"][name] = record["store"]["sinks"]
        os.symlink(tmp_path / "a" / "survey.zarr" / "sinks", tmp_path / "a" / "survey.zarr" / name)
    (tmp_path / "a" / "run.json").write_text(json.dumps(record))
    catalog = open_catalog(tmp_path)
    assert "Runs" not in catalog.measures
    assert rows(catalog, "SELECT status FROM runs") == [("complete",)]
    assert rows(catalog, 'SELECT count(*) FROM "a, b"') == [(6,)]


def test_the_cache_is_used_and_keeps_up(tmp_path, monkeypatch):
    read = []
    real = module.rows_of
    monkeypatch.setattr(module, "rows_of", lambda name, path: read.append(name) or real(name, path))
    make_run(tmp_path / "a")
    make_run(tmp_path / "b")
    first = open_catalog(tmp_path)
    assert read == ["a", "b"]
    assert {path.name for path in (tmp_path / CACHE).iterdir()} == {"runs.parquet", "headline.parquet", "labels.parquet"}
    again = open_catalog(tmp_path)
    assert read == ["a", "b"]
    assert again.tables["runs"].to_pylist() == first.tables["runs"].to_pylist()
    assert again.tables["headline"].equals(first.tables["headline"])
    time.sleep(0.01)
    record = json.loads((tmp_path / "b" / "run.json").read_text())
    record["headline"]["sinks"]["share"]["value"] = 0.9
    (tmp_path / "b" / "run.json").write_text(json.dumps(record))
    assert rows(open_catalog(tmp_path), "SELECT value FROM headline WHERE run = 'b' AND quantity = 'share'") == [(0.9,)]
    assert read == ["a", "b", "b"]
    (tmp_path / "a").rename(tmp_path / "moved")
    assert rows(open_catalog(tmp_path), "SELECT run FROM runs ORDER BY run") == [("b",), ("moved",)]


@pytest.mark.parametrize("harm", [b"", b"PAR1 not really", None])
def test_a_damaged_cache_is_made_anew(tmp_path, harm):
    make_run(tmp_path / "a")
    open_catalog(tmp_path)
    for path in (tmp_path / CACHE).iterdir():
        path.write_bytes(path.read_bytes()[:-20] if harm is None else harm)
    assert rows(open_catalog(tmp_path), "SELECT count(*) FROM headline") == [(2,)]
    assert pq.read_table(tmp_path / CACHE / "headline.parquet").num_rows == 2


def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path):
    make_run(tmp_path / "a")
    (tmp_path / CACHE).write_text("a file where the cache would be")
    assert rows(open_catalog(tmp_path), "SELECT count(*) FROM sinks") == [(6,)]
    assert (tmp_path / CACHE).is_file()


def test_nothing_is_left_in_a_folder_without_runs_or_in_a_run(tmp_path):
    assert rows(open_catalog(tmp_path), "SELECT * FROM runs") == []
    assert list(tmp_path.iterdir()) == []
    make_run(tmp_path / "a")
    assert rows(open_catalog(tmp_path / "a"), "SELECT run, model FROM runs") == [(".", "tiny")]
    assert not (tmp_path / "a" / CACHE).exists()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP VIEW runs", "got DROP"),
        ("CREATE TABLE x AS SELECT 1", "got CREATE"),
        ("SELECT 1; SELECT 2", "got SELECT, SELECT"),
        ("SET threads = 1", "got SET"),
        ("", "got nothing"),
        ("-- a remark", "got nothing"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM runs", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT * FROM read_text('/etc/hostname')", "disabled by configuration"),
        ("COPY runs TO 'x.csv'", "x.csv|COPY"),
        ("SELECT * FROM '/etc/hostname'", "disabled by configuration|hostname"),
        ("ATTACH 'x.db'", "ATTACH|disabled"),
        ("SELECT CAST(model AS INTEGER) FROM runs", "tiny"),
    ],
)
def test_only_reading_and_every_refusal_is_a_sentence(tmp_path, sql, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs" / "a")
    with pytest.raises(ConfigError, match=message) as caught:
        open_catalog(tmp_path / "runs").query(sql)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_no_such_folder(tmp_path):
    with pytest.raises(RunError, match="must be a folder with runs"):
        open_catalog(tmp_path / "nowhere")

"""``gnomon runs``: a list for people, JSON for scripts, SQL for both."""

import json

import numpy as np
import pytest
import xarray as xr

from gnomon.result import RunWriter
from gnomon.statistics import Estimate


@pytest.fixture
def folder(tmp_path):
    for name, value in (("one", 0.25), ("two\x1b[31m", float("nan"))):
        with RunWriter.start(tmp_path / "runs" / name, {"value": str(value)}, {"model": {"name": name}}) as writer:
            number = Estimate(value, 0.2, 0.3, 8) if value == value else Estimate.missing("too few")
            writer.finish({"sinks": xr.Dataset({"mass": (("layer",), np.arange(3.0))})}, {"sinks": {"share": number}})
    RunWriter.start(tmp_path / "runs" / "half", {}, {"model": {"name": "half"}}).interrupt()
    return tmp_path / "runs"


def test_list(gnomon, folder):
    outcome = gnomon("runs")
    assert outcome.code == 0
    assert [line.split()[:2] for line in outcome.out.splitlines()[:2]] == [["run", "status"], ["half", "interrupted"]]
    assert "0 parts done; the same command resumes" in " ".join(outcome.out.split())
    assert "\x1b" not in outcome.out
    assert gnomon("runs", folder).out == outcome.out


def test_sql_and_json(gnomon, folder):
    query = "SELECT run, value, value AS value, reason FROM headline ORDER BY value"
    printed = gnomon("runs", folder, "--sql", query)
    assert printed.out.splitlines()[1].split() == ["one", "0.25", "0.25", "-"]
    assert "too few" in printed.out
    answer = json.loads(gnomon("runs", folder, "--sql", query, "--json").out)
    assert answer["rows"][0] == {"run": "one", "value": 0.25, "value_2": 0.25, "reason": None}
    assert answer["rows"][1]["value"] is None
    everything = json.loads(gnomon("runs", folder, "--json").out)["rows"]
    assert [row["status"] for row in everything] == ["interrupted", "complete", "complete"]
    assert everything[1]["measures"] == ["sinks"]
    assert json.loads(gnomon("runs", folder, "--json", "--sql", "SELECT 0.5 AS half, 'nan'::DOUBLE AS bad").out) == {
        "rows": [{"half": 0.5, "bad": None}],
        "missing": {"rows[0].bad": "not a number"},
    }


def test_mistakes_are_a_sentence(gnomon, folder, tmp_path):
    for arguments, code in (
        ((folder, "--sql", "SELEC"), 2),
        ((tmp_path / "nowhere",), 1),
        ((folder, "--sql", "DROP VIEW runs"), 2),
    ):
        outcome = gnomon("runs", *arguments)
        assert outcome.code == code
        assert outcome.err.startswith("gnomon: ")
        assert outcome.err.count("\n") == 1


def test_nothing_there(gnomon, tmp_path):
    assert "no runs in" in gnomon("runs", tmp_path).out
    assert gnomon("runs", tmp_path, "--sql", "SELECT * FROM runs").out == "no rows\n"

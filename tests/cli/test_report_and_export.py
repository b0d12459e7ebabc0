"""``gnomon report`` and ``gnomon export``: files where they were asked for, one sentence where they cannot be."""

from __future__ import annotations

import pytest

from tests.report.made_up import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    make_run(folder)
    return folder


def test_a_report_lands_in_its_run_or_where_asked(gnomon, run, tmp_path):
    done = gnomon("report", run)
    assert (done.code, done.out.strip()) == (0, str(run / "report.html"))
    assert (run / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    done = gnomon("report", run, run, "-o", tmp_path / "both.html")
    assert done.code == 0
    assert "2 runs side by side" in (tmp_path / "both.html").read_text(encoding="utf-8")


def test_figures_are_listed_and_written(gnomon, run, tmp_path):
    listed = gnomon("export", run, "--figure", "list")
    assert "sinks-map\tWeight on position 0, every head" in listed.out
    done = gnomon("export", run, "--figure", "attention-offset", "--head", "1.2")
    assert (done.code, done.out.strip()) == (0, "attention-offset.svg")
    assert "layer 1 head 2" in (tmp_path / "attention-offset.svg").read_text(encoding="utf-8")


def test_tables_are_written(gnomon, run, tmp_path):
    assert gnomon("export", run, "--table", "headline", "--format", "latex").code == 0
    assert r"\toprule" in (tmp_path / "headline.tex").read_text(encoding="utf-8")
    assert gnomon("export", run, "--table", "sinks", "-o", "deep/sinks.csv").code == 0
    assert (tmp_path / "deep" / "sinks.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "one of `--figure` and `--table` must be given"),
        (("--figure", "sinks", "--table", "sinks"), "one of `--figure` and `--table` must be given"),
        (("--figure", "sinks", "--format", "csv"), "`format` must be one of svg, png, pdf"),
        (("--table", "sinks", "--format", "svg"), "`format` must be one of csv, latex, parquet"),
        (("--figure", "nothing"), "`figure` must be one of sinks-map"),
        (("--figure", "sinks", "--head", "x"), "`head` must be layer and head with a point between"),
        (("--table", "nothing"), "`table` must be headline or one of sinks"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(gnomon, run, arguments, sentence):
    done = gnomon("export", run, *arguments)
    assert done.code == 2
    assert sentence in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_no_run_no_report(gnomon, tmp_path):
    done = gnomon("report", tmp_path / "nothing")
    assert done.code == 1
    assert "must be a run folder" in done.err

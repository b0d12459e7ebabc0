"""Whatever a user gets wrong ends in one sentence on stderr and an exit code, never in a traceback."""

import errno
import json
import shutil

import numpy as np
import pytest
import torch
import xarray as xr

from gnomon.cli.choices import token_range
from gnomon.cli.failures import sentence
from gnomon.errors import ConfigError, MissingExtraError
from gnomon.result import RunWriter, open_run
from gnomon.statistics import Estimate

SMALL = ("--sequences", "4", "--length", "32", "--measures", "sinks", "--quiet")


def is_one_sentence(outcome, code, *words):
    assert outcome.code == code, outcome
    assert "Traceback" not in outcome.err
    assert outcome.err.startswith("gnomon: ") or "Error" in outcome.err
    if outcome.err.startswith("gnomon: "):
        assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err
    return True


@pytest.fixture
def run(tmp_path):
    with RunWriter.start(tmp_path / "run", {"seed": 0}, {"model": {"name": "tiny"}}) as writer:
        writer.finish(
            {"sinks": xr.Dataset({"x": (("layer",), np.arange(3.0))})}, {"sinks": {"share": Estimate(0.5, 0.4, 0.6, 4)}}
        )
    return tmp_path / "run"


def test_show(gnomon, run):
    assert json.loads(gnomon("show", run, "--json").out) == {"sinks": {"share": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 4}}}
    page = gnomon("show", run)
    assert page.code == 0
    assert "share  0.5 [0.4, 0.6]" in page.out


def test_show_of_what_is_no_run(gnomon, run, tmp_path):
    assert is_one_sentence(gnomon("show", tmp_path / "nowhere"), 1, "no such folder")
    assert is_one_sentence(gnomon("show", tmp_path), 1, "a folder without one")
    assert is_one_sentence(gnomon("show", run, "--measure", "frames"), 2, "must be one of sinks")
    (run / "run.json").write_text('{"schema": 1, "status": ')
    assert is_one_sentence(gnomon("show", run), 1, "damaged")


def test_show_of_a_half_written_run(gnomon, tmp_path):
    writer = RunWriter.start(tmp_path / "half", {}, {})
    writer.write_part("0/sinks", {"x": np.zeros(2)})
    writer.close()
    assert is_one_sentence(gnomon("show", tmp_path / "half"), 1, "'running' with 1 parts done", "run the same command again")


def test_usage(gnomon):
    assert gnomon("survey", "--length", "1").code == 2
    assert gnomon("survey", "--bos", "sometimes").code == 2
    assert gnomon("nonsense").code == 2
    assert gnomon("--help").code == 0
    assert gnomon("--version").out.startswith("gnomon ")
    assert is_one_sentence(gnomon("survey", "--passages", "50-6"), 2, "`--passages` must be two token counts")
    assert is_one_sentence(gnomon("survey", "--passages", "6-50", "--synthetic", "random"), 2, "at most one of")
    assert is_one_sentence(gnomon("survey", "--measures", "sinks,nonsense"), 2, "'nonsense'")
    assert is_one_sentence(gnomon("survey", "--synthetic", "random", "--text", "x.txt"), 2, "`text` must be left out")


def test_token_range():
    assert token_range(" 6 - 50", "--passages") == (6, 50)
    for text in ("", "6", "50-6", "-6-50", "a-b", "0-3", "6-50-9", "6-" + "9" * 30):
        with pytest.raises(ConfigError, match="two token counts"):
            token_range(text, "--passages")


def test_models_that_are_not_there(gnomon, tmp_path):
    assert is_one_sentence(gnomon("survey", "nobody/nothing", *SMALL), 1, "nobody/nothing")
    (tmp_path / "empty").mkdir()
    assert is_one_sentence(gnomon("survey", tmp_path / "empty", *SMALL), 1)
    (tmp_path / "model.gguf").write_bytes(b"GGUFnot really")
    assert is_one_sentence(gnomon("survey", tmp_path / "model.gguf", *SMALL), 1)
    assert is_one_sentence(gnomon("model", "zoo:nonsense"), 1)
    assert gnomon("fetch", "nonsense").code in (1, 2)


def test_weights_that_are_not_numbers(gnomon, broken):
    assert is_one_sentence(gnomon("survey", broken, *SMALL), 1)
    assert is_one_sentence(gnomon("model", broken), 1)


def test_text_that_does_not_serve(gnomon, tiny, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    assert is_one_sentence(gnomon("survey", tiny, "--text", tmp_path / "empty.txt", *SMALL), 1)
    (tmp_path / "short.txt").write_text("Three words only.")
    assert is_one_sentence(gnomon("survey", tiny, "--text", tmp_path / "short.txt", *SMALL), 1)
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 40)
    assert is_one_sentence(gnomon("survey", tiny, "--text", tmp_path / "binary.txt", *SMALL), 1)


def test_context_too_long(gnomon, tiny):
    outcome = gnomon("survey", tiny, "--length", "100000", "--sequences", "2", "--measures", "sinks", "--quiet")
    assert is_one_sentence(outcome, 2, "256")


def test_first_token_that_does_not_exist(gnomon, without_bos):
    assert is_one_sentence(gnomon("survey", without_bos, "--bos", "always", *SMALL), 1, "`bos` must be auto or never")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_that_is_not_there(gnomon, tiny):
    outcome = gnomon("survey", tiny, "--device", "cuda", *SMALL)
    assert outcome.code in (1, 2)
    assert is_one_sentence(outcome, outcome.code, "cuda")


def test_survey_resumes_is_repeatable_and_is_never_mixed(gnomon, tiny, tmp_path):
    first = gnomon("survey", tiny, "--out", tmp_path / "run", *SMALL)
    assert first.code == 0, first
    assert "head_share_03" in first.out
    before = (tmp_path / "run" / "run.json").read_bytes()
    assert gnomon("survey", tiny, "--out", tmp_path / "run", *SMALL).code == 0
    assert (tmp_path / "run" / "run.json").read_bytes() == before
    assert is_one_sentence(gnomon("survey", tiny, "--out", tmp_path / "run", *SMALL, "--seed", "1"), 1, "another", "seed")
    again = gnomon("survey", tiny, "--out", tmp_path / "again", *SMALL)
    assert again.code == 0
    xr.testing.assert_identical(open_run(tmp_path / "run")["sinks"].load(), open_run(tmp_path / "again")["sinks"].load())
    assert gnomon("show", tmp_path / "run", "--json").out == gnomon("show", tmp_path / "again", "--json").out


def test_default_folder_is_the_same_for_the_same_command(gnomon, tiny, tmp_path):
    assert gnomon("survey", tiny, *SMALL).code == 0
    assert gnomon("survey", tiny, *SMALL).code == 0
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_full_disk(gnomon, tiny, tmp_path, monkeypatch):
    import gnomon.result.atomic as atomic

    real, calls = atomic.os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", full)
        outcome = gnomon("survey", tiny, "--out", tmp_path / "run", "--batch-size", "1", *SMALL)
    assert is_one_sentence(outcome, 1, "space left", "run the same command again")
    assert gnomon("survey", tiny, "--out", tmp_path / "run", "--batch-size", "1", *SMALL).code == 0
    open_run(tmp_path / "run").verify()


def test_interruption(gnomon, tiny, tmp_path, monkeypatch):
    import gnomon.study.observing as observing

    real, calls = observing.capture_pass, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(observing, "capture_pass", interrupted)
        outcome = gnomon("survey", tiny, "--out", tmp_path / "run", "--batch-size", "1", *SMALL)
    assert outcome.code == 130
    assert outcome.err.strip() == "gnomon: interrupted; the same command resumes."
    assert is_one_sentence(gnomon("show", tmp_path / "run"), 1, "'interrupted' with 2 parts done")
    resumed = gnomon("survey", tiny, "--out", tmp_path / "run", "--batch-size", "1", *SMALL)
    whole = gnomon("survey", tiny, "--out", tmp_path / "whole", "--batch-size", "1", *SMALL)
    assert (resumed.code, whole.code) == (0, 0)
    xr.testing.assert_identical(open_run(tmp_path / "run")["sinks"].load(), open_run(tmp_path / "whole")["sinks"].load())


def test_memory_that_does_not_suffice(gnomon, tiny, monkeypatch):
    monkeypatch.setattr("gnomon.study.device_limits.available_bytes", lambda device: 200 * 2**20)
    outcome = gnomon(
        "survey", tiny, "--sequences", "64", "--length", "256", "--batch-size", "64", "--measures", "sinks", "--quiet"
    )
    assert is_one_sentence(outcome, 1, "must fit into memory", "would fit")


def test_words_for_what_comes_from_outside():
    assert "ran out" in sentence(MemoryError())
    assert "ran out" in sentence(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert "disk that holds /x" in sentence(OSError(errno.ENOSPC, "No space left on device", "/x"))
    assert "/y must be usable, got 'Permission denied'" in sentence(PermissionError(errno.EACCES, "Permission denied", "/y"))
    assert sentence(RuntimeError("shapes differ")) is None
    assert "pip install 'gnomon[sweep]'" in sentence(MissingExtraError("ray", "sweep", "a sweep"))


def test_faults_of_our_own_are_one_line_unless_debugging(capsys, monkeypatch):
    from gnomon.cli.failures import quiet_unexpected

    seen = []
    hook = quiet_unexpected(lambda *error: seen.append(error))
    monkeypatch.delenv("GNOMON_DEBUG", raising=False)
    hook(KeyError, KeyError("x\ny"), None)
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("GNOMON_DEBUG", "1")
    hook(KeyError, KeyError("x"), None)
    assert len(seen) == 1


def test_closed_pipe_is_quiet(run):
    import subprocess
    import sys

    command = f"{sys.executable} -m gnomon show {run} --json | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    shutil.rmtree(run)

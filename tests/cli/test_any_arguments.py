"""Any arguments at all: a known exit code, something to read, and no traceback."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gnomon.cli import main
from gnomon.cli.app import COMMANDS

OPTIONS = (
    "--json",
    "--length",
    "--sequences",
    "--passages",
    "--sentences",
    "--synthetic",
    "--bos",
    "--measures",
    "--text",
    "--dtype",
)
OPTIONS += ("--device", "--seed", "--batch-size", "--threads", "--measure", "--help", "--out", "--", "-q", "--revision")
VALUES = (
    "0",
    "-1",
    "5-3",
    "6-50",
    "random",
    "always",
    "sinks",
    "sinks,,",
    "",
    "nan",
    "1e9",
    "/nowhere",
    "\u0000",
    "\ud800",
    "[bold]",
    "x" * 300,
)
words = st.one_of(st.sampled_from(OPTIONS), st.sampled_from(VALUES), st.sampled_from(sorted(COMMANDS)), st.text(max_size=8))


@pytest.fixture(autouse=True)
def nothing_is_loaded(monkeypatch, tmp_path):
    """Opening a model is another test's matter; here it always says that there is none."""
    import gnomon.capture
    import gnomon.model
    import gnomon.study.survey  # before the patch, so that it keeps the real function
    from gnomon.errors import ModelError

    def refuse(*arguments, **options):
        raise ModelError("`model` must exist, got none; choose one.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gnomon.capture, "open_model", refuse)
    monkeypatch.setattr(gnomon.model, "fetch", refuse)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=st.sampled_from([*COMMANDS, ""]), arguments=st.lists(words, max_size=6))
def test_no_arguments_lead_to_a_traceback(command, arguments):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([*([command] if command else []), *arguments])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    assert code in (0, 1, 2)
    assert out.getvalue() or err.getvalue()
    assert "Traceback" not in err.getvalue()

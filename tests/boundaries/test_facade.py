"""The facade is small, lazy and true; the command line starts cold in a moment."""

import json
import subprocess
import sys

import pytest

import gnomon

HEAVY = ("torch", "transformers", "xarray", "plotly", "pandas", "zarr", "scipy", "duckdb")
PROBE = """
import json, sys, time
begun = time.process_time()
try:
    {statement}
except SystemExit as stop:
    assert not stop.code, stop.code
spent = time.process_time() - begun
heavy = [name for name in {heavy!r} if name in sys.modules]
print("\\n" + json.dumps({{"seconds": spent, "heavy": heavy}}))
"""


def probe(statement: str) -> dict:
    code = PROBE.format(statement=statement, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout.splitlines()[-1])


def test_at_most_ten_names_and_each_resolves():
    assert len(gnomon.__all__) <= 10
    assert gnomon.__all__ == sorted(gnomon.__all__)
    for name in gnomon.__all__:
        assert getattr(gnomon, name) is not None
    assert set(gnomon.__all__) <= set(dir(gnomon))


def test_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match="it has GnomonError, Survey"):
        gnomon.surveyy  # noqa: B018


def test_import_is_free_of_heavy_packages():
    assert probe("import gnomon; gnomon.__version__; gnomon.GnomonError")["heavy"] == []


@pytest.mark.parametrize("arguments", [["--help"], ["survey", "--help"], ["--version"], ["measures"]])
def test_help_answers_in_a_moment_without_torch(arguments):
    statement = f"import gnomon.cli; gnomon.cli.main({arguments!r})"
    found = min((probe(statement) for _ in range(3)), key=lambda result: result["seconds"])
    assert found["heavy"] == []
    assert found["seconds"] < 0.3

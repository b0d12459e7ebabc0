"""The ledger on a terminal and the verdicts that a report finds beside its runs."""

import io
import json

import pytest

from gnomon.errors import RunError
from gnomon.report.claims import claims_beside, interval_text, null_text, read_claims, table_rows
from gnomon.report.terminal.claims import claims_page
from gnomon.report.terminal.page import show
from gnomon.statistics import Estimate
from tests.report.made_up import HOSTILE


def row(**parts):
    made = {
        "id": "A1",
        "paper": "arXiv 0000.00000",
        "statement": "Something holds.",
        "model": "tiny",
        "verdict": "supported",
        "effect": 0.25,
        "low": 0.2,
        "high": 0.3,
        "quantity": "nats",
        "null": 0.0,
        "n": 12,
        "published": "0.4",
        "rule": "if so",
        "why": "it was seen",
        "sources": ["runs/x#leakage/headline/total_early"],
    }
    return made | parts


def printed(rows):
    stream = io.StringIO()
    show(claims_page(rows), stream)
    return stream.getvalue()


def test_word_effect_null_and_why_are_there():
    text = printed([row(), row(id="B1", verdict="not applicable", effect=None, low=None, high=None, null=None, n=0)])
    assert "A1  supported" in text
    assert "0.25 [0.2, 0.3]  against 0  n = 12" in text
    assert "it was seen" in text
    assert "published: 0.4" in text
    assert "1 supported   1 not applicable" in text


def test_hostile_names_are_text():
    text = printed([row(model=HOSTILE, why=HOSTILE), row(id="[bold]A2", model="other", statement="[red]" + HOSTILE)])
    assert "[red]" in text
    assert "\u202e" not in text
    assert "\x00" not in text


def test_numbers_without_interval():
    assert interval_text(row(low=None, high=None)) == "0.25"
    assert interval_text(row(effect=None)) == "-"
    assert null_text(row(null=None)) == "-"
    assert null_text(row(null=True)) == "-"


def test_rows_for_the_page_name_models_only_where_there_are_several():
    assert "model" not in table_rows([row(), row(id="A2")])[0]
    assert table_rows([row(), row(model="other")])[1]["model"] == "other"


def test_what_lies_beside_a_run(tmp_path):
    from gnomon.result import RunWriter

    with RunWriter.start(tmp_path / "all" / "part", {"a": 1}, {"model": {"name": "tiny"}}) as writer:
        survey = writer.finish({}, {"sinks": {"x": Estimate(1.0)}})
    assert claims_beside([survey]) is None
    (tmp_path / "all" / "claims.json").write_text(json.dumps([row(), row(model="other")]))
    assert [found["model"] for found in claims_beside([survey])] == ["tiny"]


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"id": "A1"}]'])
def test_a_file_of_another_making_is_refused(tmp_path, text):
    (tmp_path / "claims.json").write_text(text)
    with pytest.raises(RunError, match="must be a list of verdicts"):
        read_claims(tmp_path)

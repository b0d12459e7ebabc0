"""``gnomon claims`` on a tiny random model, on runs, and on what is neither."""

import json
from pathlib import Path

import pytest

from gnomon.study.claims import LEDGER, VERDICTS, choose_claims
from gnomon.study.claims.plan import Sizes, parts_for

SMALL = ("--sequences", "6", "--length", "48", "--sentences", "6", "--passages", "4", "--words", "60", "--quiet")


QUICK = "A1,A5,A7,B3,B8,C6"


def judged(gnomon, tiny, only):
    """Verdicts on a tiny random Llama."""
    outcome = gnomon("claims", tiny, *SMALL, "--out", "all", "--only", only, "--json")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [row["id"] for row in rows] == [claim.id for claim in choose_claims(only)]
    assert {row["verdict"] for row in rows} <= set(VERDICTS)
    assert not [row["id"] for row in rows if row["why"].startswith("not measured")]
    assert not [row["id"] for row in rows if "another version" in row["why"]]
    return rows


@pytest.mark.slow
def test_the_whole_ledger(gnomon, tiny):
    rows = judged(gnomon, tiny, "A,B,C,P,D")
    assert [row["id"] for row in rows] == [claim.id for claim in LEDGER]
    word = {row["id"]: row["verdict"] for row in rows}
    assert {word[key] for key in ("A7", "B8", "C4", "C5", "C8")} == {"not applicable"}
    assert "not applicable" not in {word[key] for key in ("A2", "A6", "A8", "B2", "P1", "P2", "D1", "D2")}


def test_the_ledger_then_its_runs(gnomon, tiny, tmp_path):
    rows = judged(gnomon, tiny, QUICK)
    word = {row["id"]: row["verdict"] for row in rows}
    assert word["A1"] == word["A5"] == "supported"
    assert word["A7"] == word["B8"] == "not applicable"
    assert word["C6"] == "not supported"
    assert json.loads((tmp_path / "all" / "claims.json").read_text()) == rows

    read = gnomon("claims", "all", "--only", QUICK, "--json", "--quiet")
    assert read.code == 0, read.err
    again = json.loads(read.out)
    assert [row["verdict"] for row in again] == [row["verdict"] for row in rows]

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "all").glob("*/run.json")}
    some = gnomon("claims", tiny, "--only", "a1,A5", *SMALL, "--out", "all")
    assert some.code == 0, some.err
    assert "A1  supported" in some.out
    assert "B1" not in some.out
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "all").glob("*/run.json")} == before, "nothing is made twice"

    shown = gnomon("report", *(str(path.parent) for path in sorted(before)[:1]))
    assert shown.code == 0, shown.err
    page = Path(shown.out.strip()).read_text(encoding="utf-8")
    assert 'id="claims"' in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no/such/model",), "no/such/model"),
        (("",), "must name a model"),
        (("x", "--only", "Z9"), "`only` must name claims"),
        (("x\u202e[bold]",), "gnomon:"),
    ],
)
def test_what_is_neither_model_nor_run(gnomon, arguments, said):
    outcome = gnomon("claims", *arguments, "--quiet")
    assert outcome.code in (1, 2)
    assert said in outcome.err
    assert "Traceback" not in outcome.err


def test_a_folder_without_runs_is_no_run(gnomon, tmp_path):
    (tmp_path / "empty").mkdir()
    outcome = gnomon("claims", "empty", "--quiet")
    assert outcome.code in (1, 2)
    assert outcome.err.startswith("gnomon: ")


def test_a_damaged_run_is_named(gnomon, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{")
    outcome = gnomon("claims", "bad", "--quiet")
    assert outcome.code == 1
    assert "bad" in outcome.err


def test_parts_follow_the_claims_and_keep_their_make():
    sizes = Sizes()
    everything = parts_for(LEDGER, sizes, num_heads=270)
    assert [part.name for part in everything] == [
        "position",
        "checks",
        "intervention",
        "phase",
        "frames",
        "spectra",
        "scale",
        "likelihood",
    ]
    assert everything[2].options["intervention"]["ablate_sink_reads"] == "top:27"
    some = parts_for(choose_claims("A2,C1"), sizes, num_heads=270)
    assert some == [everything[0], everything[5]]
    assert parts_for(choose_claims("A8"), sizes, num_heads=72, causal=False) == [everything[0]]
    needed = {measure for claim in LEDGER for measure in claim.measures}
    assert needed <= {name for part in everything for name in part.gives}


def test_text_is_cut_to_what_the_model_takes():
    sizes = Sizes(length=256)
    assert sizes.corpus("windows", 128).length == 128
    assert sizes.corpus("windows", None).length == 256
    assert sizes.corpus("passages", 100).longest == 100
    assert sizes.corpus("sentences", 512).longest == 50


def test_several_models_side_by_side(gnomon, tiny, without_bos, tmp_path):
    outcome = gnomon("claims", tiny, without_bos, "--only", "A1,C8", *SMALL, "--out", "two")
    assert outcome.code == 0, outcome.err
    rows = json.loads((tmp_path / "two" / "claims.json").read_text())
    assert [(row["id"], row["verdict"]) for row in rows] == [
        ("A1", "supported"),
        ("A1", "supported"),
        ("C8", "not applicable"),
    ]
    assert len({row["model"] for row in rows}) == 3
    assert len(list((tmp_path / "two").glob("*/*/run.json"))) == 4, "a folder for each model, in it a run for each part"

"""Comparison: paired where the text is the same, corrected over everything that is tested, and honest where it can not be paired."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gnomon.corpus import CorpusSpec
from gnomon.errors import ConfigError, ModelError
from gnomon.report.terminal.comparison import comparison_page
from gnomon.report.terminal.page import show
from gnomon.result import Survey
from gnomon.result.comparison import compare_runs, distinct
from gnomon.result.strict_json import dumps
from gnomon.statistics import Estimate, holm
from gnomon.statistics.difference import paired_difference
from gnomon.statistics.jackknife import jackknife_mean
from gnomon.study.compare import compare
from gnomon.study.survey import survey
from tests.study.training_runs import MEASURES, SPEC


def made(values: dict[str, np.ndarray], *, digest: str = "d", replicates: bool = True, name: str = "m", labels=None) -> Survey:
    """A survey of given numbers, one per sequence."""
    headline, kept = {}, {}
    for key, per_sequence in values.items():
        jackknifed = jackknife_mean(per_sequence)
        interval = jackknifed.interval()
        headline[key] = Estimate(*(float(bound) for bound in interval), len(per_sequence))
        kept[key] = jackknifed.without.tolist()
    info = {"model": {"name": name}, "corpus": {"digest": digest}, "labels": labels or {}}
    if replicates:
        info["replicates"] = {"groups": len(next(iter(values.values()))), "values": {"sinks": kept}}
    return Survey(info, {"sinks": {**headline, "count": Estimate(3.0)}}, {})


@pytest.fixture
def texts():
    generator = np.random.default_rng(0)
    base = 3 * generator.normal(size=16)
    noise = generator.normal(size=(3, 16))
    first = {"mass": base, "share": base + noise[0], "still": base}
    return first, {"mass": base + 0.5 + 0.05 * noise[1], "share": base + noise[2], "still": base}


def test_same_text_is_paired_and_corrected_by_holm(texts):
    comparison = compare_runs([made(texts[0]), made(texts[1])], ["a", "b"])
    rows = {row.quantity: row for row in comparison.rows}
    assert comparison.pairing == ("paired: the same sequences",)
    expected = [paired_difference(jackknife_mean(texts[0][key]), jackknife_mean(texts[1][key])) for key in ("mass", "share")]
    for key, one in zip(("mass", "share"), expected, strict=True):
        assert rows[f"sinks/{key}"].compared[0].difference == one
    corrected = holm(np.array([one.p for one in expected]))
    assert [rows[f"sinks/{key}"].compared[0].p_corrected for key in ("mass", "share")] == pytest.approx(corrected.tolist())
    assert comparison.tests == 2
    assert rows["sinks/still"].compared[0].difference[:3] == (0.0, 0.0, 0.0)
    assert np.isnan(rows["sinks/count"].compared[0].p_corrected)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"digest": "other"}, "different sequences"),
        ({"replicates": False}, "--replicates"),
        ({"digest": ""}, "different sequences"),
    ],
)
def test_other_text_or_no_replicates_is_unpaired_and_says_so(texts, options, why):
    comparison = compare_runs([made(texts[0]), made(texts[1], **options)])
    assert comparison.pairing[0].startswith("unpaired: ")
    assert why in comparison.pairing[0]
    one = comparison.rows[0].compared[0]
    assert not one.difference.paired
    assert one.difference.low < 0 < one.difference.high


def test_what_one_run_lacks_has_no_difference(texts):
    comparison = compare_runs([made(texts[0]), made({"mass": texts[1]["mass"]})])
    rows = {row.quantity: row for row in comparison.rows}
    assert rows["sinks/share"].compared == (None,)
    assert rows["sinks/share"].values[1] is None
    tree = comparison.to_json()
    assert tree["quantities"]["sinks/share"]["differences"] == {}


def test_json_table_and_page_tell_the_same(texts, capsys):
    import sys

    comparison = compare_runs(
        [made(texts[0], labels={"frames": {"kind": "centralized"}}), made(texts[1], labels={"frames": {"kind": "none"}})],
        ["a", "b"],
    )
    tree = json.loads(dumps(comparison.to_json()))
    one = tree["quantities"]["sinks/mass"]["differences"]["b"]
    frame = comparison.to_dataframe().set_index(["quantity", "run"])
    assert one["value"] == pytest.approx(frame.loc[("sinks/mass", "b"), "difference"])
    assert one["paired"] is True
    assert tree["labels"] == {"frames/kind": {"a": "centralized", "b": "none"}}
    show(comparison_page(comparison), sys.stdout)
    page = capsys.readouterr().out
    assert f"{one['value']:+.3g}" in page
    assert "after Holm's correction over 2 tests" in page
    assert "paired: the same sequences" in page


def test_models_are_surveyed_and_paired_when_they_share_tokens(zoo, tmp_path):
    given = {"out": tmp_path, "corpus": SPEC, "measures": MEASURES}
    comparison, failures = compare(["zoo:rope", "zoo:learned", "zoo:rope@77"], **given)
    assert comparison.names == ("zoo:rope", "zoo:learned")
    assert comparison.pairing == ("paired: the same sequences",)
    assert list(failures) == ["zoo:rope@77"]
    assert "\n" not in failures["zoo:rope@77"]
    entropy = next(row for row in comparison.rows if row.quantity == "attention/entropy")
    assert entropy.compared[0].difference.paired
    runs = sorted(tmp_path.glob("zoo-*/run.json"))
    times = [path.stat().st_mtime_ns for path in runs]
    again, _ = compare([tmp_path / runs[0].parent.name, "zoo:learned"], **given)
    assert again.names == (runs[0].parent.name, "zoo:learned")
    assert [path.stat().st_mtime_ns for path in runs] == times


def test_a_model_against_itself_differs_nowhere(zoo, tmp_path):
    one = survey("zoo:rope", corpus=SPEC, measures=MEASURES, replicates=True)
    comparison, _ = compare([one, one])
    assert comparison.tests == 0
    differences = [row.compared[0].difference for row in comparison.rows if row.compared[0] is not None]
    assert differences
    assert all(one.value == 0 for one in differences)
    assert comparison.names == ("zoo:rope (1)", "zoo:rope (2)")


def test_bad_input_is_named(zoo, tmp_path, texts):
    with pytest.raises(ConfigError, match="at least two"):
        compare(["zoo:rope"])
    with pytest.raises(ConfigError, match="`out` must be a folder"):
        compare(["zoo:rope", "zoo:learned"])
    with pytest.raises(ModelError, match="zoo:nowhere"):
        compare(["zoo:nowhere", "zoo:nothing"], out=tmp_path, corpus=CorpusSpec(sequences=4, length=24), measures="sinks")
    with pytest.raises(ConfigError, match="`measure` must be one of sinks"):
        compare_runs([made(texts[0]), made(texts[1])], only=["frames"])
    assert distinct(["a", "b", "a"]) == ("a (1)", "b", "a (2)")

"""What users hold in their hands: repr, HTML, tables, trees."""

import numpy as np
import pytest
import xarray as xr

from gnomon.result import RunWriter, Survey
from gnomon.result.strict_json import digest, strict
from gnomon.result.survey import format_estimate, format_number
from gnomon.statistics import Estimate


@pytest.fixture
def survey() -> Survey:
    per_head = (("layer", "head"), np.arange(6.0).reshape(2, 3))
    data = xr.Dataset(
        {
            "profile": (("layer", "position"), np.zeros((2, 4))),
            "mass": per_head,
            "mass_low": per_head,
        },
        coords={"layer": [0, 1], "head": [0, 1, 2]},
    )
    writer = RunWriter.start(None, {"seed": 0}, {"model": {"name": "<script>alert(1)</script>"}, "corpus": {"source": "a & b"}})
    headline = {"sinks": {"share": Estimate(0.25, 0.125, 0.5, 8), "late": Estimate.missing("too <few>")}}
    return writer.finish({"sinks": data}, headline, {"labels": {"sinks": {"kind": "centralized"}}})


def test_repr_says_model_numbers_and_reasons(survey):
    text = repr(survey)
    assert "sinks/share: 0.25 [0.125, 0.5]" in text
    assert "sinks/late: missing: too <few>" in text
    assert "sinks/kind: centralized" in text


def test_html_repr_is_escaped(survey):
    html = survey._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a &amp; b" in html
    assert "too &lt;few&gt;" in html


def test_tables(survey):
    headline = survey.to_dataframe()
    assert list(headline.columns) == ["measure", "quantity", "value", "low", "high", "n", "reason"]
    assert headline["value"].isna().tolist() == [False, True]
    heads = survey.to_dataframe("sinks")
    assert list(heads.columns) == ["layer", "head", "mass", "mass_low"]
    assert len(heads) == 6
    assert heads.query("layer == 1 and head == 2")["mass"].item() == 5.0
    assert len(survey.to_dataframe("sinks", "profile")) == 8
    with pytest.raises(KeyError, match="sinks has no nothing"):
        survey.to_dataframe("sinks", "nothing")


def test_mapping_and_tree(survey):
    assert survey.measures == ("sinks",)
    assert "sinks" in survey
    assert len(survey) == 1
    with pytest.raises(KeyError, match="this survey has no 'norms'; it has sinks"):
        survey["norms"]
    xr.testing.assert_identical(survey.to_xarray()["sinks"].to_dataset(), survey["sinks"])


def test_format_estimate():
    assert format_estimate(Estimate(1.23456)) == "1.23"
    assert format_estimate(Estimate(23456.0, -1234.0, 999.6)) == "23500 [-1230, 1e+03]"
    assert format_number(1.5e7) == "1.5e+07"
    assert format_estimate(Estimate(float("inf"))) == "missing: not finite"


def test_strict_and_digest_are_stable():
    tree = {"b": {3, 1}, "a": np.array([1.0, np.nan]), "c": Estimate.missing("why")}
    missing: dict[str, str] = {}
    assert strict(tree, missing)["a"] == [1.0, None]
    assert missing == {"a[1]": "not a number"}
    assert digest({"x": 1, "y": (2,)}) == digest({"y": [2], "x": np.int32(1)})
    assert digest({"x": 1}) != digest({"x": 2})

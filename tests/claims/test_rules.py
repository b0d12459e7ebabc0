"""The only places where a verdict is decided."""

import math

import pytest

from gnomon.statistics import Estimate
from gnomon.study.claims.rules import Finding, all_of, bound_rule, contrast, difference, equivalence_rule, interval_rule
from gnomon.study.claims.verdict import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from tests.claims.made_up import number


@pytest.mark.parametrize(
    ("value", "side", "expected"),
    [
        (0.5, "above", SUPPORTED),
        (-0.5, "above", NOT_SUPPORTED),
        (0.05, "above", INCONCLUSIVE),
        (0.5, "below", NOT_SUPPORTED),
        (-0.5, "below", SUPPORTED),
        (0.5, "apart", SUPPORTED),
        (-0.5, "apart", SUPPORTED),
        (-0.05, "apart", INCONCLUSIVE),
    ],
)
def test_interval_against_a_number(value, side, expected):
    assert interval_rule(number(value, 0.1), side).verdict == expected


def test_touching_the_null_is_not_beyond_it():
    assert interval_rule(Estimate(0.1, 0.0, 0.2, 32), "above").verdict == INCONCLUSIVE


def test_an_estimated_null_counts_with_its_interval():
    effect = number(0.5, 0.1)
    assert interval_rule(effect, "above", null=number(0.2, 0.05)).verdict == SUPPORTED
    assert interval_rule(effect, "above", null=number(0.35, 0.1)).verdict == INCONCLUSIVE
    assert interval_rule(effect, "above", null=number(0.9, 0.1)).verdict == NOT_SUPPORTED
    assert interval_rule(effect, "above", null=Estimate(0.2, n=32)).verdict == SUPPORTED, "a null without bounds is a number"
    assert interval_rule(effect, "above", null=Estimate.missing("gone")).verdict == INCONCLUSIVE


def test_negligible_is_a_finding_against():
    assert interval_rule(Estimate(0.0, -0.005, 0.005, 32), "above", negligible=0.01).verdict == NOT_SUPPORTED
    assert interval_rule(Estimate(0.0, -0.005, 0.02, 32), "above", negligible=0.01).verdict == INCONCLUSIVE
    assert interval_rule(Estimate(0.003, 0.001, 0.005, 32), "above", negligible=0.01).verdict == SUPPORTED


@pytest.mark.parametrize("effect", [Estimate.missing("why not"), Estimate(0.5, n=32), Estimate(0.5, 0.4, 0.6, 4)])
def test_nothing_is_decided_without_an_interval_or_with_few(effect):
    finding = interval_rule(effect, "above")
    assert finding.verdict == INCONCLUSIVE
    assert finding.why


def test_equivalence():
    assert equivalence_rule(number(0.01, 0.01), 0.05).verdict == SUPPORTED
    assert equivalence_rule(number(0.1, 0.01), 0.05).verdict == NOT_SUPPORTED
    assert equivalence_rule(number(0.05, 0.01), 0.05).verdict == INCONCLUSIVE
    assert equivalence_rule(Estimate(0.01, 0.0, 0.02, 3), 0.05).verdict == INCONCLUSIVE


def test_an_identity_up_to_rounding():
    assert bound_rule(1e-7, 1e-5, loosest=0.1, name="error").verdict == SUPPORTED
    assert bound_rule(1e-3, 1e-5, loosest=0.1, name="error").verdict == NOT_SUPPORTED
    assert bound_rule(1e-3, 0.25, loosest=0.1, name="error").verdict == INCONCLUSIVE
    assert bound_rule(math.nan, 1e-5, loosest=0.1, name="error").verdict == INCONCLUSIVE


def test_all_parts_must_hold():
    yes, no, open_ = (Finding(word, word) for word in (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE))
    assert all_of(yes, yes).verdict == SUPPORTED
    assert all_of(yes, open_).verdict == INCONCLUSIVE
    assert all_of(open_, no, yes).verdict == NOT_SUPPORTED
    assert all_of(yes, no).why == "supported; not supported"


def test_differences():
    apart = difference(Estimate(3.0, 2.7, 3.3, 10), Estimate(1.0, 0.6, 1.4, 20))
    assert apart.value == 2.0
    assert apart.low == pytest.approx(1.5)
    assert apart.high == pytest.approx(2.5)
    assert apart.n == 10
    together = contrast(Estimate(3.0, 2.7, 3.3, 10), Estimate(1.0, 0.6, 1.4, 10))
    assert (together.low, together.high) == pytest.approx((1.3, 2.7))
    assert difference(Estimate.missing("gone"), number(1)).reason == "gone"

"""Sentences claim no more than their intervals, differences and verdicts are told as they were made."""

from __future__ import annotations

import math

import pytest

from gnomon.report.html import report_html, sentences
from gnomon.report.html.claims import claims_tree
from gnomon.report.html.differences import differences_tree
from gnomon.report.html.several import run_names, spread
from gnomon.report.html.training import checkpoint_step
from gnomon.result import Survey
from gnomon.statistics import Estimate


def survey(measure: str = "sinks", labels=None, info=None, **numbers: Estimate) -> Survey:
    facts = {"model": {"name": "m"}, "labels": labels or {}, **(info or {})}
    return Survey(facts, {measure: dict(numbers)}, {})


@pytest.mark.parametrize(
    ("residual", "mask", "words"),
    [
        (
            (0.2, 0.1, 0.3),
            (0.01, -0.01, 0.03),
            "the residual stream carries absolute position into attention, and the mask not detectably",
        ),
        (
            (0.2, -0.1, 0.5),
            (0.03, 0.01, 0.05),
            "the mask carries absolute position into attention, and the residual stream not detectably",
        ),
        ((0.2, 0.1, 0.3), (0.03, 0.01, 0.05), "more by the residual stream"),
        ((0.2, 0.1, 0.3), (0.15, 0.05, 0.25), "by both"),
        ((0.0, -0.1, 0.1), (0.0, -0.1, 0.1), "no trace of absolute position that this text could detect"),
        ((0.2, math.nan, math.nan), (0.1, math.nan, math.nan), "no trace of absolute position that this text could detect"),
    ],
)
def test_where_position_comes_from_is_said_as_far_as_the_intervals_tell(residual, mask, words):
    found = sentences.position(survey("leakage", residual_early=Estimate(*residual), mask_early=Estimate(*mask)))
    assert found is not None
    assert words in found


def test_a_section_without_its_number_has_no_sentence():
    empty = survey()
    for say in (
        sentences.sinks,
        sentences.position,
        sentences.frames,
        sentences.scales,
        sentences.phase,
        sentences.likelihood,
        sentences.training,
    ):
        assert say(empty) is None
    missing = survey(head_share_03=Estimate.missing("too few sequences"))
    assert sentences.sinks(missing) is None
    assert sentences.findings(missing) == []


def test_findings_carry_their_intervals():
    (found,) = sentences.findings(survey(head_share_03=Estimate(0.5, 0.4, 0.6, 8)))
    assert found.text == "50\u202f% [40, 60]"
    assert found.section == "sinks"


def test_position_0_is_told_with_its_reason():
    why = {"corpus": {"first_token": {"placed": True, "text": "<s>\u202e", "id": 1, "why": "the tokenizer puts it there."}}}
    assert sentences.first_token(why) == "Position 0 holds <s>\\u202e (id 1): the tokenizer puts it there."
    assert (
        sentences.first_token({"corpus": {"first_token": {"placed": False, "why": "no token is added."}}}) == "No token is added."
    )
    assert sentences.first_token({}) is None


def test_differences_come_from_the_comparison_of_results():
    one = survey(head_share_03=Estimate(0.2, 0.18, 0.22, 8), sink_rate_03=Estimate(0.5, 0.4, 0.6, 8))
    two = survey(head_share_03=Estimate(0.6, 0.58, 0.62, 8), sink_rate_03=Estimate(0.5, 0.4, 0.6, 8))
    tree = differences_tree([one, two], ["a", "b"], None)
    assert tree is not None
    assert tree["sentence"].startswith("1 of 2 tested numbers differ from a beyond chance")
    assert tree["table"]["rows"][0][:4] == ["sinks/head_share_03", "b", "0.2 [0.18, 0.22]", "0.6 [0.58, 0.62]"]
    assert "different sequences" in tree["notes"][0]
    assert differences_tree([one] * 7, list("abcdefg"), None) is None
    assert differences_tree([one, two], ["a", "b"], []) is None


def test_verdicts_are_told_with_what_decides_them():
    rows = [
        {
            "id": "A2",
            "verdict": "supported",
            "effect": 0.04,
            "low": 0.03,
            "high": 0.05,
            "null": 0.0,
            "n": 32,
            "statement": "the mask leaks",
            "why": "it does",
        },
        {"id": "A8", "verdict": "not applicable", "effect": None},
    ]
    tree = claims_tree(rows, survey())
    assert tree is not None
    assert tree["sentence"] == "Of 2 published claims judged on this text: 1 supported, 1 not applicable."
    assert tree["rows"][0]["effect"] == "effect: 0.04 [0.03, 0.05], against the null 0, n = 32"
    page = report_html([survey()], claims=rows)
    assert "A8" in page
    assert "it does" in page
    assert claims_tree(None, survey()) is None


@pytest.mark.parametrize(
    ("info", "step"),
    [
        ({"model": {"name": "pythia", "revision": "step512"}}, 512.0),
        ({"model": {"name": "pythia", "step": 7}}, 7.0),
        ({"checkpoint": {"step": 3}}, 3.0),
        ({"model": {"name": "gpt2"}}, None),
        ({}, None),
    ],
)
def test_the_step_of_a_checkpoint_is_read_from_the_record(info, step):
    assert checkpoint_step(info) == step


def test_runs_have_names_that_tell_them_apart():
    assert run_names([survey(), survey()]) == ["m (0)", "m (1)"]
    assert run_names([survey(info={"model": {"name": "m", "step": 1}}), survey()]) == ["m step 1", "m (1)"]
    assert spread(5, 12) == [0, 1, 2, 3, 4]
    assert spread(100, 3) == [0, 50, 99]

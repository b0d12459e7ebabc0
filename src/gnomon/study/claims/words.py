"""Claims D1 and D2 on one model: attention and the likelihood of words.

D1 is judged by what remains when position, length, number of tokens and frequency of the word are taken out, and by a layer chosen on other sentences: without
controls a causal model would show the claim by arithmetic, and the best of many layers is best by chance. D2 is judged by words replaced by equally
frequent ones, so that rarity is not taken for unexpectedness.
"""

from __future__ import annotations

from typing import Final

from gnomon.result.survey import format_estimate
from gnomon.statistics import Estimate
from gnomon.study.claims.claim import Answer, Claim, not_applicable
from gnomon.study.claims.evidence import Reader
from gnomon.study.claims.rules import Finding, all_of, interval_rule
from gnomon.study.claims.verdict import INCONCLUSIVE, SUPPORTED

LEVEL: Final = 0.05
NEGLIGIBLE: Final = 0.05
HEADLESS: Final = "the model has no language-model head that gives the likelihood of a word"
BEST: Final = {"bert-base": 0.643, "distilbert": 0.688, "roberta-base": 0.802, "roberta-large": 0.823, "xlm-r-base": 0.767}


def judge_relation(read: Reader) -> Answer:
    """D1: likelier words get more attention from themselves."""
    if read.subject.predicts is False:
        return not_applicable(HEADLESS)
    plain, partial = (read.number("likelihood", f"{name}_held_out") for name in ("correlation", "partial"))
    best, p = read.number("likelihood", "correlation"), read.number("likelihood", "correlation_p")
    finding = all_of(
        interval_rule(plain, "above", negligible=NEGLIGIBLE, name="rho, layer chosen on other sentences,"),
        interval_rule(partial, "above", negligible=NEGLIGIBLE, name="with position, length, tokens and frequency taken out"),
    )
    if finding.verdict == SUPPORTED and not p.value <= LEVEL:
        finding = Finding(INCONCLUSIVE, f"{finding.why}; corrected p = {p.value:.2g}")
    beside = "" if best.is_missing else f"; best layer {format_estimate(best)}, corrected p {_p(p)}"
    return Answer(
        finding=Finding(finding.verdict, finding.why + beside),
        effect=partial,
        quantity="rank correlation of a word's likelihood with its attention to itself, controls taken out, held-out layer",
        null=0.0,
    )


def judge_replaced(read: Reader) -> Answer:
    """D2: unlikely words attend less to themselves, most in late layers."""
    if read.subject.predicts is False:
        return not_applicable(HEADLESS)
    matched = read.number("likelihood", "perturbed_lowest_minus_highest_matched")
    trend = read.number("likelihood", "perturbed_trend_matched")
    plain = read.number("likelihood", "perturbed_lowest_minus_highest")
    finding = all_of(
        interval_rule(matched, "below", name="inner attention, least less most likely, equally frequent words:"),
        interval_rule(trend, "below", name="its slope over depth"),
    )
    beside = "" if plain.is_missing else f"; without matching frequency {format_estimate(plain)}"
    return Answer(
        finding=Finding(finding.verdict, finding.why + beside),
        effect=matched,
        quantity="inner attention of the least likely word less that of the likeliest, equally frequent, mean over layers",
        null=0.0,
    )


def _p(number: Estimate) -> str:
    return "missing" if number.is_missing else f"{number.value:.2g}"


CLAIMS: Final = (
    Claim(
        id="D1",
        statement="The likelihood of a token correlates with the attention it gets from itself.",
        rule="Supported when Spearman's rho in a layer chosen on other sentences has an interval above 0, plain and with position, length, number of tokens and frequency taken out, and the p-value corrected for the whole search is at "
        f"most 0.05; not supported when one lies below 0 or within {NEGLIGIBLE:g} of it. Not applicable without a language-model head.",
        null="no correlation: 0",
        measures=("likelihood",),
        published="best of layers and modes: " + ", ".join(f"{model} {value:.3f}" for model, value in BEST.items()),
        differs="published figures are the largest of many, uncorrected and without controls, for encoders at unmasked positions; the effect here is held out and controlled",
        judge=judge_relation,
    ),
    Claim(
        id="D2",
        statement="Unexpected tokens make the model attend less to what comes from themselves, most at higher layers.",
        rule="Supported when inner attention of the least likely less the likeliest replacement, of equal frequency, has an interval below 0 and so has its slope over depth; not supported when either lies above 0. Not applicable "
        "without a language-model head.",
        null="no difference between replacements of the same sentence: 0",
        measures=("likelihood",),
        published="a trend over bands and layers; no figure at hand",
        differs="replacements are matched in frequency and drawn anew for each sentence here",
        judge=judge_replaced,
    ),
)

"""Claims A1 to A9 on one model: where absolute position comes from.

Leakage is judged in the earliest band of query positions that the windows reach (queries 2 to 31 in windows of 64 tokens or more), since that is where the
claims put it, and naming one band beforehand needs no correction for looking at three. Text that starts where sentences start has a trend of
its own, so leakage on passages or sentences decides nothing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gnomon.statistics import Estimate
from gnomon.study.claims.claim import Answer, Claim, not_applicable, undecided
from gnomon.study.claims.evidence import NATURAL, WINDOWS, Reader, needs
from gnomon.study.claims.rules import Finding, all_of, bound_rule, interval_rule
from gnomon.study.claims.verdict import INCONCLUSIVE, SUPPORTED

BANDS: Final = ("early", "middle", "late")
ABSOLUTE: Final = ("learned", "sinusoidal")
NEGLIGIBLE: Final = 1e-3
LOOSEST: Final = 0.1
LEVEL: Final = 0.05
BIDIRECTIONAL: Final = "the model is bidirectional; the claim is about causal attention"
GIVEN: Final = "absolute positions are added to the embedding, so that this holds by construction"
REPLACED: Final = "bos=mean"
NOISE: Final = "bos=noise"


def judge_shift(read: Reader) -> Answer:
    """A1: nothing but rounding changes when all positions move."""
    scheme = read.fact("scheme", "kind") or ""
    if scheme in ("alibi", "relative", "none"):
        return not_applicable(f"the scheme ({scheme}) takes no position ids: it is given offsets only")
    error = read.number("invariance", "logit_error")
    dataset = read.dataset("invariance")
    if dataset is None or error.is_missing:
        return undecided(error.reason or needs("invariance"))
    read.note("invariance", "logit_error")
    read.note("invariance", "tolerance")
    worst = dataset["logit_error"].max("layer").values
    with np.errstate(invalid="ignore"):
        place = int(np.nanargmax(worst / dataset["tolerance"].values))
    shift = int(dataset["shift"].values[place])
    bound = float(dataset["tolerance"].values[place])
    finding = bound_rule(float(worst[place]), bound, loosest=LOOSEST, name=f"shift by {shift}: largest relative change")
    parts: dict[str, Any] = {
        "effect": Estimate(float(worst[place]), n=error.n),
        "quantity": "largest relative change of attention logits",
        "null": bound,
    }
    if scheme in ABSOLUTE:
        return Answer(
            finding=Finding(finding.verdict, f"{finding.why}; positions are absolute, as a check that fails must show"), **parts
        )
    return Answer(finding=finding, **parts)


def judge_leakage(read: Reader) -> Answer:
    """A2: attention tells absolute position apart."""
    return _component(read, "total", "variance over positions of the expected log-weight, nat²")


def judge_residual(read: Reader) -> Answer:
    """A4: logits tell absolute position apart."""
    return _component(read, "residual", "variance over positions of the expected logit, nat²")


def judge_mask(read: Reader) -> Answer:
    """A3: the number of keys alone makes the denominator depend on position."""
    if read.subject.causal is False:
        return not_applicable("every query of a bidirectional model sees as many keys")
    band, reason = _band(read, "total")
    if band is None:
        return undecided(reason)
    alone = read.variable(
        "leakage", "model_mask_alone", WINDOWS, query_band=band, reason="no layer has counterfactuals in this band"
    )
    effect = read.variable(
        "leakage", "model_mask_effect", WINDOWS, query_band=band, reason="no layer has counterfactuals in this band"
    )
    finding = interval_rule(alone, "above", negligible=NEGLIGIBLE, name=f"{band} queries:")
    share = "" if effect.is_missing else f"; its main effect beside the logits' is {effect.value:.3g}"
    return Answer(
        finding=Finding(finding.verdict, f"{finding.why}{share}; the number of keys moves every causal softmax, trained or not"),
        effect=alone,
        quantity="leakage with stationary logits and each query's own number of keys, nat²",
        null=0.0,
    )


def judge_closed(read: Reader) -> Answer:
    """A5: position 0 is a closed system."""
    if read.subject.causal is False:
        return not_applicable("position 0 of a bidirectional model sees everything")
    if read.subject.fact("anatomy", "kind") == "encoder-decoder":
        return not_applicable("position 0 of this decoder reads an encoder too")
    deviation = read.number("trajectory", "deviation")
    dataset = read.dataset("trajectory")
    if dataset is None or deviation.is_missing:
        return undecided(deviation.reason or needs("trajectory"))
    read.note("trajectory", "tolerance")
    bound = float(dataset.attrs["tolerance"])
    finding = bound_rule(deviation.value, bound, loosest=LOOSEST, name="alone against in context: largest relative deviation")
    return Answer(
        finding=finding,
        effect=deviation,
        quantity="largest relative deviation of position 0 over levels, keys and values",
        null=bound,
    )


def judge_reads(read: Reader) -> Answer:
    """A6: cutting reads of position 0 changes the residual component and the loss, beyond cutting other heads."""
    if read.subject.causal is False:
        return not_applicable(BIDIRECTIONAL)
    dataset = read.dataset("intervention", WINDOWS)
    labels = [] if dataset is None else [str(label) for label in dataset["condition"].values]
    cut = next((label for label in labels if f"{label} control" in labels), None)
    if cut is None:
        return undecided(needs("intervention") + " with ablate_sink_reads and a control")
    band, reason = _intervention_band(read, cut, "beyond_control")
    if band is None:
        return undecided(reason)
    beyond = read.variable("intervention", "beyond_control", WINDOWS, condition=cut, query_band=band, reason=reason)
    loss = read.variable(
        "intervention", "loss_change", WINDOWS, condition=cut, reason="the model does not predict the next token"
    )
    control = read.variable("intervention", "loss_change", WINDOWS, condition=f"{cut} control", reason="no control")
    heads = read.number("reads", "carried", WINDOWS)
    finding = all_of(
        interval_rule(beyond, "apart", negligible=0.05, name=f"residual component removed beyond other heads, {band} queries:"),
        interval_rule(loss, "above", null=control, name="loss added, against other heads:"),
    )
    carried = "" if heads.is_missing else f"; heads carry {heads.value:.2g} of their output from position 0 on average"
    return Answer(
        finding=Finding(finding.verdict, f"reads of {cut} cut: {finding.why}{carried}"),
        effect=beyond,
        quantity="fraction of the residual component removed, beyond random heads of the same layers",
        null=0.0,
        null_is="random heads of the same layers cut",
    )


def judge_replacement(read: Reader) -> Answer:
    """A8: replacing the first embedding removes part of the residual component at early queries."""
    if read.subject.causal is False:
        return not_applicable(BIDIRECTIONAL)
    if (problem := _text_problem(read, "intervention")) is not None:
        return undecided(problem)
    band, reason = _intervention_band(read, REPLACED, "removed_residual")
    if band is None:
        return undecided(reason)
    gone = read.number("intervention", f"{REPLACED}/removed_{band}", WINDOWS)
    finding = interval_rule(gone, "above", name=f"mean embedding, {band} queries:")
    others = []
    for label, name in ((NOISE, "noise of the same norm"), ("bos=random", "a random token"), ("bos=zero", "zero")):
        other = read.number("intervention", f"{label}/removed_{band}", WINDOWS)
        if not other.is_missing:
            others.append(f"{name} {other.value:.2g}")
    listed = f"; other replacements: {', '.join(others)}" if others else ""
    return Answer(
        finding=Finding(finding.verdict, finding.why + listed),
        effect=gone,
        quantity="fraction of the residual component removed by the mean embedding at position 0",
        null=0.0,
        differs="" if _placed(read) else "position 0 holds the text's first token here, not BOS",
    )


def judge_fingerprint(read: Reader) -> Answer:
    """A9: later positions know which token stands at position 0."""
    if read.subject.causal is False:
        return not_applicable(BIDIRECTIONAL)
    later = read.number("trajectory", "accuracy_later")
    dataset = read.dataset("trajectory")
    if dataset is None:
        return undecided(needs("trajectory"))
    chance = float(dataset.attrs["chance"])
    read.note("trajectory", "later_within")
    finding = interval_rule(later, "above", null=chance, name="token at position 0 named from later positions, last level:")
    spread = _spread(read)
    return Answer(
        finding=Finding(finding.verdict, f"{finding.why}{spread}"),
        effect=later,
        quantity="accuracy of naming the token at position 0 from the second half of the context",
        null=chance,
    )


def _component(read: Reader, name: str, quantity: str) -> Answer:
    """Leakage or its residual part, in the earliest band."""
    if read.subject.causal is False:
        return not_applicable(BIDIRECTIONAL)
    if (problem := _text_problem(read, "leakage")) is not None:
        return undecided(problem)
    band, reason = _band(read, name)
    if band is None:
        return undecided(reason)
    found = read.number("leakage", f"{name}_{band}", WINDOWS)
    p = read.number("leakage", f"p_{name}_{band}", WINDOWS)
    finding = interval_rule(found, "above", negligible=NEGLIGIBLE, name=f"{band} queries:")
    if finding.verdict == SUPPORTED and not p.value <= LEVEL:
        finding = Finding(INCONCLUSIVE, f"{finding.why}; flat profiles give as much with p = {p.value:.2g}")
    elif not p.is_missing:
        finding = Finding(finding.verdict, f"{finding.why}, p = {p.value:.2g} under flat profiles")
    parts: dict[str, Any] = {"effect": found, "quantity": quantity, "null": 0.0}
    if read.subject.scheme in ABSOLUTE:
        return not_applicable(f"{GIVEN}; {finding.why}", **parts)
    return Answer(finding=finding, **parts)


def _band(read: Reader, name: str) -> tuple[str | None, str]:
    """The earliest band that was reached, or why there is none."""
    if not read.has("leakage"):
        return None, needs("leakage")
    if (problem := _text_problem(read, "leakage")) is not None:
        return None, problem
    numbers = [(band, read.number("leakage", f"{name}_{band}", WINDOWS)) for band in BANDS]
    found = next((band for band, number in numbers if not number.is_missing), None)
    return found, "" if found else (numbers[0][1].reason or "no band was reached")


def _intervention_band(read: Reader, condition: str, variable: str) -> tuple[str | None, str]:
    """The earliest band in which a condition has a value, or why there is none."""
    dataset = read.dataset("intervention", WINDOWS)
    if dataset is None:
        return None, needs("intervention")
    if condition not in [str(label) for label in dataset["condition"].values]:
        return None, f"{needs('intervention')} with condition {condition}"
    values = dataset[variable].sel(condition=condition)
    for band in BANDS:
        if np.isfinite(float(values.sel(query_band=band))):
            return band, ""
    reason = str(dataset.attrs.get("missing_early", "no band has a residual component above zero"))
    return None, f"{reason}: its interval covers 0, and more windows would narrow it"


def _text_problem(read: Reader, measure: str) -> str | None:
    kind = read.text(measure, WINDOWS)
    if kind in NATURAL:
        return (
            f"{measure} was made on {kind}, whose beginnings differ from their middles; needs windows that start at random places"
        )
    return None


def _placed(read: Reader) -> bool:
    survey = read.subject.holding("intervention", WINDOWS)
    corpus = {} if survey is None else survey.info.get("corpus") or {}
    first = corpus.get("first_token") if isinstance(corpus, dict) else None
    return bool(isinstance(first, dict) and first.get("placed"))


def _spread(read: Reader) -> str:
    """How far tokens and contexts spread at position 0, in words."""
    dataset = read.dataset("trajectory")
    if dataset is None or "value_between" not in dataset:
        return ""
    read.note("trajectory", "value_between")
    read.note("trajectory", "value_within")
    between, within = float(dataset["value_between"][-1]), float(dataset["value_within"][-1])
    return f"; values at position 0, last layer: spread {between:.2g} between tokens, {within:.1e} between contexts of one token"


_BAND_RULE = "in the earliest band of queries that the windows reach"
CLAIMS: Final = (
    Claim(
        id="A1",
        statement="RoPE's inner product sees offsets only.",
        rule="All position ids are shifted by constants. Supported when the largest relative change of attention logits, over shifts and layers, is within what rounding may do (64 (eps + 2^-24 (T + shift))); not "
        "supported beyond it, as must be seen with learned absolute positions; inconclusive when rounding may do more than 0.1. Not applicable to schemes without position ids.",
        null="what rounding may do",
        measures=("invariance",),
        published="an identity; no figure",
        differs="rounding depends on number format and shift",
        judge=judge_shift,
    ),
    Claim(
        id="A2",
        statement="Attention still tells absolute position apart.",
        rule=f"Supported when, {_BAND_RULE}, the interval of the unbiased variance over positions of E[log a] at fixed offset (mean over layers, heads, offsets) lies above 0 and its permutation p is at most 0.05; not "
        f"supported when it lies below {NEGLIGIBLE:g} nat²; otherwise inconclusive. Not applicable to bidirectional models and to absolute positions.",
        null="flat profiles: 0",
        measures=("leakage",),
        kinds=WINDOWS,
        strict=True,
        published="no figure at hand",
        differs="estimator, bands and offsets are ours",
        judge=judge_leakage,
    ),
    Claim(
        id="A3",
        statement="First source: the causal mask; Z_i sums i + 1 terms and so depends on i even for stationary logits.",
        rule=f"Supported when, {_BAND_RULE}, the interval of the leakage with stationary logits and each query's own number of keys lies above 0; not supported when it lies below {NEGLIGIBLE:g} nat². Not applicable to "
        "bidirectional models.",
        null="the same number of keys for every query: 0",
        measures=("leakage",),
        kinds=WINDOWS,
        strict=True,
        published="no figure at hand",
        differs="the counterfactual is ours",
        judge=judge_mask,
    ),
    Claim(
        id="A4",
        statement="Second source: the residual stream carries position into queries and keys.",
        rule=f"As A2, for the variance over positions of E[s], the logit ({_BAND_RULE}).",
        null="flat profiles: 0",
        measures=("leakage",),
        kinds=WINDOWS,
        strict=True,
        published="no figure at hand",
        differs="estimator, bands and offsets are ours",
        judge=judge_residual,
    ),
    Claim(
        id="A5",
        statement="Position 0 attends only to itself: its trajectory is a closed system.",
        rule="The first token is run alone and in its context. Supported when hidden states, keys and values at position 0 agree at every layer within rounding (2 eps^(2/3)); not supported beyond. Not applicable to "
        "bidirectional models and to decoders that read an encoder.",
        null="rounding",
        measures=("trajectory",),
        published="an identity; no figure",
        differs="rounding depends on number format and shapes",
        judge=judge_closed,
    ),
    Claim(
        id="A6",
        statement="Later heads read that trajectory: removing their reads changes the residual component and the loss.",
        rule="Reads of position 0 are cut in the heads with most weight there, and in as many random heads of the same layers. Supported when the fraction of the residual component removed beyond the random heads has "
        "an interval that excludes 0 (either sign) and the loss added lies above that of the random heads; not supported when the fraction is within 0.05 of 0 or the loss lies below. Not applicable to bidirectional models.",
        null="as many random heads of the same layers",
        measures=("intervention",),
        kinds=WINDOWS,
        strict=True,
        published="no figure at hand",
        differs="which heads are cut, and how, is ours",
        judge=judge_reads,
    ),
    Claim(
        id="A8",
        statement="Replacing the BOS embedding removes about 40 % of the residual component at early queries.",
        rule="Supported when the interval of the fraction removed by the mean embedding lies above 0, in the earliest band with a residual component above zero; not supported when it lies below. The size, and other "
        "replacements, are reported beside. Not applicable to bidirectional models.",
        null="the unchanged model: 0",
        measures=("intervention",),
        kinds=WINDOWS,
        strict=True,
        published="about 0.40 (Llama-3.2-3B, BOS)",
        differs="another model; what BOS is replaced by decides the size, and the published replacement is not known to us",
        judge=judge_replacement,
    ),
    Claim(
        id="A9",
        statement="A sink passes on a fingerprint of the token at position 0, the same for every input when that token is the same.",
        rule="Tokens are put in turn at position 0 of the same contexts. Supported when the accuracy of naming the token from the mean state of later positions (contexts left out in turn) has an interval above chance; "
        "not supported below. That position 0 itself is the same for every context is A5. Not applicable to bidirectional models.",
        null="chance: one over the number of tokens",
        measures=("trajectory",),
        published="no figure at hand",
        differs="reading by nearest centroid is ours; contexts, not texts, are the units",
        judge=judge_fingerprint,
    ),
)

"""Claims about families: what a positional scheme, a training or a size decides (A7, B7, B8, C4, C5, C8).

**Which scheme.** ``plain`` is RoPE with a base below 1e6 (Llama's own scaling counts as plain, as paper B has it), ``ntk`` RoPE with a base from 1e6 on or with
dynamic or YaRN scaling (paper B calls Qwen's base of 1e6 NTK-scaled), ``window`` RoPE with a window shorter than the text in some layer. These readings are ours.

**Side by side.** A difference between two models is a difference of scheme only when they differ in nothing else: A7, C4 compare models of one shape
(layers, heads, width, vocabulary) and, for C4, of one mask. Every pair must agree, each with an interval, so that a second seed of a scheme has to say the same
as the first. The pairs share text, whose chance then cancels; the intervals are computed as if it did not.

**Along a training.** The step of an event is given with the steps of the checkpoints around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from gnomon.statistics import Estimate
from gnomon.study.claims.claim import Answer, Claim, not_applicable, undecided
from gnomon.study.claims.evidence import WINDOWS, Reader
from gnomon.study.claims.rules import Finding, Side, difference, interval_rule
from gnomon.study.claims.verdict import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED

NTK_BASE: Final = 1e6
NTK_SCALINGS: Final = ("dynamic", "yarn", "longrope")
PREDICTED: Final = {"plain": "centralized", "ntk": "distributed", "learned encoder": "bidirectional"}
SURE: Final = 0.5
EARLY_SHARE: Final = 0.1
FEWEST_CHECKPOINTS: Final = 4
SENTENCES: Final = ("sentences",)
PASSAGES: Final = ("passages",)


def scheme_family(read: Reader) -> str:
    """``plain``, ``ntk``, ``window``, ``learned encoder``, or the scheme's own name."""
    kind = read.fact("scheme", "kind") or ""
    if kind == "learned" and read.subject.causal is False:
        return "learned encoder"
    if kind != "rope":
        return str(kind)
    windows = [size for size in read.fact("scheme", "windows") or () if isinstance(size, int)]
    if windows and min(windows) < _length(read):
        return "window"
    bases = [base for base in read.fact("scheme", "rope_bases") or () if isinstance(base, int | float)]
    scaled = read.fact("scheme", "rope_scaling") in NTK_SCALINGS
    return "ntk" if scaled or (bases and max(bases) >= NTK_BASE) else "plain"


def judge_balance(readers: Sequence[Reader]) -> Answer:
    """A7: residual component by scheme: NTK below plain, and growing with depth under windows more than under plain."""
    by_family = _by_family(readers, ("plain", "ntk", "window"))
    if not by_family.get("plain") or not (by_family.get("ntk") or by_family.get("window")):
        return not_applicable("needs models with plain RoPE and with NTK-scaled RoPE or windows")
    parts: list[tuple[str, Estimate]] = []
    for family, sign, what in (("ntk", 1.0, _residual), ("window", -1.0, _growth)):
        for one in by_family.get(family, ()):
            for plain in by_family["plain"]:
                if _shape(one) != _shape(plain):
                    return undecided("these models differ in more than their scheme: their shapes are not the same")
                gap = difference(what(plain), what(one))
                parts.append((f"{plain.subject.label} and {one.subject.label}", gap if sign > 0 else _negated(gap)))
    finding = _every(parts)
    absent = [family for family in ("ntk", "window") if not by_family.get(family)]
    if absent and finding.verdict == SUPPORTED:
        finding = Finding(INCONCLUSIVE, f"{finding.why}; the claim also speaks of {absent[0]} models, of which there is none")
    return Answer(
        finding=finding,
        effect=min((gap for _, gap in parts), key=lambda gap: gap.value if gap.value == gap.value else math.inf),
        quantity="smallest of the differences in the claimed direction: residual component plain less NTK; its growth over depth, windows less plain; nat²",
        null=0.0,
    )


def judge_kind(read: Reader) -> Answer:
    """B7 on one model: the kind that its scheme predicts against the kind found."""
    family = scheme_family(read)
    predicted = PREDICTED.get(family)
    if predicted is None:
        return not_applicable(f"the paper predicts no kind for this scheme ({family or 'unknown'})")
    finding, score, found = _kind(read, predicted)
    if finding.verdict == SUPPORTED:
        finding = Finding(
            INCONCLUSIVE, f"{finding.why}; as predicted, but that the scheme decides takes models of another scheme"
        )
    return Answer(finding=finding, effect=score, quantity=f"score of the kind found ({found}), 0 to 1", null=SURE)


def judge_kind_by_scheme(readers: Sequence[Reader]) -> Answer:
    """B7 over models: every scheme has its predicted kind."""
    predicted = [(read, PREDICTED[family]) for read in readers if (family := scheme_family(read)) in PREDICTED]
    if len({kind for _, kind in predicted}) < 2:
        return not_applicable("needs models of two schemes for which the paper predicts different kinds")
    found = [(read, *_kind(read, kind)) for read, kind in predicted]
    words = [finding.verdict for _, finding, _, _ in found]
    verdict = next((word for word in (NOT_SUPPORTED, INCONCLUSIVE) if word in words), SUPPORTED)
    why = "; ".join(f"{read.subject.label}: {finding.why}" for read, finding, _, _ in found)
    share = float(np.mean([word == SUPPORTED for word in words]))
    return Answer(
        finding=Finding(verdict, why),
        effect=Estimate(share, n=len(found)),
        quantity="share of models with the kind predicted",
        null=None,
    )


def judge_emergence(readers: Sequence[Reader]) -> Answer:
    """B8: the first checkpoint from which on the model has a frame."""
    framed = [_framed(read) for read in readers]
    nulls = [read.number("frames", "null_framed", SENTENCES) for read in readers]
    steps = _steps(readers)
    if len(steps) < FEWEST_CHECKPOINTS:
        return undecided(f"{len(steps)} checkpoints, and fewer than {FEWEST_CHECKPOINTS} show no course")
    missing = next((number.reason for number in framed if number.is_missing), None)
    if missing is not None:
        return undecided(str(missing))
    there = [
        interval_rule(number, "above", null=SURE).verdict == SUPPORTED
        and interval_rule(number, "above", null=null).verdict == SUPPORTED
        for number, null in zip(framed, nulls, strict=True)
    ]
    if not there[-1]:
        verdict = NOT_SUPPORTED if interval_rule(framed[-1], "below", null=SURE).verdict == SUPPORTED else INCONCLUSIVE
        return Answer(
            finding=Finding(verdict, f"the last checkpoint has no certain frame (score {framed[-1].value:.2g})"),
            effect=None,
            quantity="training step from which on there is a frame",
        )
    first = max((index + 1 for index, one in enumerate(there) if not one), default=0)
    before = steps[first - 1] if first else 0.0
    limit = EARLY_SHARE * steps[-1]
    effect = Estimate(steps[first], before, steps[first], len(steps))
    verdict = SUPPORTED if steps[first] <= limit else NOT_SUPPORTED if before >= limit else INCONCLUSIVE
    kinds = [read.label("frames", "kind", SENTENCES) or "unknown" for read in readers]
    return Answer(
        finding=Finding(
            verdict,
            f"a frame ({kinds[first]}) from step {steps[first]:g} of {steps[-1]:g} on, after none at {before:g}; early is up to {limit:g}",
        ),
        effect=effect,
        quantity="training step from which on there is a frame",
        null=limit,
        null_is="a tenth of the training",
    )


def judge_scale(readers: Sequence[Reader]) -> Answer:
    """C4: RoPE changes least when text is shortened."""
    rope = [read for read in readers if read.subject.scheme == "rope"]
    others = [read for read in readers if read.subject.scheme not in ("rope", "")]
    pairs = [(one, other) for one in rope for other in others if one.subject.causal == other.subject.causal]
    if not pairs:
        return not_applicable("needs models with RoPE and with another scheme, of the same mask")
    parts = [
        (
            f"{other.subject.label} less {one.subject.label}",
            difference(other.number("scale", "calibrated/0.5", PASSAGES), one.number("scale", "calibrated/0.5", PASSAGES)),
        )
        for one, other in pairs
    ]
    finding = _every(parts)
    mixed = next(
        (f"; {a.subject.label} and {b.subject.label} differ in shape too" for a, b in pairs if _shape(a) != _shape(b)), ""
    )
    if mixed and finding.verdict == SUPPORTED:
        finding = Finding(INCONCLUSIVE, finding.why)
    return Answer(
        finding=Finding(finding.verdict, finding.why + mixed),
        effect=min((gap for _, gap in parts), key=lambda gap: gap.value if gap.value == gap.value else math.inf),
        quantity="smallest of: calibrated scale sensitivity (half of the tokens) of another scheme less that of RoPE",
        null=0.0,
    )


def judge_phases(readers: Sequence[Reader]) -> Answer:
    """C5: entropy peaks and selectivity dips on the way."""
    steps = _steps(readers)
    if len(steps) < FEWEST_CHECKPOINTS:
        return undecided(f"{len(steps)} checkpoints, and fewer than {FEWEST_CHECKPOINTS} show no course")
    entropy = [read.number("spectra", "paper/spectral_entropy", PASSAGES) for read in readers]
    selectivity = [read.number("spectra", "paper/selectivity", PASSAGES) for read in readers]
    missing = next((number.reason for number in (*entropy, *selectivity) if number.is_missing), None)
    if missing is not None:
        return undecided(str(missing))
    peak = int(np.argmax([number.value for number in entropy]))
    dip = int(np.argmin([number.value for number in selectivity]))
    findings = []
    courses: tuple[tuple[int, list[Estimate], Side, str], ...] = (
        (peak, entropy, "above", "spectral entropy"),
        (dip, selectivity, "below", "selectivity"),
    )
    for place, numbers, side, name in courses:
        if place in (0, len(steps) - 1):
            findings.append(Finding(NOT_SUPPORTED, f"{name} has its extreme at the end of the course, step {steps[place]:g}"))
            continue
        for end in (0, -1):
            one = interval_rule(
                numbers[place], side, null=numbers[end], name=f"{name} at step {steps[place]:g}, against step {steps[end]:g}:"
            )
            findings.append(one)
    words = [finding.verdict for finding in findings]
    verdict = next((word for word in (NOT_SUPPORTED, INCONCLUSIVE) if word in words), SUPPORTED)
    around = (steps[max(peak - 1, 0)], steps[min(peak + 1, len(steps) - 1)])
    return Answer(
        finding=Finding(verdict, "; ".join(finding.why for finding in findings)),
        effect=Estimate(steps[peak], *around, len(steps)),
        quantity="training step of the largest spectral entropy, with the steps around it",
        null=None,
        null_is="the first and the last checkpoint",
    )


def judge_size(readers: Sequence[Reader]) -> Answer:
    """C8: the smallest and the largest model of a family differ."""
    sized = sorted((read for read in readers if math.isfinite(read.subject.size)), key=lambda read: read.subject.size)
    family = [read for read in sized if _relation(read) == _relation(sized[0])] if sized else []
    if len({read.subject.size for read in family}) < 3:
        return not_applicable("needs three sizes of one family (same architecture and scheme)")
    entropy = [read.number("spectra", "paper/spectral_entropy", PASSAGES) for read in family]
    gap = difference(entropy[-1], entropy[0])
    finding = interval_rule(gap, "apart", negligible=0.05, name="spectral entropy, largest less smallest:")
    listed = ", ".join(f"{read.subject.label} {number.value:.3g}" for read, number in zip(family, entropy, strict=True))
    return Answer(
        finding=Finding(finding.verdict, f"{finding.why}; by size: {listed}; chance of training is not in the interval"),
        effect=gap,
        quantity="spectral entropy of the largest less the smallest model, nats",
        null=0.0,
    )


def _kind(read: Reader, predicted: str) -> tuple[Finding, Estimate, str]:
    found, score = read.label("frames", "kind", SENTENCES), read.number("frames", "score", SENTENCES)
    if found is None:
        return Finding(INCONCLUSIVE, score.reason or "no frame was measured"), score, "unknown"
    sure = interval_rule(score, "above", null=SURE, name=f"predicted {predicted}, found {found}, score")
    if sure.verdict != SUPPORTED:
        return Finding(INCONCLUSIVE, sure.why), score, found
    return Finding(SUPPORTED if found == predicted else NOT_SUPPORTED, sure.why), score, found


def _framed(read: Reader) -> Estimate:
    """Score of having a frame of any kind: one less the score of none."""
    none = read.variable("frames", "model_score", SENTENCES, kind="none")
    return none if none.is_missing else Estimate(1 - none.value, 1 - none.high, 1 - none.low, none.n)


def _residual(read: Reader) -> Estimate:
    return read.number("leakage", "residual_early", WINDOWS)


def _growth(read: Reader) -> Estimate:
    """Residual component of the second half of the layers less that of the first, early queries; bounds are means of the layers' own."""
    dataset = read.dataset("leakage", WINDOWS)
    if dataset is None or "layer_residual" not in dataset:
        return Estimate.missing("not measured: needs leakage")
    read.note("leakage", "layer_residual", WINDOWS, query_band="early")
    at = dataset.sel(query_band="early")
    value, low, high = (at["layer_residual" + end].values for end in ("", "_low", "_high"))
    half = len(value) // 2
    number = int(at["num_sequences"])
    if not half or not np.isfinite(value).all():
        return Estimate.missing("a single layer, or a layer without a value", number)
    late, early = slice(len(value) - half, None), slice(0, half)
    return Estimate(
        float(value[late].mean() - value[early].mean()),
        float(low[late].mean() - high[early].mean()),
        float(high[late].mean() - low[early].mean()),
        number,
    )


def _every(parts: Sequence[tuple[str, Estimate]]) -> Finding:
    """Every difference lies above zero."""
    findings = [interval_rule(gap, "above", name=f"{who}:") for who, gap in parts]
    words = [finding.verdict for finding in findings]
    verdict = SUPPORTED if set(words) == {SUPPORTED} else NOT_SUPPORTED if NOT_SUPPORTED in words else INCONCLUSIVE
    return Finding(verdict, "; ".join(finding.why for finding in findings))


def _by_family(readers: Sequence[Reader], families: Sequence[str]) -> dict[str, list[Reader]]:
    out: dict[str, list[Reader]] = {}
    for read in readers:
        family = scheme_family(read)
        if family in families and read.subject.causal is not False:
            out.setdefault(family, []).append(read)
    return out


def _shape(read: Reader) -> tuple[object, ...]:
    return tuple(read.subject.fact("anatomy", key) for key in ("num_layers", "num_heads", "hidden_size", "vocab_size"))


def _relation(read: Reader) -> tuple[object, ...]:
    return read.subject.fact("anatomy", "architecture"), read.subject.scheme


def _steps(readers: Sequence[Reader]) -> list[float]:
    return [float(read.subject.step or 0.0) for read in readers]


def _length(read: Reader) -> int:
    lengths: Iterator[object] = (
        corpus.get("length") for survey in read.subject.surveys if isinstance(corpus := survey.info.get("corpus"), dict)
    )
    return max((length for length in lengths if isinstance(length, int)), default=0)


def _negated(number: Estimate) -> Estimate:
    return number if number.is_missing else Estimate(-number.value, -number.high, -number.low, number.n)


CLAIMS: Final = (
    Claim(
        id="A7",
        statement="The balance is architectural: NTK-scaled RoPE suppresses the residual component, windows let it accumulate with depth, plain RoPE lies between.",
        rule="Over models of one shape. Supported when, in every pair, the residual component at early queries is larger under plain than under NTK-scaled RoPE and its growth from the first to the second half of the layers is "
        "larger under windows than under plain RoPE, each difference with an interval above 0; not supported when one lies below 0. Not applicable to one model.",
        null="no difference: 0",
        measures=("leakage",),
        kinds=WINDOWS,
        strict=True,
        published="an order; no figure at hand",
        differs="what counts as NTK-scaled is our reading",
        judge_models=judge_balance,
    ),
    Claim(
        id="B7",
        statement="The position encoding decides the kind: plain RoPE centralized, NTK-scaled distributed, learned absolute in encoders bidirectional.",
        rule="One model: not supported when the interval of the score of another kind than predicted lies above one half; otherwise inconclusive, since one scheme cannot show that schemes decide. Over models of two schemes "
        "or more: supported when every model has the kind predicted with such a score. Not applicable to schemes without a prediction.",
        null="a score of one half",
        measures=("frames",),
        kinds=SENTENCES,
        published="Llama centralized, Qwen distributed, BERT and XLM-R bidirectional",
        differs="kinds and thresholds, and what counts as NTK-scaled, are our readings",
        judge=judge_kind,
        judge_models=judge_kind_by_scheme,
    ),
    Claim(
        id="B8",
        statement="Frames appear in the earliest stages of training.",
        rule="Over four checkpoints or more. The step of emergence is the first from which on the score of having a frame lies above one half and above that of shuffled rows. Supported when it is within the first tenth of the "
        "training; not supported when the checkpoint before it is later than that, or when the last checkpoint surely has none. Not applicable to one checkpoint.",
        null="a tenth of the training",
        measures=("frames",),
        kinds=SENTENCES,
        published="Pythia: earliest checkpoints",
        differs="a tenth is our reading of earliest",
        judge_training=judge_emergence,
    ),
    Claim(
        id="C4",
        statement="RoPE is the most scale-invariant scheme, ahead of T5 bias, learned absolute and none.",
        rule="Over pairs of a RoPE model and one of another scheme with the same mask. Supported when in every pair the calibrated scale sensitivity (half of the tokens kept at random) of RoPE is smaller, each difference with "
        "an interval above 0, and the pairs have one shape; not supported when one lies below 0. Not applicable to one model.",
        null="no difference: 0",
        measures=("scale",),
        kinds=PASSAGES,
        published="0.5: RoPE .030-.082, T5 .627, BERT .507, GPT-2 .141",
        differs="published figures compare causal with bidirectional models, where a prefix has the same rows by construction; the row without positions is GPT-2, which has learned ones",
        judge_models=judge_scale,
    ),
    Claim(
        id="C5",
        statement="Training passes an exploratory phase, with a peak of entropy and a minimum of selectivity, and then specialises.",
        rule="Over four checkpoints or more. Supported when the largest spectral entropy and the smallest selectivity lie between the ends, with intervals beyond those of the first and the last checkpoint; not supported when an "
        "extreme is at an end. Not applicable to one checkpoint.",
        null="the first and the last checkpoint",
        measures=("spectra",),
        kinds=PASSAGES,
        published="Pythia-6.9B: entropy 3.522 and selectivity .230 at step 1000",
        differs="the published course seems to come from another pipeline than the published table of models",
        judge_training=judge_phases,
    ),
    Claim(
        id="C8",
        statement="The measures move with model size within a family.",
        rule="Over three sizes or more of one architecture and scheme. Supported when the spectral entropies of the largest and the smallest differ by an interval that excludes 0; not supported when they agree within 0.05 nats. "
        "Not applicable below three sizes.",
        null="no difference: 0",
        measures=("spectra",),
        kinds=PASSAGES,
        published="Pythia 14M to 12B: 2.279 2.667 3.018 2.631 2.655 3.786 2.764 2.783",
        differs="figures depend on the length of the text; two trainings of one size differ too",
        judge_models=judge_size,
    ),
)

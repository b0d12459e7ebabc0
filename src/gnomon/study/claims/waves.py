"""Claims C1 to C3, C6, C7 and P1 to P3 on one model: spectra, wavelets and phases.

Several published effects are there in signals without any position, in untrained models, or in models without rotation. Each is judged against that: C1 and C2 against
the same architecture with untrained weights, C3 against the same signals with their positions shuffled, C6 against what the transform leaves of any signal,
P2 against the tangent of the feed-forward, P3 against turning planes that are not rotary pairs. An effect that its null has in the same measure is
not supported, however well the number agrees with the published one, and the sentence says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gnomon.report.published_spectra import ROWS, PublishedRow, nearest_rows, same_model
from gnomon.result.survey import format_estimate
from gnomon.statistics import Estimate, estimate_mean
from gnomon.study.claims.claim import Answer, Claim, not_applicable, undecided
from gnomon.study.claims.evidence import CONTROL, Reader, needs
from gnomon.study.claims.rules import Finding, all_of, equivalence_rule, interval_rule
from gnomon.study.claims.verdict import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED

if TYPE_CHECKING:
    import xarray as xr

PASSAGES: Final = ("passages",)
UNTRAINED: Final = f"spectra{CONTROL}"
LOW_BAND: Final = (0.60, 0.80)
FLAT: Final = 0.05
SINGLE: Final = 2.0**-23
NO_CONTROL: Final = "untrained weights of the same architecture not measured: needs spectra with untrained"
NO_ROTATION: Final = "no layer rotates its queries and keys"
OTHER_TEXT: Final = "other texts; every figure of this convention but the correlation depends on their length"


def judge_bands(read: Reader) -> Answer:
    """C1: low frequencies dominate, beyond untrained weights."""
    low = _spectral(read, "paper/low_share")
    if low.is_missing:
        return undecided(low.reason or needs("spectra"))
    shuffled = _spectral(read, "paper/low_share_shuffled")
    control = read.number(UNTRAINED, "paper/low_share", PASSAGES)
    bands = [_spectral(read, f"paper/{name}_share") for name in ("mid", "high")]
    inside = low.high >= LOW_BAND[0] and low.low <= LOW_BAND[1]
    said = f"low band {format_estimate(low)}, {'as' if inside else 'not as'} published (.60 to .80); mid {bands[0].value:.2g}, high {bands[1].value:.2g}"
    by_shuffle = interval_rule(low, "above", null=shuffled, name="against shuffled positions:")
    parts: dict[str, Any] = {
        "effect": low,
        "quantity": "share of power below a quarter of Nyquist, paper convention, mean over heads",
    }
    if control.is_missing:
        verdict = NOT_SUPPORTED if by_shuffle.verdict == NOT_SUPPORTED or not inside else INCONCLUSIVE
        return Answer(
            finding=Finding(verdict, f"{said}; {by_shuffle.why}; {NO_CONTROL}"),
            null=shuffled,
            null_is="shuffled positions",
            **parts,
        )
    by_control = interval_rule(low, "above", null=control, name="against untrained weights:")
    finding = all_of(by_shuffle, by_control)
    if finding.verdict == SUPPORTED and not inside:
        finding = Finding(NOT_SUPPORTED, f"{finding.why}; the published range is missed")
    excess = _spectral(read, "calibrated/low_share_excess")
    beside = "" if excess.is_missing else f"; calibrated low share beyond its permutation null {format_estimate(excess)}"
    return Answer(
        finding=Finding(finding.verdict, f"{said}; {finding.why}{beside}"),
        null=control,
        null_is="the same architecture with untrained weights",
        **parts,
    )


def judge_taper(read: Reader) -> Answer:
    """C2: the low share falls with depth, more than in untrained weights."""
    slope = _spectral(read, "paper/low_share_depth")
    control = read.number(UNTRAINED, "paper/low_share_depth", PASSAGES)
    finding = interval_rule(slope, "below", name="change of the low share from first to last layer")
    null, null_is = 0.0, "no change: 0"
    if control.is_missing:
        if finding.verdict == SUPPORTED:
            finding = Finding(INCONCLUSIVE, f"{finding.why}, as claimed; {NO_CONTROL}")
        return Answer(
            finding=finding,
            effect=slope,
            quantity="change of the low share over the depth, by a straight line",
            null=null,
            null_is=null_is,
        )
    finding = all_of(finding, interval_rule(slope, "below", null=control, name="and against untrained weights"))
    return Answer(
        finding=finding,
        effect=slope,
        quantity="change of the low share over the depth, by a straight line",
        null=null,
        null_is=f"no change: 0; untrained weights: {format_estimate(control)}",
    )


def judge_tradeoff(read: Reader) -> Answer:
    """C3: positional and spectral entropy are negatively correlated, beyond shuffled positions."""
    rho, shuffled = _spectral(read, "paper/rho"), _spectral(read, "paper/rho_shuffled")
    finding = all_of(
        interval_rule(rho, "below", name="correlation over heads"),
        interval_rule(rho, "below", null=shuffled, name="and against shuffled positions"),
    )
    if finding.verdict == NOT_SUPPORTED and rho.high < 0:
        finding = Finding(
            NOT_SUPPORTED,
            f"negative as published, but shuffled positions have more of it: {finding.why}; a peaked signal has a flat spectrum, learned or not",
        )
    return Answer(
        finding=finding,
        effect=rho,
        quantity="correlation over heads of positional with spectral entropy",
        null=shuffled,
        published=_published(read, "spectra/paper/rho"),
    )


def judge_reconstruction(read: Reader) -> Answer:
    """C6: the error is at rounding level, as it is for any signal."""
    error = _spectral(read, "paper/reconstruction_error")
    if error.is_missing:
        return undecided(error.reason or needs("spectra"))
    exact = _spectral(read, "paper/reconstruction_error_float64")
    double = "" if exact.is_missing else f", {exact.value:.2g} in double precision"
    finding = interval_rule(error, "below", null=SINGLE / 10, name="relative error")
    rounding = error.value < 10 * SINGLE
    said = (
        f"error {error.value:.2g} in single precision{double}: rounding, as published, and the same for any signal, since the transform is invertible; no evidence about attention"
        if rounding
        else f"error {error.value:.2g} in single precision{double}: beyond rounding"
    )
    verdict = SUPPORTED if finding.verdict == SUPPORTED else NOT_SUPPORTED
    return Answer(
        finding=Finding(verdict, said),
        effect=error,
        quantity="relative Frobenius norm of the error, single precision",
        null=SINGLE,
        null_is="rounding of single precision, which any signal has",
        published=_published(read, "spectra/paper/reconstruction_error"),
    )


def judge_windows(read: Reader) -> Answer:
    """C7: entropy within windows of 16, 32 and 64 is the same."""
    dataset = read.dataset("spectra", PASSAGES)
    if dataset is None:
        return undecided(needs("spectra"))
    read.note("spectra", "paper_window_entropy_by_text", PASSAGES)
    widest, gaps = _window_gaps(dataset["paper_window_entropy_by_text"])
    findings = [equivalence_rule(gap, FLAT, name=f"width {width} less 16:") for width, gap in gaps.items()]
    finding = all_of(*findings)
    control = read.dataset(UNTRAINED, PASSAGES)
    beside = ""
    if control is not None:
        read.note(UNTRAINED, "paper_window_entropy_by_text", PASSAGES)
        untrained = _window_gaps(control["paper_window_entropy_by_text"])[1][widest]
        beside = f"; untrained weights: {format_estimate(untrained)}"
    return Answer(
        finding=Finding(finding.verdict, finding.why + beside),
        effect=gaps[widest],
        quantity=f"window entropy of width {widest} less that of width 16, same texts",
        null=0.0,
        null_is=f"a drift of {FLAT:g}",
        published=_published(read, "spectra/paper/window_entropy_64", "spectra/paper/window_entropy_16"),
    )


def judge_oscillation(read: Reader) -> Answer:
    """P1: the residual stream moves at the rotary frequencies."""
    if read.subject.rotates is False:
        return not_applicable(NO_ROTATION)
    contrast = read.number("phase", "oscillation/stream_contrast_after_first")
    still = read.number("phase", "oscillation/stream_variation_bare")
    queries = read.number("phase", "oscillation/query_line_bare")
    finding = interval_rule(
        contrast,
        "above",
        negligible=FLAT,
        name="one token repeated after the first: power of the stream on rotary frequencies against between them",
    )
    beside = []
    if not still.is_missing:
        beside.append(f"alone, the stream moves by {still.value:.1e} of its size")
    if not queries.is_missing:
        beside.append(f"queries turn by construction (share at their own frequency {queries.value:.2g})")
    return Answer(
        finding=Finding(finding.verdict, "; ".join([finding.why, *beside])),
        effect=contrast,
        quantity="power of the residual stream on rotary frequencies against between them, -1 to 1",
        null=0.0,
    )


def judge_harmonics(read: Reader) -> Answer:
    """P2: feed-forwards add harmonics that their tangents do not."""
    added = read.number("phase", "harmonics/added_output")
    site = "feed-forward"
    if added.is_missing and read.has("phase"):
        activation = read.number("phase", "harmonics/added_post")
        added, site = (activation, "activation") if not activation.is_missing else (added, site)
    finding = interval_rule(added, "above", name=f"distortion at the {site}'s output less that of its tangent")
    return Answer(
        finding=finding,
        effect=added,
        quantity=f"total harmonic distortion of the {site}'s output less that of its tangent",
        null=0.0,
    )


def judge_alignment(read: Reader) -> Answer:
    """P3: aligned phases sharpen and amplify, more than other planes of the same features."""
    if read.subject.rotates is False:
        return not_applicable(NO_ROTATION)
    entropy = read.number("phase", "alignment/local_entropy_quarter_beyond_other")
    norm = read.number("phase", "alignment/local_norm_quarter_beyond_other")
    finding = all_of(
        interval_rule(entropy, "below", name="entropy, aligned less a quarter turn, beyond other planes"),
        interval_rule(norm, "above", name="output norm (log ratio), the same"),
    )
    quarter, opposed = (read.number("phase", f"alignment/local_entropy_{turn}") for turn in ("quarter", "opposed"))
    beside = "" if quarter.is_missing else f"; by itself, aligned less a quarter turn is {format_estimate(quarter)} nats"
    if not opposed.is_missing:
        beside += f", and less opposed {opposed.value:.2g}, which any reversed dot product gives"
    return Answer(
        finding=Finding(finding.verdict, finding.why + beside),
        effect=entropy,
        quantity="entropy of rows, aligned less a quarter turn, beyond the same turn of other planes, nats",
        null=0.0,
    )


def _spectral(read: Reader, key: str) -> Estimate:
    return read.number("spectra", key, PASSAGES)


def _window_gaps(by_text: xr.DataArray) -> tuple[int, dict[int, Estimate]]:
    """Window entropy of each wider width less that of the narrowest, on texts that have the widest."""
    values = np.asarray(by_text.transpose("sequence", "window").values, dtype=np.float64)
    widths = [int(width) for width in by_text["window"].values]
    whole = np.isfinite(values).all(1)
    gaps = {
        width: estimate_mean(values[whole, place] - values[whole, 0], reason=f"no text has {widths[-1]} tokens")
        for place, width in enumerate(widths)
        if place
    }
    return widths[-1], gaps


def _published(read: Reader, key: str, less: str | None = None) -> str:
    """The published figure (less another one) of this model, or of the nearest one that has it."""
    size = read.subject.size
    rows = nearest_rows(read.subject.name, read.subject.scheme or None, size if size == size else None, len(ROWS))
    row: PublishedRow | None = next((row for row in rows if key in row.values and (less is None or less in row.values)), None)
    if row is None:
        return ""
    figure = row.values[key] - (row.values[less] if less is not None else 0.0)
    return f"{figure:.3g} ({row.model}{'' if same_model(read.subject.name, row) else ', another model'})"


CLAIMS: Final = (
    Claim(
        id="C1",
        statement="Heads split into local and global processors: the low band holds 60 to 80 % of the power, mid 15 to 25 %, high 5 to 15 %.",
        rule="Supported when the interval of the low share (paper convention) meets .60 to .80 and lies above both that of shuffled positions and that of the same architecture with untrained weights; not supported when it "
        "misses the range or a null has more; inconclusive without the untrained control.",
        null="shuffled positions, and untrained weights",
        measures=("spectra", UNTRAINED),
        kinds=PASSAGES,
        published="low .60 to .80, mid .15 to .25, high .05 to .15",
        differs=OTHER_TEXT,
        judge=judge_bands,
    ),
    Claim(
        id="C2",
        statement="Low-frequency dominance tapers with depth.",
        rule="Supported when the change of the low share over the depth has an interval below 0 and below that of untrained weights; not supported when it lies above either; inconclusive without the untrained control.",
        null="no change, and untrained weights",
        measures=("spectra", UNTRAINED),
        kinds=PASSAGES,
        published="a trend; no figure",
        differs=OTHER_TEXT,
        judge=judge_taper,
    ),
    Claim(
        id="C3",
        statement="Positional and spectral entropy are negatively correlated over heads: an uncertainty trade-off.",
        rule="Supported when the correlation over heads has an interval below 0 and below that of the same signals with their positions shuffled; not supported when it lies above either, that is when the null has as much of it.",
        null="shuffled positions",
        measures=("spectra",),
        kinds=PASSAGES,
        published="-.42 to -.88",
        differs="other texts and models",
        judge=judge_tradeoff,
    ),
    Claim(
        id="C6",
        statement="Wavelets reconstruct the attention (error at rounding level).",
        rule="The transform is invertible, so that any signal is rebuilt up to rounding. Supported only when the error were a tenth of that rounding or less, which would say something of attention; otherwise not supported: true of "
        "any signal, or not true.",
        null="rounding of single precision",
        measures=("spectra",),
        kinds=PASSAGES,
        published="1.2e-7 to 1.4e-7; 4e-5 to 1.2e-4 in half precision",
        differs="number format",
        judge=judge_reconstruction,
    ),
    Claim(
        id="C7",
        statement="Window entropy is stable across window sizes.",
        rule=f"Supported when the intervals of window entropy at widths 32 and 64 less that at 16, on the same texts, lie within {FLAT:g} of 0; not supported when one lies beyond. Untrained weights stand beside.",
        null=f"a drift of {FLAT:g}",
        measures=("spectra",),
        kinds=PASSAGES,
        published=".850 .864 .866 (Qwen2.5-0.5B) to .751 .699 .624 (Pythia-2.8B)",
        differs=OTHER_TEXT,
        judge=judge_windows,
    ),
    Claim(
        id="P1",
        statement="RoPE's rotations induce oscillations in the embeddings along position.",
        rule=f"One token is repeated after the text's first. Supported when the power of the residual stream on rotary frequencies against between them has an interval above 0; not supported when it lies below 0 or within {FLAT:g} "
        "of it. Queries and keys turn by construction and decide nothing. Not applicable without rotation.",
        null="as much power between rotary frequencies: 0",
        measures=("phase",),
        published="stated in words",
        differs="the definition is ours",
        judge=judge_oscillation,
    ),
    Claim(
        id="P2",
        statement="Feed-forward nonlinearities acting on them create harmonics.",
        rule="Content swings between two tokens as one tone. Supported when the total harmonic distortion of the feed-forward's output, less that of its own tangent, has an interval above 0; not supported below.",
        null="the feed-forward's tangent: 0",
        measures=("phase",),
        published="stated in words",
        differs="the definition is ours; true of any nonlinearity that is driven hard enough, trained or not",
        judge=judge_harmonics,
    ),
    Claim(
        id="P3",
        statement="Aligned phases amplify activations and sharpen attention; misaligned phases weaken them.",
        rule="Queries are turned against keys. Supported when aligned phases, against a quarter turn and beyond the same turn of planes that are not rotary pairs, have less entropy and a larger output norm, both with intervals; not "
        "supported when either is the other way round. Opposed phases reverse any dot product and decide nothing. Not applicable without rotation.",
        null="the same turn of other planes: 0",
        measures=("phase",),
        published="stated in words",
        differs="the definition is ours",
        judge=judge_alignment,
    ),
)

"""One plain sentence per section, made from the headline numbers; and the findings of a run.

A sentence says a number with its interval, or is not said; and it claims no more than the interval allows. Each function takes a survey and returns
``None`` where the run lacks what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gnomon.report.html.text import visible
from gnomon.result.survey import format_estimate
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    from gnomon.result import Survey


PERCENT: Final = "\u202f%"


class Finding(NamedTuple):
    """One number that matters, what it says, and where it is shown."""

    number: Estimate
    text: str
    caption: str
    section: str


def get(survey: Survey, path: str) -> Estimate | None:
    """A headline number by ``measure/quantity``; ``None`` where it is absent or missing."""
    measure, _, key = path.partition("/")
    number = survey.headline.get(measure, {}).get(key)
    return None if number is None or number.is_missing else number


def percent(number: Estimate) -> str:
    """A share as per cent with its interval."""
    text = f"{_short(100 * number.value)}{PERCENT}"
    return text + (f" [{_short(100 * number.low)}, {_short(100 * number.high)}]" if number.low == number.low else "")


def plain(number: Estimate) -> str:
    """A number with its interval."""
    return format_estimate(number).replace("-", "−") if number.value == number.value else "missing"


def sinks(survey: Survey) -> str | None:
    """Whether heads put their weight on position 0."""
    share = get(survey, "sinks/head_share_03")
    if share is None:
        return None
    mass, chance = get(survey, "sinks/position_0_mass"), get(survey, "sinks/position_0_uniform")
    text = f"{percent(share)} of heads put more than 0.3 of their weight on position 0"
    if mass is not None and chance is not None:
        text += (
            f"; over all heads it gets {percent(mass)}, where uniform attention would give {_short(100 * chance.value)}{PERCENT}"
        )
    return text + "."


def position(survey: Survey) -> str | None:
    """Which component carries absolute position, and for which queries, as far as the intervals tell."""
    early, mask = get(survey, "leakage/residual_early"), get(survey, "leakage/mask_early")
    if early is None or mask is None:
        return None
    values = f"{plain(early)} nat² by the residual stream, {plain(mask)} by the mask"
    if above_zero(early) and above_zero(mask):
        order = (
            "more by the residual stream" if early.low > mask.high else "more by the mask" if mask.low > early.high else "by both"
        )
        text = f"In the first 32 queries attention carries absolute position, {order}: {values}"
    elif above_zero(early):
        text = f"In the first 32 queries the residual stream carries absolute position into attention, and the mask not detectably: {values}"
    elif above_zero(mask):
        text = f"In the first 32 queries the mask carries absolute position into attention, and the residual stream not detectably: {values}"
    else:
        text = f"In the first 32 queries attention shows no trace of absolute position that this text could detect: {values}"
    for band, where in (("late", "from query 128 on"), ("middle", "for queries 32 to 127")):
        later = get(survey, f"leakage/residual_{band}")
        if later is not None:
            return f"{text}; {where} the residual stream leaves {plain(later)}."
    return text + "."


def frames(survey: Survey) -> str | None:
    """The kind of the model's frame."""
    kind, score = survey.labels.get("frames", {}).get("kind"), get(survey, "frames/score")
    if kind is None or score is None:
        return None
    none = "The model has no frame of reference that its tokens share"
    what = none if kind == "none" else f"The model's frame of reference is {visible(kind)}"
    share = get(survey, f"frames/share_{kind}")
    tail = f", and {percent(share)} of its heads are of that kind" if share is not None else ""
    return f"{what} (score {plain(score)}){tail}."


def scales(survey: Survey) -> str | None:
    """What the frequencies say beyond their null."""
    excess, share = get(survey, "spectra/calibrated/low_share_excess"), get(survey, "spectra/paper/low_share")
    parts = []
    if share is not None:
        parts.append(f"by the published convention low frequencies hold {percent(share)} of the power")
    if excess is not None:
        decided = "more than" if excess.low > 0 else "less than" if excess.high < 0 else "not detectably more or less than"
        parts.append(f"by the calibrated one {plain(excess)} beyond shuffled positions, {decided} any uneven signal")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "." if text else None


def phase(survey: Survey) -> str | None:
    """Whether aligned phases sharpen attention, and what of that belongs to position."""
    quarter, opposed = get(survey, "phase/alignment/local_entropy_quarter_beyond_other"), get(survey, "phase/entropy_contrast")
    if opposed is None:
        return None
    change = "raises" if opposed.low > 0 else "lowers" if opposed.high < 0 else "does not detectably change"
    text = f"Opposing the phases of queries and keys {change} the entropy of attention ({plain(opposed)} nat), as reversing any dot product may"
    if quarter is not None:
        text += f"; aligned less a quarter turn, rotary pairs give {plain(quarter)} nat beyond other planes of the same features"
    return text + "."


def training(survey: Survey) -> str | None:
    """What emerged in training, and when."""
    numbers = survey.headline.get("evolution", {})
    emerged = sorted((number.value, key, number) for key, number in numbers.items() if not number.is_missing)
    if not numbers:
        return None
    if not emerged:
        return f"None of {len(numbers)} quantities changed beyond chance between the first and the last checkpoint."
    (_, first, step), last = emerged[0], emerged[-1]
    text = f"{len(emerged)} of {len(numbers)} quantities emerged beyond chance; the first, {visible(first)}, was halfway at step {plain(step)}"
    return text + (f", the last, {visible(last[1])}, at step {plain(last[2])}." if len(emerged) > 1 else ".")


def likelihood(survey: Survey) -> str | None:
    """Whether attention follows likelihood."""
    best = get(survey, "likelihood/correlation")
    if best is None:
        return None
    layer, p = get(survey, "likelihood/correlation_layer"), get(survey, "likelihood/correlation_p")
    where = f" at layer {layer.value:.0f}, the strongest of all" if layer is not None else ""
    corrected = f" (p {p.value:.2g}, corrected for that search)" if p is not None else ""
    return f"The attention of a word to itself correlates {plain(best)} with its likelihood{where}{corrected}."


class Candidate(NamedTuple):
    """What may become a finding: where the number is, how it is written, what it says, and the section that shows it."""

    path: str
    form: Callable[[Estimate], str]
    caption: Callable[[Survey, Estimate], str]
    section: str


def _sink_caption(survey: Survey, number: Estimate) -> str:
    chance = get(survey, "sinks/position_0_uniform")
    tail = f" Uniform attention would give it {_short(chance.value)}." if chance is not None else ""
    return f"of heads put more than 0.3 of their weight on position 0.{tail}"


def _leak_caption(component: str) -> Callable[[Survey, Estimate], str]:
    def caption(survey: Survey, number: Estimate) -> str:
        tail = "" if above_zero(number) else " The interval holds 0: no detectable trace."
        return f"nat² of absolute position that the {component} leaves in attention, queries 2 to 31.{tail}"

    return caption


def _removed_caption(survey: Survey, number: Estimate) -> str:
    verb = "goes" if above_zero(number) else "is added (negative)" if number.high < 0 else "goes or is added, undecided,"
    return f"of the early residual component {verb} when what stands at position 0 is replaced."


def _frame_caption(survey: Survey, number: Estimate) -> str:
    kind = survey.labels.get("frames", {}).get("kind", "unknown")
    return f"score of the model's kind of frame, {visible(kind)} (0 to 1)."


def _read_caption(survey: Survey, number: Estimate) -> str:
    mass = get(survey, "reads/mass")
    tail = f", for {percent(mass)} of their weight" if mass is not None else ""
    return f"times the length of what heads write is what they take from position 0{tail}."


FINDINGS: Final = (
    Candidate("sinks/head_share_03", percent, _sink_caption, "sinks"),
    Candidate("leakage/residual_early", plain, _leak_caption("residual stream"), "position"),
    Candidate("leakage/mask_early", plain, _leak_caption("causal mask"), "position"),
    Candidate("intervention/removed_early", percent, _removed_caption, "position"),
    Candidate("frames/score", plain, _frame_caption, "frames"),
    Candidate("reads/carried", plain, _read_caption, "position"),
    Candidate(
        "norms/largest_over_median",
        plain,
        lambda survey, number: "times the median: the largest activation of all levels.",
        "position",
    ),
    Candidate(
        "spectra/calibrated/low_share_excess",
        plain,
        lambda survey, number: "share of low frequencies beyond shuffled positions, calibrated convention.",
        "scales",
    ),
    Candidate(
        "likelihood/correlation",
        plain,
        lambda survey, number: "rank correlation of a word's attention to itself with its likelihood, strongest layer.",
        "likelihood",
    ),
)
"""In order of importance; the first five that a run has are shown."""


def findings(survey: Survey, most: int = 5) -> list[Finding]:
    """The numbers that matter most, those that this run has."""
    found = []
    for candidate in FINDINGS:
        number = get(survey, candidate.path)
        if number is not None:
            found.append(Finding(number, candidate.form(number), candidate.caption(survey, number), candidate.section))
    return found[:most]


def first_token(info: Mapping[str, Any]) -> str | None:
    """What stands at position 0 and why."""
    corpus = info.get("corpus")
    first = corpus.get("first_token") if isinstance(corpus, Mapping) else None
    if not isinstance(first, Mapping):
        return None
    why = visible(first.get("why") or "").rstrip(".")
    if first.get("placed"):
        return f"Position 0 holds {visible(first.get('text'))} (id {first.get('id')})" + (f": {why}." if why else ".")
    return f"{why[:1].upper()}{why[1:]}." if why else "Position 0 holds the first token of the text."


def above_zero(number: Estimate) -> bool:
    """Whether the interval lies above zero; undecided without one."""
    return number.low > 0 if number.low == number.low else False


def _short(value: float) -> str:
    text = f"{value:.3g}" if abs(value) >= 1 or value == 0 else f"{value:.2g}"
    return text.replace("-", "−")

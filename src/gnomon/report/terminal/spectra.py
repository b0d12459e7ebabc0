"""Spectra: the two conventions side by side, what survives calibration, the untrained control, and figures by length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.head_map import HeadMap
from gnomon.report.terminal.per_head import per_head
from gnomon.report.terminal.tables import BOLD, DIM, number, plain, table
from gnomon.result.survey import format_estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from gnomon.result import Survey
    from gnomon.statistics import Estimate

PAPER = ("spectral_entropy", "selectivity", "low_share", "mid_share", "high_share", "positional_entropy")
CALIBRATED = ("low_share", "mid_share", "high_share", "spectral_entropy", "selectivity", "A3", "D3", "D2", "D1")
UNTRAINED = "spectra__untrained"


def section(survey: Survey) -> RenderableType:
    """Answer, calibrated table, published-convention table, strata, map of heads."""
    numbers = survey.headline.get("spectra", {})
    control = survey.headline.get(UNTRAINED, {})
    dataset = survey["spectra"]
    parts: list[RenderableType] = [answer(numbers), Text("")]
    parts += [_calibrated(numbers, control), Text("")]
    parts += [_paper(numbers, control), Text(_shuffled(numbers), DIM), Text("")]
    strata = _strata(numbers)
    if strata is not None:
        parts += [strata, Text("")]
    found = per_head(dataset, ["paper_low_share_mean"])
    if found is not None:
        parts += [HeadMap(found[1], "low-frequency share of power (paper convention)", low=0.0, high=1.0), Text("")]
    missing = str(dataset.attrs.get("missing", ""))
    if missing and missing != "nothing":
        parts.append(Text(plain(f"Missing: {missing}."), DIM))
    return Group(*parts)


def answer(numbers: Mapping[str, Estimate]) -> Text:
    """One line: whether low frequencies hold more than shuffled positions would, and in how many heads."""
    excess, share = numbers.get("calibrated/low_share_excess"), numbers.get("calibrated/low_share_rejecting")
    if excess is None or excess.is_missing:
        reason = excess.reason if excess is not None and excess.reason else "not measured"
        return Text(f"Low frequencies beyond shuffled positions: unknown ({plain(reason)})", BOLD)
    out = Text(f"Low frequencies beyond shuffled positions: {format_estimate(excess)}", BOLD)
    return (
        out.append(f", {100 * share.value:.0f} % of heads at p <= 0.01", "")
        if share is not None and not share.is_missing
        else out
    )


def _calibrated(numbers: Mapping[str, Estimate], control: Mapping[str, Estimate]) -> RenderableType:
    heads = ["calibrated", "value", "null", "difference", "heads, p <= .01", "corrected"]
    rows = []
    for name in CALIBRATED:
        keys = (f"calibrated/{name}", f"calibrated/{name}_null")
        row = [name.replace("_", " "), *(_value(numbers, key) for key in keys), _full(numbers, f"calibrated/{name}_excess")]
        row += [_percent(numbers, f"calibrated/{name}_rejecting"), _percent(numbers, f"calibrated/{name}_rejecting_corrected")]
        rows.append([*row, *([_value(control, f"calibrated/{name}_excess")] if control else [])])
    amplitude = ["amplitude", _value(numbers, "calibrated/amplitude"), "", "", "", ""]
    rows.append([*amplitude, *([_value(control, "calibrated/amplitude")] if control else [])])
    return table([*heads, *(["untrained"] if control else [])], rows)


def _paper(numbers: Mapping[str, Estimate], control: Mapping[str, Estimate]) -> RenderableType:
    heads = ["paper", "mean over heads", "std", "iqr", *(["untrained"] if control else [])]
    rows = []
    for name in PAPER:
        spreads = [_value(numbers, f"paper/{name}{suffix}") for suffix in ("_std", "_iqr")]
        row = [name.replace("_", " "), _full(numbers, f"paper/{name}"), *spreads]
        rows.append([*row, *([_value(control, f"paper/{name}")] if control else [])])
    for key in ("rho", "reconstruction_error", "window_entropy_16", "window_entropy_32", "window_entropy_64"):
        row = [key.replace("_", " "), _full(numbers, f"paper/{key}"), "", ""]
        rows.append([*row, *([_value(control, f"paper/{key}")] if control else [])])
    return table(heads, rows)


def _shuffled(numbers: Mapping[str, Estimate]) -> str:
    low, rho = _value(numbers, "paper/low_share_shuffled"), _value(numbers, "paper/rho_shuffled")
    return f"With positions shuffled the low share is {low} and rho {rho}."


def _strata(numbers: Mapping[str, Estimate]) -> RenderableType | None:
    strata = [
        key.split("/")[1] for key in numbers if key.startswith("paper/") and key.endswith("/selectivity") and key.count("/") == 2
    ]
    if len(strata) < 2:
        return None
    names = ("spectral_entropy", "selectivity", "low_share", "rho")
    rows = [
        (stratum, numbers[f"paper/{stratum}/rho"].n, *(_value(numbers, f"paper/{stratum}/{name}") for name in names))
        for stratum in strata
    ]
    return table(("paper, by tokens of the text", "texts", *(name.replace("_", " ") for name in names)), rows)


def _value(numbers: Mapping[str, Estimate], key: str) -> str:
    return number(numbers[key].value) if key in numbers else "-"


def _full(numbers: Mapping[str, Estimate], key: str) -> str:
    return format_estimate(numbers[key]) if key in numbers else "-"


def _percent(numbers: Mapping[str, Estimate], key: str) -> str:
    found = numbers.get(key)
    return "-" if found is None or found.is_missing else f"{100 * found.value:.0f} %"

"""Phase and harmonics: three small tables, each with its control."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.tables import DIM, number, table
from gnomon.result.survey import format_estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr
    from rich.console import RenderableType

    from gnomon.result import Survey
    from gnomon.statistics import Estimate

OSCILLATION = {
    "query_line": "queries at their own frequencies",
    "key_line": "keys at their own frequencies",
    "logit_contrast": "logits, on against between lines",
    "stream_contrast": "stream, on against between lines",
    "stream_variation": "stream, change over size",
}
SITES = ("pre", "post", "post_linear", "output", "output_linear")
RESPONSES = {"entropy": "entropy, nats", "peak": "largest weight", "norm": "head output, log ratio"}


def section(survey: Survey) -> RenderableType:
    """Oscillation, harmonics, alignment, and the response to phase."""
    numbers, dataset = survey.headline.get("phase", {}), survey["phase"]
    frequencies = str(dataset.attrs.get("frequencies", ""))
    parts: list[RenderableType] = [
        table(
            ("one token repeated", "bare", "after the first token"),
            [
                (label, *(_full(numbers, f"oscillation/{name}_{condition}") for condition in ("bare", "after_first")))
                for name, label in OSCILLATION.items()
            ],
        ),
        Text(f"Frequencies: {frequencies}.", DIM),
        Text(""),
        table(
            ("content as one tone", "total harmonic distortion"),
            [
                *((site.replace("_", ", "), _full(numbers, f"harmonics/distortion_{site}")) for site in SITES),
                ("added by the activation", _full(numbers, "harmonics/added_post")),
                ("added by the feed-forward", _full(numbers, "harmonics/added_output")),
            ],
        ),
        Text(""),
        table(
            ("aligned less ...", "opposed", "quarter turn", "quarter, other planes", "beyond other planes"),
            [
                (
                    label,
                    _full(numbers, f"alignment/local_{name}_opposed"),
                    *(_full(numbers, f"alignment/local_{name}_quarter{suffix}") for suffix in ("", "_other", "_beyond_other")),
                )
                for name, label in RESPONSES.items()
            ],
        ),
        Text(
            "An opposed phase reverses the dot product in any model; only what rotary planes do beyond others is about position.",
            DIM,
        ),
        Text(""),
        _curve(dataset),
    ]
    return Group(*parts)


def _curve(dataset: xr.Dataset) -> RenderableType:
    """Mean response of all heads to each phase."""
    order = sorted(range(dataset.sizes["phase"]), key=lambda step: float(dataset["phase"][step]))
    degrees = [f"{math.degrees(float(dataset['phase'][step])):.0f}" for step in order]
    rows = []
    for name, label in RESPONSES.items():
        label = label.split(",")[0]
        for variable, how in ((f"local_{name}_rotary_by_text", "rotary"), (f"local_{name}_other_by_text", "other")):
            means = dataset[variable].mean("sequence").values
            rows.append((f"{label}, {how}", *(number(float(means[step])) for step in order)))
    return table(("phase in degrees", *degrees), rows)


def _full(numbers: Mapping[str, Estimate], key: str) -> str:
    return format_estimate(numbers[key]) if key in numbers else "-"

"""Frames: one line that answers which kind, how sure and where it changes with depth, then a map of heads by their anchors."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from gnomon.report.terminal.head_map import HeadMap
from gnomon.report.terminal.per_head import per_head
from gnomon.report.terminal.tables import BOLD, DIM, headline_table, number, plain, table

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import RenderableType

    from gnomon.result import Survey

KINDS = ("centralized", "distributed", "bidirectional", "none")


def answer(survey: Survey) -> Text:
    """The line: kind, score with its interval, share of heads, and runs of layers."""
    dataset, numbers = survey["frames"], survey.headline.get("frames", {})
    kind, score = str(dataset.attrs.get("kind", "unknown")), numbers.get("score")
    if score is None or score.is_missing:
        reason = score.reason if score is not None and score.reason else "no score"
        return Text(f"Frame: unknown ({plain(reason)})", BOLD)
    out = Text(f"Frame: {plain(kind)}", BOLD)
    bounds = f" [{number(score.low, 2)}, {number(score.high, 2)}]" if score.low == score.low else ""
    share = numbers.get(f"share_{kind}")
    heads = f", {100 * share.value:.0f} % of heads" if share is not None and not share.is_missing else ""
    return out.append(f", score {number(score.value, 2)}{bounds}{heads}; layers {runs(dataset)}", "")


def runs(dataset: xr.Dataset) -> str:
    """Neighbouring layers of one kind: ``none 0-1, centralized 2-29``."""
    kinds = [plain(kind) for kind in dataset.attrs.get("kinds_by_layer", [])]
    parts = []
    for kind, group in groupby(enumerate(kinds), key=lambda pair: pair[1]):
        layers = [layer for layer, _ in group]
        parts.append(f"{kind} {layers[0]}-{layers[-1]}" if len(layers) > 1 else f"{kind} {layers[0]}")
    return ", ".join(parts) or "unknown"


def section(survey: Survey) -> RenderableType:
    """The answer, shares of heads by kind, a map of anchored weight, where anchors stand by layer, and the headline."""
    dataset = survey["frames"]
    parts: list[RenderableType] = [answer(survey), Text("")]
    numbers = survey.headline.get("frames", {})
    rows = []
    for kind in KINDS:
        share = numbers.get(f"share_{kind}")
        if share is not None and not share.is_missing:
            rows.append(
                (kind, number(share.value), f"[{number(share.low)}, {number(share.high)}]" if share.low == share.low else "")
            )
    if rows:
        parts += [table(("kind of head", "share of heads", "95 % interval"), rows), Text("")]
    found = per_head(dataset, ["framed"])
    if found is not None:
        name, framed = found
        parts += [HeadMap(framed, str(dataset[name].attrs.get("long_name", name)), high=1.0), Text("")]
    null = numbers.get("null_framed")
    if null is not None and not null.is_missing:
        parts += [Text(f"Shuffled rows score {number(null.value)} for having a frame (0 none, 1 surely).", DIM), Text("")]
    parts.append(headline_table(survey, "frames"))
    return Group(*parts)

"""A survey beside what papers printed: sink rates here, spectra in :mod:`gnomon.report.terminal.against`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from gnomon.report.published_sinks import LENGTH, QUANTITY, RATES, SOURCE, rate_of
from gnomon.report.terminal.against import against_paper
from gnomon.report.terminal.tables import DIM, number, table
from gnomon.result.survey import format_estimate

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey


def papers_page(survey: Survey) -> RenderableType:
    """Sink rates, then spectra; each says what to survey where this run has nothing to compare."""
    return Group(sink_rates(survey), Text(""), against_paper(survey))


def sink_rates(survey: Survey) -> RenderableType:
    """This run's sink rate beside the published ones, if its windows are as long as theirs."""
    here = survey.headline.get("sinks", {}).get(QUANTITY)
    corpus = survey.info.get("corpus") or {}
    if here is None or corpus.get("length") != LENGTH:
        return Text(f"no sink rate in windows of {LENGTH} tokens; survey with --measures sinks --length {LENGTH} to compare.")
    same = rate_of(survey.model_name)
    rows = [(f"{survey.model_name} (here)", format_estimate(here))]
    rows += [(f"{model} (published{'' if rate == same else ', another model'})", number(rate)) for model, rate in RATES.items()]
    note = Text(f"Published: {SOURCE}, natural text, no interval.", DIM)
    return Group(table(("sink rate above 0.3", "rate"), rows, left=2), note)

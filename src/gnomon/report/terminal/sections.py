"""Which function draws which measure: one line each, loaded when drawn."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey

SECTIONS: Final[dict[str, str]] = {
    "sinks": "gnomon.report.terminal.sinks:section",
    "attention": "gnomon.report.terminal.attention:section",
    "norms": "gnomon.report.terminal.norms:section",
    "frames": "gnomon.report.terminal.frames:section",
    "leakage": "gnomon.report.terminal.leakage:section",
    "reads": "gnomon.report.terminal.reads:section",
    "trajectory": "gnomon.report.terminal.position_zero:trajectory_section",
    "invariance": "gnomon.report.terminal.position_zero:invariance_section",
    "intervention": "gnomon.report.terminal.position_zero:intervention_section",
    "likelihood": "gnomon.report.terminal.likelihood:section",
    "evolution": "gnomon.report.terminal.evolution:section",
    "spectra": "gnomon.report.terminal.spectra:section",
    "phase": "gnomon.report.terminal.phase:section",
}
"""Measure → ``module:function``, where ``function(survey: Survey) -> RenderableType``."""


def section_of(measure: str, survey: Survey) -> RenderableType:
    """The section of one measure: its own, or its headline numbers."""
    from gnomon.report.terminal.tables import headline_table

    place = SECTIONS.get(measure)
    if place is None or measure not in survey.measures:
        return headline_table(survey, measure)
    module, _, function = place.partition(":")
    draw: Callable[[Survey], RenderableType] = getattr(import_module(module), function)
    return draw(survey)

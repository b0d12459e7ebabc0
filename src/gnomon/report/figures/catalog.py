"""Which figures a run has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gnomon.errors import ConfigError
from gnomon.report.figures.evolution import evolution_figures
from gnomon.report.figures.frames import frame_figures
from gnomon.report.figures.generic import figures_against_nulls, figures_by_shape
from gnomon.report.figures.intervention import intervention_figures
from gnomon.report.figures.kinds import Figure, HeadRows
from gnomon.report.figures.leakage import leakage_figures, norm_figures, read_figures
from gnomon.report.figures.likelihood import likelihood_figures
from gnomon.report.figures.phase import phase_figures
from gnomon.report.figures.rows import row_figures, with_tokens
from gnomon.report.figures.sinks import attention_figures, sink_figures
from gnomon.report.figures.spectra import spectra_figures, spectrum_over_rotary
from gnomon.report.figures.trajectory import trajectory_figures

if TYPE_CHECKING:
    import xarray as xr

    from gnomon.result import Survey

FIGURES: Final[dict[str, Callable[[xr.Dataset], list[Figure]]]] = {
    "sinks": sink_figures,
    "attention": attention_figures,
    "rows": row_figures,
    "norms": norm_figures,
    "leakage": leakage_figures,
    "reads": read_figures,
    "intervention": intervention_figures,
    "frames": frame_figures,
    "spectra": spectra_figures,
    "phase": phase_figures,
    "likelihood": likelihood_figures,
    "trajectory": trajectory_figures,
    "evolution": evolution_figures,
}
"""Measure → its figures; a measure that is not here is drawn by the shape of its variables."""

CONTROL: Final = "__untrained"


def figures(survey: Survey, measure: str) -> list[Figure]:
    """The figures of one measure, the most telling first; none where its dataset holds nothing to draw."""
    dataset = survey[measure]
    draw = FIGURES.get(measure)
    own = draw(dataset) if draw is not None else []
    own = [with_tokens(figure, survey.info) if isinstance(figure, HeadRows) else figure for figure in own]
    if measure == "spectra" and "rotary" in survey.measures:
        own += spectrum_over_rotary(dataset, survey["rotary"])
    return (own or figures_by_shape(dataset, measure)) + figures_against_nulls(survey.headline.get(measure, {}), measure)


def main_figure(survey: Survey, measure: str) -> Figure:
    """The first figure of a measure.

    Raises:
        ConfigError: if the run lacks the measure or has nothing to draw of it.
    """
    found = figures(survey, _known(survey, measure))
    if not found:
        raise ConfigError(f"`figure` must name something that can be drawn, but {measure} of this run has numbers only.")
    return found[0]


def figure_of(survey: Survey, key: str) -> Figure:
    """A figure by its key, or the main figure of a measure by the measure's name.

    Raises:
        ConfigError: if there is no such figure; the sentence lists those there are.
    """
    if key in survey.measures:
        return main_figure(survey, key)
    every = {
        figure.key: figure for measure in survey.measures if not measure.endswith(CONTROL) for figure in figures(survey, measure)
    }
    if key not in every:
        raise ConfigError(f"`figure` must be one of {', '.join(every) or 'none, for this run has no figures'}, got {key!r}.")
    return every[key]


def _known(survey: Survey, measure: str) -> str:
    if measure not in survey.measures:
        raise ConfigError(f"`measure` must be one of {', '.join(survey.measures) or 'none'} in this run, got {measure!r}.")
    return measure

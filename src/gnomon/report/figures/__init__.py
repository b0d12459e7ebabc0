"""Figures as data: what is to be seen, before anybody draws it.

A figure says which numbers stand where, with their intervals, labels and units, and nothing of pixels. The page, the notebook and the
export draw the same figures, so that a picture in a paper shows what the report showed. Numbers are taken from the run as they are: a
figure selects and labels, it never computes a statistic.

``figures(survey, measure)`` gives the figures of one measure: those written for it, or, for a measure nobody wrote figures for, what the
dimensions of its variables suggest.
"""

from gnomon.report.figures.catalog import FIGURES, figure_of, figures, main_figure
from gnomon.report.figures.kinds import (
    Axis,
    Curves,
    Figure,
    HeadCurve,
    HeadCurves,
    HeadField,
    HeadMap,
    HeadRows,
    HeadScatter,
    IntervalRow,
    Intervals,
    Line,
    Marks,
)

__all__ = [
    "FIGURES",
    "Axis",
    "Curves",
    "Figure",
    "HeadCurve",
    "HeadCurves",
    "HeadField",
    "HeadMap",
    "HeadRows",
    "HeadScatter",
    "IntervalRow",
    "Intervals",
    "Line",
    "Marks",
    "figure_of",
    "figures",
    "main_figure",
]

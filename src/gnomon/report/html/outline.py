"""The outline of the page: which measures make which section, what opens it, and what its words mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gnomon.report.html import sentences

if TYPE_CHECKING:
    from gnomon.result import Survey


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section.

    Attributes:
        key: its anchor.
        title: its heading, a question or a noun.
        measures: those it shows, in order.
        sentence: the answer in one sentence, from the headline numbers.
        definitions: what the words mean and what the numbers cannot show; a paragraph each.
    """

    key: str
    title: str
    measures: tuple[str, ...]
    sentence: Callable[[Survey], str | None]
    definitions: tuple[str, ...]


SECTIONS: Final = (
    Section(
        key="training",
        title="Training",
        measures=("evolution",),
        sentence=sentences.training,
        definitions=(
            "Every checkpoint saw the same sequences, so values differ by what training did and not by the text. Intervals are over sequences, not over "
            "training runs; nothing is known of what happened between two checkpoints.",
        ),
    ),
    Section(
        key="sinks",
        title="Sinks",
        measures=("sinks", "attention", "rows"),
        sentence=sentences.sinks,
        definitions=(
            "A head's weight on position 0 is the mean over queries, from query 32 on, of the attention that they give to the very first token; 0 to 1. "
            "Uniform attention over the keys that a query sees is the yardstick. Weight 0.3 is the usual threshold of a sink head.",
            "The sink rate counts (sequence, layer, head) whose mean over all queries, query 0 included, exceeds the threshold; published rates are for "
            "windows of 64 tokens, and in a causal model the rate depends on that length.",
            "Likeness of a head's rows in two texts is Bhattacharyya's coefficient of the two rows of the same query, averaged over queries from 32 on and pairs of texts: 1 when position "
            "alone decides the row, which uniform attention and a sink do too. Bins that hold several keys raise it.",
            "A weight says where a head looks, not what it takes: a sink may be a no-operation or a broadcast. A layer whose window hides position 0 has no "
            "value, which is not a weight of 0.",
        ),
    ),
    Section(
        key="position",
        title="Where absolute position comes from",
        measures=("leakage", "intervention", "reads", "norms", "trajectory", "invariance"),
        sentence=sentences.position,
        definitions=(
            "At a fixed offset, attention that knows offsets alone has the same expected log-weight at every position. The variance over positions of that "
            "expectation, in squared nats, is the trace of absolute position. It splits exactly: total = residual (variance of the expected logit) + mask "
            "(variance of the expected log-denominator) − 2 × their covariance.",
            "The estimate is unbiased, so that noise around zero may come out negative. Text windows start at random places of their documents: content has "
            "the same distribution at every position, and what varies is the model's own.",
            "Early, middle and late are queries 2 to 31, 32 to 127, and 128 and on. A variance of means says nothing of position that is carried without moving the mean.",
        ),
    ),
    Section(
        key="frames",
        title="Frames of reference",
        measures=("frames", "graph", "topology", "geometry", "values", "matrix", "fisher"),
        sentence=sentences.frames,
        definitions=(
            "An anchor is a key that far queries give more weight than chance. Centralized: one anchor dominates. Distributed: several share. Bidirectional: the two "
            "ends balance, which a causal mask rules out. None: too little weight on anchors, or too many of them.",
            "Scores are positions relative to thresholds and add up to one; they are not probabilities of being right. The label is the largest score.",
        ),
    ),
    Section(
        key="scales",
        title="Scales and frequencies",
        measures=("spectra", "rotary", "scale"),
        sentence=sentences.scales,
        definitions=(
            "Paper convention: the attention that each key receives, Hann window, padded to a power of two; for comparison with published tables. Calibrated "
            "convention: keys 1 to 64 seen by late queries only, mean removed, against shuffled positions; for conclusions.",
            "Selectivity and spectral entropy mostly restate how uneven the attention is, and positional and spectral entropy are negatively related in every null. "
            "Reconstruction error is float rounding for any signal.",
        ),
    ),
    Section(
        key="phase",
        title="Phase",
        measures=("phase",),
        sentence=sentences.phase,
        definitions=(
            "The phase between the rotations of queries and keys is imposed; aligned phases are compared with opposed ones on the same text.",
        ),
    ),
    Section(
        key="likelihood",
        title="Attention and likelihood",
        measures=("likelihood",),
        sentence=sentences.likelihood,
        definitions=(
            "Rank correlation over sentences between the likelihood of a word and the mean attention among its own tokens. The largest of many layers is biased "
            "upwards: the p-value is corrected for that search.",
        ),
    ),
)
"""Sections that show measures, in the order of the page."""

MORE: Final = Section(
    key="more",
    title="Further measures",
    measures=(),
    sentence=lambda survey: None,
    definitions=("These measures come from installed packages; their figures follow from the dimensions of their variables.",),
)
CONTROL: Final = "__untrained"
EVOLUTION: Final = "evolution"
"""A training's own measure: not one that a survey of a model could have."""
TITLES: Final = {
    "evolution": "Evolution over checkpoints",
    "sinks": "Weight on position 0",
    "attention": "Concentration and reach",
    "rows": "Rows over texts",
    "leakage": "Positional leakage",
    "intervention": "Interventions",
    "reads": "What is read from position 0",
    "norms": "Norms and massive activations",
    "trajectory": "Position 0 through the layers",
    "invariance": "Shifting all positions",
    "frames": "Kinds of frame",
    "graph": "The attention graph",
    "topology": "Persistent homology",
    "geometry": "Information geometry",
    "values": "What sinks write",
    "matrix": "Random-matrix statistics",
    "fisher": "Fisher information of the parameters",
    "spectra": "Spectra and wavelets",
    "rotary": "Rotary frequencies",
    "scale": "Shortened text",
    "phase": "Phase and harmonics",
    "likelihood": "Likelihood",
}
"""What a measure is called on the page."""


def known_measures() -> tuple[str, ...]:
    """Every measure that has a place on the page."""
    return tuple(measure for section in SECTIONS for measure in section.measures)


def measures_of(section: Section, survey: Survey) -> list[str]:
    """The section's measures that the run has; for further measures, all that have no place elsewhere."""
    if section is MORE:
        taken = known_measures()
        return [name for name in survey.measures if name not in taken and not name.endswith(CONTROL)]
    return [name for name in section.measures if name in survey.measures]


def not_measured(survey: Survey) -> list[str]:
    """Measures that the page would show but the run lacks."""
    return [name for name in known_measures() if name not in survey.measures and name != EVOLUTION]

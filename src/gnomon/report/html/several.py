"""The page of several runs: headline numbers in one table, main figures as small multiples, training where runs are checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gnomon.report.figures import Figure, figures
from gnomon.report.html import outline, sentences
from gnomon.report.html.blocks import Rows, Tree, placed, section_tree, warnings
from gnomon.report.html.claims import claims_tree
from gnomon.report.html.differences import differences_tree
from gnomon.report.html.packing import Packer
from gnomon.report.html.record import provenance
from gnomon.report.html.text import visible
from gnomon.report.html.training import checkpoint_step, training_figures

if TYPE_CHECKING:
    from gnomon.result import Survey
    from gnomon.result.comparison import Comparison

SIDE_BY_SIDE: Final = {
    "sinks": ("sinks-map", "sinks-depth"),
    "leakage": ("leakage-bands", "leakage-early", "leakage-middle"),
    "intervention": ("intervention-removed-early",),
    "frames": ("frames-map", "frames-shares"),
    "spectra": ("spectra-calibrated",),
}
"""Figures that a page of several runs shows of each."""
MOST_SHOWN: Final = 12
CHECKPOINTS: Final = (
    "Each point is a survey of one checkpoint on the same text; intervals are over sequences, not over training runs."
)


def several_runs(
    surveys: Sequence[Survey], packer: Packer, *, differences: Comparison | Rows | None = None, claims: Rows | None = None
) -> Tree:
    """The runs side by side."""
    drawn: Tree = {}
    names = run_names(surveys)
    sections = [_training(surveys, drawn, packer)] if _are_checkpoints(surveys) else []
    for section in outline.SECTIONS:
        measures = [name for name in section.measures if any(name in survey.headline for survey in surveys)]
        groups = [group for measure in section.measures if (group := _multiples(measure, surveys, names, drawn, packer))]
        if groups or measures:
            sections.append(_shared_section(section, surveys, names, measures, groups))
    shown = "" if len(surveys) <= MOST_SHOWN else f" Pictures show {MOST_SHOWN} of them, evenly spread; tables all."
    return {
        "title": " · ".join(names) if len(names) <= 4 else f"{len(names)} runs",
        "several": True,
        "runs": [{"name": name} for name in names],
        "figures": drawn,
        "fields": [],
        "lead": f"{len(surveys)} runs side by side: {', '.join(names)}.{shown}",
        "facts": [],
        "warnings": [f"{name}: {text}" for name, survey in zip(names, surveys, strict=True) for text in warnings(survey.info)],
        "findings": [],
        "sections": sections,
        "unmeasured": [],
        "command": "",
        "claims": claims_tree(claims, surveys[0]),
        "differences": differences_tree(surveys, names, differences),
        "provenance": [{"name": name, "groups": provenance(survey.info)} for name, survey in zip(names, surveys, strict=True)],
    }


def run_names(surveys: Sequence[Survey]) -> list[str]:
    """A name for each run: the model's, with its step or folder where models repeat."""
    plain = [visible(survey.model_name) for survey in surveys]
    out = []
    for index, (name, survey) in enumerate(zip(plain, surveys, strict=True)):
        step = checkpoint_step(survey.info)
        folder = visible(survey.path.name) if survey.path is not None else str(index)
        out.append(name + (f" step {step:g}" if step is not None else f" ({folder})" if plain.count(name) > 1 else ""))
    return out


def spread(count: int, most: int) -> list[int]:
    """All of ``count`` indices, or ``most`` of them evenly spread with the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(index * (count - 1) / max(most - 1, 1)) for index in range(most)})


def _are_checkpoints(surveys: Sequence[Survey]) -> bool:
    return len({checkpoint_step(survey.info) for survey in surveys} - {None}) > 1


def _multiples(measure: str, surveys: Sequence[Survey], names: list[str], drawn: Tree, packer: Packer) -> Tree | None:
    """The main figures of one measure, run beside run."""
    chosen = spread(len(surveys), MOST_SHOWN)
    keys = SIDE_BY_SIDE.get(measure, ())
    found: dict[int, dict[str, Figure]] = {
        index: {one.key: one for one in figures(surveys[index], measure)}
        for index in chosen
        if measure in surveys[index].measures and keys
    }
    trees = [
        placed(found[index][key], f"{index}/{key}", drawn, packer, of=names[index], group=key)
        for key in keys
        for index in found
        if key in found[index]
    ]
    return {"title": outline.TITLES.get(measure, measure), "figures": trees} if trees else None


def _shared_section(
    section: outline.Section, surveys: Sequence[Survey], names: list[str], measures: list[str], groups: list[Tree]
) -> Tree:
    keys = dict.fromkeys((measure, key) for measure in measures for survey in surveys for key in survey.headline.get(measure, {}))
    rows = []
    for measure, key in keys:
        numbers = [survey.headline.get(measure, {}).get(key) for survey in surveys]
        shown = ("–" if number is None or number.is_missing else sentences.plain(number) for number in numbers)
        rows.append([f"{measure}/{visible(key)}", *shown])
    said = [f"{name}: {text}" for name, survey in zip(names, surveys, strict=True) if (text := section.sentence(survey))]
    if len(groups) == 1:
        groups = [{**groups[0], "title": ""}]
    return section_tree(
        section.key,
        section.title,
        [said[index] for index in spread(len(said), MOST_SHOWN)] or [f"{section.title}, run by run."],
        groups=groups,
        definitions=section.definitions,
        table={"columns": ["quantity", *names], "rows": rows} if rows else None,
    )


def _training(surveys: Sequence[Survey], drawn: Tree, packer: Packer) -> Tree:
    steps = sorted({step for survey in surveys if (step := checkpoint_step(survey.info)) is not None})
    sentence = f"{len(steps)} checkpoints from step {steps[0]:g} to step {steps[-1]:g}; every point has its interval."
    trees = [placed(figure, f"t/{figure.key}", drawn, packer) for figure in training_figures(surveys)]
    return section_tree("training", "Training", [sentence], groups=[{"title": "", "figures": trees}], definitions=(CHECKPOINTS,))

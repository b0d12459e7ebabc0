"""The page of one run: what it is, what was found, a section for everything that was measured, and how to make it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gnomon.report.figures import HeadMap, HeadRows, figures
from gnomon.report.html import outline, sentences
from gnomon.report.html.blocks import Rows, Tree, headline_rows, placed, section_tree, warnings
from gnomon.report.html.claims import claims_tree
from gnomon.report.html.packing import Packer
from gnomon.report.html.papers import beside_papers
from gnomon.report.html.record import facts, provenance
from gnomon.report.html.text import visible

if TYPE_CHECKING:
    from gnomon.result import Survey


def single_run(survey: Survey, packer: Packer, *, claims: Rows | None = None) -> Tree:
    """Everything that one run has."""
    drawn: Tree = {}
    fields: list[Tree] = []
    sections = [
        _section(section, survey, measures, drawn, fields, packer)
        for section in (*outline.SECTIONS, outline.MORE)
        if (measures := outline.measures_of(section, survey))
    ]
    name = visible(survey.model_name)
    return {
        "title": name,
        "several": False,
        "runs": [{"name": name}],
        "figures": drawn,
        "fields": fields,
        "lead": _lead(survey),
        "facts": facts(survey.info),
        "warnings": warnings(survey.info),
        "findings": [_finding(found) for found in sentences.findings(survey)],
        "sections": sections,
        "unmeasured": outline.not_measured(survey),
        "command": f"gnomon survey {name} --measures all",
        "claims": claims_tree(claims, survey),
        "differences": None,
        "provenance": [{"name": name, "groups": provenance(survey.info)}],
    }


def _section(
    section: outline.Section, survey: Survey, measures: Sequence[str], drawn: Tree, fields: list[Tree], packer: Packer
) -> Tree:
    groups: list[Tree] = []
    for measure in measures:
        shown = figures(survey, measure)
        for figure in shown:
            if isinstance(figure, HeadMap):
                fields += [{"figure": f"0/{figure.key}", "field": index} for index in range(len(figure.fields))]
        trees = [placed(figure, f"0/{figure.key}", drawn, packer) for figure in shown]
        groups.append({"title": outline.TITLES.get(measure, measure.replace("_", " ").capitalize()), "figures": trees})
    within: list[Tree] = []
    if section.key == "sinks" and groups[0]["figures"] and groups[0]["figures"][0]["kind"] == HeadMap.kind:
        within = [tree for group in groups for tree in group["figures"] if tree["kind"] == HeadRows.kind]
        for group in groups:
            group["figures"] = [tree for tree in group["figures"] if tree["kind"] != HeadRows.kind]
    if len(measures) == 1:
        groups[0]["title"] = ""
    return section_tree(
        section.key,
        section.title,
        [section.sentence(survey) or _fallback(survey, measures)],
        groups=[group for group in groups if group["figures"]],
        definitions=section.definitions,
        missing=[f"{name}: {visible(text)}" for name in measures if (text := str(survey[name].attrs.get("missing", "")))],
        labels=[(name, visible(key), visible(label)) for name in measures for key, label in survey.labels.get(name, {}).items()],
        rows=headline_rows(survey, measures),
        published=beside_papers(survey, measures),
        card=section.key == "sinks",
        card_figures=within,
    )


def _fallback(survey: Survey, measures: Sequence[str]) -> str:
    """The first number that there is, or why there is none."""
    for measure in measures:
        for key, number in survey.headline.get(measure, {}).items():
            if not number.is_missing:
                return f"{visible(key).replace('_', ' ').capitalize()} is {sentences.plain(number)}."
    reasons = [number.reason for measure in measures for number in survey.headline.get(measure, {}).values() if number.reason]
    return f"No number could be given: {visible(reasons[0])}." if reasons else "The figures below show what was measured."


def _lead(survey: Survey) -> str:
    """What this model is, in a sentence, and what stands at position 0."""
    anatomy, scheme = survey.info.get("anatomy"), survey.info.get("scheme")
    parts = []
    if isinstance(anatomy, Mapping) and anatomy.get("num_layers"):
        article = "an encoder" if anatomy.get("causal") is False else "a decoder"
        counts = [(anatomy["num_layers"], "layer"), (anatomy.get("num_heads", "?"), "head")]
        parts.append(f"{article} of " + " and ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts))
    if isinstance(scheme, Mapping) and scheme.get("description"):
        parts.append(f"told its positions by {visible(scheme['description'])}")
    said = f"{visible(survey.model_name)} is {', '.join(parts)}." if parts else f"A survey of {visible(survey.model_name)}."
    first = sentences.first_token(survey.info)
    return f"{said} {first}" if first else said


def _finding(found: sentences.Finding) -> Tree:
    big, _, interval = found.text.partition(" [")
    return {
        "value": big,
        "interval": f"[{interval}" if interval else "",
        "caption": found.caption,
        "section": found.section,
        "n": found.number.n,
    }

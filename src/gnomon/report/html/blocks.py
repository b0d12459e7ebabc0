"""The pieces that pages are made of, as plain trees for the template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon.report.figures import Figure
from gnomon.report.html.packing import Packer, fitted
from gnomon.report.html.text import visible
from gnomon.statistics import Estimate

if TYPE_CHECKING:
    from gnomon.result import Survey

Tree = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def placed(figure: Figure, name: str, drawn: Tree, packer: Packer, *, of: str = "", group: str = "") -> Tree:
    """Packs a figure under a name and says what stands in the text for it.

    Args:
        figure: what to draw.
        name: of the figure on this page.
        drawn: collects the packed figures.
        packer: collects their arrays.
        of: the run it belongs to, where there are several.
        group: figures of one group share their axes.
    """
    kept = fitted(figure, packer.most)
    title = f"{visible(kept.title)} — {of}" if of else visible(kept.title)
    drawn[name] = packer.figure(kept) | {"title": title} | ({"group": group} if group else {})
    return {"name": name, "kind": kept.kind, "title": title, "note": visible(kept.note)}


def section_tree(key: str, title: str, sentences: list[str], **more: Any) -> Tree:
    """One section; what is not given is empty.

    Args:
        key: its anchor.
        title: its heading.
        sentences: the answer, or one for each run.
        **more: ``groups`` of figures, ``definitions``, ``missing``, ``labels``, ``rows``, ``published``, ``table``, ``card``, ``card_figures``.
    """
    empty: Tree = {
        "groups": [],
        "definitions": (),
        "missing": [],
        "labels": [],
        "rows": [],
        "published": None,
        "table": None,
        "card": False,
        "card_figures": [],
    }
    return {"key": key, "title": title, "sentences": sentences, **empty, **more}


def headline_rows(survey: Survey, measures: Iterable[str]) -> list[Tree]:
    """One row per headline number: measure, quantity, value, interval, sequences, reason where missing."""
    return [
        {"measure": measure, "quantity": visible(key), **_shown(number)}
        for measure in measures
        for key, number in survey.headline.get(measure, {}).items()
    ]


def rows_table(rows: Rows | None) -> Tree | None:
    """Rows of equal keys as a table; numbers short, missing ones as a dash."""
    if not rows:
        return None
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return {"columns": [visible(name) for name in columns], "rows": [[_cell(row.get(name)) for name in columns] for row in rows]}


def warnings(info: Mapping[str, Any]) -> list[str]:
    """Every warning of the record, that of the first token included."""
    listed = info.get("warnings") or []
    texts = [str(text) for text in (listed if isinstance(listed, list) else [listed])]
    corpus = info.get("corpus")
    first = corpus.get("first_token") if isinstance(corpus, Mapping) else None
    if isinstance(first, Mapping) and first.get("warning"):
        texts.append(str(first["warning"]))
    return [visible(text) for text in dict.fromkeys(texts)]


def _shown(number: Estimate) -> Tree:
    bounded = number.low == number.low and number.high == number.high
    return {
        "value": "–" if number.is_missing else f"{number.value:.4g}",
        "interval": f"{number.low:.4g} to {number.high:.4g}" if bounded and not number.is_missing else "",
        "n": number.n or "",
        "reason": visible(number.reason or "not finite") if number.is_missing else "",
    }


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else visible(value)

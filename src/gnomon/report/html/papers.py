"""A run's numbers beside those that papers printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnomon.report import published_sinks
from gnomon.report.html.sentences import get, plain
from gnomon.report.published_spectra import SOURCE, nearest_rows, same_model

if TYPE_CHECKING:
    from gnomon.result import Survey


def beside_papers(survey: Survey, measures: Sequence[str]) -> dict[str, Any] | None:
    """A table of what these measures have in common with publications; ``None`` where there is nothing."""
    rows = [
        *(_sinks(survey) if "sinks" in measures else ()),
        *(row for row in _spectra(survey) if row[0].split("/")[0] in measures),
    ]
    return {"columns": ["quantity", "here", "published", "of", "source"], "rows": rows} if rows else None


def _sinks(survey: Survey) -> Iterator[list[str]]:
    here = get(survey, f"sinks/{published_sinks.QUANTITY}")
    if here is None or _mapping(survey.info, "corpus").get("length") != published_sinks.LENGTH:
        return
    same = published_sinks.rate_of(survey.model_name)
    for model, rate in published_sinks.RATES.items():
        which = model if rate == same else f"{model} (another model)"
        yield [f"sinks/{published_sinks.QUANTITY}", plain(here), f"{rate:g}", which, published_sinks.SOURCE]


def _spectra(survey: Survey) -> Iterator[list[str]]:
    kind, parameters = _mapping(survey.info, "scheme").get("kind"), _mapping(survey.info, "anatomy").get("num_parameters")
    scheme = str(kind) if kind else None
    size = float(parameters) if isinstance(parameters, int | float) else None
    for row in nearest_rows(survey.model_name, scheme, size):
        which = row.model if same_model(survey.model_name, row) else f"{row.model} (another model)"
        for key, figure in row.values.items():
            here = get(survey, key)
            if here is not None:
                yield [key, plain(here), f"{figure:g}", which, f"{SOURCE}{'; ' + row.note if row.note else ''}"]


def _mapping(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tree.get(key)
    return found if isinstance(found, Mapping) else {}

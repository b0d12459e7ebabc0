"""A survey's result: what was run, the headline numbers, and a labelled dataset per measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.statistics import Estimate

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gnomon import Plot

Headline = dict[str, dict[str, Estimate]]


class Survey(Mapping[str, "xr.Dataset"]):
    """The result of one run: a mapping from measure names to xarray datasets, with the run's record beside it.

    Datasets are opened when they are first asked for, and their arrays read when they are used.

    Attributes:
        info: the run's record: command, model, scheme, corpus, versions, times.
        headline: measure → quantity → value with its interval.
        path: the run folder, or ``None`` for a survey that was not written to disk.
    """

    def __init__(
        self,
        info: Mapping[str, Any],
        headline: Mapping[str, Mapping[str, Estimate]],
        datasets: Mapping[str, Callable[[], xr.Dataset]],
        path: Path | None = None,
    ) -> None:
        self.info = dict(info)
        self.headline: Headline = {measure: dict(numbers) for measure, numbers in headline.items()}
        self.path = path
        self._open = dict(datasets)
        self._opened: dict[str, xr.Dataset] = {}

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of what was measured, in the order of the survey."""
        return tuple(self._open)

    def __getitem__(self, measure: str) -> xr.Dataset:
        """The dataset of one measure."""
        if measure not in self._open:
            raise KeyError(f"this survey has no {measure!r}; it has {', '.join(self.measures) or 'no measures'}")
        if measure not in self._opened:
            self._opened[measure] = self._open[measure]()
        return self._opened[measure]

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, measure: object) -> bool:
        return measure in self._open

    def to_xarray(self) -> xr.DataTree:
        """Every dataset in one tree, a node per measure, with the model and the scheme as attributes of the root."""
        import xarray as xr

        tree = xr.DataTree.from_dict({f"/{name}": self[name] for name in self})
        tree.attrs = {"model": self.model_name, "scheme": str(self.info.get("scheme", ""))}
        return tree

    def to_dataframe(self, measure: str | None = None, *variables: str) -> pd.DataFrame:
        """A table: the headline numbers, or variables of one measure with a row per cell.

        Args:
            measure: the measure; without one, the table has a row per headline number.
            variables: which of its variables; without any, those that have one value per layer and head where there are such,
                and otherwise those that share the dimensions of the first.
        """
        import pandas as pd

        if measure is None:
            rows = [(name, key, *number) for name, numbers in self.headline.items() for key, number in numbers.items()]
            return pd.DataFrame(rows, columns=["measure", "quantity", *Estimate._fields])
        dataset = self[measure]
        chosen = list(variables) or _alike(dataset)
        unknown = [name for name in chosen if name not in dataset.variables]
        if unknown:
            raise KeyError(f"{measure} has no {', '.join(unknown)}; it has {', '.join(map(str, dataset.data_vars))}")
        return dataset[chosen].to_dataframe().reset_index()

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """Answers that are words, such as the kind of a frame: measure → quantity → label."""
        found = self.info.get("labels")
        return {str(name): dict(labels) for name, labels in found.items()} if isinstance(found, Mapping) else {}

    @property
    def model_name(self) -> str:
        """Name of the model that was surveyed."""
        model = self.info.get("model", {})
        return str(model.get("name") or model.get("id") or "unknown model") if isinstance(model, Mapping) else str(model)

    @property
    def plot(self) -> Plot:
        """Figures for a notebook: ``survey.plot.sinks()``, ``survey.plot("leakage-early")``, ``survey.plot.figures``."""
        # Results know nothing of reports; the facade knows where figures are drawn.
        from gnomon import Plot

        return Plot(self)

    def verify(self) -> None:
        """Opens every dataset, so that damage anywhere in the folder is found now.

        Raises:
            RunError: naming what is damaged.
        """
        for name in self:
            self[name].load()

    def save(self, path: str | Path) -> Survey:
        """Writes a survey to a new run folder and returns the one opened from there."""
        from gnomon.result.strict_json import digest
        from gnomon.result.writer import RunWriter

        kept = {key: value for key, value in self.info.items() if key not in ("schema", "status", "store", "headline")}
        writer = RunWriter.start(path, self.info.get("fingerprint") or {"saved": digest(self.headline)}, kept)
        try:
            return writer.survey or writer.finish({name: self[name] for name in self}, self.headline)
        finally:
            writer.close()

    def __repr__(self) -> str:
        lines = [f"<gnomon.Survey of {self.model_name}>"]
        lines += [f"  {label}: {text}" for label, text in self._facts()]
        lines += [f"  {measure}/{key}: {label}" for measure, labels in self.labels.items() for key, label in labels.items()]
        for measure, numbers in self.headline.items():
            lines += [f"  {measure}/{key}: {format_estimate(number)}" for key, number in numbers.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in self._facts())
        rows = "".join(
            f"<tr><td>{escape(measure)}</td><td>{escape(key)}</td><td>{escape(format_estimate(number))}</td></tr>"
            for measure, numbers in self.headline.items()
            for key, number in numbers.items()
        )
        head = "<tr><th>measure</th><th>quantity</th><th>value [95 % interval]</th></tr>"
        return f"<div><b>gnomon survey of {escape(self.model_name)}</b><table>{facts}</table><table>{head}{rows}</table></div>"

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("measures", ", ".join(self.measures) or "none")]
        if isinstance(scheme := self.info.get("scheme"), Mapping) and scheme.get("description"):
            facts.append(("scheme", str(scheme["description"])))
        if isinstance(corpus := self.info.get("corpus"), Mapping) and corpus.get("source"):
            facts.append(("corpus", str(corpus["source"])))
        if self.path is not None:
            facts.append(("folder", str(self.path)))
        return facts


def format_estimate(number: Estimate, digits: int = 3) -> str:
    """A number for reading: value with its interval, or why there is none."""
    if number.is_missing:
        return f"missing: {number.reason or 'not finite'}"
    text = format_number(number.value, digits)
    if number.low == number.low and number.high == number.high:
        text += f" [{format_number(number.low, digits)}, {format_number(number.high, digits)}]"
    return text


def format_number(value: float, digits: int = 3) -> str:
    """A number to so many significant digits, written out up to a million."""
    if 10**digits <= abs(value) < 1e6:
        return f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):.0f}"
    return f"{value:.{digits}g}"


def _alike(dataset: xr.Dataset) -> list[str]:
    shapes = {str(name): frozenset(map(str, variable.dims)) for name, variable in dataset.data_vars.items()}
    if not shapes:
        return []
    per_head = frozenset(("layer", "head"))
    wanted = per_head if per_head in shapes.values() else next(iter(shapes.values()))
    return [name for name, dims in shapes.items() if dims == wanted]

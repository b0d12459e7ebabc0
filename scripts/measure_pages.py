"""Writes the lower half of each page in docs/measures from the measure itself: definition, parameters, variables, headline numbers.

Usage: PYTHONPATH=. python scripts/measure_pages.py [NAME ...]

The upper half of a page, above the mark, is written by hand and kept. Definitions are the essays at the top of the modules, so that a formula stands in one place; variables and keys are
those that the measure gives on a tiny random Llama.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.study.registry import entries

if TYPE_CHECKING:
    import xarray as xr

DOCS = Path(__file__).resolve().parents[1] / "docs"
MARK = "<!-- From here on made by scripts/measure_pages.py. -->"
MORE = {
    "leakage": ("leakage_components", "leakage_variance", "leakage_grid"),
    "rows": ("row_bins",),
    "frames": ("anchors", "kinds"),
    "spectra": ("spectra_paper", "spectra_calibrated", "spectra_untrained"),
    "scale": ("gnomon.measure.scale",),
    "phase": ("gnomon.study.phase_oscillation", "gnomon.study.phase_harmonics", "gnomon.study.phase_alignment"),
    "likelihood": tuple(f"gnomon.study.likelihood.{part}" for part in ("reading", "attention", "relation", "contrast")),
}
ABOUT = {
    "position-zero.md": ("reads", "trajectory", "intervention"),
    "leakage.md": ("leakage", "invariance"),
    "frames.md": ("frames", "graph", "topology", "geometry", "values", "matrix", "fisher"),
    "scales.md": ("spectra", "scale"),
    "phase.md": ("phase", "rotary"),
    "likelihood.md": ("likelihood",),
}


def essay_of(module: str) -> str:
    """The docstring of a module, found without importing it."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"there is no module {module}")
    return ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""


def markdown(essay: str) -> str:
    """The essay's reStructuredText as Markdown: roles and literals as code, tables kept as they stand."""
    text = re.sub(r":[a-z]+:`~?([^`]+)`", r"`\1`", essay).replace("``", "`")
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        ruled = re.fullmatch(r"\s*=+(\s+=+)+\s*", line) is not None
        if ruled and not inside:
            inside = True
            lines.append("```text")
        elif inside and not line.strip():
            inside = False
            lines.append("```")
        lines.append(line.replace("`", "") if inside and not line.startswith("```") else line)
    return "\n".join([*lines, "```"] if inside else lines).strip()


def definition(name: str) -> str:
    """The essays that define a measure, one below the other."""
    module = entries()[name].path.partition(":")[0]
    package = module.rpartition(".")[0]
    others = [other if other.startswith("gnomon.") else f"{package}.{other}" for other in MORE.get(name, ())]
    essays = [markdown(essay_of(module))]
    essays += [f"**From `{other}`.** {markdown(essay_of(other))}" for other in others if other != module]
    return "\n\n".join(essays)


def parameters(name: str) -> str:
    """What can be set, and what it is when it is not."""
    found = entries()[name].load()
    if not dataclasses.is_dataclass(found):
        return ""
    made: Any = found()
    rows = [(field.name, repr(getattr(made, field.name))) for field in dataclasses.fields(found)]
    if not rows:
        return ""
    head = f'## Parameters\n\n`gnomon.survey(..., options={{"{name}": {{...}}}})` sets them.\n\n'
    return head + table(("parameter", "default"), [(f"`{key}`", f"`{value}`") for key, value in rows])


def variables(dataset: xr.Dataset) -> str:
    """Variables of the dataset; bounds of intervals are named with their value."""
    rows = []
    for key, variable in dataset.data_vars.items():
        bounds = f"{key}_low" in dataset.data_vars
        if not str(key).endswith(("_low", "_high")) or str(key).rpartition("_")[0] not in dataset.data_vars:
            dims = ", ".join(map(str, variable.dims)) or "(one number)"
            mark = "yes" if bounds else ""
            rows.append((f"`{key}`", dims, variable.attrs.get("units", ""), mark, variable.attrs.get("long_name", "")))
    return "## Variables\n\n" + table(("variable", "dimensions", "units", "interval", "what"), rows)


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    heads = list(columns)
    body = ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *body])


def generated(name: str, dataset: xr.Dataset, keys: Iterable[str]) -> str:
    """The lower half of a page."""
    entry = entries()[name]
    claims = getattr(entry.load(), "claims", ())
    facts = [f"Answers: {entry.answers}. " + ("Runs by default." if entry.default else "Runs when asked for.")]
    facts += [f"Claims: {', '.join(claims)}."] if claims else []
    about = next((page for page, names in ABOUT.items() if name in names and (DOCS / page).is_file()), None)
    facts += [f"The study behind it, with figures: [{about.removesuffix('.md')}](../{about})."] if about else []
    parts = [MARK, " ".join(facts), f"```bash\ngnomon survey smollm2-135m --measures {name}\n```"]
    parts += ["## Definition", definition(name), parameters(name), variables(dataset)]
    parts += ["## Headline numbers", ", ".join(f"`{key}`" for key in keys) + "."]
    return "\n\n".join(part for part in parts if part) + "\n"


def by_hand(name: str) -> str:
    """The upper half of a page, as it stands."""
    path = DOCS / "measures" / f"{name}.md"
    return path.read_text(encoding="utf-8").partition(MARK)[0].rstrip() if path.is_file() else f"# {name}"


def survey_of(names: list[str]) -> Any:
    """The measures on a tiny random Llama."""
    from tests.families.configs import FAMILIES

    import gnomon
    from gnomon.corpus import CorpusSpec

    family = FAMILIES["llama"]
    model = gnomon.load(family.build(), tokenizer=family.tokenizer())
    return gnomon.survey(model, corpus=CorpusSpec(sequences=4, length=128, bos="always"), measures=names)


def main() -> None:
    """Writes the pages of the measures named on the command line, or of all."""
    names = sys.argv[1:] or list(entries())
    survey = survey_of(names)
    for name in names:
        text = by_hand(name) + "\n\n" + generated(name, survey[name], survey.headline[name])
        (DOCS / "measures" / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

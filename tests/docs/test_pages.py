"""Links lead somewhere, generated pages are fresh, the site builds without a network, and what is said of models is what is tested."""

import json
import re
import subprocess
import sys

import pytest
from scripts import measure_pages, site_hooks
from scripts.build_notebook import cells_of

from gnomon.study.registry import entries
from tests.docs.pages import DOCS, PAGES, ROOT, name_of, prose
from tests.families.configs import FAMILIES

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
KINDS = {
    "rope": "rotary",
    "learned": "learned absolute",
    "alibi": "ALiBi",
    "relative": "relative bias",
    "sinusoidal": "sinusoidal",
}
SLOW = ("likelihood",)


def slug(heading: str) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in LINK.findall(prose(page)):
        if re.match(r"https?://|mailto:", target):
            continue
        place, _, anchor = target.partition("#")
        path = page if not place else page.parent / place
        assert path.exists(), f"{target} of {name_of(page)} does not exist"
        if anchor and path.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), f"{target} of {name_of(page)} names no heading"


def test_every_page_and_picture_is_reached():
    linked = {(page.parent / target.partition("#")[0]).resolve() for page in PAGES for target in LINK.findall(prose(page))}
    pictures = {path.resolve() for kind in ("svg", "png") for path in DOCS.rglob(f"*.{kind}")}
    assert not pictures - linked
    assert (DOCS / "example.ipynb").resolve() in linked


@pytest.mark.parametrize("name", entries())
def test_every_measure_has_a_page_with_its_definition(name):
    text = (DOCS / "measures" / f"{name}.md").read_text(encoding="utf-8")
    upper, mark, lower = text.partition(measure_pages.MARK)
    assert mark
    assert "**Read it**" in upper
    assert "**Assumes**" in upper
    assert measure_pages.definition(name) in lower, "run `make docs`"
    assert f"[`{name}`]({name}.md) | {entries()[name].answers} |" in (DOCS / "measures" / "index.md").read_text(encoding="utf-8")


def test_variables_and_keys_of_measure_pages_are_those_that_measures_give():
    names = [name for name in entries() if name not in SLOW]
    survey = measure_pages.survey_of(names)
    for name in names:
        lower = measure_pages.generated(name, survey[name], survey.headline[name])
        text = (DOCS / "measures" / f"{name}.md").read_text(encoding="utf-8")
        about = re.compile(r"The study behind it.*")
        assert about.sub("", text).endswith(about.sub("", lower)), f"{name}: run `make docs`"


def test_essays_become_markdown():
    essay = "Title.\n\n:mod:`gnomon.a.b` and ``x_y``:\n\n====  ====\na     ``b``\n====  ====\n1     2\n====  ====\n\nAfter."
    text = measure_pages.markdown(essay)
    assert "`gnomon.a.b` and `x_y`" in text
    assert "```text\n====  ====\na     b\n" in text
    assert text.count("```") == 2
    assert text.endswith("```\n\nAfter.")


def test_architectures_are_those_that_are_tested():
    rows = {}
    for line in (DOCS / "architectures.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and (name := re.fullmatch(r"`([a-z0-9-]+)`", cells[1])):
            rows[name[1]] = tuple(cells[2:])
    expected = {
        name: (
            family.kind + (f", {family.stack}" if family.stack else ""),
            KINDS[family.scheme],
            "causal" if family.causal else "both ways",
            "as it is" if family.interface else "adapter",
        )
        for name, family in FAMILIES.items()
    }
    assert rows == expected


def test_a_model_without_attention_is_refused_as_the_page_says():
    import transformers

    import gnomon
    from gnomon.errors import UnsupportedModelError

    config = transformers.MambaConfig(vocab_size=32, hidden_size=16, num_hidden_layers=2, state_size=4)
    with pytest.raises(UnsupportedModelError, match="state-space and hybrid models are not supported"):
        gnomon.load(transformers.MambaForCausalLM(config))


def test_the_notebook_was_made_from_the_example_and_ran_whole():
    cells = cells_of((ROOT / "examples" / "first_survey.py").read_text(encoding="utf-8"))
    notebook = json.loads((DOCS / "example.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]] == [tuple(cell) for cell in cells]
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"execute_result", "stream"}
    assert sum("image/svg+xml" in output.get("data", {}) for output in outputs) == 2
    assert len({cell["id"] for cell in notebook["cells"]}) == len(cells)


def test_the_cells_of_the_example_run(tmp_path, monkeypatch):
    from scripts.build_notebook import run_cell, shown

    folder = tmp_path / "tiny"
    FAMILIES["llama"].build().save_pretrained(folder)
    FAMILIES["llama"].tokenizer().save_pretrained(folder)
    cells = [
        cell.text for cell in cells_of((ROOT / "examples" / "first_survey.py").read_text(encoding="utf-8")) if cell.kind == "code"
    ]
    assert cells[0].startswith("MODEL = ")
    names = {"__name__": "__main__", "MODEL": str(folder), "SEQUENCES": 4, "LENGTH": 48}
    values = [run_cell(text, names)[1] for text in cells[1:]]
    assert "_repr_html_" in dir(values[0])
    assert "text/html" in shown(values[0], [])
    figures = [value for value in values if type(value).__module__.startswith("plotly.")]
    assert [list(shown(figure, ["<svg/>"]))[:2] for figure in figures] == [
        ["application/vnd.plotly.v1+json", "image/svg+xml"]
    ] * 2
    assert values[-1].value == pytest.approx(names["survey"].headline["attention"]["peak"].value, rel=0.2)


def test_navigation_is_completed():
    nav = ["index.md", {"A": ["a.md", {"Gone": "gone.md"}]}, {"B": ["gone.md"]}]
    assert site_hooks.completed(nav, {"index.md", "a.md", "new.md"}) == ["index.md", {"A": ["a.md"]}, {"More": ["new.md"]}]
    assert site_hooks.completed(["index.md"], {"index.md"}) == ["index.md"]


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//", text), page
        assert not re.search(r"<link[^>]+rel=[\"']?(?:stylesheet|preconnect)[^>]+href=[\"']?(?:https?:)?//", text), page

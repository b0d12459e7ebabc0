"""Words, names and habits that must not be in the source, and sizes that must not grow."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "gnomon").rglob("*.py"))
SHIPPED = [
    *SOURCES,
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md")),
]
DRAWERS = re.compile(r"^(utils?|helpers?|common|misc|tools?)$")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")
PRIVATE_PLACES = re.compile(r"\.\./shared|/work/|/tmp/w\b")
MOST_LINES = 420


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", [path for path in SHIPPED if path.is_file()], ids=relative)
def test_nothing_unfinished_and_no_private_places(path):
    text = path.read_text(encoding="utf-8")
    assert not UNFINISHED.search(text)
    assert not PRIVATE_PLACES.search(text)


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_file_has_one_idea_a_name_and_an_essay(path):
    assert not any(DRAWERS.match(part) for part in path.relative_to(ROOT).with_suffix("").parts)
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert not text or ast.get_docstring(ast.parse(text)), "every module opens by saying what it is for"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_no_error_is_swallowed_and_nothing_is_evaluated(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            caught = {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)} if node.type else {"everything"}
            reraised = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            assert not caught & {"Exception", "BaseException", "everything"} or reraised, f"line {node.lineno} swallows errors"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec"), f"line {node.lineno} evaluates text"

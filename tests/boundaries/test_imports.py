"""Imports point one way, as DESIGN.md's table says, and never in a circle.

Every import statement counts, also those inside functions and under TYPE_CHECKING: a forbidden edge is no better for being lazy.
Strings of the form ``gnomon.package.module:name``, by which tables name what they load, count as well.
"""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "gnomon"
BASE = {"dims", "errors", "version", "statistics"}
STAGES = {"corpus", "model", "kernels", "result"}
ALLOWED = {
    **dict.fromkeys(BASE, BASE),
    **{name: BASE | {name} for name in STAGES},
    "capture": BASE | {"capture", "corpus", "model", "kernels"},
    "measure": BASE | {"measure", "capture", "kernels", "corpus", "model"},
    "intervene": BASE | {"intervene", "model", "capture", "kernels"},
    "report": BASE | {"report", "result"},
    "zoo": BASE | {"zoo", "model", "corpus"},
}
ALLOWED["integrations"] = BASE | {"integrations", "corpus", "model", "study"}
EVERYTHING = {*ALLOWED, "study", "cli"}
ALLOWED["study"] = EVERYTHING - {"cli", "integrations"}
ALLOWED["cli"] = EVERYTHING
PLACE = re.compile(r"gnomon(\.[a-z_0-9]+)+:[A-Za-z_]\w*")
NO_TORCH = {"corpus", "result", "report", "statistics"}
HEAVY = {"torch", "transformers", "ray", "datasets", "accelerate", "plotly", "xarray", "zarr", "pandas", "duckdb", "pyarrow"}


def modules() -> dict[str, Path]:
    names = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


MODULES = modules()


def imported(name: str, *, top_level_only: bool = False) -> set[str]:
    """Modules that one module imports, as far as they can be told from its text."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    nodes = list(_top_level(tree)) if top_level_only else list(ast.walk(tree))
    found = set()
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
            found.add(node.value.partition(":")[0])
    return found


def _top_level(tree: ast.Module):
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield from ([node] if isinstance(node, ast.Import | ast.ImportFrom) else [])


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_package_has_its_place_in_the_table():
    packages = {package_of(name) for name in MODULES} - {"", "__main__"}
    assert packages <= set(ALLOWED), f"add {packages - set(ALLOWED)} to the table here and in DESIGN.md"


@pytest.mark.parametrize("name", sorted(MODULES))
def test_imports_point_one_way(name):
    package = package_of(name)
    if package in ("", "__main__"):
        return
    ours = {module for module in imported(name) if module.split(".")[0] == "gnomon"}
    forbidden = {module for module in ours if package_of(module) not in ALLOWED[package] and module != "gnomon"}
    assert not forbidden, f"{name} must not import {sorted(forbidden)}: {package} may import {sorted(ALLOWED[package])}"


def _cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    import networkx

    graph = networkx.DiGraph([(source, target) for source, targets in edges.items() for target in targets if source != target])
    return [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def test_packages_form_no_cycle():
    edges: dict[str, set[str]] = {}
    for name in MODULES:
        if package_of(name) not in ("", "__main__"):
            targets = {package_of(module) for module in imported(name) if module.startswith("gnomon.")}
            edges.setdefault(package_of(name), set()).update(targets & set(ALLOWED))
    assert not _cycles(edges)


def test_modules_form_no_cycle_when_they_load():
    edges = {}
    for name in MODULES:
        targets = {module for module in imported(name, top_level_only=True) if module in MODULES}
        # A package's __init__ joins its modules; they import each other by their own names.
        edges[name] = {module for module in targets if MODULES[module].name != "__init__.py" or not name.startswith(module)}
    assert not _cycles(edges)


@pytest.mark.parametrize("name", sorted(name for name in MODULES if package_of(name) in NO_TORCH))
def test_torch_stays_out_of_what_is_numpy_alone(name):
    roots = {module.split(".")[0] for module in imported(name)}
    assert not roots & {"torch", "transformers"}


@pytest.mark.parametrize("name", sorted(name for name in MODULES if package_of(name) in ("", "cli", "__main__")))
def test_commands_load_nothing_heavy(name):
    roots = {module.split(".")[0] for module in imported(name, top_level_only=True)}
    assert not roots & HEAVY

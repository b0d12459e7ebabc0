"""What the site generator does beyond its settings: pages that have no place in the navigation yet get one.

A page that the navigation names and that does not exist is left out of it; a link to it from another page still fails the build.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

Entry = Any
"""A path, or a mapping from a title to a path or to a list of entries."""


def on_config(config: Any) -> Any:
    """Called by mkdocs once the settings are read."""
    pages = {path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")}
    config.nav = completed(config.nav, pages)
    return config


def completed(nav: list[Entry], pages: set[str]) -> list[Entry]:
    """The navigation without pages that do not exist, and with those that it lacks under ``More``."""
    kept = existing(nav, pages)
    rest = sorted(pages - set(named(kept)))
    return [*kept, {"More": rest}] if rest else kept


def existing(nav: list[Entry], pages: set[str]) -> list[Entry]:
    """Entries whose page exists, and sections that have any."""
    kept: list[Entry] = []
    for entry in nav:
        if isinstance(entry, str):
            kept += [entry] if entry in pages else []
        else:
            for title, inner in entry.items():
                found = existing(inner, pages) if isinstance(inner, list) else inner if inner in pages else None
                kept += [{title: found}] if found else []
    return kept


def named(nav: list[Entry]) -> list[str]:
    """Every page that the navigation names."""
    found: list[str] = []
    for entry in nav:
        inner = [entry] if isinstance(entry, str) else list(entry.values())
        for one in inner:
            found += named(one) if isinstance(one, list) else [one]
    return found

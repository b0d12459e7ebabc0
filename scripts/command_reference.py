"""Writes the reference of all commands, from the help that the commands themselves print.

Usage: python scripts/command_reference.py docs/commands.md
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command
from typer.testing import CliRunner

from gnomon.cli.app import build_app

PLAIN = {"COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}


def reference() -> str:
    """The whole page."""
    parts = ["# Commands", "Made by `make docs` from the commands themselves."]
    with patch.dict(os.environ, PLAIN):
        app = build_app()
        for names in ([], *command_names(get_command(app))):
            done = CliRunner().invoke(app, [*names, "--help"], prog_name="gnomon", catch_exceptions=False)
            text = "\n".join(line.rstrip() for line in done.output.strip().splitlines())
            parts += [*([f"## gnomon {' '.join(names)}"] if names else []), f"```text\n{text}\n```"]
    return "\n\n".join(parts) + "\n"


def command_names(command: Any) -> Iterator[list[str]]:
    """Every command, and after it those that it groups."""
    for name, inner in getattr(command, "commands", {}).items():
        yield [name]
        for names in command_names(inner):
            yield [name, *names]


def main() -> None:
    """Writes the page named on the command line."""
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()

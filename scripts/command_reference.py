"""Writes the reference of all commands, from the help that the commands themselves print.

Usage: python scripts/command_reference.py docs/commands.md
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from gnomon.cli.app import COMMANDS


def help_of(*arguments: str) -> str:
    """What ``gnomon ARGUMENTS --help`` prints, at a fixed width."""
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "gnomon", *arguments, "--help"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def main() -> None:
    """Writes the page named on the command line."""
    parts = ["# Commands", "Made by `make docs` from the commands themselves.", f"```text\n{help_of()}\n```"]
    for name in COMMANDS:
        parts += [f"## gnomon {name}", f"```text\n{help_of(name)}\n```"]
    Path(sys.argv[1]).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The table of commands and the entry point."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Final

import typer
from typer.main import get_command

from gnomon.cli.failures import guarded, quiet_unexpected
from gnomon.version import __version__

COMMANDS: Final = {
    "survey": "gnomon.cli.survey:survey",
    "show": "gnomon.cli.show:show",
    "report": "gnomon.cli.report:report",
    "export": "gnomon.cli.export:export",
    "runs": "gnomon.cli.runs:runs",
    "intervene": "gnomon.cli.intervene:intervene",
    "compare": "gnomon.cli.compare:compare",
    "evolve": "gnomon.cli.evolve:evolve",
    "claims": "gnomon.cli.claims:claims",
    "model": "gnomon.cli.model:model",
    "zoo": "gnomon.cli.zoo:zoo",
    "fetch": "gnomon.cli.fetch:fetch",
    "measures": "gnomon.cli.measures:measures",
}
"""Name of each command, in the order of the help: ``module:function``, or an application with commands of its own. Command modules import nothing heavy."""

QUIET: Final = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}


def build_app() -> typer.Typer:
    """The application with every command of the table."""
    app = typer.Typer(
        name="gnomon",
        help="Survey a transformer language model and see where its sense of position comes from.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(options_of_all)
    for name, place in COMMANDS.items():
        module, _, function = place.partition(":")
        found = getattr(import_module(module), function)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(guarded(found))
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits: 0 done, 1 a known failure, 2 wrong usage, 130 interrupted.

    Args:
        arguments: those after the program's name; the process's own when not given.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    sys.excepthook = quiet_unexpected(sys.excepthook)
    # The command itself is called, since calling the application would put its own hook for errors in place of ours.
    get_command(build_app())(args=None if arguments is None else list(arguments), prog_name="gnomon")


def print_version(wanted: bool) -> None:
    """Prints the version and ends the program, if that was asked for."""
    if wanted:
        typer.echo(f"gnomon {__version__}")
        raise typer.Exit


def options_of_all(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=print_version)] = False,
) -> None:
    """Survey a transformer language model and see where its sense of position comes from."""


__all__ = ["COMMANDS", "build_app", "main"]

"""The whole page: header, sections, paths."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group
from rich.padding import Padding
from rich.text import Text

from gnomon.report.headline_json import chosen_measures
from gnomon.report.terminal.header import header, paths
from gnomon.report.terminal.sections import section_of
from gnomon.report.terminal.tables import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gnomon.result import Survey

PLAIN_WIDTH = 110


def print_survey(survey: Survey, *, only: Sequence[str] | None = None, stream: TextIO | None = None) -> None:
    """Prints a survey: with colours on a terminal, as plain text elsewhere.

    Args:
        survey: what to show.
        only: names of measures to show; all when not given.
        stream: where to; standard output when not given.
    """
    show(survey_page(survey, only), stream or sys.stdout)


def show(page: RenderableType, stream: TextIO) -> None:
    """Prints on a terminal as it is, elsewhere without the blanks that fill lines up."""
    console = console_for(stream)
    if console.is_terminal:
        console.print(page)
        return
    with console.capture() as captured:
        console.print(page)
    stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    stream.flush()


def survey_page(survey: Survey, only: Sequence[str] | None = None) -> RenderableType:
    """Everything that there is to print, as one renderable."""
    parts: list[RenderableType] = [header(survey)]
    for measure in chosen_measures(survey, only):
        title = str(survey[measure].attrs.get("title", measure)) if measure in survey else measure
        heading = Text(plain(measure), "bold underline")
        if title != measure:
            heading = Text.assemble(heading, (f"  {plain(title)}", "dim"))
        parts += [Text(""), heading, Padding(section_of(measure, survey), (0, 0, 0, 2))]
    parts += [Text(""), paths(survey)]
    return Group(*parts)


def console_for(stream: TextIO) -> Console:
    """A console that takes no text for markup, and does without colours where they are not wanted or cannot be shown."""
    terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    in_colour = terminal and not os.environ.get("NO_COLOR")
    return Console(
        file=stream,
        width=None if terminal else PLAIN_WIDTH,
        color_system="auto" if in_colour else None,
        no_color=not in_colour,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )

"""How far a run is: a bar with the time left on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SECONDS_BETWEEN_LINES = 10.0


class ProgressReport:
    """Called with what is done and how much there is; a context manager that leaves the terminal clean.

    It writes to stderr, so that stdout carries results only.
    """

    def __init__(self, title: str, *, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.title = title
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._begun = time.monotonic()
        self._last_line = -SECONDS_BETWEEN_LINES
        self._first_told: dict[str, tuple[float, int]] = {}

    def __enter__(self) -> ProgressReport:
        if not self.quiet and self.stream.isatty():
            self._bar = _bar(self.stream)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, line: str) -> None:
        """A line of its own, above the bar."""
        if not self.quiet:
            self.stream.write(f"{line}\n")
            self.stream.flush()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Shows that ``done`` of ``total`` of a stage is done."""
        name = stage or self.title
        if self.quiet:
            return
        if self._bar is not None:
            key = name.partition(" (")[0]
            if key not in self._tasks:
                self._tasks[key] = self._bar.add_task(name, total=total)
            self._bar.update(self._tasks[key], description=name, completed=done, total=total)
            return
        now = time.monotonic()
        since, at_first = self._first_told.setdefault(name.partition(" (")[0], (now, done))
        if done >= total or now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            left = _time_left(now - since, done - at_first, total - done)
            self.stream.write(f"{name}: {done} of {total} after {now - self._begun:.0f} s{left}\n")
            self.stream.flush()


def _time_left(seconds: float, done: int, left: int) -> str:
    """How long the rest takes at the pace so far; empty when there is no pace or no rest."""
    if done <= 0 or left <= 0:
        return ""
    remaining = seconds / done * left
    return f", about {remaining:.0f} s left" if remaining < 120 else f", about {remaining / 60:.0f} min left"


def _bar(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(file=stream), transient=True)

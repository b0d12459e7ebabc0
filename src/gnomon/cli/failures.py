"""What users read when something goes wrong: one sentence on stderr, and an exit code that scripts can use.

Every error that gnomon raises on purpose already is such a sentence. Memory, disk, files and Ctrl-C come from outside and are put
into words here. Whatever is left is a fault of gnomon's own: it is named in one line with where to report it. ``GNOMON_DEBUG=1``
shows tracebacks instead.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

import typer

from gnomon.errors import GnomonError

P = ParamSpec("P")
R = TypeVar("R")
Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]

INTERRUPTED = 130
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """The same command, whose known failures end in one sentence and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except KeyboardInterrupt as stop:
            if debugging():
                raise
            typer.echo("\ngnomon: interrupted; the same command resumes.", err=True)
            raise typer.Exit(INTERRUPTED) from stop
        except BrokenPipeError as closed:
            # The reader has what it wanted; stdout must not be flushed into the closed pipe at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from closed
        except (GnomonError, MemoryError, OSError, RuntimeError) as error:
            known = sentence(error)
            if known is None or debugging():
                raise
            typer.echo(f"gnomon: {known}", err=True)
            raise typer.Exit(getattr(error, "exit_code", 1)) from error

    return run


def sentence(error: BaseException) -> str | None:
    """What to tell the user, or ``None`` for an error that is not known."""
    if isinstance(error, GnomonError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(word in str(error) for word in OUT_OF_MEMORY)):
        return "memory must hold the model and one batch, but it ran out; use a smaller `--batch-size`, `--length` or model."
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" that holds {error.filename}" if error.filename else ""
        return f"the disk{where} must have space left, but it is full; free some and run the same command again."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'a file'} must be usable, got '{error.strerror}'; check the path and its permissions."
    return None


def quiet_unexpected(otherwise: Hook) -> Hook:
    """A hook for errors that nobody foresaw: one line and no traceback, unless asked for."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> object:
        if debugging():
            return otherwise(kind, error, trace)
        text = " ".join(str(error).split())
        sys.stderr.write(
            f"gnomon: a fault of gnomon's own ({kind.__name__}: {text}); GNOMON_DEBUG=1 shows where, please report it.\n"
        )
        return None

    return hook


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get("GNOMON_DEBUG", "") not in ("", "0")

"""Reading with transformers: what it may raise, what to quote of it, and how to keep its chatter off the terminal."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from types import TracebackType
from typing import Final

from huggingface_hub.errors import HfHubHTTPError, StrictDataclassError
from safetensors import SafetensorError
from transformers.utils import logging as transformers_logging

from gnomon.errors import GnomonError

_log = logging.getLogger(__name__)

READ_FAILURES: Final[tuple[type[Exception], ...]] = (
    OSError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    RuntimeError,
    ImportError,
    NotImplementedError,
    MemoryError,
    SafetensorError,
    StrictDataclassError,
    *(base for base in HfHubHTTPError.__mro__ if issubclass(base, Exception) and base.__name__ == "HTTPError"),
)
"""What damaged, missing or foreign files make transformers and its readers raise."""


class Translated:
    """A context in which what a reader raises becomes an error of ours.

    An ``__exit__`` instead of an ``except``, because tokenizers raises bare ``Exception`` and nothing broader than that may be caught.
    """

    def __init__(self, explain: Callable[[BaseException], GnomonError]) -> None:
        self.explain = explain

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Raises the explanation in place of a reader's failure; lets everything else through."""
        if error is None or isinstance(error, GnomonError):
            return
        if type(error) is Exception or isinstance(error, READ_FAILURES):
            raise self.explain(error) from error


def reason_of(error: BaseException) -> str:
    """What a reader said, short enough for a sentence: its first line, and the second where the first only introduces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines[:2]) if lines and lines[0].endswith(":") else lines[0] if lines else type(error).__name__
    return said[:240].rstrip(".")


@contextmanager
def quiet() -> Iterator[None]:
    """Silences transformers for a while; what it wrote to the terminal goes to the log at level debug."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    written = io.StringIO()
    transformers_logging.set_verbosity(logging.CRITICAL)
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(), redirect_stderr(written):
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
        if written.getvalue().strip():
            _log.debug("transformers wrote: %s", written.getvalue().strip()[-2000:])

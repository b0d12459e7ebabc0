"""Survey a transformer language model and see where its sense of position comes from.

>>> import gnomon
>>> survey = gnomon.survey("smollm2-135m", out="runs/first")  # doctest: +SKIP
>>> survey["sinks"]  # doctest: +SKIP

Names are loaded when they are first used, so that ``import gnomon`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gnomon.errors import GnomonError
from gnomon.version import __version__

if TYPE_CHECKING:
    from gnomon.report.plot import Plot as Plot
    from gnomon.result import Survey
    from gnomon.result import open_run as open
    from gnomon.study.opening import open_model as load
    from gnomon.study.survey import survey

__all__ = ["GnomonError", "Survey", "__version__", "load", "open", "survey"]

_LAZY = {
    "Plot": "gnomon.report.plot:Plot",
    "Survey": "gnomon.result:Survey",
    "load": "gnomon.study.opening:open_model",
    "open": "gnomon.result:open_run",
    "survey": "gnomon.study.survey:survey",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gnomon' has no attribute {name!r}; it has {', '.join(__all__)}")
    module, _, attribute = _LAZY[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

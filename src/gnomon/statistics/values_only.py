"""Leaving out what only bounds need.

Where a statistic is computed many times over parts of a sample (:mod:`gnomon.statistics.replicates`), its spread comes from those many values,
and resampling within each of them would be thrown away. Within :func:`values_only` nothing is resampled: values are the same, bounds are NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_values_only: ContextVar[bool] = ContextVar("gnomon_values_only", default=False)


@contextmanager
def values_only() -> Iterator[None]:
    """Within it nothing is resampled."""
    token = _values_only.set(True)
    try:
        yield
    finally:
        _values_only.reset(token)


def wants_values_only() -> bool:
    """Whether bounds and draws of nulls are to be left out here."""
    return _values_only.get()

"""Attention of known kind, to calibrate the labels of :mod:`gnomon.measure.kinds` and to draw them.

Each builder returns rows ``[n, n]`` that sum to one over the keys that a query sees, causal or not. Frames put a share ``mass`` of every row on their
anchors (weights Dirichlet around equal shares) and the rest on a mixture of a local band and random weights, as real heads do; the frameless kinds are uniform, local and
Dirichlet rows. Nothing here looks at a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pattern:
    """One constructed attention matrix and what it is."""

    kind: str
    name: str
    causal: bool
    rows: Floats


def uniform(length: int, *, causal: bool) -> Floats:
    """Every visible key alike: ``1 / (i + 1)`` under a causal mask."""
    return _normalised(np.ones((length, length)), causal)


def local_band(length: int, width: int, *, causal: bool) -> Floats:
    """Equal weights within ``width`` tokens, none beyond."""
    offset = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return _normalised((offset < width).astype(float), causal)


def dirichlet(length: int, concentration: float, generator: np.random.Generator, *, causal: bool) -> Floats:
    """Independent random rows."""
    draws = generator.gamma(concentration, size=(length, length)) + 1e-300
    return _normalised(draws, causal)


def framed(
    length: int, places: list[int], shares: Floats, mass: float, generator: np.random.Generator, *, causal: bool
) -> Floats:
    """A share ``mass`` of every row on the visible ones of ``places``, divided as ``shares``; the rest local and random."""
    rest = 0.5 * local_band(length, max(2, length // 16), causal=causal) + 0.5 * dirichlet(length, 1.0, generator, causal=causal)
    target = np.zeros((length, length))
    target[:, places] = shares
    if causal:
        target = np.tril(target)
    seen = target.sum(1, keepdims=True)
    return np.asarray(target * mass + (1 - mass * seen) * rest)


def shuffled(rows: Floats, generator: np.random.Generator, *, causal: bool) -> Floats:
    """The same weights in every row at other places among the keys that its query sees."""
    seen = np.tril(np.ones_like(rows, dtype=bool)) if causal else np.ones_like(rows, dtype=bool)
    order = np.argsort(np.where(seen, generator.random(rows.shape), 2.0), axis=1)
    return np.where(seen, np.take_along_axis(rows, order, axis=1), 0.0)


def constructed(length: int, seed: int, *, causal: bool) -> list[Pattern]:
    """One draw of every kind at a length: stars, several stars, two ends (where ends are visible), and attention without a frame."""
    generator = np.random.default_rng([seed, length, int(causal)])
    reach = max(2, length // 3)

    def star() -> Floats:
        place = 0 if generator.random() < 0.5 else int(generator.integers(0, reach))
        return framed(length, [place], np.ones(1), generator.uniform(0.35, 0.95), generator, causal=causal)

    def stars() -> Floats:
        most = 2 if length < 16 else min(6, length // 8 + 1)
        number = int(generator.integers(2, most + 1))
        places = generator.choice(reach if causal else np.arange(1, length - 1), size=number, replace=False)
        shares = generator.dirichlet(np.full(number, 50.0))
        return framed(length, list(places), shares, generator.uniform(0.5, 0.95), generator, causal=causal)

    def ends() -> Floats:
        shares = generator.dirichlet(np.full(2, 30.0))
        return framed(length, [0, length - 1], shares, generator.uniform(0.4, 0.95), generator, causal=causal)

    makers: dict[str, tuple[str, Callable[[], Floats]]] = {
        "star": ("centralized", star),
        "several stars": ("distributed", stars),
        "uniform": ("none", lambda: uniform(length, causal=causal)),
        "local band": ("none", lambda: local_band(length, int(generator.integers(2, max(3, length // 4) + 1)), causal=causal)),
        "Dirichlet 0.03": ("none", lambda: dirichlet(length, 0.03, generator, causal=causal)),
        "Dirichlet 0.3": ("none", lambda: dirichlet(length, 0.3, generator, causal=causal)),
        "Dirichlet 1": ("none", lambda: dirichlet(length, 1.0, generator, causal=causal)),
        "Dirichlet 3": ("none", lambda: dirichlet(length, 3.0, generator, causal=causal)),
    }
    makers["shuffled star"] = ("none", lambda: shuffled(star(), generator, causal=causal))
    if not causal:
        makers["two ends"] = ("bidirectional", ends)
    return [Pattern(kind, name, causal, make()) for name, (kind, make) in makers.items()]


LENGTHS: Final = (8, 12, 16, 24, 32, 48, 64, 128, 256)


def _normalised(weights: Floats, causal: bool) -> Floats:
    kept = np.tril(weights) if causal else weights
    return np.asarray(kept / kept.sum(1, keepdims=True))

"""Figures of position 0 through the layers: the same alone and in context, and a fingerprint of its token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from gnomon.dims import LAYER, LEVEL
from gnomon.report.figures.kinds import Axis, Curves, Figure, Line
from gnomon.report.figures.reading import line

if TYPE_CHECKING:
    import xarray as xr

ACCURACY: Final = Axis(label="accuracy", low=0.0, high=1.0)
LEVELS: Final = Axis(label="level (0: embedding)", whole=True)
LAYERS: Final = Axis(label="layer", whole=True)
ALONE: Final = (
    "Position 0 alone against position 0 in context: nothing but rounding where a causal mask makes it a closed system."
)


def trajectory_figures(dataset: xr.Dataset) -> list[Figure]:
    """Deviation, fingerprint accuracy, and spread within and between tokens."""
    levels = {"hidden": "position 0", "later": "later positions"}
    layers = {"key": "keys of position 0", "value": "values of position 0"}
    found = (
        _curves(
            dataset,
            "trajectory-deviation",
            "Deviation of keys and values, alone against in context",
            LAYER,
            "deviation",
            layers,
            Axis(label="relative deviation"),
            ALONE,
        ),
        _curves(
            dataset,
            "trajectory-accuracy",
            "Naming the token at position 0 from hidden states",
            LEVEL,
            "accuracy",
            levels,
            ACCURACY,
        ),
        _curves(
            dataset,
            "trajectory-accuracy-layer",
            "Naming the token at position 0 from keys and values",
            LAYER,
            "accuracy",
            layers,
            ACCURACY,
        ),
        _spread(dataset),
        _similarity(dataset),
    )
    return [figure for figure in found if figure is not None]


def _curves(
    dataset: xr.Dataset, key: str, title: str, along: str, what: str, names: dict[str, str], y: Axis, note: str = ""
) -> Curves | None:
    lines = [line(dataset, f"{name}_{what}", along, label=words) for name, words in names.items()]
    return _made(dataset, key, title, along, lines, y, note)


def _spread(dataset: xr.Dataset) -> Curves | None:
    lines = [
        line(dataset, "hidden_between", LEVEL, label="between tokens"),
        line(dataset, "hidden_within", LEVEL, label="within a token, over contexts"),
    ]
    return _made(dataset, "trajectory-spread", "Spread of the hidden state at position 0", LEVEL, lines, Axis(label="spread"))


def _similarity(dataset: xr.Dataset) -> Curves | None:
    lines = [line(dataset, "cosine_to_final", LEVEL, label="cosine")]
    y = Axis(label="cosine", high=1.0)
    return _made(dataset, "trajectory-cosine", "Hidden state at position 0 against its last level", LEVEL, lines, y)


def _made(
    dataset: xr.Dataset, key: str, title: str, along: str, lines: list[Line | None], y: Axis, note: str = ""
) -> Curves | None:
    kept = tuple(found for found in lines if found is not None)
    if not kept:
        return None
    at = np.arange(dataset.sizes[along], dtype=np.float64)
    return Curves(key=key, title=title, x=LEVELS if along == LEVEL else LAYERS, y=y, at=at, lines=kept, note=note)

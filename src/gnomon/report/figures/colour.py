"""Colour scales along which equal steps look equal, also to the colour-blind, on paper and on a dark screen.

A scale is drawn in OKLab, a space whose distances follow perceived differences (Björn Ottosson, 2020): lightness changes by equal steps from one
end to the other and never turns back, so that the order of values survives any colour vision and a grey printer. The sequential scale runs
over gold and red to violet; on a dark page it runs the other way, so that more is always further from the page. The diverging scale leaves a
neutral middle towards blue and orange, hues that the common colour deficiencies keep apart.

Categories are those of Okabe and Ito, with grey for "none".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Theme = Literal["light", "dark"]
STEPS: Final = 64
MISSING: Final = {"light": "#c9c9c4", "dark": "#55565a"}
CATEGORIES: Final = ("#8a8a86", "#0072b2", "#e69f00", "#cc79a7", "#009e73", "#d55e00", "#56b4e9", "#b8a800")
LINES: Final = {
    "light": ("#0067a5", "#c24e00", "#00805d", "#a8527f", "#8a6d00", "#3a3a8c", "#5c5c58", "#b3123f"),
    "dark": ("#6cbcf0", "#ff9a52", "#3fcfa5", "#ee9cc6", "#e3c34a", "#a9a6ff", "#b9b9b3", "#ff7d9c"),
}

# Hue in degrees and chroma along the sequential scale, from the light end to the dark end.
_HUE: Final = (98.0, 82.0, 60.0, 34.0, 8.0, -24.0, -58.0, -72.0)
_CHROMA: Final = (0.025, 0.085, 0.13, 0.155, 0.155, 0.14, 0.12, 0.085)
_ENDS: Final = {"light": (0.965, 0.27), "dark": (0.95, 0.235)}
_SIDES: Final = {"below": 250.0, "above": 55.0}


@lru_cache
def sequential(theme: Theme = "light", steps: int = STEPS) -> tuple[str, ...]:
    """Hexadecimal colours from low to high."""
    place = np.linspace(0, 1, steps)
    light, dark = _ENDS[theme]
    knots = np.linspace(0, 1, len(_HUE))
    lightness = light + (dark - light) * place
    table = _hex(lightness, np.interp(place, knots, _CHROMA), np.interp(place, knots, _HUE))
    return table if theme == "light" else table[::-1]


@lru_cache
def diverging(theme: Theme = "light", steps: int = STEPS + 1) -> tuple[str, ...]:
    """Hexadecimal colours from far below to far above, neutral in the middle."""
    place = np.linspace(-1, 1, steps)
    away = np.abs(place)
    start, end = (0.96, 0.42) if theme == "light" else (0.3, 0.82)
    hue = np.where(place < 0, _SIDES["below"], _SIDES["above"])
    return _hex(start + (end - start) * away, 0.145 * away**0.8, hue)


def colour_at(value: float, low: float, high: float, table: tuple[str, ...], missing: str) -> str:
    """The colour of a value between ``low`` and ``high``; ``missing`` where it is not finite."""
    if not np.isfinite(value):
        return missing
    place = (value - low) / (high - low) if high > low else 0.0
    return table[round(min(max(place, 0.0), 1.0) * (len(table) - 1))]


def lightness(colour: str) -> float:
    """OKLab lightness of a hexadecimal colour, 0 black to 1 white."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = np.array([part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)])
    return float(np.cbrt(linear @ _TO_CONES.T) @ np.array([0.2104542553, 0.7936177850, -0.0040720468]))


_TO_CONES: Final = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)


def _hex(lightness: NDArray[np.float64], chroma: NDArray[np.float64], hue: NDArray[np.float64]) -> tuple[str, ...]:
    """OKLCH to hexadecimal sRGB; chroma is lowered until a colour fits the gamut, so that lightness stays what it was."""
    angle = np.deg2rad(hue)
    chroma = chroma.copy()
    for _ in range(60):
        rgb = _linear(lightness, chroma * np.cos(angle), chroma * np.sin(angle))
        outside = ((rgb < -1e-6) | (rgb > 1 + 1e-6)).any(-1)
        if not outside.any():
            break
        chroma = np.where(outside, chroma * 0.96, chroma)
    rgb = np.clip(rgb, 0, 1)
    encoded = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055)
    return tuple("#{:02x}{:02x}{:02x}".format(*row) for row in np.round(encoded * 255).astype(int))


def _linear(lightness: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    cones = np.stack(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.2914855480 * b,
        ],
        -1,
    )
    return np.asarray((cones**3) @ np.linalg.inv(_TO_CONES).T)

"""A scale of colours along which equal steps look equal, from dark to light, readable also by the colour-blind.

The anchors are viridis, by Nathaniel Smith and Stéfan van der Walt, who placed it in the public domain; between two anchors
colours are mixed linearly, which errs by less than one part in a hundred.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

ANCHORS: Final = np.array(
    [
        (68, 1, 84),
        (72, 26, 108),
        (71, 47, 125),
        (65, 68, 135),
        (57, 86, 140),
        (49, 104, 142),
        (42, 120, 142),
        (35, 136, 142),
        (31, 152, 139),
        (34, 168, 132),
        (53, 183, 121),
        (84, 197, 104),
        (122, 209, 81),
        (165, 219, 54),
        (210, 226, 27),
        (253, 231, 37),
    ],
    dtype=np.float64,
)
MISSING: Final = (128, 128, 128)


def colours(values: NDArray[np.floating], low: float, high: float) -> NDArray[np.uint8]:
    """Red, green and blue of each value between ``low`` and ``high``, ``[..., 3]``; grey where there is no value."""
    values = np.asarray(values, dtype=np.float64)
    missing = ~np.isfinite(values)
    place = np.clip((np.where(missing, low, values) - low) / max(high - low, np.finfo(float).tiny), 0, 1) * (len(ANCHORS) - 1)
    out = np.stack([np.interp(place, np.arange(len(ANCHORS)), channel) for channel in ANCHORS.T], axis=-1)
    out[missing] = MISSING
    return out.round().astype(np.uint8)

"""The parts of positional leakage: logits, log-denominators, their covariance, and a two by two that isolates the mask.

At a fixed offset d the log-weight is ``log a[i, i-d] = s[i, i-d] - Z[i]``, so that over the positions i of a band

    total = residual + mask - 2 covariance
    total      = V(E log a)     position that attention shows
    residual   = V(E s)         position that queries and keys carry (A4)
    mask       = V(E Z)         position that the denominator carries (A3)
    covariance = C(E s, E Z)

exactly, with the unbiased V and C of :mod:`gnomon.measure.leakage_variance`. ``V(E Z)`` moves for two reasons, the
number of keys and what the logits are; the counterfactuals of :mod:`gnomon.measure.leakage_logits` part them, by
offset and head:

    ==================  =======================  =============================
    variance of E log a  own number of keys       the same number of keys
    ==================  =======================  =============================
    logits as they are   total                    ``residual_alone``
    stationary logits    ``mask_alone``           0
    ==================  =======================  =============================

    mask_effect     = (mask_alone + total - residual_alone) / 2
    residual_effect = (residual_alone + total - mask_alone) / 2
    interaction     =  total - mask_alone - residual_alone

Effects of the two by two add up as ``mask_effect + residual_effect = total``. Claims A2 to A4, A7.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnomon.measure.leakage_grid import LeakageGrid
from gnomon.measure.leakage_variance import Bools, Floats, centred, position_covariance, random_signs, reflected_variances
from gnomon.statistics.jackknife import Jackknifed, nan_mean

COMPONENTS = ("total", "residual", "mask", "covariance")
CORNERS = ("mask_alone", "residual_alone", "mask_effect", "residual_effect", "interaction")
TESTED = ("total", "residual", "mask")
MIN_SEQUENCES = 4
NUM_DRAWS = 299

Stored = NDArray[np.floating]


class LeakageArrays(NamedTuple):
    """What was observed, first axis the sequence.

    Attributes:
        logit: ``[sequence, layer, head, query, offset]``.
        log_denominator: ``[sequence, layer, head, query]``.
        stationary: log-denominators with stationary logits.
        fixed: log-denominators with a fixed number of keys.
    """

    logit: Stored
    log_denominator: Stored
    stationary: Stored
    fixed: Stored

    def complete(self, queries: NDArray[np.int64]) -> Bools:
        """Sequences that reach every one of ``queries``."""
        return np.asarray(np.isfinite(self.log_denominator[:, :, :, queries]).all((1, 2, 3)))

    def complete_counterfactual(self, queries: NDArray[np.int64], layer: int) -> Bools:
        """Sequences whose counterfactuals of a layer are known at every one of ``queries``."""
        parts = (self.log_denominator, self.stationary, self.fixed)
        return np.asarray(np.logical_and.reduce([np.isfinite(part[:, layer][:, :, queries]).all((1, 2)) for part in parts]))


class Profiles(NamedTuple):
    """Centred profiles of one layer and band, ``[sequence, head, offset, position]``, and the positions that count."""

    logit: Floats
    log_denominator: Floats
    used: Bools


def layer_profiles(logit: Stored, log_denominator: Stored) -> Profiles:
    """Centred profiles from ``[sequence, head, query, offset]`` and ``[sequence, head, query]`` of one band."""
    series = np.moveaxis(np.asarray(logit, np.float64), -1, -2)
    used = np.asarray(np.isfinite(series).all(0))
    below = np.broadcast_to(np.asarray(log_denominator, np.float64)[:, :, None], series.shape)
    return Profiles(centred(series, used), centred(below, used), used)


def band_components(arrays: LeakageArrays, grid: LeakageGrid, band: int) -> dict[str, Jackknifed] | None:
    """The four components of one band, ``[layer, head, offset]`` each; ``None`` with too few complete sequences."""
    queries = grid.of_band(band)
    chosen = arrays.complete(queries)
    if chosen.sum() < MIN_SEQUENCES or not len(queries):
        return None
    layers = []
    for layer in range(arrays.logit.shape[1]):
        logit, below, used = layer_profiles(
            arrays.logit[chosen, layer][:, :, queries], arrays.log_denominator[chosen, layer][:, :, queries]
        )
        log_weight = logit - below
        layers.append(
            {
                "total": position_covariance(log_weight, log_weight, used),
                "residual": position_covariance(logit, logit, used),
                "mask": position_covariance(below, below, used),
                "covariance": position_covariance(logit, below, used),
            }
        )
    return {name: stack_layers([parts[name] for parts in layers]) for name in COMPONENTS}


def band_corners(arrays: LeakageArrays, grid: LeakageGrid, band: int, layer: int) -> dict[str, Jackknifed] | None:
    """The two by two of one band and layer, ``[head, offset]`` each; ``None`` where the counterfactuals are not known."""
    queries = grid.of_band(band)
    chosen = arrays.complete_counterfactual(queries, layer)
    if chosen.sum() < MIN_SEQUENCES or not len(queries):
        return None
    logit, below, used = layer_profiles(
        arrays.logit[chosen, layer][:, :, queries], arrays.log_denominator[chosen, layer][:, :, queries]
    )

    def variance(profiles: Floats) -> Jackknifed:
        return position_covariance(profiles, profiles, used)

    def centred_part(part: Stored) -> Floats:
        series = np.asarray(part[chosen, layer][:, :, None, queries], np.float64)
        return centred(np.broadcast_to(series, logit.shape), used)

    total = variance(logit - below)
    mask_alone = variance(centred_part(arrays.stationary))
    residual_alone = variance(logit - centred_part(arrays.fixed))
    return {
        "mask_alone": mask_alone,
        "residual_alone": residual_alone,
        "mask_effect": (mask_alone + total - residual_alone) * 0.5,
        "residual_effect": (residual_alone + total - mask_alone) * 0.5,
        "interaction": total - mask_alone - residual_alone,
    }


def band_null(arrays: LeakageArrays, grid: LeakageGrid, band: int, *, seed: int, draws: int = NUM_DRAWS) -> dict[str, Floats]:
    """Draws of total, residual and mask when mean profiles are flat, mean over offsets: ``[draw, layer, head]`` each."""
    queries = grid.of_band(band)
    chosen = arrays.complete(queries)
    signs = random_signs(draws, int(chosen.sum()), seed)
    layers: dict[str, list[Floats]] = {name: [] for name in TESTED}
    for layer in range(arrays.logit.shape[1]):
        logit, below, used = layer_profiles(
            arrays.logit[chosen, layer][:, :, queries], arrays.log_denominator[chosen, layer][:, :, queries]
        )
        for name, profiles in {"total": logit - below, "residual": logit, "mask": below}.items():
            layers[name].append(nan_mean(reflected_variances(profiles, used, signs), (-1,)))
    return {name: np.stack(parts, axis=1) for name, parts in layers.items()}


def stack_layers(layers: list[Jackknifed]) -> Jackknifed:
    """A layer axis in front of the cells."""
    return Jackknifed(np.stack([part.value for part in layers]), np.stack([part.without for part in layers], axis=1))


def layer_mean(cells: Jackknifed) -> Jackknifed:
    """Mean over heads and offsets, ``[..., layer]`` from ``[..., layer, head, offset]``."""
    return cells.mean((-2, -1))


def model_mean(cells: Jackknifed) -> Jackknifed:
    """Mean over layers, heads and offsets that fit, a single number."""
    return cells.mean((-3, -2, -1))

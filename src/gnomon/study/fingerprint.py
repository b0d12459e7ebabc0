"""How well vectors tell which token they came from: spreads, nearest-centroid accuracy, principal coordinates.

For vectors ``x[k, m]`` of token k in context m, at one site and level, with ``x[k]`` the mean over contexts and ``x``
the mean over all:

- ``within = sqrt(mean |x[k, m] - x[k]|^2 * M / (M - 1)) / rms``, ``between = sqrt(mean |x[k] - x|^2) / rms``, where
  ``rms`` is the root mean square norm;
- ``accuracy``: contexts are left out in turn; each vector of the context left out is given to the nearest centroid of
  the others. Its interval resamples contexts. Chance is one over the number of tokens.
- ``coordinate``: the tokens' means on their two leading principal axes, ``coordinate_share`` the variance these explain.

At site ``later`` the mean over tokens is taken from each context first, since content differs far more between
contexts than the anchor makes a difference within one. Claim A9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import AXIS, LAYER, LEVEL, TOKEN
from gnomon.statistics import Interval, bootstrap_mean

Floats = NDArray[np.floating[Any]]
SITES = {"hidden": LEVEL, "key": LAYER, "value": LAYER, "later": LEVEL}
PAIRED = ("later",)


def fingerprint(sites: Mapping[str, Floats], *, seed: int = 0) -> xr.Dataset:
    """Spreads, accuracies and coordinates of every site, from ``[token, context, level, feature]``."""
    dataset = xr.Dataset()
    for site, dim in SITES.items():
        vectors = np.asarray(sites[site], dtype=np.float64)
        if site in PAIRED:
            vectors = vectors - vectors.mean(0, keepdims=True)
        within, between = spreads(vectors, np.asarray(sites[site], dtype=np.float64))
        dataset[f"{site}_within"] = ((dim,), within, {"long_name": f"spread over contexts of one token, {site}", "units": "1"})
        dataset[f"{site}_between"] = ((dim,), between, {"long_name": f"spread over tokens, {site}", "units": "1"})
        for suffix, values in zip(("", "_low", "_high"), accuracy(vectors, seed=seed), strict=True):
            meaning = {"long_name": f"accuracy of naming the token at position 0 by {site}", "units": "1"}
            dataset[f"{site}_accuracy{suffix}"] = ((dim,), values, meaning)
        coordinates, share = principal_coordinates(vectors.mean(1))
        meaning = {"long_name": f"principal coordinates of tokens, {site}", "units": "1"}
        dataset[f"{site}_coordinate"] = ((dim, TOKEN, AXIS), coordinates.astype(np.float32), meaning)
        dataset[f"{site}_coordinate_share"] = (
            (dim,),
            share,
            {"long_name": f"variance explained by two axes, {site}", "units": "1"},
        )
    tokens, contexts = sites["hidden"].shape[:2]
    dataset.attrs.update(chance=1 / tokens, num_tokens=tokens, num_contexts=contexts)
    return dataset


def spreads(vectors: Floats, raw: Floats) -> tuple[Floats, Floats]:
    """Within-token and between-token spread per level, relative to the norm of the raw vectors."""
    contexts = vectors.shape[1]
    rms = np.sqrt((raw**2).sum(-1).mean((0, 1)))
    centroids = vectors.mean(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = np.divide(contexts, contexts - 1.0) if contexts > 1 else np.nan
        within = np.sqrt(((vectors - centroids) ** 2).sum(-1).mean((0, 1)) * correction) / rms
        between = np.sqrt(((centroids - centroids.mean(0)) ** 2).sum(-1).mean((0, 1))) / rms
    return within, between


def accuracy(vectors: Floats, *, seed: int = 0) -> Interval:
    """Nearest-centroid accuracy per level with contexts left out in turn, ``[level]``; NaN with fewer than two tokens or contexts."""
    tokens, contexts, levels = vectors.shape[:3]
    if tokens < 2 or contexts < 2:
        missing = np.full(levels, np.nan)
        return Interval(missing, missing, missing)
    total = vectors.sum(1)
    right = np.empty((contexts, levels))
    for left_out in range(contexts):
        probe = np.moveaxis(vectors[:, left_out], 1, 0)
        centroids = np.moveaxis((total - vectors[:, left_out]) / (contexts - 1), 1, 0)
        squares = (centroids**2).sum(-1)[:, None] - 2 * probe @ centroids.swapaxes(1, 2)
        right[left_out] = (squares.argmin(-1) == np.arange(tokens)).mean(1)
    return bootstrap_mean(right, seed=seed)


def principal_coordinates(centroids: Floats) -> tuple[Floats, Floats]:
    """Coordinates ``[level, token, 2]`` and explained share ``[level]``, from ``[token, level, feature]``."""
    moved = np.moveaxis(centroids, 1, 0)
    left, singular, _ = np.linalg.svd(moved - moved.mean(1, keepdims=True), full_matrices=False)
    scores = left * singular[:, None]
    two = np.zeros((*scores.shape[:2], 2))
    two[..., : min(2, scores.shape[2])] = scores[..., :2]
    power = singular**2
    with np.errstate(divide="ignore", invalid="ignore"):
        share = power[:, :2].sum(1) / power.sum(1)
    return two, share

"""The headline numbers of the likelihood study, read off its dataset.

``correlation`` and what goes with it speak of the first reading (the published one for encoders), the mean over a word's tokens, inner
attention over all keys: ``correlation`` is the largest |rho| of any layer, ``correlation_p`` its p-value corrected for the search over
everything in the table, ``correlation_held_out`` what remains when the layer is chosen on other sentences, ``correlation_mean`` needs
no choice of layer. ``partial`` is at the same layer as ``correlation``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import xarray as xr

from gnomon.dims import CONDITION, LAYER
from gnomon.statistics import Estimate
from gnomon.study.likelihood.attention import CONDITIONS
from gnomon.study.likelihood.contrast import CONTROL
from gnomon.study.likelihood.reading import MASKED
from gnomon.study.likelihood.relation import READING

RELATION_KEYS: Final = (
    "correlation",
    "correlation_layer",
    "correlation_p",
    "correlation_held_out",
    "correlation_mean",
    "correlation_trend",
    "correlation_sinks_excluded",
    "correlation_masked",
    "partial",
    "partial_p",
    "partial_held_out",
    "partial_mean",
    "partial_trend",
    "probability",
)
CONTRAST_KEYS: Final = (
    "perturbed_lowest_minus_highest",
    "perturbed_lowest_minus_highest_matched",
    "perturbed_lowest_minus_highest_adjusted",
    "perturbed_lowest_minus_highest_sinks_excluded",
    "perturbed_lowest_minus_highest_relative",
    "perturbed_lowest_minus_highest_p",
    "perturbed_trend",
    "perturbed_trend_matched",
)
KEYS: Final = (*RELATION_KEYS, *CONTRAST_KEYS)


def headline(dataset: xr.Dataset) -> dict[str, Estimate]:
    """Estimates by key; all keys are always there."""
    reason = str(dataset.attrs.get("missing", ""))
    if reason:
        return {key: Estimate.missing(reason) for key in KEYS}
    found = {**_relation(dataset), **_contrast(dataset)}
    return {key: found[key] for key in KEYS}


def _relation(dataset: xr.Dataset) -> dict[str, Estimate]:
    n = dataset.sizes["sequence"]
    inner = dataset.sel(aggregate="mean", condition=CONDITIONS[0], mode="inner")
    first = inner.isel({READING: 0})
    strength = np.abs(first["correlation"].values)
    if not np.isfinite(strength).any():
        return {key: Estimate.missing("no layer's attention or no likelihood varies over sentences", n) for key in RELATION_KEYS}
    layer = int(np.nanargmax(strength))
    best = first.isel({LAYER: layer})
    excluded = dataset.sel(aggregate="mean", condition=CONDITIONS[1], mode="inner").isel({READING: 0, LAYER: layer})
    out = {
        "correlation_layer": Estimate(float(layer), n=n),
        "correlation_p": _point(best, "correlation_p", n),
        "correlation_sinks_excluded": _interval(excluded, "correlation", n),
        "partial_p": _point(best, "partial_p", n),
        "probability": _interval(dataset.isel({READING: 0}), "mean_probability", n),
    }
    for name in ("correlation", "partial"):
        out[name] = _interval(best, name, n)
        for part in ("held_out", "mean", "trend"):
            out[f"{name}_{part}"] = _interval(first, f"{name}_{part}", n)
    if MASKED in dataset[READING].values:
        hidden = inner.sel({READING: MASKED})
        strength = np.abs(hidden["correlation"].values)
        out["correlation_masked"] = _interval(hidden.isel({LAYER: int(np.nanargmax(np.nan_to_num(strength)))}), "correlation", n)
    else:
        out["correlation_masked"] = Estimate.missing("the model has no mask token, so there is no masked reading", n)
    return out


def _contrast(dataset: xr.Dataset) -> dict[str, Estimate]:
    if "contrast_mean" not in dataset:
        reason = str(dataset.attrs.get("missing_contrast", "words were not replaced"))
        return {key: Estimate.missing(reason) for key in CONTRAST_KEYS}
    n = int(dataset.attrs["replaced_sentences"])
    whole = dataset.sel({CONDITION: CONDITIONS[0]})
    name = "perturbed_lowest_minus_highest"
    mean = {control: _interval(whole.sel({CONTROL: control}), "contrast_mean", n) for control in ("plain", "matched", "adjusted")}
    base = float(whole["inner"].mean())
    smallest = float(whole["contrast_p"].sel({CONTROL: "plain"}).min())
    return {
        name: mean["plain"],
        f"{name}_matched": mean["matched"],
        f"{name}_adjusted": mean["adjusted"],
        f"{name}_sinks_excluded": _interval(dataset.sel({CONDITION: CONDITIONS[1], CONTROL: "plain"}), "contrast_mean", n),
        f"{name}_relative": _share(mean["plain"], base),
        f"{name}_p": Estimate(smallest, n=n) if np.isfinite(smallest) else Estimate.missing("too few replaced sentences", n),
        "perturbed_trend": _interval(whole.sel({CONTROL: "plain"}), "contrast_trend", n),
        "perturbed_trend_matched": _interval(whole.sel({CONTROL: "matched"}), "contrast_trend", n),
    }


def _share(estimate: Estimate, base: float) -> Estimate:
    """An estimate as a share of ``base``, which is taken as known."""
    return estimate._replace(value=estimate.value / base, low=estimate.low / base, high=estimate.high / base)


def _interval(dataset: xr.Dataset, name: str, n: int) -> Estimate:
    value, low, high = (float(dataset[name + suffix]) for suffix in ("", "_low", "_high"))
    return Estimate(value, low, high, n) if np.isfinite(value) else Estimate.missing(_why(name), n)


def _point(dataset: xr.Dataset, name: str, n: int) -> Estimate:
    value = float(dataset[name])
    return Estimate(value, n=n) if np.isfinite(value) else Estimate.missing(_why(name), n)


def _why(name: str) -> str:
    if name.endswith("trend"):
        return "the model has one layer, or a layer has no value"
    return "too few sentences, or no spread in attention or likelihood"

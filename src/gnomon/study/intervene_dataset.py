"""The labelled form of the intervention experiment: every condition beside the unchanged model, with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.corpus import Windows
from gnomon.dims import CONDITION, HEAD, LAYER, QUERY_BAND
from gnomon.measure.leakage_components import band_components, layer_mean, model_mean
from gnomon.measure.leakage_grid import BANDS, leakage_grid
from gnomon.statistics import Interval, bootstrap_mean, resample_counts
from gnomon.statistics.bootstrap import CONFIDENCE
from gnomon.statistics.jackknife import Jackknifed
from gnomon.study.conditions import Arrays, leakage_arrays, removed

Floats = NDArray[np.floating]
BOUNDS = ("", "_low", "_high")
COMPONENTS = ("residual", "mask", "total")
SINK_MASS = 0.3
UNCHANGED = "none"
BAND, LAYERED, WHOLE = (CONDITION, QUERY_BAND), (CONDITION, LAYER, QUERY_BAND), (CONDITION,)
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    **{name: (BAND, f"{name} component of leakage", "nat^2") for name in COMPONENTS},
    **{f"layer_{name}": (LAYERED, f"{name} component of leakage by layer", "nat^2") for name in COMPONENTS},
    **{f"removed_{name}": (BAND, f"fraction of the {name} component removed", "1") for name in COMPONENTS},
    **{f"change_{name}": (BAND, f"change of the {name} component", "nat^2") for name in COMPONENTS},
    "beyond_control": (BAND, "fraction of the residual component removed beyond the control", "1"),
    "loss": (WHOLE, "loss of the next token", "nat"),
    "loss_change": (WHOLE, "change of the loss", "nat"),
    "sink_mass": (WHOLE, "weight on position 0, mean over heads", "1"),
    "sink_mass_change": (WHOLE, "change of the weight on position 0", "1"),
    "sink_share": (WHOLE, f"share of heads with more than {SINK_MASS} on position 0", "1"),
}
Parts = list[dict[str, Jackknifed] | None]


def intervention_dataset(
    runs: Mapping[str, Arrays], windows: Windows, controls: Mapping[str, str | None], *, seed: int = 0
) -> xr.Dataset:
    """All conditions, the unchanged one first.

    Args:
        runs: what :func:`gnomon.study.conditions.observe_under` returned, by label; ``none`` is the unchanged model.
        windows: the text.
        controls: label of each condition's control, if it has one.
        seed: of the resampling.
    """
    labels = list(runs)
    _, layers, heads = runs[UNCHANGED]["mass"].shape
    sizes = {CONDITION: len(labels), QUERY_BAND: len(BANDS), LAYER: layers}
    arrays = {
        name + bound: np.full([sizes[dim] for dim in dims], np.nan)
        for name, (dims, _, _) in VARIABLES.items()
        for bound in BOUNDS
    }
    components = {label: _components(run, windows) for label, run in runs.items()}
    for place, label in enumerate(labels):
        _put_components(arrays, place, components, label, controls.get(label))
        _put_sequences(arrays, place, runs[label], runs[UNCHANGED], changed=label != UNCHANGED, seed=seed)
    dataset = xr.Dataset(
        {
            name + bound: (dims, arrays[name + bound], {"long_name": meaning, "units": units})
            for name, (dims, meaning, units) in VARIABLES.items()
            for bound in BOUNDS
        },
        coords={
            CONDITION: labels,
            QUERY_BAND: list(BANDS),
            LAYER: np.arange(layers),
            HEAD: np.arange(heads),
            "control": (CONDITION, [controls.get(label) or "" for label in labels]),
        },
    )
    mass = np.stack([_sequence_mean(runs[label]["mass"]) for label in labels]).astype(np.float32)
    dataset["head_mass"] = ((CONDITION, LAYER, HEAD), mass, {"long_name": "mean weight on position 0", "units": "1"})
    dataset["num_sequences"] = ((), len(windows), {"long_name": "sequences", "units": "1"})
    dataset.attrs.update(_reasons(components[UNCHANGED]))
    return dataset


def _components(run: Arrays, windows: Windows) -> Parts:
    grid = leakage_grid(windows)
    return [band_components(leakage_arrays(run), grid, band) for band in range(len(BANDS))]


def _put_components(
    arrays: Mapping[str, Floats], place: int, components: Mapping[str, Parts], label: str, control: str | None
) -> None:
    for band, (parts, unchanged) in enumerate(zip(components[label], components[UNCHANGED], strict=True)):
        if parts is None or unchanged is None:
            continue
        for name in COMPONENTS:
            _put(arrays, name, (place, band), model_mean(parts[name]).interval())
            _put(arrays, f"layer_{name}", (place, slice(None), band), layer_mean(parts[name]).interval())
            if label != UNCHANGED:
                _put(arrays, f"change_{name}", (place, band), (model_mean(parts[name]) - model_mean(unchanged[name])).interval())
                gone = removed(model_mean(parts[name]), model_mean(unchanged[name]))
                if gone is not None:
                    _put(arrays, f"removed_{name}", (place, band), gone.interval())
        others = None if control is None else components[control][band]
        if others is not None:
            gone = removed(model_mean(parts["residual"]), model_mean(unchanged["residual"]))
            by_control = removed(model_mean(others["residual"]), model_mean(unchanged["residual"]))
            if gone is not None and by_control is not None:
                _put(arrays, "beyond_control", (place, band), (gone - by_control).interval())


def _put_sequences(arrays: Mapping[str, Floats], place: int, run: Arrays, unchanged: Arrays, *, changed: bool, seed: int) -> None:
    """Loss and sinks, one value per sequence, changes sequence by sequence."""
    values = {"loss": (run["loss"], unchanged["loss"]), "sink_mass": (_head_mean(run["mass"]), _head_mean(unchanged["mass"]))}
    for name, (own, base) in values.items():
        _put(arrays, name, (place,), bootstrap_mean(own, seed=seed))
        if changed:
            _put(arrays, f"{name}_change", (place,), bootstrap_mean(own - base, seed=seed))
    _put(arrays, "sink_share", (place,), share_above(run["mass"], SINK_MASS, seed=seed))


def share_above(mass: Floats, threshold: float, *, seed: int = 0) -> Interval:
    """Share of heads whose mean over sequences exceeds a threshold, from ``[sequence, layer, head]``, with a percentile interval."""
    reached = mass[np.isfinite(mass).all((1, 2))].reshape(-1, mass.shape[1] * mass.shape[2]).astype(np.float64)
    nothing = np.asarray(np.nan)
    if not len(reached):
        return Interval(nothing, nothing, nothing)
    value = np.asarray((reached.mean(0) > threshold).mean())
    if len(reached) < 3:
        return Interval(value, nothing, nothing)
    shares = (resample_counts(len(reached), seed=seed) @ reached / len(reached) > threshold).mean(1)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(shares, [tail, 100 - tail])
    return Interval(value, np.asarray(low), np.asarray(high))


def _head_mean(mass: Floats) -> Floats:
    return np.where(np.isfinite(mass).all((1, 2)), np.nan_to_num(mass).mean((1, 2)), np.nan)


def _sequence_mean(mass: Floats) -> Floats:
    finite = np.isfinite(mass)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(finite, mass, 0).sum(0) / finite.sum(0)
    return mean


def _put(arrays: Mapping[str, Floats], name: str, place: tuple[int | slice, ...], interval: Interval) -> None:
    for bound, values in zip(BOUNDS, interval, strict=True):
        arrays[name + bound][place] = values


def _reasons(unchanged: Parts) -> dict[str, str]:
    out = {}
    for label, parts in zip(BANDS, unchanged, strict=True):
        if parts is None:
            out[f"missing_{label}"] = "too few sequences reach this band"
        elif not model_mean(parts["residual"]).interval().low > 0:
            out[f"missing_{label}"] = "the residual component of the unchanged model is not above zero in this band"
    return out

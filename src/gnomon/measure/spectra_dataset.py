"""From what was kept of each text to the labelled dataset of ``spectra``: head means, spreads over heads, correlations, tests.

Spreads over heads (mean, standard deviation, interquartile range) are taken of the text-averaged value of each head, and the correlation
between positional and spectral entropy over those averages too; over single texts it would be confounded with length. Everything over heads
is computed for all texts together, as published, and again for each stratum of length (powers of two), since no figure of the ``paper``
convention is free of length. Intervals resample texts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import FREQUENCY, HEAD, LAYER, POSITION, SCALE, SEQUENCE
from gnomon.measure import spectra_calibrated as calibrated
from gnomon.measure import spectra_paper as paper
from gnomon.measure.averaged import Averages, nan_mean
from gnomon.measure.protocol import Observed
from gnomon.measure.spectra_cells import NUM_FREQUENCIES, NUM_PLACES
from gnomon.statistics import Interval, bootstrap_mean, resample_counts
from gnomon.statistics.bootstrap import CONFIDENCE, MIN_SEQUENCES
from gnomon.statistics.values_only import wants_values_only

Floats = NDArray[np.floating]
SUMMARIES = ("mean", "standard_deviation", "interquartile_range")
NUM_RESAMPLES = 500
STRATUM = "length_stratum"
METRIC = "metric"
FEWEST_PERMUTATIONS = 19
SUMMARY = "summary"
STATISTIC = "statistic"
WINDOW = "window"
_UNITS = {"spectral_entropy": "nats", "positional_entropy": "nats"}
_HEAD = (LAYER, HEAD)


def spectra_dataset(observed: Observed, *, num_keys: int, num_permutations: int, min_length: int, seed: int) -> xr.Dataset:
    """The dataset of both conventions from everything that was kept."""
    kept, lengths = observed.layers, observed.subject.windows.lengths
    used = lengths >= min_length
    level = paper.deepest_level(int(lengths[used].min())) if used.any() else 0
    out = Averages(seed)
    _paper_per_head(out, kept, level)
    _paper_over_heads(out, kept, lengths, used, seed)
    rectangle_reasons = _calibrated(out, kept["rectangle"], lengths, num_keys, num_permutations, seed)
    attrs = {
        "lengths": _range_text(lengths[used]),
        "wavelet_level": level,
        "num_keys": num_keys,
        "num_permutations": num_permutations,
        "missing": "; ".join(filter(None, [_paper_reasons(kept, used, min_length), rectangle_reasons])) or "nothing",
    }
    frequencies = np.pi * (np.arange(NUM_FREQUENCIES) + 0.5) / NUM_FREQUENCIES
    coords = {
        FREQUENCY: (FREQUENCY, frequencies, {"long_name": "centre of the cell of frequency", "units": "radians per token"}),
        POSITION: (POSITION, (np.arange(NUM_PLACES) + 0.5) / NUM_PLACES, {"long_name": "share of the text", "units": "1"}),
        METRIC: list(paper.SCALARS),
        SUMMARY: list(SUMMARIES),
        STATISTIC: list(calibrated.STATISTICS),
        WINDOW: list(paper.WINDOWS),
        SCALE: [f"A{level}", *(f"D{depth}" for depth in range(level, 0, -1))] if level else [],
        "detail": [f"D{depth}" for depth in range(1, paper.DEEPEST_LEVEL + 1)],
        STRATUM: [label for label, _ in strata(lengths, used)],
    }
    return out.dataset(attrs, {name: value for name, value in coords.items() if _has_dim(out, name)})


def strata(lengths: NDArray[np.integer], used: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Strata of length by powers of two, ``("64-127", members)``, those that have texts."""
    powers = np.floor(np.log2(np.maximum(lengths, 1))).astype(int)
    return [(f"{1 << power}-{(2 << power) - 1}", used & (powers == power)) for power in np.unique(powers[used]).tolist()]


def over_heads(values: Floats, summarise: Callable[[Floats], Floats], *, seed: int) -> Interval:
    """A summary over heads of text means, its interval from resampled texts.

    Resampled means carry the noise of texts once more, which widens every spread over heads and weakens every correlation; the interval is
    therefore shifted by the mean of that bias.

    Args:
        values: ``[text, ..., heads]``, NaN where a text has none.
        summarise: maps text means ``[resample, ..., heads]`` to ``[resample, ...]``.
        seed: of the resampling.
    """
    flat = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    finite = np.isfinite(flat)
    counts = np.concatenate([np.ones((1, len(flat))), resample_counts(len(flat), num_resamples=NUM_RESAMPLES, seed=seed)])
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # a head without any value stays NaN
        means = (counts @ np.where(finite, flat, 0.0)) / (counts @ finite)
        drawn = summarise(means.reshape(len(counts), *values.shape[1:]))
        low, high = np.nanpercentile(drawn[1:], [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)], axis=0)
    shift = drawn[0] - drawn[1:].mean(0)
    few = len(flat) < MIN_SEQUENCES
    return Interval(drawn[0], np.where(few, np.nan, low + shift), np.where(few, np.nan, high + shift))


def spread(means: Floats) -> Floats:
    """Mean, standard deviation and interquartile range over the last axis, as a new last axis."""
    quantile = np.percentile if np.isfinite(means).all() else np.nanpercentile
    low, high = quantile(means, [25, 75], axis=-1)
    return np.stack([np.nanmean(means, -1), np.nanstd(means, -1), high - low], -1)


def correlation(means: Floats) -> Floats:
    """Pearson correlation over heads (last axis) between the two entries of the axis before it."""
    first, second = means[..., 0, :], means[..., 1, :]
    both = np.isfinite(first) & np.isfinite(second)
    first, second = np.where(both, first, np.nan), np.where(both, second, np.nan)
    first = first - np.nanmean(first, -1, keepdims=True)
    second = second - np.nanmean(second, -1, keepdims=True)
    scale = np.sqrt(np.nansum(first**2, -1) * np.nansum(second**2, -1))
    return np.asarray(np.nansum(first * second, -1) / np.where(scale > 0, scale, np.nan))


def _paper_per_head(out: Averages, kept: Any, level: int) -> None:
    for name in paper.SCALARS:
        label = name.replace("_", " ")
        out.add(f"paper_{name}", kept[name], (SEQUENCE, *_HEAD), f"{label} (paper convention)", _UNITS.get(name, "1"))
        out.mean(f"paper_{name}_mean", kept[name], _HEAD, f"{label} (paper convention), mean over texts", _UNITS.get(name, "1"))
    for name in ("spectral_entropy", "selectivity", "low_share"):
        label = f"{name.replace('_', ' ')} (paper convention) of the signal with its positions shuffled"
        out.add(f"paper_{name}_shuffled", kept[f"{name}_shuffled"], (SEQUENCE, *_HEAD), label, _UNITS.get(name, "1"))
    _with_texts(out, "paper_window_entropy", kept["window_entropy"], (WINDOW,), "entropy within windows over its maximum", "1")
    _picture(out, "paper_spectrum", kept["spectrum"], (FREQUENCY,), "share of power by frequency (paper convention)")
    _picture(out, "paper_scalogram", kept["scalogram"], ("detail", POSITION), "share of wavelet energy by scale and place")
    if not level:
        return
    details, approximation = kept["wavelet_entropy"][..., 0, :level], kept["wavelet_entropy"][..., 1, level - 1 : level]
    by_scale = np.concatenate([approximation, details[..., ::-1]], -1)
    _with_texts(out, "paper_wavelet_entropy", by_scale, (SCALE,), "entropy of wavelet coefficients within each scale", "nats")
    for suffix, kind in (("", "single"), ("_float64", "double")):
        errors = kept[f"reconstruction_error{suffix}"]
        _with_texts(
            out, f"paper_reconstruction_error{suffix}", errors, (), f"relative error of rebuilding in {kind} precision", "1"
        )


def _paper_over_heads(out: Averages, kept: Any, lengths: NDArray[np.integer], used: NDArray[np.bool_], seed: int) -> None:
    values = np.stack([kept[name] for name in paper.SCALARS], 1).reshape(len(lengths), len(paper.SCALARS), -1)
    shuffled = kept["spectral_entropy_shuffled"].reshape(len(lengths), -1)
    entropies = values[:, [paper.SCALARS.index("positional_entropy"), paper.SCALARS.index("spectral_entropy")]]
    null = np.stack([entropies[:, 0], shuffled], 1)
    groups = strata(lengths, used)
    if not groups:  # one text without any value stands for none
        used, values, entropies, null = used[:1] | True, values[:1], entropies[:1], null[:1]
    _interval(
        out,
        "paper_over_heads",
        over_heads(values[used], spread, seed=seed),
        (METRIC, SUMMARY),
        "over heads, all lengths together",
    )
    for suffix, pair in (("", entropies), ("_shuffled", null)):
        label = "correlation over heads of positional with spectral entropy" + (", positions shuffled" if suffix else "")
        _interval(out, f"paper_rho{suffix}", over_heads(pair[used], correlation, seed=seed), (), label)
        if groups:
            by_length = [over_heads(pair[members], correlation, seed=seed) for _, members in groups]
            _interval(out, f"paper_rho_by_length{suffix}", _stacked(by_length), (STRATUM,), label)
    if groups:
        by_length = [over_heads(values[members], spread, seed=seed) for _, members in groups]
        _interval(out, "paper_by_length", _stacked(by_length), (STRATUM, METRIC, SUMMARY), "over heads, by length of the text")
        out.add("texts_by_length", np.array([members.sum() for _, members in groups]), (STRATUM,), "texts in the stratum")


def _calibrated(
    out: Averages, rectangle: Floats, lengths: NDArray[np.integer], num_keys: int, num_permutations: int, seed: int
) -> str:
    """Adds the calibrated variables; returns why some are missing."""
    usable = np.asarray(np.isfinite(rectangle).all(-1).reshape(len(lengths), -1).any(1))
    nothing = not usable.any()
    usable[0] |= nothing  # one text without any value stands for none
    num_permutations = min(FEWEST_PERMUTATIONS, num_permutations) if wants_values_only() else num_permutations
    tested = calibrated.permutation_test(rectangle[usable], num_permutations=num_permutations, seed=seed)
    excess = tested.value - tested.null
    names: dict[str, tuple[Floats, str]] = {
        "value": (tested.value, "value"),
        "null": (tested.null, "mean over permutations"),
        "excess": (excess, "value less mean over permutations"),
    }
    for name, (array, label) in names.items():
        by_text = np.full((len(lengths), len(calibrated.STATISTICS)), np.nan)
        by_text[usable] = nan_mean(array, (2, 3)).T
        out.add(f"calibrated_{name}_by_text", by_text, (SEQUENCE, STATISTIC), f"{label} (calibrated convention), mean over heads")
        out.mean(
            f"calibrated_{name}",
            np.moveaxis(array, 0, 1),
            (STATISTIC, *_HEAD),
            f"{label} (calibrated convention), mean over texts",
        )
    out.add("calibrated_excess_error", _standard_error(excess, 1), (STATISTIC, *_HEAD), "standard error over texts of the excess")
    for name, p, label in (
        ("p", tested.p, "two-sided permutation p of the mean over texts"),
        ("p_holm", tested.p_holm, "the same, corrected over heads by Holm"),
        ("p_bh", tested.p_bh, "the same, corrected over heads by Benjamini and Hochberg"),
        ("p_family", tested.p_family, "chance that the largest standardised deviation over heads is as large"),
    ):
        out.add(f"calibrated_{name}", p, (STATISTIC, *_HEAD), label)
    signal = torch.from_numpy(np.ascontiguousarray(rectangle, dtype=np.float64))
    amplitude = calibrated.amplitude(signal).numpy()
    out.add("calibrated_amplitude", amplitude, (SEQUENCE, *_HEAD), "coefficient of variation of the calibrated signal")
    out.mean("calibrated_amplitude_mean", amplitude, _HEAD, "coefficient of variation of the calibrated signal, mean over texts")
    power = calibrated.calibrated_power(signal)
    spectrum = (power / power.sum(-1, keepdim=True)).numpy()
    _picture(out, "calibrated_spectrum", spectrum, ("bin",), "share of power by bin of the calibrated spectrum, 0 to Nyquist")
    short = int((lengths < 2 * num_keys).sum())
    hidden = int(((~usable | nothing) & (lengths >= 2 * num_keys)).sum())
    flat = int((np.isfinite(rectangle).all(-1) & ~np.isfinite(_padded(tested.value[0], usable))).sum())
    partly = 0 if nothing else int((~np.isfinite(rectangle[usable]).all(-1)).sum())
    return "; ".join(
        f"calibrated: {count} {what}"
        for count, what in (
            (short, f"of {len(lengths)} texts are shorter than {2 * num_keys} tokens"),
            (hidden, "texts have a key hidden from some late query in every layer"),
            (partly, "signals have a key hidden from some late query, or no weight at all"),
            (flat, "signals are flat to rounding"),
        )
        if count
    )


def _with_texts(out: Averages, name: str, values: Floats, dims: tuple[str, ...], label: str, units: str) -> None:
    """Mean over texts per head with its interval, and mean over heads per text."""
    out.mean(name, values, (*_HEAD, *dims), label, units)
    out.add(f"{name}_by_text", nan_mean(values, (1, 2)), (SEQUENCE, *dims), f"{label}, mean over heads", units)


def _picture(out: Averages, name: str, values: Floats, dims: tuple[str, ...], label: str) -> None:
    """Mean over texts of a spectrum or scalogram, resampled one layer at a time to keep memory small."""
    layers = [bootstrap_mean(values[:, layer], seed=out.seed) for layer in range(values.shape[1])]
    _interval(out, name, _stacked(layers), (*_HEAD, *dims), label)


def _padded(values: Floats, usable: NDArray[np.bool_]) -> Floats:
    whole = np.full((len(usable), *values.shape[1:]), np.nan)
    whole[usable] = values
    return whole


def _paper_reasons(kept: Any, used: NDArray[np.bool_], min_length: int) -> str:
    empty = int((~np.isfinite(kept["spectral_entropy"][used])).sum())
    short = int((~used).sum())
    reasons = [f"{short} of {len(used)} texts are shorter than {min_length} tokens"] if short else []
    return "; ".join(f"paper: {reason}" for reason in [*reasons, *([f"{empty} signals without weight"] if empty else [])])


def _standard_error(values: Floats, axis: int) -> Floats:
    count = np.isfinite(values).sum(axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = values - np.expand_dims(nan_mean(values, axis), axis)
        return np.asarray(np.where(count > 1, np.sqrt(np.nansum(centred**2, axis) / (count - 1) / count), np.nan))


def _interval(out: Averages, name: str, interval: Interval, dims: tuple[str, ...], label: str) -> None:
    for suffix, array in (("", interval.value), ("_low", interval.low), ("_high", interval.high)):
        out.add(name + suffix, np.asarray(array), dims, label)


def _stacked(intervals: list[Interval]) -> Interval:
    return Interval(*(np.stack(parts) for parts in zip(*intervals, strict=True)))


def _has_dim(out: Averages, name: str) -> bool:
    return any(name in variable.dims for variable in out.variables.values())


def _range_text(lengths: NDArray[np.integer]) -> str:
    return "none" if not len(lengths) else f"{lengths.min()} to {lengths.max()} tokens"

"""The headline numbers of ``spectra``: ``paper/*`` to lay beside published tables, ``calibrated/*`` to draw conclusions from.

Keys (each also ``paper/64-127/...`` for every stratum of length):

- ``paper/NAME``: mean over heads; ``paper/NAME_std``, ``paper/NAME_iqr``: standard deviation and interquartile range over heads, of the
  entropies, selectivity and the low share;
- ``paper/rho``, ``paper/rho_shuffled``: correlation over heads of positional with spectral entropy, and the same with positions shuffled;
- ``paper/NAME_variation``: rank correlation over heads of selectivity or spectral entropy with the unevenness of the signal;
- ``paper/low_share_depth``: change of the low share from the first to the last layer, by a straight line;
- ``paper/window_entropy_W``, ``paper/wavelet_entropy_SCALE``, ``paper/reconstruction_error``;
- ``calibrated/NAME``, ``_null``, ``_excess`` (value less null): means over heads; ``_rejecting``: share of heads with p <= 0.01;
  ``_rejecting_corrected``: share of heads with a family-wise p <= 0.05 (the largest deviation over heads);
- ``calibrated/amplitude`` and ``calibrated/low_share_excess_depth``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import rankdata

from gnomon.dims import HEAD, LAYER, SEQUENCE
from gnomon.measure import spectra_paper as paper
from gnomon.measure.averaged import nan_mean
from gnomon.measure.spectra_calibrated import STATISTICS
from gnomon.measure.spectra_dataset import STRATUM, SUMMARIES, correlation, over_heads
from gnomon.statistics import Estimate, estimate_mean

Floats = NDArray[np.floating]
LEVEL_OF_TEST = 0.01
LEVEL_CORRECTED = 0.05
NO_PAPER = "no text is long enough"
NO_CALIBRATED = "no text is long enough, or every one has hidden keys"
SPREAD = ("spectral_entropy", "selectivity", "low_share", "positional_entropy")
_SUFFIXES = dict(zip(SUMMARIES, ("", "_std", "_iqr"), strict=True))


def spectra_headline(dataset: xr.Dataset) -> dict[str, Estimate]:
    """All headline numbers."""
    return {**dict(_paper(dataset)), **dict(_paper_by_length(dataset)), **dict(_calibrated(dataset))}


def _paper(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    count = _texts(dataset["paper_spectral_entropy"])
    for name in paper.SCALARS:
        for summary, suffix in _SUFFIXES.items() if name in SPREAD else (("mean", ""),):
            yield f"paper/{name}{suffix}", _stored(dataset, "paper_over_heads", count, NO_PAPER, metric=name, summary=summary)
    yield "paper/rho", _stored(dataset, "paper_rho", count, NO_PAPER)
    yield "paper/rho_shuffled", _stored(dataset, "paper_rho_shuffled", count, NO_PAPER)
    yield "paper/low_share_shuffled", _overall(dataset["paper_low_share_shuffled"].values, reason=NO_PAPER)
    for name in ("selectivity", "spectral_entropy"):
        pair = np.stack([_flat(dataset, f"paper_{name}"), _flat(dataset, "paper_variation")], 1)
        yield f"paper/{name}_variation", _rank_correlation(pair, count)
    yield "paper/low_share_depth", _slope(dataset["paper_low_share"].transpose(SEQUENCE, LAYER, HEAD).values, NO_PAPER)
    for width in paper.WINDOWS:
        by_text = dataset["paper_window_entropy_by_text"].sel(window=width).values
        yield f"paper/window_entropy_{width}", estimate_mean(by_text, reason=f"no text has {width} tokens")
    for suffix in ("", "_float64") if int(dataset.attrs["wavelet_level"]) else ():
        by_text = dataset[f"paper_reconstruction_error{suffix}_by_text"].values
        yield f"paper/reconstruction_error{suffix}", estimate_mean(by_text, reason=NO_PAPER)
    for scale in dataset["scale"].values.tolist() if "scale" in dataset.coords else ():
        by_text = dataset["paper_wavelet_entropy_by_text"].sel(scale=scale).values
        yield f"paper/wavelet_entropy_{scale}", estimate_mean(by_text, reason=NO_PAPER)


def _paper_by_length(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    if STRATUM not in dataset.dims:
        return
    for stratum in dataset[STRATUM].values.tolist():
        count = int(dataset["texts_by_length"].sel(length_stratum=stratum))
        for name in ("spectral_entropy", "selectivity", "low_share"):
            where = {"length_stratum": stratum, "metric": name, "summary": "mean"}
            yield f"paper/{stratum}/{name}", _stored(dataset, "paper_by_length", count, NO_PAPER, **where)
        yield f"paper/{stratum}/rho", _stored(dataset, "paper_rho_by_length", count, NO_PAPER, length_stratum=stratum)


def _calibrated(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    count = int(np.isfinite(dataset["calibrated_value_by_text"].values).any(1).sum())
    for name in STATISTICS:
        for part, suffix in (("value", ""), ("null", "_null"), ("excess", "_excess")):
            by_text = dataset[f"calibrated_{part}_by_text"].sel(statistic=name).values
            yield f"calibrated/{name}{suffix}", estimate_mean(by_text, reason=NO_CALIBRATED)
        for part, limit, suffix in (("p", LEVEL_OF_TEST, ""), ("p_family", LEVEL_CORRECTED, "_corrected")):
            p = dataset[f"calibrated_{part}"].sel(statistic=name).values
            share = rejecting(p, limit)
            key = f"calibrated/{name}_rejecting{suffix}"
            yield key, Estimate(share, n=count) if np.isfinite(share) else Estimate.missing(NO_CALIBRATED)
    yield "calibrated/amplitude", _overall(dataset["calibrated_amplitude"].values, reason=NO_CALIBRATED)


def rejecting(p: Floats, limit: float) -> float:
    """Share of the heads that have a p-value whose p is at most ``limit`` (single precision on disk allowed for)."""
    finite = np.isfinite(p)
    return float((p[finite] <= limit * (1 + 1e-6)).mean()) if finite.any() else float("nan")


def _rank_correlation(pair: Floats, count: int) -> Estimate:
    """Spearman correlation over heads of text means, resampling texts; ``pair`` is ``[text, 2, heads]``."""

    def ranked(means: Floats) -> Floats:
        return correlation(rankdata(means, axis=-1, nan_policy="omit"))

    value, low, high = over_heads(pair, ranked, seed=0)
    return _estimate(float(value), float(low), float(high), count, NO_PAPER)


def _overall(values: Floats, *, reason: str) -> Estimate:
    """Mean over heads of each text, averaged over texts."""
    return estimate_mean(nan_mean(values.reshape(len(values), -1), 1), reason=reason)


def _slope(values: Floats, reason: str) -> Estimate:
    """Change over the whole depth, by a straight line through layer means, per text."""
    layers = nan_mean(values, 2)
    if layers.shape[1] < 2:
        return Estimate.missing("a single layer has no depth")
    depth = np.linspace(-0.5, 0.5, layers.shape[1])
    return estimate_mean(layers @ depth / (depth @ depth), reason=reason)


def _flat(dataset: xr.Dataset, name: str) -> Floats:
    values = dataset[name].transpose(SEQUENCE, LAYER, HEAD).values
    return np.asarray(values.reshape(len(values), -1), dtype=np.float64)


def _texts(variable: xr.DataArray) -> int:
    return int(np.isfinite(variable.transpose(SEQUENCE, ...).values.reshape(variable.sizes[SEQUENCE], -1)).any(1).sum())


def _stored(dataset: xr.Dataset, name: str, count: int, reason: str, **where: str) -> Estimate:
    value, low, high = (float(dataset[name + suffix].sel(where)) for suffix in ("", "_low", "_high"))
    return _estimate(value, low, high, count, reason)


def _estimate(value: float, low: float, high: float, count: int, reason: str) -> Estimate:
    return Estimate(value, low, high, count) if np.isfinite(value) else Estimate.missing(reason, count)

"""Figures of scales and frequencies, both conventions side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gnomon.dims import FREQUENCY, HEAD, LAYER, ROTARY_PAIR, SCALE
from gnomon.report.figures.kinds import Axis, Figure, HeadCurve, HeadCurves, HeadField, HeadMap, HeadScatter, Marks
from gnomon.report.figures.reading import array, axis_of, coordinate_labels, head_curve, head_field

if TYPE_CHECKING:
    import xarray as xr

PAPER = ("low_share", "mid_share", "high_share", "spectral_entropy", "selectivity", "positional_entropy")
SHARES = ("low_share", "mid_share", "high_share")
STATISTIC = "statistic"
EXCESS = ("low_share", "high_share", "spectral_entropy", "D1", "A3")
POWER = Axis(label="share of power", low=0.0)
STICKS = (
    "Sticks: the layer's rotary frequencies, each as tall as the share of the logits' variance that its pair carries in this head. Pairs slower than the first frequency of the "
    "spectrum are left out: so few keys cannot show them. That a peak stands over a stick does not show that the pair makes it."
)


def spectra_figures(dataset: xr.Dataset) -> list[Figure]:
    """A map and a spectrum per convention, and the relation that every null has too."""
    found = (
        _paper_map(dataset),
        _calibrated_map(dataset),
        _spectrum(dataset, "paper", FREQUENCY, "Spectrum, paper convention"),
        _spectrum(dataset, "calibrated", "bin", "Spectrum, calibrated convention"),
        _wavelets(dataset),
        _relation(dataset),
    )
    return [figure for figure in found if figure is not None]


def spectrum_over_rotary(spectra: xr.Dataset, rotary: xr.Dataset) -> list[Figure]:
    """The chosen head's spectra over the rotary frequencies of its layer; nothing where the model has none or a spectrum is missing."""
    at = array(rotary, "rotary_frequency", (LAYER, ROTARY_PAIR))
    shares = array(rotary, "share", (LAYER, HEAD, ROTARY_PAIR))
    curve = head_curve(spectra, "calibrated_spectrum", "bin", label="weights over keys") if "bin" in spectra.dims else None
    if at is None or shares is None or curve is None:
        return []
    count = curve.values.shape[-1]
    lines = [curve]
    logits = head_curve(rotary, "offset_spectrum", FREQUENCY, label="mean logit over offsets")
    if logits is not None and logits.values.shape == curve.values.shape:
        lines.append(logits)
    frequency = np.pi * np.arange(1, count) / max(count - 1, 1)
    slow = at < frequency[0] * (1 - 1e-6)
    marks = Marks(label="rotary frequencies", what="share of the logits' variance", at=np.where(slow, np.nan, at), heights=shares)
    x = Axis(label="frequency", units="radians per token", log=True)
    title = "Spectrum over rotary frequencies"
    kept = tuple(_from_first(line) for line in lines)
    return [HeadCurves(key="spectra-rotary", title=title, note=STICKS, x=x, y=POWER, at=frequency, lines=kept, marks=marks)]


def _from_first(curve: HeadCurve) -> HeadCurve:
    """A spectrum without frequency 0, which a logarithmic axis has no place for."""
    low, high = (None if bound is None else bound[..., 1:] for bound in (curve.low, curve.high))
    return HeadCurve(name=curve.name, values=curve.values[..., 1:], low=low, high=high, role=curve.role)


def _paper_map(dataset: xr.Dataset) -> HeadMap | None:
    fields = [
        head_field(
            dataset, f"paper_{name}_mean", label=f"{name.replace('_', ' ')}, paper", domain=(0.0, 1.0) if name in SHARES else None
        )
        for name in PAPER
    ]
    kept = tuple(field for field in fields if field is not None)
    return HeadMap(key="spectra-paper", title="Paper convention, every head", fields=kept) if kept else None


def _calibrated_map(dataset: xr.Dataset) -> HeadMap | None:
    fields: list[HeadField | None] = [
        head_field(
            dataset,
            "calibrated_excess",
            at={STATISTIC: name},
            label=f"{name.replace('_', ' ')} beyond shuffled positions",
            palette="diverging",
        )
        for name in EXCESS
        if STATISTIC in dataset.dims
    ]
    if STATISTIC in dataset.dims:
        fields.append(
            head_field(dataset, "calibrated_p_holm", at={STATISTIC: "low_share"}, label="p of low share, corrected over heads")
        )
    fields.append(head_field(dataset, "calibrated_amplitude_mean", label="amplitude of the signal"))
    kept = tuple(field for field in fields if field is not None)
    note = "Value less its mean over shuffled positions: 0 means no more structure than any uneven signal has."
    return HeadMap(key="spectra-calibrated", title="Calibrated convention, every head", fields=kept, note=note) if kept else None


def _spectrum(dataset: xr.Dataset, convention: str, along: str, title: str) -> HeadCurves | None:
    curve = head_curve(dataset, f"{convention}_spectrum", along, label="this head") if along in dataset.dims else None
    if curve is None:
        return None
    x, at = axis_of(dataset, along)
    if along not in dataset.coords:
        at = np.pi * np.arange(len(at)) / max(len(at) - 1, 1)
    x = Axis(label="frequency", units="radians per token")
    return HeadCurves(key=f"spectra-{convention}-spectrum", title=title, x=x, y=POWER, at=at, lines=(curve,))


def _wavelets(dataset: xr.Dataset) -> HeadCurves | None:
    curve = head_curve(dataset, "paper_wavelet_entropy", SCALE, label="this head") if SCALE in dataset.dims else None
    if curve is None:
        return None
    names = tuple(str(name) for name in coordinate_labels(dataset, SCALE))
    x = Axis(label="scale, coarse to fine", names=names)
    y = Axis(label="entropy within scale", units="nat", low=0.0)
    at = np.arange(len(names), dtype=np.float64)
    return HeadCurves(key="spectra-wavelets", title="Wavelet entropy by scale, paper convention", x=x, y=y, at=at, lines=(curve,))


def _relation(dataset: xr.Dataset) -> HeadScatter | None:
    x, y = (
        head_field(dataset, f"paper_{name}_mean", label=name.replace("_", " "))
        for name in ("positional_entropy", "spectral_entropy")
    )
    if x is None or y is None or set(dataset["paper_spectral_entropy_mean"].dims) != {LAYER, HEAD}:
        return None
    note = "A negative relation is no evidence of a trade-off: a peaked signal has a flat spectrum, shuffled or not."
    return HeadScatter(key="spectra-relation", title="Positional against spectral entropy", x=x, y=y, note=note)

"""Claim D2 as numbers: what becomes of a word's attention to itself when it is replaced by a likelier or less likely one.

Every sentence is its own control: the difference is taken between versions of one sentence that differ in the tokens of one word and
in nothing else, so position, length and number of tokens are equal by design. ``inner_change`` is each band against the word itself;
``contrast`` is the least likely band against the likeliest, under three controls:

- ``plain``: as drawn;
- ``matched``: the token of the lowest band drawn to be as frequent as that of the highest;
- ``adjusted``: the plain difference at zero difference in log frequency, by least squares.

Negative means that less likely words attend less to themselves. Family-wise p-values flip the sign of whole sentences.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gnomon.dims import BAND, CONDITION, HEAD, LAYER
from gnomon.statistics import Interval, bootstrap_mean
from gnomon.statistics.paired import adjusted_mean, sign_flip_p
from gnomon.study.likelihood.perturbation import DRAWN
from gnomon.study.likelihood.relation import Variables, put

CONTROL: Final = "control"
CONTROLLED: Final = ("plain", "matched", "adjusted")

Floats = NDArray[np.floating[Any]]


def contrast(original: Floats, replaced: Floats, log_frequency: Floats, *, draws: int, seed: int) -> Variables:
    """All of D2's variables.

    Args:
        original: inner attention, ``[N, layer, head, condition]``.
        replaced: the same with the word replaced, ``[N, drawn, layer, head, condition]``.
        log_frequency: of the drawn tokens, ``[N, drawn]``.
        draws: sign flips behind the p-values.
        seed: of resampling and flips.
    """
    original, replaced = np.asarray(original, dtype=np.float64), np.asarray(replaced, dtype=np.float64)
    out: Variables = {}
    put(out, "inner", (LAYER, HEAD, CONDITION), bootstrap_mean(original, seed=seed), "attention of a word to itself")
    change = replaced - original[:, None]
    put(
        out,
        "head_inner_change",
        (BAND, LAYER, HEAD, CONDITION),
        bootstrap_mean(change, seed=seed),
        "change of inner attention, word replaced",
    )
    layers = change.mean(axis=3)
    put(
        out,
        "inner_change",
        (BAND, LAYER, CONDITION),
        bootstrap_mean(layers, seed=seed),
        "change of inner attention, word replaced, heads averaged",
    )

    lowest, highest, matched = (DRAWN.index(name) for name in ("lowest", "highest", "lowest_matched"))
    plain, equal = replaced[:, lowest] - replaced[:, highest], replaced[:, matched] - replaced[:, highest]
    rarer = log_frequency[:, lowest] - log_frequency[:, highest]
    title = "inner attention of the least likely word minus that of the likeliest"
    tables: tuple[tuple[str, tuple[str, ...], Any], ...] = (
        ("head_contrast", (LAYER, HEAD, CONDITION), lambda values: values),
        ("contrast", (LAYER, CONDITION), lambda values: values.mean(axis=2)),
        ("contrast_mean", (CONDITION,), lambda values: values.mean(axis=(1, 2))),
        ("contrast_trend", (CONDITION,), _trend),
    )
    for name, dims, reduced in tables:
        intervals = (
            bootstrap_mean(reduced(plain), seed=seed),
            bootstrap_mean(reduced(equal), seed=seed),
            _by_condition(reduced(plain), lambda values: adjusted_mean(values, rarer, seed=seed)),
        )
        stacked = Interval(*(np.stack([one[part] for one in intervals]) for part in range(3)))
        p = None
        if name.endswith("contrast"):
            tests = [_p_by_condition(reduced(values), draws, seed) for values in (plain, equal)]
            p = np.stack([*tests, np.full_like(tests[0], np.nan)])
        what = {"contrast_trend": ": slope over depth", "contrast_mean": ": mean over layers and heads"}.get(name, "")
        put(out, name, (CONTROL, *dims), stacked, title + what, p=p)
    return out


def _trend(values: Floats) -> Floats:
    """Slope over depth, from 0 for the first layer to 1 for the last, per sentence and condition; ``values [N, layer, head, condition]``."""
    layers = values.shape[1]
    depth = np.linspace(0, 1, layers) - 0.5
    weights = depth / (depth**2).sum() if layers > 1 else np.full(1, np.nan)
    return np.asarray(np.einsum("l,nlc->nc", weights, values.mean(axis=2)))


def _by_condition(values: Floats, function: Any) -> Interval:
    """Apply a function that leaves out incomplete rows to one condition (last axis) at a time."""
    parts = [function(values[..., index]) for index in range(values.shape[-1])]
    return Interval(*(np.stack([one[part] for one in parts], axis=-1) for part in range(3)))


def _p_by_condition(values: Floats, draws: int, seed: int) -> Floats:
    return np.stack([sign_flip_p(values[..., index], draws=draws, seed=seed) for index in range(values.shape[-1])], axis=-1)

"""Claim D1 as numbers: how the likelihood of a word goes with its attention, per layer and head, with intervals, controls and corrections.

``rho`` is Spearman's over sentences. **Plain** asks whether the two go together at all; **partial** takes out the ranks of the word's position, the
sentence's length, the word's number of tokens and its log token frequency: all four move likelihood, and the first three move
attention by arithmetic alone (a causal query at position i shares its weight among i + 1 keys). A plain correlation without its partial
one says little about a causal model.

Family-wise p-values shuffle sentences and take the largest |rho| over *everything* that was looked at: readings, aggregates,
conditions, modes and layers (and heads, for the per-head table). The trend is the least-squares slope of rho over depth from 0 (first layer) to 1 (last).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import CONDITION, HEAD, LAYER
from gnomon.statistics import Interval, max_statistic_p
from gnomon.statistics.correlation import NORMAL_QUANTILE, Correlation, partial_spearman, spearman
from gnomon.statistics.search import held_out, search_null

READING: Final = "reading"
AGGREGATE: Final = "aggregate"
MODE: Final = "mode"
LIKELIHOOD_DIMS: Final = (READING, AGGREGATE)
ATTENTION_DIMS: Final = (LAYER, CONDITION, MODE)
HEAD_DIMS: Final = (LAYER, HEAD, CONDITION, MODE)
CONTROLS: Final = ("position", "length", "word_tokens", "log_frequency")

Floats = NDArray[np.floating[Any]]
Variables = dict[str, xr.Variable]


class Words(NamedTuple):
    """What the statistics are made of, one row per sentence.

    Attributes:
        log_likelihood: ``[N, reading, aggregate]`` in nats.
        attention: ``[N, layer, head, condition, mode]``.
        controls: ``[N, 4]``: see ``CONTROLS``.
    """

    log_likelihood: Floats
    attention: Floats
    controls: Floats


def relation(words: Words, *, draws: int, seed: int) -> Variables:
    """All of D1's variables."""
    layers = words.attention.mean(axis=2, dtype=np.float64)
    out: Variables = {}
    for name, controls in (("correlation", None), ("partial", words.controls)):
        title = "Spearman correlation of a word's log-likelihood and its attention" + (
            ", controls taken out" if controls is not None else ""
        )
        found = _correlations(words.log_likelihood, layers, controls)
        p: Floats | None = _corrected(words.log_likelihood, layers, controls, draws, seed)
        put(out, name, (*LIKELIHOOD_DIMS, *ATTENTION_DIMS), _intervals(found), f"{title}, heads averaged", p=p)
        put(
            out,
            f"{name}_trend",
            (*LIKELIHOOD_DIMS, *ATTENTION_DIMS[1:]),
            _over_layers(found, _slope),
            f"{title}: slope over depth",
        )
        put(
            out, f"{name}_mean", (*LIKELIHOOD_DIMS, *ATTENTION_DIMS[1:]), _over_layers(found, _flat), f"{title}: mean over layers"
        )
        put(
            out,
            f"{name}_held_out",
            LIKELIHOOD_DIMS,
            _held_out(words.log_likelihood, layers[..., 0, 0], controls, seed),
            f"{title}: layer of inner attention chosen on one half of the sentences, measured on the other",
        )
        heads = _correlations(words.log_likelihood, words.attention, controls)
        p = _corrected(words.log_likelihood, words.attention, controls, draws, seed) if controls is None else None
        put(out, f"head_{name}", (*LIKELIHOOD_DIMS, *HEAD_DIMS), _intervals(heads), title, p=p)
    position = spearman(words.controls[:, 0], layers)
    put(
        out,
        "position_correlation",
        ATTENTION_DIMS,
        position.interval(),
        "Spearman correlation of a word's position and its attention",
    )
    return out


def put(
    out: Variables, name: str, dims: tuple[str, ...], interval: Interval, title: str, *, units: str = "1", p: Floats | None = None
) -> None:
    """Add a variable with its bounds and, where there is one, its corrected p-value."""
    for suffix, values, what in (
        ("", interval.value, ""),
        ("_low", interval.low, ", lower bound"),
        ("_high", interval.high, ", upper bound"),
    ):
        out[name + suffix] = xr.Variable(dims, np.asarray(values, dtype=np.float32), {"long_name": title + what, "units": units})
    if p is not None:
        note = "p-value corrected for the search over everything in this table"
        out[f"{name}_p"] = xr.Variable(dims, np.asarray(p, dtype=np.float32), {"long_name": f"{title}: {note}", "units": "1"})


def _correlations(log_likelihood: Floats, attention: Floats, controls: Floats | None) -> list[list[Correlation]]:
    """One table per reading and aggregate."""
    return [
        [
            spearman(log_likelihood[:, reading, kind], attention)
            if controls is None
            else partial_spearman(log_likelihood[:, reading, kind], attention, controls)
            for kind in range(log_likelihood.shape[2])
        ]
        for reading in range(log_likelihood.shape[1])
    ]


def _corrected(log_likelihood: Floats, attention: Floats, controls: Floats | None, draws: int, seed: int) -> Floats:
    columns = log_likelihood.reshape(len(log_likelihood), -1)
    found = search_null(columns, attention, controls=controls, draws=draws, seed=seed)
    return max_statistic_p(found.observed, found.null).reshape(*log_likelihood.shape[1:], *attention.shape[1:])


def _intervals(found: list[list[Correlation]]) -> Interval:
    return _stacked([[one.interval() for one in row] for row in found])


def _stacked(intervals: list[list[Interval]]) -> Interval:
    return Interval(*(np.stack([np.stack([one[part] for one in row]) for row in intervals]) for part in range(3)))


def _slope(layers: int) -> Floats:
    """Weights whose sum with values per layer is their slope over depth; none for a single layer."""
    depth = np.linspace(0, 1, layers) - 0.5
    return depth / (depth**2).sum() if layers > 1 else np.full(1, np.nan)


def _flat(layers: int) -> Floats:
    """Weights whose sum with values per layer is their mean."""
    return np.full(layers, 1 / layers)


def _over_layers(found: list[list[Correlation]], weights_for: Any) -> Interval:
    """A weighted sum of correlations over layers, with the interval that their joint influence values give."""
    table = []
    for row in found:
        cells = []
        for one in row:
            weights = weights_for(len(one.value))
            value = np.tensordot(weights, one.value, axes=1)
            share = one.influence / one.rows
            spread = np.sqrt((np.tensordot(share, weights, axes=([1], [0])) ** 2).sum(0))
            cells.append(Interval(value, value - NORMAL_QUANTILE * spread, value + NORMAL_QUANTILE * spread))
        table.append(cells)
    return _stacked(table)


def _held_out(log_likelihood: Floats, inner: Floats, controls: Floats | None, seed: int) -> Interval:
    table = []
    for reading in range(log_likelihood.shape[1]):
        estimates = [
            held_out(log_likelihood[:, reading, kind], inner, controls, seed=seed) for kind in range(log_likelihood.shape[2])
        ]
        table.append([Interval(*(np.array(number) for number in estimate[:3])) for estimate in estimates])
    return _stacked(table)

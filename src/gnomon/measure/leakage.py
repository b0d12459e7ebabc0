"""Positional leakage of attention, and how much of it comes from the mask and from the residual stream.

**Quantity.** At a fixed offset, the variance over positions of the expected log-weight, in squared nats: 0 for
attention that depends on offset and content alone. It is parted exactly into a residual component (logits), a mask
component (log-denominators) and twice their covariance; see :mod:`gnomon.measure.leakage_components` for the parts,
:mod:`gnomon.measure.leakage_variance` for the unbiased estimator, its interval and its null, and
:mod:`gnomon.measure.leakage_grid` for positions and offsets.

**What it cannot show.** Text whose beginning differs from its middle (headlines, openings) is read as leakage:
windows must start at random places. A variance of means says nothing of position that is carried without moving the
mean. In windowed layers offsets beyond the window have no weight and are missing, and the mask component stops
growing where the window is full. In bidirectional layers the number of keys is the same for every query: ``mask`` is
then whatever position moves the denominator by, and the counterfactual that isolates the number of keys does not
apply. Learned sink logits are part of the denominator.

Claims A2, A3, A4, and the material of A7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import xarray as xr
from torch import Tensor

from gnomon.kernels.quantities import Needs
from gnomon.measure.leakage_components import (
    COMPONENTS,
    CORNERS,
    MIN_SEQUENCES,
    NUM_DRAWS,
    TESTED,
    LeakageArrays,
    band_components,
    band_corners,
    band_null,
    layer_mean,
    model_mean,
    stack_layers,
)
from gnomon.measure.leakage_dataset import Labelled, blank, labelled
from gnomon.measure.leakage_grid import BANDS, LeakageGrid, leakage_grid
from gnomon.measure.leakage_logits import observe_logits
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.statistics import Estimate, max_statistic_p, permutation_p
from gnomon.statistics.jackknife import Jackknifed, nan_mean
from gnomon.statistics.values_only import wants_values_only

if TYPE_CHECKING:
    from gnomon.capture.view import AttentionView

HEADLINES = ("residual", "mask", "total")


class Leakage(Measure):
    """Positional leakage and its decomposition."""

    name: ClassVar[str] = "leakage"
    title: ClassVar[str] = "Positional leakage"
    claims: ClassVar[tuple[str, ...]] = ("A2", "A3", "A4", "A7")

    def __init__(self) -> None:
        self._grid: LeakageGrid | None = None

    def needs(self, subject: Subject) -> Needs:
        """Nothing beyond log-denominators, which are always there; fixes the grid for these windows."""
        self._grid = leakage_grid(subject.windows)
        return Needs()

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Logits and log-denominators on the grid."""
        if self._grid is None:
            raise ValueError("`needs` must be called before `observe`: it fixes the grid of positions")
        return observe_logits(view.problem, view.lse, self._grid)

    def finish(self, observed: Observed) -> xr.Dataset:
        """Components by layer, head, band and offset with intervals, their means, p-values, the two by two and profiles."""
        arrays = LeakageArrays(
            observed.layers["logit"],
            observed.layers["log_denominator"],
            observed.layers["denominator_stationary"],
            observed.layers["denominator_fixed"],
        )
        return leakage_dataset(arrays, leakage_grid(observed.subject.laid_out), seed=observed.subject.seed)

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Residual, mask and total per band, mean over layers, heads and offsets, and the p-values of residual and total."""
        return leakage_headline(dataset)


def leakage_dataset(arrays: LeakageArrays, grid: LeakageGrid, *, seed: int = 0, draws: int = NUM_DRAWS) -> xr.Dataset:
    """The dataset of the measure, from what was observed."""
    _, layers, heads, _, _ = arrays.logit.shape
    draws = 1 if wants_values_only() else draws
    out = blank(layers, heads, grid.offsets)
    missing = {}
    for band, label in enumerate(BANDS):
        components = band_components(arrays, grid, band)
        if components is None:
            missing[label] = _why_missing(arrays, grid, band)
            continue
        out.count[band] = components["total"].num_sequences
        for name in COMPONENTS:
            out.put_cells(name, band, components[name].interval())
            out.put_layers(name, band, layer_mean(components[name]).interval())
            out.put_model(name, band, model_mean(components[name]).interval())
        _put_tests(out, band, components, band_null(arrays, grid, band, seed=seed + band, draws=draws))
        _put_corners(out, band, arrays, grid)
    return labelled(out, arrays, grid, missing)


def leakage_headline(dataset: xr.Dataset) -> dict[str, Estimate]:
    """See :meth:`Leakage.headline`."""
    out = {}
    for band, label in enumerate(BANDS):
        at = dataset.isel(query_band=band)
        number = int(at["num_sequences"])
        reason = dataset.attrs.get(f"missing_{label}") or "no offset fits this band in any layer"
        for name in HEADLINES:
            value = float(at[f"model_{name}"])
            bounds = (float(at[f"model_{name}_low"]), float(at[f"model_{name}_high"]))
            known = np.isfinite(value)
            out[f"{name}_{label}"] = Estimate(value, *bounds, number) if known else Estimate.missing(reason, number)
        for name in ("residual", "total"):
            p = float(at[f"model_{name}_p"])
            out[f"p_{name}_{label}"] = Estimate(p, n=number) if np.isfinite(p) else Estimate.missing(reason, number)
    return out


def _put_tests(out: Labelled, band: int, components: Mapping[str, Jackknifed], null: Mapping[str, np.ndarray]) -> None:
    """P-values of each head, of each head among all, and of the model."""
    for name in TESTED:
        observed = nan_mean(components[name].value, (-1,))
        draws = null[name]
        spread = draws.std(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            family = max_statistic_p(observed / spread, np.where(spread > 0, draws / spread, 0.0).clip(min=0))
        family = np.where(observed > 0, family, np.where(np.isnan(observed), np.nan, 1.0))
        out.put_p(name, band, permutation_p(observed, draws), family)
        out.put_model_p(name, band, permutation_p(nan_mean(observed, (-2, -1)), nan_mean(draws, (-2, -1))))


def _put_corners(out: Labelled, band: int, arrays: LeakageArrays, grid: LeakageGrid) -> None:
    """The two by two by layer and, where all layers with counterfactuals share their sequences, of the model."""
    found = {layer: band_corners(arrays, grid, band, layer) for layer in range(arrays.logit.shape[1])}
    known = {layer: corners for layer, corners in found.items() if corners is not None}
    if not known:
        return
    same = len({corners["interaction"].num_sequences for corners in known.values()}) == 1
    for name in CORNERS:
        for layer, corners in known.items():
            out.put_layer(name, band, layer, corners[name].mean((-2, -1)).interval())
        if same:
            out.put_model(name, band, model_mean(stack_layers([corners[name] for corners in known.values()])).interval())


def _why_missing(arrays: LeakageArrays, grid: LeakageGrid, band: int) -> str:
    queries = grid.of_band(band)
    if not len(queries):
        return f"sequences of {grid.limit} tokens do not reach this band"
    found = int(arrays.complete(queries).sum())
    return f"{found} sequences reach position {int(grid.queries[queries[-1]])}, at least {MIN_SEQUENCES} are needed"

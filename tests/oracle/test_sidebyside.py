"""Runs beside each other."""

import numpy as np
import pytest
import xarray as xr

from gnomon.errors import ConfigError
from gnomon.study.sidebyside import difference, growth, side_by_side


def dataset(layers, slope, half=0.1):
    depth = np.linspace(0, 1, layers)
    out = xr.Dataset(coords={"layer": np.arange(layers), "query_band": ["early", "late"]})
    for name in ("residual", "mask", "total"):
        values = np.stack([slope * depth, np.full(layers, np.nan)], 1)
        for bound, shift in (("", 0), ("_low", -half), ("_high", half)):
            out[f"layer_{name}{bound}"] = (("layer", "query_band"), values + shift)
            out[f"model_{name}{bound}"] = (("query_band",), values.mean(0) + shift)
    return out


def test_models_of_different_depth_stand_side_by_side():
    both = side_by_side({"deep": dataset(12, 2.0), "shallow": dataset(4, 1.0)})
    assert both.sizes == {"run": 2, "layer": 12, "query_band": 2}
    assert np.isnan(both["layer_residual"].sel(run="shallow")[4:]).all()
    np.testing.assert_allclose(both["growth_residual"].sel(query_band="early"), [2.0, 1.0])
    assert np.isnan(both["growth_residual"].sel(query_band="late")).all()
    np.testing.assert_allclose(both["balance"].sel(query_band="early"), 0.5)
    np.testing.assert_allclose(both["depth"].sel(run="shallow")[:4], [0, 1 / 3, 2 / 3, 1])


def test_a_difference_adds_half_widths_in_squares():
    both = side_by_side({"one": dataset(5, 2.0, half=0.3), "other": dataset(5, 1.0, half=0.4)})
    estimate = difference(both, "one", "other")
    np.testing.assert_allclose([estimate.value, estimate.low, estimate.high], [0.5, 0.0, 1.0], atol=1e-12)
    assert difference(both, "one", "other", band="late").is_missing


def test_two_layers_have_no_slope():
    assert np.isnan(growth(np.ones((2, 1)))).all()


def test_runs_without_leakage_are_refused():
    with pytest.raises(ConfigError, match="without"):
        side_by_side({"one": xr.Dataset()})
    with pytest.raises(ConfigError, match="got none"):
        side_by_side({})

"""Trained against untrained weights of the same architecture, text by text.

Both runs saw the same texts, so differences are paired: per text, mean over heads trained less mean over heads untrained; their mean, its
standard error and its interval over texts. What survives is due to training; what does not is due to the mask, the scheme and the softmax.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gnomon.dims import HEAD, LAYER
from gnomon.errors import RunError
from gnomon.measure import spectra_paper as paper
from gnomon.measure.averaged import nan_mean
from gnomon.measure.spectra_calibrated import STATISTICS
from gnomon.measure.spectra_headline import LEVEL_OF_TEST, rejecting
from gnomon.statistics import bootstrap_mean

Floats = NDArray[np.floating]


def beside_untrained(trained: xr.Dataset, untrained: xr.Dataset) -> xr.Dataset:
    """The datasets of ``spectra`` and of its untrained control, side by side.

    Returns:
        By ``quantity`` (``paper/low_share``, ``calibrated/low_share_excess``, ``calibrated/amplitude``, ...): ``trained``, ``untrained``, ``difference``
        with ``difference_low`` and ``difference_high``, ``standard_error``, ``texts``; and by ``statistic`` the share of heads that reject the
        permutation null in each.
    """
    names, first, second = [], [], []
    for name, values in _by_text(trained).items():
        names.append(name)
        first.append(values)
        second.append(_by_text(untrained)[name])
    ours, floor = np.stack(first, 1), np.stack(second, 1)
    if ours.shape != floor.shape:
        raise RunError(
            f"`untrained` must have the same texts as the run itself ({len(ours)}), got {len(floor)}; make both in one survey."
        )
    difference = ours - floor
    both = np.isfinite(difference)
    interval = bootstrap_mean(difference)
    with np.errstate(invalid="ignore", divide="ignore"):
        count = both.sum(0)
        squares = np.nansum((difference - interval.value) ** 2, 0)
        error = np.where(count > 1, np.sqrt(squares / (count - 1) / count), np.nan)
    columns = {
        "trained": (nan_mean(np.where(both, ours, np.nan), 0), "mean over heads and texts, trained"),
        "untrained": (nan_mean(np.where(both, floor, np.nan), 0), "mean over heads and texts, untrained"),
        "difference": (interval.value, "trained less untrained"),
        "difference_low": (interval.low, "lower bound of the 95 % interval"),
        "difference_high": (interval.high, "upper bound of the 95 % interval"),
        "standard_error": (error, "standard error over texts of the difference"),
        "texts": (count, "texts with both"),
    }
    out = xr.Dataset(
        {name: ("quantity", values, {"long_name": label, "units": "1"}) for name, (values, label) in columns.items()},
        coords={"quantity": names, "statistic": list(STATISTICS)},
    )
    for name, dataset in (("trained", trained), ("untrained", untrained)):
        shares = [rejecting(dataset["calibrated_p"].sel(statistic=one).values, LEVEL_OF_TEST) for one in STATISTICS]
        label = f"share of heads with p <= {LEVEL_OF_TEST}, {name}"
        out[f"rejecting_{name}"] = ("statistic", shares, {"long_name": label, "units": "1"})
    return out


def _by_text(dataset: xr.Dataset) -> dict[str, Floats]:
    """One number per text and quantity: the mean over heads."""
    heads = [LAYER, HEAD]
    found = {f"paper/{name}": dataset[f"paper_{name}"].mean(heads).values for name in paper.SCALARS}
    for name in STATISTICS:
        for part, suffix in (("value", ""), ("excess", "_excess")):
            found[f"calibrated/{name}{suffix}"] = dataset[f"calibrated_{part}_by_text"].sel(statistic=name).values
    found["calibrated/amplitude"] = dataset["calibrated_amplitude"].mean(heads).values
    return found

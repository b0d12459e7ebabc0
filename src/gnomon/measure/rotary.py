"""The frequencies that RoPE gives a model, and which of them each head uses.

RoPE turns pair p of a query's and a key's features by ``theta_p`` radians per token, so that the logit depends on the offset through
``theta_p * (i - j)``. Variables:

- ``frequency``, ``wavelength = 2 pi / theta_p`` in tokens, and ``turns = T / wavelength`` over the surveyed length, per layer and pair, from the
  model's own inverse frequencies (after linear, NTK, YaRN, Llama-3 or LongRoPE scaling). A pair that turns less than once tells near from far,
  but no period can be seen of it;
- ``share``: the pair's part of the variance of the logits over random visible (query, key) places (:mod:`gnomon.measure.rotary_pairs`), position 0 left out as a
  key; ``unrotated_share``: what features outside the rotation carry (partial rotary width), all of it in layers without rotation. They add up to one;
- ``turning_share``: sum of ``share`` over the pairs with at least one turn;
- ``offset_spectrum``: power spectrum of the mean logit as a function of the offset 0..63, per head: where it has peaks, ``frequency`` says
  which pairs could make them.

Zero point: a head that weighs all features alike has ``share = 2 / D`` per pair. What it cannot show: that a pair is used *for* position;
that takes an intervention. Serves P1, and A7's reading of schemes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.dims import FREQUENCY, HEAD, LAYER, ROTARY_PAIR, SEQUENCE
from gnomon.kernels.quantities import Needs
from gnomon.measure.averaged import Averages, nan_mean
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.measure.rotary_pairs import feature_covariance, pair_features, sample_points
from gnomon.measure.spectra_calibrated import calibrated_power
from gnomon.statistics import Estimate, estimate_mean

Floats = NDArray[np.floating]
NUM_OFFSETS = 64
NUM_QUERIES = 32
MIN_QUERIES = 4
NO_ROTATION = "no layer of this model rotates its queries and keys"
TOO_SHORT = "no text is long enough"


@dataclass(frozen=True, kw_only=True)
class Rotary(Measure):
    """Rotary frequencies and their use by heads.

    Attributes:
        num_points: (query, key) places per text.
        seed: of the places.
    """

    name: ClassVar[str] = "rotary"
    title: ClassVar[str] = "rotary frequencies and the heads that use them"
    claims: ClassVar[tuple[str, ...]] = ("P1", "A7")

    num_points: int = 256
    seed: int = 0

    def needs(self, subject: Subject) -> Needs:
        """Nothing but queries and keys, which every view has."""
        return Needs()

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Covariance by feature, and the spectrum of the logit over offsets."""
        queries, keys = sample_points(view.problem, self.num_points, self.seed)
        return {"covariance": feature_covariance(view.problem, queries, keys), "offset_spectrum": _offset_spectrum(view)}

    def finish(self, observed: Observed) -> xr.Dataset:
        """Shares by rotary pair, as the scheme pairs features."""
        scheme, length = observed.subject.scheme, observed.subject.windows.length
        covariance = observed.layers["covariance"].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = covariance / covariance.sum(-1, keepdims=True)
        num_pairs = max((len(row) for row in scheme.inverse_frequencies), default=0)
        frequency = np.full((shares.shape[1], num_pairs), np.nan)
        for layer, row in enumerate(scheme.inverse_frequencies):
            frequency[layer, : len(row)] = row
        out = Averages(self.seed)
        _frequencies(out, frequency, length)
        features = pair_features(num_pairs, interleaved=scheme.rotary_interleaved)
        rotated = np.isfinite(frequency)[None, :, None, :]
        by_pair = np.where(rotated, shares[..., features].sum(-1), np.nan)
        unrotated = np.stack(
            [_unrotated(shares[:, layer], rotated[0, layer, 0], features) for layer in range(shares.shape[1])], 1
        )
        turning = np.where((frequency * length >= 2 * np.pi)[None, :, None, :], by_pair, 0.0)
        out.mean("share", by_pair, (LAYER, HEAD, ROTARY_PAIR), "share of the variance of the logits carried by the pair")
        for name, values, label in (
            ("unrotated_share", unrotated, "share of the variance of the logits carried by features that are not rotated"),
            ("turning_share", turning.sum(-1), "share of the variance of the logits carried by pairs with at least one turn"),
        ):
            out.mean(name, values, (LAYER, HEAD), label)
            out.add(f"{name}_by_text", nan_mean(values, (1, 2)), (SEQUENCE,), f"{label}, mean over heads")
        out.mean(
            "offset_spectrum",
            observed.layers["offset_spectrum"],
            (LAYER, HEAD, FREQUENCY),
            "share of power of the mean logit over offsets",
        )
        centres = np.linspace(0, np.pi, observed.layers["offset_spectrum"].shape[-1])
        attrs = {
            "length": length,
            "rotates": bool(num_pairs),
            "missing": "" if num_pairs else NO_ROTATION,
            "frequencies": "depend on the length of the input; read as loaded" if scheme.length_dependent else "fixed",
        }
        return out.dataset(attrs, {FREQUENCY: (FREQUENCY, centres, {"long_name": "frequency", "units": "radians per token"})})

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """Shares over all heads, and of the pairs how many turn."""
        return dict(_headline(dataset))


def _headline(dataset: xr.Dataset) -> Iterator[tuple[str, Estimate]]:
    rotates = bool(dataset.attrs["rotates"])
    for name in ("turning_share", "unrotated_share"):
        values = dataset[f"{name}_by_text"].values
        yield name, estimate_mean(values, reason=TOO_SHORT) if rotates else Estimate.missing(NO_ROTATION)
    count = int(np.isfinite(dataset["turning_share_by_text"].values).sum())
    turns = dataset["turns"].values
    for name, value in (
        ("pairs_turning", (turns >= 1).sum() / max(1, np.isfinite(turns).sum())),
        ("shortest_wavelength", _least(dataset)),
    ):
        yield name, Estimate(float(value), n=count) if rotates else Estimate.missing(NO_ROTATION)


def _least(dataset: xr.Dataset) -> float:
    wavelength = dataset["wavelength"].values
    return float(np.nanmin(wavelength)) if np.isfinite(wavelength).any() else float("nan")


def _unrotated(shares: Floats, rotated: NDArray[np.bool_], features: NDArray[np.int64]) -> Floats:
    """Sum of the shares of one layer's features that belong to no pair, ``[text, head]``; exactly 0 where all are rotated."""
    rest = np.setdiff1d(np.arange(shares.shape[-1]), features[rotated].ravel())
    return np.asarray(np.where(np.isfinite(shares).all(-1), shares[..., rest].sum(-1), np.nan))


def _frequencies(out: Averages, frequency: Floats, length: int) -> None:
    with np.errstate(divide="ignore"):
        wavelength = np.where(frequency > 0, 2 * np.pi / frequency, np.inf)
    wavelength = np.where(np.isfinite(frequency), wavelength, np.nan)
    dims = (LAYER, ROTARY_PAIR)
    out.add("rotary_frequency", frequency, dims, "rotation per token", "radians per token")
    out.add("wavelength", wavelength, dims, "tokens per turn", "tokens")
    out.add("turns", frequency * length / (2 * np.pi), dims, f"turns over {length} tokens", "turns")


def _offset_spectrum(view: AttentionView) -> Tensor:
    """Share of power of the mean logit over offsets 0..63, ``[B, H, 33]``; NaN where too few queries see that far."""
    device = view.problem.query.device
    shape = (len(view.lengths), view.problem.num_heads, NUM_OFFSETS // 2 + 1)
    if view.problem.length < NUM_OFFSETS + MIN_QUERIES:
        return torch.full(shape, torch.nan)
    spread = torch.linspace(NUM_OFFSETS - 1, view.problem.length - 1, min(NUM_QUERIES, view.problem.length - NUM_OFFSETS + 1))
    queries = spread.round().long().to(device)
    logits = view.logits(queries, torch.arange(NUM_OFFSETS, device=device)).double()  # B H query offset
    whole = torch.isfinite(logits).all(-1, keepdim=True)
    count = whole.sum(2)
    profile = torch.where(whole, logits, 0.0).sum(2) / count
    power = calibrated_power(profile)
    share = power / power.sum(-1, keepdim=True)
    return torch.where(count >= MIN_QUERIES, share, torch.nan)

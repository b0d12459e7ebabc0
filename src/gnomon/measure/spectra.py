"""Spectra and wavelets of heads, in two conventions that are always named.

``paper_*`` variables follow the published tables (:mod:`gnomon.measure.spectra_paper`); ``calibrated_*`` variables ask what remains beyond a
permutation null on a rectangle of the matrix that the causal mask does not shape (:mod:`gnomon.measure.spectra_calibrated`). The same
measure on untrained weights is the other null (:mod:`gnomon.measure.spectra_untrained`).

Beside the ``paper`` figures stand those of the same signal with its positions shuffled, a mean over eight shuffles (``*_shuffled``): positional
entropy is unchanged by it, so the correlation between positional and spectral entropy over heads has its null right beside it.

What this cannot show: that a head computes anything like a wavelet transform (every signal has one), that low frequencies are learned (a
smooth mask makes them too: see the untrained control), or where the sink is. Claims C1, C2, C3, C6, C7 on one model; C4 in
:mod:`gnomon.study.scale`; C5 and C8 by comparing runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import xarray as xr
from torch import Tensor

from gnomon.capture.view import AttentionView
from gnomon.errors import ConfigError
from gnomon.kernels.quantities import Needs
from gnomon.measure import spectra_calibrated as calibrated
from gnomon.measure import spectra_paper as paper
from gnomon.measure.protocol import Measure, Observed, Subject
from gnomon.measure.spectra_cells import compact_scalogram, compact_spectrum
from gnomon.measure.spectra_dataset import spectra_dataset
from gnomon.measure.spectra_headline import spectra_headline
from gnomon.statistics import Estimate

MIN_LENGTH = 16
NUM_SHUFFLES = 8


@dataclass(frozen=True, kw_only=True)
class Spectra(Measure):
    """Spectral and wavelet figures per head.

    Attributes:
        num_keys: keys of the calibrated signal; texts need twice as many tokens.
        num_queries: at most about so many of a text's last quarter of queries are averaged.
        num_permutations: draws of the null.
        seed: of the permutations.
    """

    name: ClassVar[str] = "spectra"
    title: ClassVar[str] = "spectra and wavelets of attention, by the published and by a calibrated convention"
    claims: ClassVar[tuple[str, ...]] = ("C1", "C2", "C3", "C6", "C7")

    num_keys: int = calibrated.NUM_KEYS
    num_queries: int = 64
    num_permutations: int = calibrated.NUM_PERMUTATIONS
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_keys < 32 or self.num_keys % 2**calibrated.LEVEL:
            raise ConfigError(f"`num_keys` must be a multiple of 8 and at least 32, got {self.num_keys}; use 64.")
        if self.num_permutations < 19:
            raise ConfigError(f"`num_permutations` must be at least 19, got {self.num_permutations}; use 199 or more.")

    def needs(self, subject: Subject) -> Needs:
        """Attention received per key."""
        return Needs(received=True)

    def observe(self, view: AttentionView) -> Mapping[str, Tensor]:
        """Figures of the ``paper`` convention and the signal of the calibrated one."""
        received = _double(view.received)
        collected: dict[str, Tensor] = {}
        for length, members in same_length(view.lengths):
            if length < MIN_LENGTH:
                continue
            signal = received[members.to(received.device), :, :length] / length
            for name, values in _figures(signal, self.seed).items():
                if name not in collected:
                    collected[name] = values.new_full((len(received), *values.shape[1:]), torch.nan)
                collected[name][members.to(values.device)] = values
        if not collected:
            blank = _figures(received.new_full((len(received), received.shape[1], MIN_LENGTH), torch.nan), self.seed)
            collected = blank
        return {**collected, "rectangle": self._rectangle(view)}

    def finish(self, observed: Observed) -> xr.Dataset:
        """The dataset of both conventions."""
        return spectra_dataset(
            observed, num_keys=self.num_keys, num_permutations=self.num_permutations, min_length=MIN_LENGTH, seed=self.seed
        )

    def headline(self, dataset: xr.Dataset) -> dict[str, Estimate]:
        """``paper/*`` and ``calibrated/*``."""
        return spectra_headline(dataset)

    def _rectangle(self, view: AttentionView) -> Tensor:
        """The calibrated signal, ``[B, H, num_keys]``."""
        queries = calibrated.late_queries(view.lengths, self.num_keys, self.num_queries)
        shape = (len(view.lengths), view.problem.num_heads, self.num_keys)
        if not len(queries):
            return torch.full(shape, torch.nan)
        queries = queries.to(view.problem.query.device)
        return calibrated.rectangle_signal(view.rows(queries), queries, view.mask, self.num_keys)


def same_length(lengths: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Each length of a batch with the indices of its sequences."""
    for length in sorted({int(n) for n in lengths.tolist()}):
        yield length, torch.nonzero(lengths == length)[:, 0]


def _figures(signal: Tensor, seed: int) -> dict[str, Tensor]:
    """Everything that is kept of the ``paper`` signals of texts of one length."""
    generator = torch.Generator().manual_seed(seed + signal.shape[-1])
    orders = torch.stack([torch.randperm(signal.shape[-1], generator=generator) for _ in range(NUM_SHUFFLES)])
    power = paper.power_spectrum(signal[..., orders.to(signal.device)])
    return {
        **paper.describe(signal),
        "spectral_entropy_shuffled": paper.entropy(power).mean(-1),
        "selectivity_shuffled": paper.selectivity(power).mean(-1),
        "low_share_shuffled": paper.band_shares(power)[..., 0].mean(-1),
        "spectrum": compact_spectrum(signal),
        "scalogram": compact_scalogram(signal),
    }


def _double(values: Tensor) -> Tensor:
    """In double precision, on the CPU where the device has none."""
    return (values.cpu() if values.device.type == "mps" else values).double()

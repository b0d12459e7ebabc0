"""Spectral figures of signals whose answers are known, and the ``spectra`` measure on attention that was planted."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gnomon.errors import ConfigError
from gnomon.kernels.problem import MaskStructure
from gnomon.measure import spectra_calibrated as calibrated
from gnomon.measure import spectra_cells, spectra_paper
from gnomon.measure.spectra import Spectra
from gnomon.measure.spectra_dataset import correlation, over_heads, spread, strata


def tone(cycles: float, length: int = 64, depth: float = 1.0) -> torch.Tensor:
    time = torch.arange(length).double()
    signal = 1 + depth * torch.cos(2 * math.pi * cycles * time / length)
    return signal / signal.sum()


def chirp(length: int = 256) -> torch.Tensor:
    """Frequency rises evenly from 0 to Nyquist."""
    time = torch.arange(length).double()
    signal = 1 + torch.cos(math.pi * time**2 / (2 * length))
    return signal / signal.sum()


class TestPaper:
    def test_power_is_that_of_numpy_on_the_windowed_padded_signal(self):
        signal = torch.rand(96, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        expected = np.abs(np.fft.rfft(signal.numpy() * np.hanning(96), 128)) ** 2
        np.testing.assert_allclose(spectra_paper.power_spectrum(signal).numpy(), expected, rtol=1e-10, atol=1e-14)

    @pytest.mark.parametrize(("length", "padded"), [(16, 16), (17, 32), (64, 64), (96, 128), (129, 256)])
    def test_padding_goes_to_the_next_power_of_two(self, length: int, padded: int):
        assert spectra_paper.padded_length(length) == padded

    @pytest.mark.parametrize(("cycles", "band"), [(2, 0), (16, 1), (30, 2)])
    def test_a_tone_lies_in_its_band(self, cycles: int, band: int):
        signal = tone(cycles)
        wave = signal - signal.mean()
        assert float(spectra_paper.band_shares(spectra_paper.power_spectrum(wave))[band]) > 0.999

    def test_a_chirp_fills_bands_in_proportion_to_their_width(self):
        wave = chirp() - chirp().mean()
        flat = torch.fft.rfft(wave).abs().square()
        np.testing.assert_allclose(spectra_paper.band_shares(flat).numpy(), [0.25, 0.5, 0.25], atol=0.04)

    def test_band_edges_belong_to_the_lower_band(self):
        power = torch.zeros(9).double()
        power[[2, 6, 8]] = torch.tensor([1.0, 2.0, 3.0]).double()
        np.testing.assert_allclose(spectra_paper.band_shares(power).numpy(), [1 / 6, 2 / 6, 3 / 6])

    def test_one_key_makes_a_flat_spectrum(self):
        """All weight on one key inside the text: equal power in every bin."""
        signal = torch.zeros(64).double()
        signal[20] = 1
        found = spectra_paper.describe(signal)
        assert float(found["spectral_entropy"]) == pytest.approx(math.log(33))
        assert float(found["selectivity"]) == pytest.approx(1 / 32)
        assert float(found["positional_entropy"]) == pytest.approx(0)
        assert float(found["low_share"]) == pytest.approx(9 / 33)

    def test_a_pure_sink_has_no_spectrum_at_all(self):
        """The window is zero at position 0: 0 / 0 is missing, not a number, while positional entropy is 0."""
        signal = torch.zeros(64).double()
        signal[0] = 1
        found = spectra_paper.describe(signal)
        for name in ("spectral_entropy", "selectivity", "low_share", "mid_share", "high_share"):
            assert math.isnan(float(found[name])), name
        assert float(found["positional_entropy"]) == pytest.approx(0)

    def test_uniform_attention(self):
        """The Hann window itself: DC 1/2, first bin 1/4 of its amplitude (periodic, to the window's end point)."""
        signal = torch.full((64,), 1 / 64).double()
        found = spectra_paper.describe(signal)
        window = np.abs(np.fft.rfft(np.hanning(64))) ** 2
        assert float(found["selectivity"]) == pytest.approx(window[0] / window[1:].sum())
        assert float(found["selectivity"]) == pytest.approx(4, rel=0.05)
        assert float(found["positional_entropy"]) == pytest.approx(math.log(64))
        np.testing.assert_allclose(found["window_entropy"].numpy(), 1, atol=1e-12)
        assert float(found["low_share"]) > 0.999

    def test_window_entropy_by_its_definition(self):
        signal = torch.rand(50, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        values = []
        for start in range(50 - 16 + 1):
            part = signal[start : start + 16] / signal[start : start + 16].sum()
            values.append(float(-(part * part.log()).sum()) / math.log(16))
        assert float(spectra_paper.window_entropy(signal, 16)) == pytest.approx(np.mean(values))
        assert math.isnan(float(spectra_paper.window_entropy(signal, 64)))

    def test_reconstruction_is_rounding(self):
        signal = torch.rand(40, 97, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        found = spectra_paper.describe(signal)
        assert float(found["reconstruction_error_float64"].max()) < 1e-15
        assert 1e-8 < float(found["reconstruction_error"].mean()) < 1e-6

    def test_wavelet_entropy_by_scale_equals_one_transform_of_that_depth(self):
        import pywt

        signal = torch.rand(96, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        found = spectra_paper.wavelet_entropies(signal)
        approximation, *details = pywt.wavedec(signal.numpy(), "db2", mode="symmetric", level=5)

        def entropy(coefficients):
            share = coefficients**2 / (coefficients**2).sum()
            return -(share * np.log(share)).sum()

        np.testing.assert_allclose(found[0].numpy(), [entropy(d) for d in details[::-1]], rtol=1e-10)
        assert float(found[1, 4]) == pytest.approx(entropy(approximation))
        assert torch.isnan(spectra_paper.wavelet_entropies(signal[:16])[:, 2:]).all()

    def test_peaked_signals_have_flat_spectra_whatever_their_order(self):
        """Heads that differ in concentration alone: positional and spectral entropy are opposed without any structure."""
        generator = torch.Generator().manual_seed(4)
        weights = torch.rand(60, 96, generator=generator, dtype=torch.float64) ** torch.linspace(1, 40, 60)[:, None]
        weights /= weights.sum(-1, keepdim=True)
        found = spectra_paper.describe(weights)
        pair = torch.stack([found["positional_entropy"], found["spectral_entropy"]]).numpy()
        assert float(correlation(pair)) < -0.8


class TestCells:
    def test_sums_are_kept_and_a_tone_lands_in_its_cell(self):
        wave = tone(16, 64) - 1 / 64
        cells = spectra_cells.compact_spectrum(wave)
        assert float(cells.sum()) == pytest.approx(1)
        assert float(cells[15:17].sum()) > 0.6
        assert int(cells.argmax()) in (15, 16)

    def test_scalogram_places_an_impulse(self):
        signal = torch.zeros(160).double()
        signal[85] = 1
        cells = spectra_cells.compact_scalogram(signal)
        assert float(cells.nansum()) == pytest.approx(1)
        assert int(cells[0].argmax()) == int(85 / 160 * 16)


class TestCalibrated:
    def test_planted_tone_is_found_where_it_is(self):
        found = dict(zip(calibrated.STATISTICS, calibrated.statistics_of(tone(3)).tolist(), strict=True))
        assert found["low_share"] == pytest.approx(1)
        assert found["spectral_entropy"] == pytest.approx(-(2 / 3 * math.log(2 / 3) + 2 * (1 / 6) * math.log(1 / 6)))
        assert found["selectivity"] == pytest.approx(2)
        high = dict(zip(calibrated.STATISTICS, calibrated.statistics_of(tone(32)).tolist(), strict=True))
        assert high["high_share"] == pytest.approx(1)
        assert high["D1"] == pytest.approx(1)

    def test_scale_shares_add_up_and_shuffling_expects_their_dimensions(self):
        generator = torch.Generator().manual_seed(0)
        signal = torch.rand(4000, 64, generator=generator, dtype=torch.float64)
        shares = calibrated.statistics_of(signal)[:, -4:]
        np.testing.assert_allclose(shares.sum(-1).numpy(), 1, atol=1e-12)
        np.testing.assert_allclose(shares.mean(0).numpy(), np.array([7, 8, 16, 32]) / 63, atol=0.006)

    def test_false_positives_are_nominal_on_exchangeable_signals_and_a_planted_trend_is_found(self):
        generator = np.random.default_rng(0)
        signals = generator.gamma(0.5, size=(6, 5, 40, 64))
        wave = 1 + 0.8 * np.cos(2 * np.pi * 3 * np.arange(64) / 64)
        signals[:, 0] = wave * generator.gamma(5, size=(6, 40, 64))
        found = calibrated.permutation_test(signals / signals.sum(-1, keepdims=True), num_permutations=199, seed=1)
        low = calibrated.STATISTICS.index("low_share")
        null = found.p[:, 1:]
        assert 0.003 < (null <= 0.01).mean() < 0.02
        assert (found.p[low, 0] <= 0.01).mean() > 0.8
        assert (found.p_family[low, 0] <= 0.05).mean() > 0.8
        assert (found.p_family[low, 1:] <= 0.05).mean() < 0.01
        excess = (found.value - found.null)[low]
        assert excess[:, 0].mean() > 0.1
        assert abs(excess[:, 1:].mean()) < 4 * excess[:, 1:].std() / math.sqrt(excess[:, 1:].size)

    def test_a_profile_shared_by_all_texts_does_not_inflate_the_test(self):
        """Absolute positions make every text alike; shuffling each text by itself would reject far too often."""
        generator = np.random.default_rng(1)
        profile = generator.gamma(0.5, size=(1, 1, 150, 64))
        signals = profile * generator.gamma(20, 1 / 20, size=(12, 1, 150, 64))
        found = calibrated.permutation_test(signals, num_permutations=199, seed=2)
        assert (found.p <= 0.05).mean() < 0.1

    def test_flat_signals_are_missing(self):
        signals = np.full((4, 1, 2, 64), 1 / 64)
        signals[:, :, 1] *= np.random.default_rng(0).gamma(1, size=(4, 1, 64))
        found = calibrated.permutation_test(signals, num_permutations=19)
        assert np.isnan(found.p[:, 0, 0]).all()
        assert np.isfinite(found.p[:, 0, 1]).all()

    def test_rectangle_is_the_mean_over_late_queries(self):
        generator = torch.Generator().manual_seed(0)
        scores = torch.randn(2, 3, 40, 40, generator=generator).masked_fill(torch.ones(40, 40).triu(1).bool(), -torch.inf)
        weights = scores.softmax(-1)
        lengths = torch.tensor([40, 20])
        mask = MaskStructure(causal=True, lengths=lengths)
        queries = calibrated.late_queries(lengths, 16, 64)
        assert queries.tolist() == list(range(30, 40))
        found = calibrated.rectangle_signal(weights[:, :, queries], queries, mask, 16)
        expected = weights[0, :, 30:40, 1:17].double().mean(1)
        torch.testing.assert_close(found[0], expected / expected.sum(-1, keepdim=True), rtol=1e-6, atol=1e-9)
        assert torch.isnan(found[1]).all()

    def test_rectangle_is_missing_where_a_window_hides_keys(self):
        mask = MaskStructure(causal=True, lengths=torch.tensor([40]), window=24)
        queries = calibrated.late_queries(mask.lengths, 16, 64)
        rows = torch.full((1, 1, len(queries), 40), 1 / 40)
        assert torch.isnan(calibrated.rectangle_signal(rows, queries, mask, 16)).all()

    def test_late_queries_are_thinned_evenly(self):
        queries = calibrated.late_queries(torch.tensor([1000]), 64, 50)
        assert 50 <= len(queries) <= 63
        assert int(queries[0]) == 750


class TestOverHeads:
    def test_spread_and_correlation_match_numpy(self):
        values = np.random.default_rng(0).normal(size=(9, 2, 30))
        means = values.mean(0)
        np.testing.assert_allclose(over_heads(values, spread, seed=0).value[0, :2], [means[0].mean(), means[0].std()])
        interval = over_heads(values, correlation, seed=0)
        assert float(interval.value) == pytest.approx(np.corrcoef(means)[0, 1])
        assert interval.low < interval.value < interval.high

    def test_strata_are_powers_of_two_and_leave_short_texts_out(self):
        lengths = np.array([8, 16, 31, 32, 100, 200])
        found = strata(lengths, lengths >= 16)
        assert [label for label, _ in found] == ["16-31", "32-63", "64-127", "128-255"]
        assert [int(members.sum()) for _, members in found] == [2, 1, 1, 1]


def test_options_are_checked():
    with pytest.raises(ConfigError, match="num_keys"):
        Spectra(num_keys=60)
    with pytest.raises(ConfigError, match="num_permutations"):
        Spectra(num_permutations=5)

"""The ``spectra`` measure on planted attention and on tiny models: head by head, by length, against untrained weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gnomon.capture import capture_pass, install
from gnomon.measure import spectra_paper
from gnomon.measure.protocol import Observed, Subject
from gnomon.measure.spectra import Spectra
from gnomon.measure.spectra_untrained import beside_untrained
from gnomon.model import PositionModel
from tests.families.configs import FAMILIES
from tests.oracle.given import finished, view_of, windows_of


def by_column(profile, batch):
    """Attention in which every query of a bidirectional layer has the same row."""
    row = np.asarray(profile, dtype=float)
    return np.broadcast_to(row / row.sum(), (batch, 1, len(row), len(row))).copy()


def planted(length=128, batch=4, causal=False):
    time = np.arange(length)
    wave = by_column(1 + 0.9 * np.cos(2 * np.pi * time / 16), batch)
    peak = by_column(np.where(time == 40, 1.0, 1e-9), batch)
    even = by_column(np.ones(length), batch)
    sink = by_column(np.where(time == 0, 1.0, 1e-12), batch)
    return np.concatenate([wave, peak, even, sink], axis=1)


@pytest.fixture(scope="module")
def dataset():
    view = view_of(planted(), causal=False)
    return finished(Spectra(num_permutations=99), [view], windows_of([128] * 4, 128), causal=False)


def test_planted_heads_have_their_figures(dataset):
    entropy = dataset["paper_positional_entropy_mean"].values[0]
    np.testing.assert_allclose(entropy[[1, 2]], [0, np.log(128)], atol=1e-4)
    assert float(dataset["paper_selectivity_mean"][0, 1]) == pytest.approx(1 / 64, rel=1e-4)
    assert float(dataset["paper_low_share_mean"][0, 2]) > 0.999


def test_a_wave_of_period_16_is_found_in_both_spectra(dataset):
    spectrum = dataset["calibrated_spectrum"].values[0, 0]
    assert int(spectrum.argmax()) == 4  # 64 keys hold four periods
    assert float(dataset["calibrated_value"].sel(statistic="low_share")[0, 0]) == pytest.approx(1, abs=1e-4)
    assert float(dataset["calibrated_p"].sel(statistic="low_share")[0, 0]) <= 0.021


def test_flat_heads_are_missing_in_the_calibrated_convention_and_counted(dataset):
    assert np.isnan(dataset["calibrated_value"].sel(statistic="low_share")[0, 2])
    assert "flat to rounding" in dataset.attrs["missing"]


def test_headline_names_both_conventions(dataset):
    headline = Spectra().headline(dataset)
    for key in ("paper/spectral_entropy", "paper/selectivity", "paper/low_share", "paper/rho", "calibrated/low_share_excess"):
        assert key in headline
    assert headline["paper/128-255/selectivity"].n == 4
    assert headline["paper/reconstruction_error_float64"].value < 1e-15
    assert headline["calibrated/amplitude"].n == 4


def test_texts_too_short_give_reasons_not_numbers():
    view = view_of(planted(12)[:, :2], causal=False)
    dataset = finished(Spectra(num_permutations=19), [view], windows_of([12] * 4, 12), causal=False)
    headline = Spectra().headline(dataset)
    assert headline["paper/spectral_entropy"].is_missing
    assert headline["calibrated/low_share_excess"].reason == "no text is long enough, or every one has hidden keys"
    assert "shorter than 16" in dataset.attrs["missing"]


def surveyed(model, lengths, measure):
    generator = torch.Generator().manual_seed(5)
    width = max(lengths)
    tokens = torch.randint(8, 264, (len(lengths), width), generator=generator)
    windows = windows_of(lengths, width, tokens=tokens.numpy())
    subject = Subject(anatomy=model.anatomy, scheme=model.scheme, windows=windows)
    layers = []
    capture_pass(
        model,
        torch.from_numpy(windows.tokens.copy()),
        torch.tensor(lengths),
        None,
        measure.needs(subject),
        lambda view: layers.append(measure.observe(view)),
    )
    kept = {name: torch.stack([layer[name] for layer in layers], 1).numpy() for name in layers[0]}
    return measure.finish(Observed(layers=kept, subject=subject))


@pytest.mark.parametrize("name", ["llama", "gemma2", "bert"])
def test_mixed_lengths_equal_the_matrix_text_by_text(name):
    family = FAMILIES[name]
    model = install(PositionModel.of(family.build(), name=name, stack=family.stack))
    lengths = [70, 33, 20]
    measure = Spectra(num_permutations=19, num_keys=32)
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(8, 264, (3, 70), generator=generator)
    dataset = surveyed(model, lengths, measure)
    for text, length in enumerate(lengths):
        rows = []
        capture_pass(
            model,
            tokens[text : text + 1, :length],
            torch.tensor([length]),
            None,
            None,
            lambda view, rows=rows, length=length: rows.append(view.rows(torch.arange(length))[0].double()),
        )
        signal = torch.stack(rows).mean(2)
        expected = spectra_paper.describe(signal)
        for key in ("spectral_entropy", "selectivity", "low_share", "positional_entropy"):
            np.testing.assert_allclose(dataset[f"paper_{key}"][text], expected[key].numpy(), rtol=2e-3, atol=1e-4)
    assert dataset.attrs["wavelet_level"] == 2
    assert dataset["texts_by_length"].values.tolist() == [1, 1, 1]


def test_untrained_control_is_paired_by_text():
    view = view_of(planted(), causal=False)
    other = view_of(planted()[:, [2, 1, 2, 1]], causal=False)
    windows = windows_of([128] * 4, 128)
    one, two = (finished(Spectra(num_permutations=19), [v], windows, causal=False) for v in (view, other))
    beside = beside_untrained(one, two)
    row = beside.sel(quantity="paper/positional_entropy")
    expected = one["paper_positional_entropy"].mean().item() - two["paper_positional_entropy"].mean().item()
    assert float(row["difference"]) == pytest.approx(expected, rel=1e-4)
    assert float(row["standard_error"]) < 1e-6
    assert float(abs(beside_untrained(one, one)["difference"].fillna(0)).max()) == 0

"""Leakage of synthetic attention with known answers, in float64."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from gnomon.kernels.problem import AttentionProblem, MaskStructure
from gnomon.kernels.reference import dense_logits
from gnomon.measure.leakage import leakage_dataset, leakage_headline
from gnomon.measure.leakage_components import LeakageArrays
from gnomon.measure.leakage_grid import OFFSETS, grid_of_length
from gnomon.measure.leakage_logits import content_counts, observe_logits, reference_queries

LENGTH = 200
GRID = grid_of_length(LENGTH)
HEADLINE_BANDS = ("early", "middle", "late")


def arrays_from(logits_NQR, denominators_NQ):
    """One layer, one head; a key at position 0 or before is missing."""
    visible = GRID.queries[:, None] - GRID.offsets[None] >= 1
    logits = np.where(visible, logits_NQR, np.nan)[:, None, None]
    missing = np.full_like(denominators_NQ, np.nan)[:, None, None]
    return LeakageArrays(logits, denominators_NQ[:, None, None], missing, missing)


def noise(generator, number, scale=1.0):
    shared = generator.standard_normal((number, 1, 1))
    return scale * (generator.standard_normal((number, len(GRID.queries), len(OFFSETS))) + shared)


def truth(profile_Q, band):
    """Mean over offsets of the variance over the positions where the key is content."""
    queries = GRID.of_band(band)
    values = []
    for offset in GRID.offsets:
        keep = queries[GRID.queries[queries] - offset >= 1]
        if len(keep) >= 3:
            values.append(profile_Q[keep].var())
    return np.mean(values)


def expected_log_sum(number, sigma):
    """E log of a sum of ``number`` exponentials of N(0, sigma^2), by Frullani's integral of the Laplace transform."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def integrand(u):
        t = np.exp(u)
        return np.exp(-t) - (weights @ np.exp(-t * np.exp(sigma * nodes))) ** number

    return quad(integrand, -40, 8, limit=400)[0]


def leaky(generator, number, residual, mask):
    logits = noise(generator, number) + residual[None, :, None]
    denominators = mask[None] + 0.5 * generator.standard_normal((number, len(GRID.queries)))
    return arrays_from(logits, denominators)


@pytest.mark.parametrize(("with_residual", "with_mask"), [(True, False), (False, True), (True, True), (False, False)])
def test_planted_components_are_recovered_within_their_intervals(with_residual, with_mask):
    position = GRID.queries.astype(float)
    residual = with_residual * 1.5 * np.exp(-position / 12)
    mask = with_mask * np.array([expected_log_sum(int(i) + 1, 0.8) for i in GRID.queries])
    hits = {name: [] for name in ("residual", "mask", "total")}
    for seed in range(24):
        headline = leakage_headline(leakage_dataset(leaky(np.random.default_rng(seed), 24, residual, mask), GRID, draws=19))
        for band, label in enumerate(HEADLINE_BANDS):
            for name, profile in {"residual": residual, "mask": mask, "total": residual - mask}.items():
                estimate = headline[f"{name}_{label}"]
                hits[name].append(estimate.low <= truth(profile, band) <= estimate.high)
    for name, inside in hits.items():
        assert np.mean(inside) > 0.88, name


def test_a_planted_leak_is_significant_and_its_absence_is_not():
    position = GRID.queries.astype(float)
    generator = np.random.default_rng(11)
    flat = np.zeros(len(position))
    leak = leakage_headline(leakage_dataset(leaky(generator, 24, np.log(position), flat), GRID, draws=199))
    none = leakage_headline(leakage_dataset(leaky(generator, 24, flat, flat), GRID, draws=199))
    assert leak["p_residual_early"].value == pytest.approx(1 / 200)
    assert all(none[f"p_residual_{label}"].value > 0.05 for label in HEADLINE_BANDS)


def test_the_parts_add_up_exactly():
    generator = np.random.default_rng(3)
    position = GRID.queries.astype(float)
    dataset = leakage_dataset(leaky(generator, 10, np.log(position), -np.sqrt(position)), GRID, draws=9)
    for prefix in ("", "layer_", "model_"):
        parts = dataset[prefix + "residual"] + dataset[prefix + "mask"] - 2 * dataset[prefix + "covariance"]
        np.testing.assert_allclose(parts.values, dataset[prefix + "total"].values, rtol=2e-6, atol=1e-6)
    assert np.isnan(dataset["total"].sel(offset=32, query_band="early")).all()


def problem(number, *, length=LENGTH, causal=True, window=None, generator=None, scale=1.0, sinks=None):
    shape = (number, 2, length, 4)
    if generator is None:
        query = key = torch.zeros(shape, dtype=torch.float64)
    else:
        query = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
        key = torch.randn(shape, generator=generator, dtype=torch.float64)[:, :1]
    mask = MaskStructure(causal=causal, lengths=torch.full((number,), length), window=window)
    return AttentionProblem(query=query, key=key, value=key, scaling=0.5, mask=mask, sinks=sinks)


def log_denominators(one):
    lse = torch.logsumexp(dense_logits(one), -1)
    return lse if one.sinks is None else torch.logaddexp(lse, one.sinks.double()[None, :, None])


def surveyed(one):
    seen = observe_logits(one, log_denominators(one), GRID)
    names = ("logit", "log_denominator", "denominator_stationary", "denominator_fixed")
    arrays = LeakageArrays(*(seen[name].numpy()[:, None] for name in names))
    return leakage_dataset(arrays, GRID, draws=9)


def test_equal_logits_leak_through_the_mask_alone():
    dataset = surveyed(problem(5))
    growth = np.log(GRID.queries + 1.0)
    for band in range(3):
        at = dataset.isel(query_band=band)
        np.testing.assert_allclose(float(at["model_mask"]), truth(growth, band), rtol=1e-5)
        np.testing.assert_allclose(float(at["model_mask_alone"]), truth(growth, band), rtol=1e-5)
        np.testing.assert_allclose(float(at["model_mask_effect"]), truth(growth, band), rtol=1e-5)
        for name in ("residual", "covariance", "residual_alone", "residual_effect", "interaction"):
            assert abs(float(at[f"model_{name}"])) < 1e-7, name


def test_a_window_stops_the_growth_of_the_mask_component():
    dataset = surveyed(problem(5, window=24))
    assert float(dataset["model_mask"].sel(query_band="early")) > 0.1
    for name in ("mask", "mask_alone"):
        for band in ("middle", "late"):
            assert abs(float(dataset[f"model_{name}"].sel(query_band=band))) < 1e-9
    assert np.isnan(dataset["total"].sel(offset=32)).all()
    assert np.isfinite(dataset["total"].sel(offset=16, query_band="late")).all()


def test_a_bidirectional_layer_has_no_mask_component_and_no_counterfactual():
    dataset = surveyed(problem(5, causal=False))
    assert np.nanmax(np.abs(dataset["mask"].values)) < 1e-9
    assert np.isnan(dataset["model_mask_alone"]).all()


def test_independent_content_leaks_as_much_as_the_number_of_keys_says():
    dataset = surveyed(problem(48, generator=torch.Generator().manual_seed(0)))
    for band in ("early", "middle", "late"):
        at = dataset.sel(query_band=band)
        assert float(at["model_residual_low"]) <= 0 <= float(at["model_residual_high"])
        assert float(at["model_mask_low"]) <= float(at["model_mask_alone"]) <= float(at["model_mask_high"])
    assert float(dataset["model_mask_alone"].sel(query_band="early")) > 0.2


def test_counterfactual_denominators_equal_their_definition():
    generator = torch.Generator().manual_seed(1)
    one = problem(2, generator=generator, sinks=torch.tensor([0.3, -1.0], dtype=torch.float64))
    seen = observe_logits(one, log_denominators(one), GRID)
    scores = dense_logits(one).numpy()
    references = reference_queries(one.mask, GRID)
    assert references.content.tolist() == list(range(LENGTH - 8, LENGTH))
    sinks = one.sinks.numpy()
    for place in (0, 7, 15, len(GRID.queries) - 1):
        i = int(GRID.queries[place])
        for head in range(2):
            sums = [
                np.log(np.exp([*scores[0, head, r, r - i + 1 : r + 1], scores[0, head, r, 0], sinks[head]]).sum())
                for r in references.content
            ]
            np.testing.assert_allclose(seen["denominator_stationary"][0, head, place], np.mean(sums), rtol=1e-5)
            keys = int(GRID.queries[GRID.band == GRID.band[place]].min())
            own = np.exp([*scores[0, head, i, i - keys + 1 : i + 1], scores[0, head, i, 0], sinks[head]]).sum()
            np.testing.assert_allclose(seen["denominator_fixed"][0, head, place], np.log(own), rtol=1e-5)
            for offset_index, offset in enumerate(GRID.offsets):
                got = float(seen["logit"][0, head, place, offset_index])
                if i - offset >= 1:
                    np.testing.assert_allclose(got, scores[0, head, i, i - offset], rtol=1e-5)
                else:
                    assert np.isnan(got)


def test_windowed_counts_and_references():
    mask = MaskStructure(causal=True, lengths=torch.tensor([LENGTH]), window=24)
    assert content_counts(mask, np.array([0, 1, 5, 23, 24, 100])).tolist() == [0, 1, 5, 23, 24, 24]
    references = reference_queries(mask, GRID)
    assert references.anchor.max() == 23
    assert references.content.max() == LENGTH - 1


def test_a_short_sequence_counts_only_where_it_reaches():
    one = problem(5)
    lengths = torch.tensor([LENGTH, LENGTH, LENGTH, LENGTH, 100])
    one = AttentionProblem(
        query=one.query, key=one.key, value=one.value, scaling=0.5, mask=MaskStructure(causal=True, lengths=lengths)
    )
    dataset = surveyed(one)
    assert dataset["num_sequences"].values.tolist() == [5, 4, 4]


@pytest.mark.parametrize(("number", "length", "reason"), [(3, LENGTH, "at least 4"), (5, 60, "do not reach")])
def test_too_little_gives_a_reason_instead_of_a_number(number, length, reason):
    grid = grid_of_length(length)
    one = problem(number, length=length)
    seen = observe_logits(one, log_denominators(one), grid)
    arrays = LeakageArrays(*(seen[key].numpy()[:, None] for key in seen))
    headline = leakage_headline(leakage_dataset(arrays, grid, draws=9))
    assert headline["mask_late"].is_missing
    assert reason in headline["mask_late"].reason


@pytest.mark.parametrize("length", [2, 3, 4, 8])
def test_very_short_text_gives_reasons_only(length):
    grid = grid_of_length(length)
    one = problem(5, length=length, generator=torch.Generator().manual_seed(0))
    seen = observe_logits(one, log_denominators(one), grid)
    arrays = LeakageArrays(*(seen[key].numpy()[:, None] for key in seen))
    headline = leakage_headline(leakage_dataset(arrays, grid, draws=9))
    assert all(estimate.reason for name, estimate in headline.items() if not name.endswith("early"))
    assert headline["residual_early"].is_missing is (length < 8)
    assert np.isfinite(headline["residual_early"].value) or headline["residual_early"].reason


def test_a_few_queries_at_a_time_give_the_same(monkeypatch):
    one = problem(2, generator=torch.Generator().manual_seed(3))
    whole = observe_logits(one, log_denominators(one), GRID)
    monkeypatch.setattr("gnomon.measure.leakage_logits.MAX_CELLS", 7 * 2 * 2 * LENGTH)
    parts = observe_logits(one, log_denominators(one), GRID)
    for name, values in whole.items():
        torch.testing.assert_close(parts[name], values, equal_nan=True)

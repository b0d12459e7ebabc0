"""Random-matrix statistics against the law and against closed forms."""

import numpy as np
import pytest
import torch

from gnomon.measure.matrix import Matrix, law_at, marchenko_pastur_statistics, singular_statistics
from tests.oracle.given import finished, star, view_of, windows_of


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0])
def test_the_law_is_a_distribution_with_mean_one_and_variance_ratio(ratio):
    low, high = (1 - ratio**0.5) ** 2, (1 + ratio**0.5) ** 2
    values = torch.linspace(low, high, 20001, dtype=torch.float64)
    law = law_at(values, ratio)
    assert law[0] == pytest.approx(0, abs=1e-9)
    assert law[-1] == pytest.approx(1)
    assert (law.diff() >= 0).all()
    middle = (values[1:] + values[:-1]) / 2
    mean = float((middle * law.diff()).sum())
    assert mean == pytest.approx(1, abs=2e-3)
    assert float(((middle - 1) ** 2 * law.diff()).sum()) == pytest.approx(ratio, rel=5e-3)


def test_independent_entries_follow_the_law_and_a_shared_row_does_not():
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(1, 1, 200, 400, generator=generator, dtype=torch.float64)
    free = marchenko_pastur_statistics(noise)
    assert float(free["distance"]) < 0.02
    assert float(free["spread"]) == pytest.approx(1, abs=0.03)
    assert float(free["outside"]) == 0
    shared = noise[:, :, :1].expand(1, 1, 200, 400)
    bound = marchenko_pastur_statistics(shared)
    # all rows are correlated fully
    assert float(bound["spread"]) == pytest.approx(399, rel=1e-6)
    assert float(bound["outside"]) == pytest.approx(1 / 200)
    assert float(bound["distance"]) > 0.9


def test_spread_of_shuffled_rows_is_one_at_any_size_and_for_heavy_tails():
    generator = torch.Generator().manual_seed(1)
    rows = torch.rand(1, 1, 4, 8, generator=generator, dtype=torch.float64) ** 8
    order = torch.rand(1, 4000, 4, 8, generator=generator).argsort(-1)
    shuffled = torch.gather(rows.expand(1, 4000, 4, 8), -1, order)
    assert float(marchenko_pastur_statistics(shuffled)["spread"].mean()) == pytest.approx(1, abs=0.05)


def test_gap_and_participation_in_closed_form():
    identity = singular_statistics(torch.eye(6, dtype=torch.float64)[None, None])
    assert float(identity["gap"]) == pytest.approx(0, abs=1e-6)
    assert float(identity["participation"]) == pytest.approx(6)
    same = singular_statistics(torch.full((1, 1, 6, 6), 1 / 6))
    assert float(same["gap"]) == pytest.approx(1, abs=1e-6)
    assert float(same["participation"]) == pytest.approx(1)
    generator = np.random.default_rng(0)
    matrix = generator.dirichlet(np.ones(7), 7)
    values = np.linalg.svd(matrix, compute_uv=False)
    out = singular_statistics(torch.tensor(matrix)[None, None])
    assert float(out["gap"]) == pytest.approx((values[0] - values[1]) / values[0], rel=1e-5)
    assert float(out["participation"]) == pytest.approx((values**2).sum() ** 2 / (values**4).sum(), rel=1e-5)
    assert np.isnan(float(singular_statistics(torch.zeros(1, 1, 3, 3))["gap"]))


def test_random_rows_lie_at_their_shuffled_null_and_shared_rows_far_from_it():
    generator = np.random.default_rng(1)
    random = generator.dirichlet(np.ones(64), (6, 2, 64))
    dataset = finished(Matrix(), [view_of(random, causal=False)], causal=False)
    headline = Matrix().headline(dataset)
    assert headline["spread"].value == pytest.approx(headline["spread_shuffled"].value, abs=0.1)
    assert headline["distance"].value < 0.25
    shared = generator.dirichlet(np.ones(64), (6, 2, 1)).repeat(64, 2)
    shared = 0.9 * shared + 0.1 * random
    headline = Matrix().headline(finished(Matrix(), [view_of(shared, causal=False)], causal=False))
    assert headline["spread"].low > 5 * headline["spread_shuffled"].high
    assert headline["gap"].low > 0.8


def test_short_uniform_and_windowed_layers_are_missing_with_a_reason():
    def of(matrix, **mask):
        return Matrix().headline(
            finished(Matrix(), [view_of(np.broadcast_to(matrix, (3, 1, *matrix.shape)), causal=True, **mask)])
        )

    assert of(star(12, 0.3))["distance"].is_missing
    assert of(star(24, 0.0))["distance"].is_missing
    assert "sixteen" in of(star(12, 0.3))["distance"].reason
    assert of(star(24, 0.3), window=4)["spread"].is_missing
    assert not of(star(12, 0.3))["gap"].is_missing


def test_short_sequences_of_a_mixed_batch_are_left_out():
    generator = np.random.default_rng(3)
    matrix = np.tril(generator.gamma(0.5, size=(5, 1, 24, 24)) + 1e-9)
    matrix /= matrix.sum(-1, keepdims=True)
    lengths = [24, 20, 18, 9, 5]
    dataset = finished(Matrix(), [view_of(matrix, causal=True, lengths=lengths)], windows_of(lengths, 24))
    long = finished(Matrix(), [view_of(matrix[:3], causal=True, lengths=lengths[:3])], windows_of(lengths[:3], 24))
    assert float(dataset["spread"][0, 0]) == pytest.approx(float(long["spread"][0, 0]), rel=1e-5)

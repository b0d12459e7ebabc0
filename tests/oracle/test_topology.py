"""Homology against closed forms, ripser and the graph measure."""

import numpy as np
import pytest
import torch

from gnomon.measure.graph import THRESHOLDS, graph_statistics
from gnomon.measure.topology import Topology, farthest_points, loop_bars, loop_statistics, parts_statistics
from tests.oracle.given import finished, star, view_of


def distances_of(matrix):
    distances = 1 - np.maximum(matrix, matrix.T)
    np.fill_diagonal(distances, 0)
    return distances


def parts(distances):
    size = len(distances)
    out = parts_statistics(torch.tensor(distances)[None, None], torch.ones(1, size, dtype=torch.bool))
    return {name: float(values) for name, values in out.items()}


def test_a_cycle_is_one_loop_from_its_edges_to_its_filling():
    weight = 0.4
    distances = distances_of(np.roll(np.eye(6), 1, axis=1) * weight)
    bars = loop_bars(distances)
    np.testing.assert_allclose(bars, [[1 - weight, 1.0]])
    total, entropy, loops, *alive = loop_statistics(bars, (0.2, 0.5))
    assert (total, entropy, loops) == (pytest.approx(weight), pytest.approx(0), 1)
    assert alive == [1, 0]
    out = parts(distances)
    assert out["total_0"] == pytest.approx(5 * (1 - weight))
    assert out["entropy_0"] == pytest.approx(np.log(5))


def test_two_components_join_at_distance_one_and_a_star_has_no_loop():
    two = np.zeros((8, 8))
    two[:4, :4] = two[4:, 4:] = 0.7
    out = parts(distances_of(two))
    assert out["total_0"] == pytest.approx(6 * 0.3 + 1)
    hub = np.zeros((8, 8))
    hub[1:, 0] = 0.6
    assert len(loop_bars(distances_of(hub))) == 0
    assert np.isnan(loop_statistics(np.empty((0, 2)), (0.1,))[1])


@pytest.mark.parametrize("seed", range(4))
def test_against_ripser(seed):
    ripser = pytest.importorskip("ripser").ripser
    generator = np.random.default_rng(seed)
    distances = distances_of(generator.dirichlet(np.full(14, 0.3), 14))
    expected = ripser(distances, distance_matrix=True, maxdim=1)["dgms"]
    bars = loop_bars(distances)
    order = lambda array: array[np.lexsort(array.T)]  # noqa: E731
    np.testing.assert_allclose(order(bars), order(expected[1].astype(float)), atol=1e-6)
    deaths = expected[0][np.isfinite(expected[0][:, 1]), 1]
    assert parts(distances)["total_0"] == pytest.approx(deaths.sum(), rel=1e-5)


def test_parts_alive_equal_the_components_of_the_graph():
    generator = np.random.default_rng(8)
    matrix = generator.dirichlet(np.full(12, 0.1), 12)
    from gnomon.measure.graph import spanning_tree

    deaths = -spanning_tree(-torch.tensor(distances_of(matrix))[None], torch.ones(1, 12, dtype=torch.bool))[0].numpy()
    real = torch.ones(1, 12, dtype=torch.bool)
    components = graph_statistics(torch.tensor(matrix)[None, None], real, THRESHOLDS)["components"][0, 0].numpy()
    alive = [1 + (deaths >= 1 - threshold).sum() for threshold in THRESHOLDS]
    assert alive == components.tolist()


def test_farthest_points_start_at_the_first_and_spread():
    line = np.abs(np.subtract.outer(np.arange(10.0), np.arange(10.0)))
    assert farthest_points(line, 3).tolist() == [0, 9, 4]
    assert farthest_points(line, 20).tolist()[:2] == [0, 9]
    assert len(set(farthest_points(line, 10))) == 10
    generator = np.random.default_rng(1)
    matrix = generator.dirichlet(np.full(60, 0.3), 60)
    kept = farthest_points(distances_of(matrix), 20)
    np.testing.assert_allclose(loop_bars(distances_of(matrix), 20), loop_bars(distances_of(matrix)[np.ix_(kept, kept)], 20))


def test_dataset_samples_loops_and_computes_all_parts():
    length = 16
    matrix = np.broadcast_to(star(length, 0.8), (5, 4, length, length))
    measure = Topology(heads=2, sequences=3)
    dataset = finished(measure, [view_of(matrix, causal=True)])
    loops = dataset["attention_loops"].values[0]
    assert np.isfinite(loops).tolist() == [True, False, False, True]
    assert dataset.attrs["sequences_with_loops"] == 3
    assert np.isfinite(dataset["attention_total_0"].values).all()
    # every token joins the hub at 1 - (0.8 + 0.2 / (i + 1))
    expected = sum(0.2 * (1 - 1 / (i + 1)) for i in range(1, length))
    assert float(dataset["attention_total_0"][0, 0]) == pytest.approx(expected, rel=1e-5)
    uniform = sum(1 - 1 / (i + 1) for i in range(1, length))
    assert float(dataset["attention_total_0_uniform"][0]) == pytest.approx(uniform, rel=1e-5)
    assert measure.headline(dataset)["attention_total_0"].n == 5
    everything = finished(Topology(heads=None, sequences=None), [view_of(matrix, causal=True)])
    assert np.isfinite(everything["attention_loops"].values).all()


def test_equal_rows_have_no_hellinger_persistence_and_three_tokens_no_answer():
    matrix = np.full((3, 1, 6, 6), 1 / 6)
    dataset = finished(Topology(), [view_of(matrix, causal=False)], causal=False)
    assert float(dataset["hellinger_total_0"][0, 0]) == pytest.approx(0, abs=3e-3)
    short = finished(Topology(), [view_of(np.full((3, 1, 3, 3), 1 / 3), causal=False)], causal=False)
    assert Topology().headline(short)["attention_total_0"].is_missing

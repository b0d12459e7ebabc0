"""Graph quantities against closed forms and networkx."""

import networkx as nx
import numpy as np
import pytest
import torch

from gnomon.measure.graph import Graph, graph_statistics, spanning_tree
from tests.oracle.given import finished, star, view_of, windows_of


def statistics(matrix, thresholds=(0.1,), real=None):
    matrix = torch.as_tensor(np.asarray(matrix, dtype=np.float64))[None, None]
    real = torch.ones(1, matrix.shape[-1], dtype=torch.bool) if real is None else torch.as_tensor(real)[None]
    return {name: values[0, 0].numpy() for name, values in graph_statistics(matrix, real, thresholds).items()}


@pytest.mark.parametrize("leaves", [3, 7, 30])
def test_star(leaves):
    matrix = np.zeros((leaves + 1, leaves + 1))
    matrix[1:, 0] = 0.9
    out = statistics(matrix)
    assert out["fiedler"][0] == pytest.approx(1)
    assert out["centralization"][0] == pytest.approx(1)
    assert out["star"][0] == pytest.approx(1)
    assert out["components"][0] == 1
    assert out["in_centralization"][0] == pytest.approx(1)
    assert out["reciprocity"][0] == 0


def test_cycle_complete_and_two_components():
    size = 8
    cycle = np.roll(np.eye(size), 1, axis=1)
    out = statistics(cycle)
    assert out["fiedler"][0] == pytest.approx(2 - 2 * np.cos(2 * np.pi / size))
    assert out["centralization"][0] == 0
    out = statistics(np.full((size, size), 0.5))
    assert out["fiedler"][0] == pytest.approx(size)
    assert out["reciprocity"][0] == 1
    assert out["density"][0] == 1
    assert out["star"][0] == pytest.approx(2 / size)
    two = np.zeros((size, size))
    two[:4, :4] = two[4:, 4:] = 0.5
    out = statistics(two)
    assert out["components"][0] == 2
    assert out["fiedler"][0] == 0


def test_no_edges_one_token_and_few_tokens_have_defined_answers():
    out = statistics(np.zeros((6, 6)))
    assert (out["fiedler"], out["components"], out["centralization"], out["star"]) == (0, 6, 0, 0)
    assert np.isnan(out["reciprocity"][0])
    out = statistics(np.ones((3, 3)))
    assert all(np.isnan(values[0]) for values in out.values())
    everything_on_one = np.zeros((6, 6))
    everything_on_one[:, 2] = 1
    assert statistics(everything_on_one)["centralization"][0] == pytest.approx(1)


@pytest.mark.parametrize("seed", range(6))
def test_against_networkx(seed):
    generator = np.random.default_rng(seed)
    size, extra = int(generator.integers(4, 14)), int(generator.integers(0, 4))
    matrix = generator.dirichlet(np.full(size + extra, 0.2), size + extra)
    matrix = np.tril(matrix) if seed % 2 else matrix
    real = np.arange(size + extra) < size
    thresholds = (0.001, 0.02, 0.1, 0.2)
    out = statistics(matrix, thresholds, real)
    matrix = matrix[:size, :size]
    for index, threshold in enumerate(thresholds):
        joined = np.maximum(matrix, matrix.T) > threshold
        np.fill_diagonal(joined, False)
        graph = nx.from_numpy_array(joined)
        directed = matrix > threshold
        np.fill_diagonal(directed, False)
        arrows = nx.from_numpy_array(directed, create_using=nx.DiGraph)
        laplacian = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))
        degrees = np.array([degree for _, degree in graph.degree()])
        into = np.array([degree for _, degree in arrows.in_degree()])
        assert out["components"][index] == nx.number_connected_components(graph)
        assert out["fiedler"][index] == pytest.approx(max(0, laplacian[1]), abs=1e-9)
        assert out["density"][index] == pytest.approx(nx.density(graph))
        assert out["centralization"][index] == pytest.approx((degrees.max() - degrees).sum() / ((size - 1) * (size - 2)))
        assert out["in_centralization"][index] == pytest.approx((into.max() - into).sum() / (size - 1) ** 2)
        if arrows.number_of_edges():
            assert out["reciprocity"][index] == pytest.approx(nx.overall_reciprocity(arrows))


def test_spanning_tree_has_networkx_weights():
    generator = np.random.default_rng(5)
    weights = generator.random((9, 9))
    weights = np.maximum(weights, weights.T)
    np.fill_diagonal(weights, 0)
    tree = nx.maximum_spanning_tree(nx.from_numpy_array(weights))
    expected = sorted(data["weight"] for _, _, data in tree.edges(data=True))
    found = spanning_tree(torch.tensor(weights)[None], torch.ones(1, 9, dtype=torch.bool))[0]
    np.testing.assert_allclose(np.sort(found.numpy()), expected)


def test_dataset_of_star_heads_and_its_nulls():
    matrix = np.broadcast_to(star(20, 0.9), (4, 3, 20, 20))
    dataset = finished(Graph(), [view_of(matrix, causal=True), view_of(matrix, causal=True, layer=1)])
    assert dict(dataset["fiedler"].sizes) == {"layer": 2, "head": 3, "threshold": 7}
    assert float(dataset["centralization"].sel(threshold=0.2)[0, 0]) == pytest.approx(1)
    headline = Graph().headline(dataset)
    assert headline["centralization"].value > headline["centralization_shuffled"].value + 0.3
    assert headline["star"].n == 4
    # uniform attention: i > j are joined when 1 / (i + 1) > theta
    edges = sum(i for i in range(20) if 1 / (i + 1) > 0.1)
    assert float(dataset["density_uniform"].sel(threshold=0.1)[0]) == pytest.approx(edges / 190)


def test_long_sequences_are_sampled_and_short_ones_missing():
    matrix = np.broadcast_to(star(90, 0.8), (1, 1, 90, 90))
    dataset = finished(Graph(null_heads=1), [view_of(matrix, causal=True)])
    assert float(dataset["centralization"].sel(threshold=0.2)[0, 0]) == pytest.approx(1)
    short = np.broadcast_to(star(3, 0.8), (3, 1, 3, 3))
    headline = Graph().headline(finished(Graph(), [view_of(short, causal=True)], windows_of([3, 3, 3], 3)))
    assert headline["fiedler"].is_missing
    assert "fewer than 4" in headline["fiedler"].reason

"""Return probabilities of random walks, against powers of the transition matrix."""

import networkx as nx
import numpy as np
import pytest
import torch

from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.walks import MAX_NODES, STEPS, return_probabilities
from helpers.errors import error_with
from helpers.tolerances import close


def joined(*parts: nx.Graph) -> Graphs:
    start = np.cumsum([0, *map(len, parts)])
    edges = [np.array([*g.edges, *((v, u) for u, v in g.edges)]).reshape(-1, 2).T for g in parts]
    shifted = [pairs + first for pairs, first in zip(edges, start, strict=False)]
    return Graphs("walks", start, np.concatenate(shifted, axis=1).astype(np.int64))


@pytest.mark.parametrize("seed", range(3))
def test_diagonals_of_powers(seed):
    parts = [nx.gnp_random_graph(n, 0.3, seed=seed) for n in (1, 7, 12)]
    found, row = return_probabilities(joined(*parts)), 0
    for graph in parts:
        adjacency = nx.to_numpy_array(graph)
        step = adjacency / np.maximum(adjacency.sum(1, keepdims=True), 1)
        powers = [np.linalg.matrix_power(step, k) for k in range(2, STEPS + 1)]
        expected = np.stack([np.diag(power) for power in powers], axis=1)
        assert close(found[row : row + len(graph)], expected, torch.float32)
        row += len(graph)


def test_self_loops_and_edges_listed_twice_do_not_count():
    ring = joined(nx.cycle_graph(5))
    loops = np.concatenate([ring.edges, ring.edges, [[0, 2], [0, 2]]], axis=1)
    other = Graphs("loops", ring.start, loops)
    assert np.array_equal(return_probabilities(other), return_probabilities(ring))


def test_rings_of_different_sizes_differ():
    """One-hot degrees cannot tell them apart."""
    graphs = joined(nx.cycle_graph(5), nx.cycle_graph(6))
    encoding = Encoding.fit(graphs, "degree+walks")
    assert encoding.describe() == f"degree (3), walks ({STEPS - 1}, standardised)"
    features = encoding.encode(graphs)
    assert np.array_equal(features[0, :3], features[-1, :3])
    assert abs(features[0, 3:] - features[-1, 3:]).max() > 0.05


def test_large_graphs_are_an_error():
    large = Graphs("large", np.array([0, MAX_NODES + 1]), np.zeros((2, 0), np.int64))
    with error_with('at most 4,096 nodes for features="walks"', "4,097 in graph 0 of large"):
        Encoding.fit(large, "walks").encode(large)

"""Rings: generated graphs that a network can learn."""

import networkx as nx
import numpy as np
import pytest

from haarpool import HaarClassifier
from haarpool.datasets import Graphs, read_graphs
from helpers.errors import error_with

DIGEST = "787e0afc9fcad848e1bf10b260456eecc0d755b1d1f1372cd1c724d58372b0c9"


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    return read_graphs("rings")


def _networks(graphs: Graphs) -> list[nx.Graph]:
    return [nx.from_scipy_sparse_array(graphs.batch[g]) for g in range(len(graphs))]


def test_a_seed_determines_the_graphs(graphs):
    assert graphs.digest() == DIGEST
    assert read_graphs("Rings", seed=0).digest() == DIGEST
    assert read_graphs("rings", seed=1).digest() != DIGEST
    with error_with("seed in 0..2147483647", "-1"):
        read_graphs("rings", seed=-1)
    with error_with("task classification for rings", "regression"):
        read_graphs("rings", task="regression")


def test_graphs_are_simple_and_connected(graphs):
    assert (len(graphs), graphs.sizes.min(), graphs.sizes.max()) == (240, 16, 28)
    assert set(np.unique(graphs.columns["labels"])) == {0, 1, 2}
    for graph in _networks(graphs):
        assert nx.is_connected(graph)
        assert nx.number_of_selfloops(graph) == 0
        assert {len(cycle) for cycle in nx.minimum_cycle_basis(graph)} <= {5, 6}


def test_rings_of_one_class_share_edges(graphs):
    for graph, target in zip(_networks(graphs), graphs.targets, strict=True):
        rings = [set(cycle) for cycle in nx.minimum_cycle_basis(graph)]
        assert len(rings) in (2, 3)
        shared = sum(len(a & b) for i, a in enumerate(rings) for b in rings[:i])
        assert shared == (2 * (len(rings) - 1) if graphs.classes[target] == "fused" else 0)


def test_classes_have_similar_sizes(graphs):
    fused, linked = (graphs.sizes[graphs.targets == c] for c in (0, 1))
    assert len(fused) == len(linked) == 120
    assert abs(fused.mean() - linked.mean()) < 1
    rings = np.diff(graphs.edge_start) // 2 - graphs.sizes + 1
    assert abs(rings[graphs.targets == 0].mean() - rings[graphs.targets == 1].mean()) < 0.1


def test_a_network_learns_the_classes(graphs):
    model = HaarClassifier(
        arch="2GIN32-HP-GIN32-SUM-FC32",
        features="labels+degree",
        domain="vertex",
        epochs=15,
        lr=0.01,
        batch_size=32,
        device="cpu",
        progress=False,
    )
    model.fit(graphs.take(np.arange(180)))
    assert model.score(graphs.take(np.arange(180, 240))) > 0.7  # 0.5 by chance

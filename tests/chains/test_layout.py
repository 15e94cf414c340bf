"""Positions of nodes in the plane."""

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from haarpool.chains.layout import plane_layout

GRAPHS = {
    "one node": nx.empty_graph(1),
    "no edges": nx.empty_graph(50),
    "pair": nx.path_graph(2),
    "tree": nx.balanced_tree(2, 6),
    "star": nx.star_graph(40),
    "complete": nx.complete_graph(30),
    "pieces": nx.disjoint_union_all([nx.cycle_graph(n) for n in range(1, 30)]),
}


def layout(graph, **options):
    return plane_layout(nx.to_scipy_sparse_array(graph, format="csr", dtype=float), **options)


@pytest.mark.parametrize("name", GRAPHS)
def test_nodes_have_positions_of_their_own(name):
    positions = layout(GRAPHS[name])
    assert positions.shape == (len(GRAPHS[name]), 2)
    assert np.isfinite(positions).all()
    assert len(np.unique(positions.round(6), axis=0)) == len(positions)
    np.testing.assert_array_equal(layout(GRAPHS[name]), positions)


def test_distances_are_about_those_in_the_graph():
    graph = nx.grid_2d_graph(12, 30)
    positions = layout(graph)
    paths = sparse.csgraph.shortest_path(nx.to_scipy_sparse_array(graph), unweighted=True)
    lengths = np.linalg.norm(positions[:, None] - positions, axis=2)
    assert np.corrcoef(paths.ravel(), lengths.ravel())[0, 1] > 0.95
    start, end = np.array(nx.convert_node_labels_to_integers(graph).edges).T
    assert 0.5 < np.median(lengths[start, end]) < 1.5
    assert np.ptp(positions[:, 0]) > np.ptp(positions[:, 1])


def test_components_do_not_overlap():
    positions = layout(nx.disjoint_union_all([nx.cycle_graph(20)] * 9))
    parts = positions.reshape(9, 20, 2)
    low, high = parts.min(axis=1), parts.max(axis=1)
    apart = (low[:, None] > high).any(axis=2) | (high[:, None] < low).any(axis=2)
    assert apart[~np.eye(9, dtype=bool)].all()


def test_weights_and_self_loops_do_not_count():
    ring = nx.to_scipy_sparse_array(nx.cycle_graph(20), format="csr", dtype=float)
    other = sparse.csr_array(7 * ring + sparse.eye_array(20))
    np.testing.assert_array_equal(plane_layout(ring), plane_layout(other))

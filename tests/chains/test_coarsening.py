"""From a graph to its chain: sizes, small and broken graphs, the same result everywhere."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph
from torch_geometric.data import Data

import haarpool as hp
from haarpool.chains.clustering.packing import is_crowded
from haarpool.chains.clustering.spectral import spectral
from helpers.strategies import graphs
from helpers.tolerances import TOLERANCE


@given(graphs(), st.integers(1, 5), st.floats(0.1, 0.9), st.sampled_from([1, None]))
def test_every_graph_gets_a_chain_of_exactly_k_steps(graph, num_levels, ratio, top):
    chain = hp.build_chain(graph, num_levels=num_levels, ratio=ratio, top=top)
    assert chain.num_levels == num_levels
    assert chain.sizes[0] == graph.shape[0]
    if top == 1:
        assert chain.sizes[-1] == 1
    steps = chain.sizes if top is None else chain.sizes[:-1]
    for fine, coarse in itertools.pairwise(steps):
        assert 1 <= coarse <= max(1, int(ratio * fine + 1e-9))
        assert coarse < fine or fine == 1


SMALL = {
    "one node": [[0]],
    "one node with a self-loop": [[2.0]],
    "two nodes": [[0, 1], [1, 0]],
    "no edges": np.zeros((7, 7)),
    "isolated nodes": nx.disjoint_union(nx.path_graph(5), nx.empty_graph(4)),
    "many components": nx.disjoint_union_all([nx.path_graph(n) for n in (1, 1, 2, 3, 5, 8)]),
    "complete": nx.complete_graph(9),
    "star": nx.star_graph(12),
    "ring": nx.cycle_graph(6),
    "nothing but self-loops": np.eye(5),
    "huge and tiny weights": np.diag([1e-12, 1.0, 1e12], 1) + np.diag([1e-12, 1.0, 1e12], -1),
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("num_levels", [1, 2, 5])
def test_small_and_broken_graphs(name, num_levels):
    chain = hp.build_chain(SMALL[name], num_levels=num_levels)
    assert chain.num_levels == num_levels
    assert chain.sizes[-1] == 1
    x = torch.randn(chain.sizes[0], 2, dtype=torch.float64)
    torch.testing.assert_close(hp.forward_transform(chain, hp.adjoint(chain, x)), x)


def test_sizes():
    karate = nx.karate_club_graph()
    assert hp.build_chain(karate, 3).sizes == (34, 17, 8, 1)
    assert hp.build_chain(karate, 3, top=None).sizes == (34, 17, 8, 4)
    assert hp.build_chain(karate, 1).sizes == (34, 1)
    assert hp.build_chain(karate).sizes == (34, 17, 8, 4, 2, 1)
    assert hp.build_chain(karate, ratio=0.29).sizes == (34, 9, 2, 1)
    assert hp.build_chain(nx.path_graph(100), 1, ratio=0.29, top=None).sizes == (100, 29)
    assert hp.build_chain([[0]]).sizes == (1, 1)
    assert hp.build_chain(nx.empty_graph(3), np.int64(2)).sizes == (3, 1, 1)


def test_choices_reach_the_chain():
    chain = hp.build_chain(nx.path_graph(6), 2)
    assert (chain.order, chain.measure) == ("degree", "children")
    chain = hp.build_chain(nx.path_graph(6), 2, order="index", measure="mass")
    assert (chain.order, chain.measure) == ("index", "mass")
    one_way = nx.DiGraph([(0, 1), (1, 2)])
    assert hp.build_chain(one_way, 1, symmetrize=True).adjacency(0).sum() == 4


def test_networkx_and_pyg_graphs_give_the_same_chain():
    graph = nx.karate_club_graph()
    A = nx.to_scipy_sparse_array(graph, dtype=float).tocoo()
    data = Data(
        edge_index=torch.from_numpy(np.stack([A.row, A.col]).astype(np.int64)),
        edge_weight=torch.from_numpy(A.data),
        num_nodes=34,
    )
    assert hp.build_chain(graph, 3) == hp.build_chain(data, 3) == hp.build_chain(A, 3)


# ------------------------------------------------------------------ spectral


def same_partition(a, b) -> bool:
    return len(np.unique(np.stack([a, b]), axis=1).T) == a.max() + 1 == b.max() + 1


@given(graphs(max_nodes=20, weighted=True), st.integers(0, 2**32 - 1))
def test_renumbered_graphs_have_the_same_clusters(graph, seed):
    n = graph.shape[0]
    count, component = csgraph.connected_components(graph, directed=False)
    sizes = np.bincount(component)
    if n // 2 < count or is_crowded(sizes, np.zeros_like(sizes), np.array([n // 2]))[0]:
        return  # which components go together is decided by size and index
    perm = np.random.default_rng(seed).permutation(n)
    before = hp.build_chain(graph, 1, top=None).parents[0]
    after = hp.build_chain(graph[perm][:, perm], 1, top=None).parents[0]
    assert same_partition(before[perm], after)


def test_renumbered_molecules_have_the_same_clusters(tu_graphs):
    """Equal eigenvalues are common here; they are broken by the place of a node in the graph.

    Up to symmetries of the molecule: nodes that look the same are told apart by index alone.
    """

    def with_clusters(graph, parent):
        network = nx.from_scipy_sparse_array(graph)
        nx.set_node_attributes(network, "node", "kind")
        network.add_nodes_from([("cluster", p) for p in parent], kind="cluster")
        network.add_edges_from((v, ("cluster", p)) for v, p in enumerate(parent))
        return network

    rng = np.random.default_rng(0)
    same = []
    for graph in tu_graphs("NCI1")[::60]:
        perm = rng.permutation(graph.shape[0])
        renamed = graph[perm][:, perm]
        one, other = (
            with_clusters(g, hp.build_chain(g, 1, top=None).parents[0]) for g in (graph, renamed)
        )
        same.append(nx.vf2pp_is_isomorphic(one, other, node_label="kind"))
    assert np.mean(same) > 0.95  # what chance leaves of them: 0.6


def test_spectral_finds_planted_clusters():
    blocks = [nx.complete_graph(6) for _ in range(4)]
    graph = nx.disjoint_union_all(blocks)
    graph.add_edges_from([(0, 6), (7, 12), (13, 18)])
    A = nx.to_scipy_sparse_array(graph, dtype=float)
    labels = spectral(sparse.csr_array(A), 4, seed=0)
    assert [len(set(labels[i : i + 6])) for i in range(0, 24, 6)] == [1, 1, 1, 1]
    assert len(set(labels)) == 4


SYMMETRIC = [nx.cycle_graph(12), nx.complete_graph(9), nx.star_graph(11), nx.hypercube_graph(4)]


@pytest.mark.parametrize("graph", SYMMETRIC, ids=["ring", "complete", "star", "cube"])
def test_rounding_does_not_decide_between_nodes_that_look_the_same(graph):
    """Another order of summation, another machine: the clusters are the same."""
    A = nx.to_numpy_array(graph)
    rng = np.random.default_rng(0)
    expected = hp.build_chain(A, 3)
    for _ in range(10):
        noise = 1 + 1e-15 * rng.standard_normal(A.shape)
        other = hp.build_chain(A * (noise + noise.T) / 2, 3)
        assert all(np.array_equal(*p) for p in zip(other.parents, expected.parents, strict=True))


def test_scaling_all_weights_changes_nothing():
    A = nx.to_numpy_array(nx.karate_club_graph())
    expected = hp.build_chain(A, 3)
    for scale in (1e-200, 0.1, 1e200):
        other = hp.build_chain(scale * A, 3)
        assert all(np.array_equal(*p) for p in zip(other.parents, expected.parents, strict=True))


def test_clustering_sees_self_loops():
    """Two neighbours with heavy loops stay apart: each holds most of its weight by itself."""
    A = nx.to_numpy_array(nx.path_graph(6))
    loops = A + np.diag([0, 0, 50, 50, 0, 0])
    with_loops, without = (hp.build_chain(g, 1, top=None).parents[0] for g in (loops, A))
    assert with_loops[2] != with_loops[3]
    assert not np.array_equal(with_loops, without)


def test_clusters_are_numbered_by_their_first_member():
    for parent in hp.build_chain(nx.karate_club_graph(), 3).parents:
        _, first = np.unique(parent, return_index=True)
        assert (np.diff(first) > 0).all()


def test_nodes_without_edges_are_put_together_evenly():
    parent = hp.build_chain(nx.empty_graph(11), 1, ratio=0.4, top=None).parents[0]
    assert sorted(np.bincount(parent)) == [2, 3, 3, 3]


@pytest.mark.parametrize("num_clusters", range(1, 12))
def test_components_are_never_mixed_while_there_are_clusters_enough(num_clusters):
    graph = nx.disjoint_union_all([nx.path_graph(n) for n in (1, 2, 3, 6)])
    A = sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    labels = spectral(A, num_clusters, seed=0)
    assert len(set(labels)) <= num_clusters
    _, component = csgraph.connected_components(A)
    if num_clusters >= 4:
        owners = {(int(c), int(label)) for c, label in zip(component, labels, strict=True)}
        assert len(owners) == len(set(labels))
    else:  # whole components are put together
        assert all(len(set(labels[component == c])) == 1 for c in range(4))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS", "NCI1", "NCI109", "Mutagenicity"])
def test_real_graphs(tu_graphs, name):
    """A sample of every dataset, and its graphs with the most nodes and the most components."""
    everything = tu_graphs(name)
    components = [csgraph.connected_components(g)[0] for g in everything]
    if name == "Mutagenicity":
        assert max(components) == 319
    sample = everything[:: max(1, len(everything) // 40)]
    largest = max(everything, key=lambda g: g.shape[0])
    for graph in [*sample, largest, everything[int(np.argmax(components))]]:
        chain = hp.build_chain(graph, num_levels=3)
        assert chain.num_levels == 3
        assert chain.sizes[-1] == 1
        U = hp.haar_basis(chain)
        assert abs(U.T @ U - sparse.eye_array(chain.sizes[0])).max() < TOLERANCE[torch.float64]
        x = np.random.default_rng(0).standard_normal(chain.sizes[0])
        assert np.abs(hp.adjoint(chain, x) - U.T @ x).max() < TOLERANCE[torch.float64]

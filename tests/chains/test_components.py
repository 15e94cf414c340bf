"""Clusters of graphs with many components: a large one keeps its share beside many small ones."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csgraph

import haarpool as hp
from haarpool.chains.clustering.lanczos import BY_INDEX
from haarpool.chains.clustering.packing import divided, is_crowded, numbered
from haarpool.chains.clustering.spectral import _eigen, spectral, spectral_batch
from haarpool.chains.graph_batch import GraphBatch
from helpers.strategies import at_most


def clusters_of_components(graph, labels):
    """(C,) sizes of components, and (C,) how many clusters each has."""
    component = csgraph.connected_components(graph, directed=False)[1]
    owner = np.unique(np.stack([component, labels]), axis=1)[0]
    return np.bincount(component), np.bincount(owner)


def pairs(*columns):
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def with_isolated_nodes(graph, number):
    graph = nx.disjoint_union(graph, nx.empty_graph(number))
    return sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


@pytest.mark.parametrize("isolated", [*range(0, 60, 4), 400])
@pytest.mark.parametrize("name", ["path", "complete"])
def test_isolated_nodes_do_not_take_the_clusters_of_a_large_component(name, isolated):
    """It has at least half of the clusters that it has alone, however many nodes are beside it."""
    large = nx.path_graph(30) if name == "path" else nx.complete_graph(30)
    graph = with_isolated_nodes(large, isolated)
    parent = hp.build_chain(graph, 1, top=None).parents[0]
    assert parent.max() + 1 == graph.shape[0] // 2
    assert 8 <= len(set(parent[:30])) <= 15
    if isolated >= 28:  # one cluster each would leave at most one to the large component
        assert len(set(parent[:30])) == 15
        assert not set(parent[:30]) & set(parent[30:])


def test_isolated_nodes_do_not_take_the_clusters_of_a_component_that_is_divided():
    """The same above 1,024 nodes, where the graph is divided first."""
    for isolated in (1200, 3000):
        graph = with_isolated_nodes(nx.path_graph(1100), isolated)
        parent = hp.build_chain(graph, 1, top=None).parents[0]
        assert parent.max() + 1 == graph.shape[0] // 2
        assert len(set(parent[:1100])) == 550


@st.composite
def crowded_graphs(draw):
    """A few paths, stars and complete graphs, and many components of one to three nodes."""
    kinds = st.sampled_from([nx.path_graph, lambda n: nx.star_graph(n - 1), nx.complete_graph])
    large = draw(st.lists(st.tuples(kinds, st.integers(6, 25)), min_size=1, max_size=3))
    small = draw(st.lists(st.tuples(kinds, st.integers(1, 3)), min_size=30, max_size=60))
    graph = nx.disjoint_union_all([kind(size) for kind, size in large + small])
    return sparse.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


def pairs_but(equal, sizes, shares):
    """The same, of all components of certain sizes together the sum, if there are several sizes."""
    together = np.isin(sizes, equal if len(equal) > 1 else [])
    return pairs(sizes[~together], shares[~together]), shares[together].sum()


def sizes_next_to_the_last(graph, k):
    """Sizes of components with an eigenvalue next to the last one that counts.

    It differs from this by less than the indices of nodes change eigenvalues.
    """
    component = csgraph.connected_components(graph, directed=False)[1]
    blocks = [graph[nodes][:, nodes].toarray() for nodes in map(component.__eq__, set(component))]
    others = [(v, len(a)) for a in blocks if len(a) > 1 for v in _eigen(a[None])[0][0, 1:]]
    if k == len(blocks):
        return []
    last = sorted(others, reverse=True)[k - len(blocks) - 1][0]
    return list({size for value, size in others if abs(value - last) <= 2 * BY_INDEX})


# All these eigenvalues are 0. What breaks the tie is by chance the same for leaves of both stars.
STARS = nx.disjoint_union_all(
    [nx.star_graph(12), nx.star_graph(7), *[nx.path_graph(2)] * 11, nx.path_graph(3)]
)


@at_most(50)
@example(with_isolated_nodes(STARS, 18), 0.5625, 0)
@given(crowded_graphs(), st.floats(0.2, 0.6), st.integers(0, 2**32 - 1))
def test_clusters_of_crowded_graphs_go_to_components_by_size(graph, ratio, seed):
    n = graph.shape[0]
    k = int(ratio * n)
    labels = spectral(graph, k, seed=0)
    sizes, shares = clusters_of_components(graph, labels)
    assert len(set(labels)) == k
    assert np.array_equal(labels, spectral(graph, k, seed=0))
    due, equal = k * sizes // n, []
    if is_crowded(sizes, np.zeros_like(sizes), np.array([k]))[0]:
        large = due >= 1
        assert (np.abs(shares - k * sizes / n)[large] < 1).all()
        assert (shares[~large] == 1).all()
    elif len(sizes) > k:  # whole components are joined, as none is due three
        assert (shares == 1).all()
        assert due.max() <= 2
    else:
        assert shares.sum() == k
        equal = sizes_next_to_the_last(graph, k)
    # In a batch the clusters are the same, and renumbering nodes changes at most which one of
    # several components of equal size, or with equal eigenvalues, has one cluster more.
    perm = np.random.default_rng(seed).permutation(n)
    renumbered = graph[perm][:, perm]
    batch = GraphBatch(sparse.block_diag([graph, renumbered], "csr"), np.arange(3) * n)
    both = spectral_batch(batch, np.array([k, k]), seed=0)
    assert np.array_equal(numbered(both[:n]), numbered(labels))
    again = clusters_of_components(renumbered, both[n:])
    assert pairs_but(equal, *again) == pairs_but(equal, sizes, shares)


@at_most(50)
@given(crowded_graphs(), st.floats(0.2, 0.6))
def test_without_by_size_every_component_has_one_cluster_first(graph, ratio):
    """The chains of the paper's preset: one cluster for each component, if there are enough."""
    k = int(ratio * graph.shape[0])
    labels = spectral(graph, k, seed=0, by_size=False)
    sizes, shares = clusters_of_components(graph, labels)
    assert len(set(labels)) == k
    assert shares.sum() == max(k, len(sizes))
    if len(sizes) >= k:
        assert (shares == 1).all()


@pytest.mark.slow
def test_few_real_graphs_are_crowded(tu_graphs):
    """No graph changes its clusters because of components unless a large one would collapse."""
    crowded = {}
    for name in ("MUTAG", "PROTEINS", "NCI1", "Mutagenicity"):
        graphs = [g for g in tu_graphs(name) if csgraph.connected_components(g)[0] > 1]
        options = {"num_levels": 1, "top": None, "cache": False, "n_jobs": 1}
        chains = zip(
            hp.precompute(graphs, **options),
            hp.precompute(graphs, options={"by_size": False}, **options),
            strict=True,
        )
        crowded[name] = sum(one != other for one, other in chains)
    assert crowded == {"MUTAG": 0, "PROTEINS": 0, "NCI1": 0, "Mutagenicity": 13}


@given(st.lists(st.integers(1, 40), min_size=1, max_size=40), st.data())
def test_divided_uses_every_cluster_and_follows_sizes(sizes, data):
    sizes = np.array(sizes)
    k = data.draw(st.integers(1, sizes.sum()))
    first, share = divided(sizes, k)
    used = [c for f, s in zip(first.tolist(), share.tolist(), strict=True) for c in range(f, f + s)]
    assert set(used) == set(range(k))
    due = k * sizes / sizes.sum()
    assert (np.abs(share - due)[k * sizes >= sizes.sum()] < 1).all()
    assert (share[k * sizes < sizes.sum()] == 1).all()
    assert (share <= sizes).all()

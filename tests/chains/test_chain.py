"""The chain as a value: what it says of itself, its graphs, its file, its conversions."""

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import sparse
from torch_geometric.data import Data

from haarpool import Chain, HaarPoolError, as_adjacency, build_chain
from helpers.commands import run_python
from helpers.strategies import chains, graphs

PARENTS = [[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]]


def test_properties_and_repr():
    chain = Chain.from_parents(PARENTS)
    assert chain.sizes == (8, 3, 1)
    assert chain.num_levels == 2
    assert (chain.order, chain.measure) == ("index", "children")
    assert repr(chain) == str(chain) == "Chain(8 -> 3 -> 1)"
    assert repr(Chain.from_parents(PARENTS, measure="mass")) == "Chain(8 -> 3 -> 1, measure='mass')"
    assert [p.dtype for p in chain.parents] == [np.int64] * 2
    assert chain.mass(0).tolist() == [1] * 8
    assert chain.mass(1).tolist() == [3, 3, 2]
    assert chain.mass(2).tolist() == [8]
    assert chain.measures(1).tolist() == [1, 1, 1]


def test_a_chain_is_frozen():
    chain = Chain.from_parents(PARENTS)
    with pytest.raises(AttributeError):
        chain.order = "degree"
    with pytest.raises(ValueError, match="read-only"):
        chain.parents[0][0] = 1
    given_parents = [np.array(p) for p in PARENTS]
    chain = Chain.from_parents(given_parents)
    given_parents[0][0] = 2  # a change to what was passed does not reach the chain
    assert chain == Chain.from_parents(PARENTS)
    graph = nx.to_numpy_array(nx.path_graph(8))
    chain = Chain.from_parents(PARENTS, adjacency=graph)
    chain.adjacency(0).data[:] = 7  # nor does a change to what it gave
    chain.adjacency(0, self_loops=True).data[:] = 7
    assert chain.adjacency(0, self_loops=True).data.max() == 1
    for level in range(3):
        assert not chain.ordering(level).flags.writeable


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_copy_is_frozen_too(copied):
    chain = copied(Chain.from_parents(PARENTS))
    with pytest.raises(ValueError, match="read-only"):
        chain.parents[0][0] = 1
    assert chain == Chain.from_parents(PARENTS)


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ([[0, 0, 1, 1], [0, 0]], True),
        ([[0, 0, 1], [0, 0]], False),
        ([[0, 0, 0], [0]], False),
        ([[0]], False),
    ],
)
def test_is_filtration(parents, expected):
    assert Chain.from_parents(parents).is_filtration is expected


@given(chains())
def test_rules_of_a_chain(chain):
    assert len(chain.sizes) == chain.num_levels + 1
    for j, parent in enumerate(chain.parents):
        assert len(parent) == chain.sizes[j]
        assert np.array_equal(np.unique(parent), np.arange(chain.sizes[j + 1]))
        assert chain.sizes[j + 1] <= chain.sizes[j]
    assert chain.mass(chain.num_levels).sum() == chain.sizes[0]


@given(chains())
def test_members_are_sorted_by_cluster(chain):
    for j in range(chain.num_levels + 1):
        nodes, start, clusters = chain.members(j)
        assert np.array_equal(np.sort(nodes), np.arange(chain.sizes[j]))
        own = chain.ordering(j).tolist()
        if j == chain.num_levels:
            assert nodes.tolist() == own
            continue
        assert clusters.tolist() == chain.ordering(j + 1).tolist()
        for c, cluster in enumerate(clusters):
            inside = nodes[start[c] : start[c + 1]].tolist()
            expected = [v for v in own if chain.parents[j][v] == cluster]
            assert inside == expected


def test_order_by_degree():
    star = nx.star_graph(3)  # node 0 in the middle
    star.add_edge(3, 3, weight=50)  # a self-loop counts for nothing
    star[0][2]["weight"] = 2.0
    chain = Chain.from_parents([[0, 0, 0, 0]], adjacency=star, order="degree")
    assert chain.ordering(0).tolist() == [0, 2, 1, 3]
    assert Chain.from_parents([[0, 0, 0, 0]], adjacency=star).ordering(0).tolist() == [0, 1, 2, 3]
    # A hub does not drown the differences of the others.
    hub = nx.Graph()
    hub.add_weighted_edges_from([(3, 4, 1e13), (0, 1, 1.0), (2, 5, 2.0)])
    chain = Chain.from_parents(
        [[0] * 6], adjacency=nx.to_numpy_array(hub, nodelist=range(6)), order="degree"
    )
    assert chain.ordering(0).tolist() == [3, 4, 2, 5, 0, 1]
    # 0.1 + 0.2 and 0.3 are the same degree, whatever the last bit says.
    path = nx.Graph()
    path.add_weighted_edges_from([(0, 1, 0.3), (2, 3, 0.1), (3, 4, 0.2)])
    chain = Chain.from_parents([[0] * 5], adjacency=path, order="degree")
    assert chain.ordering(0).tolist() == [0, 1, 3, 4, 2]


# ------------------------------------------------------------------ coarse graphs


@given(chains())
def test_coarse_graphs_sum_all_weights(chain):
    A = chain.adjacency(0, self_loops=True).toarray()
    for j, parent in enumerate(chain.parents):
        indicator = np.eye(chain.sizes[j + 1])[parent]
        A = indicator.T @ A @ indicator
        kept = chain.adjacency(j + 1, self_loops=True)
        assert np.allclose(kept.toarray(), A)
        assert kept.has_canonical_format
        dropped = chain.adjacency(j + 1)
        assert np.allclose(dropped.toarray(), A - np.diag(np.diag(A)))
        assert dropped.nnz == np.count_nonzero(dropped.toarray())


def test_the_input_graph_loses_its_self_loops_too_unless_asked():
    chain = Chain.from_parents([[0, 0]], adjacency=[[3, 1], [1, 0]])
    assert chain.adjacency(0).toarray().tolist() == [[0, 1], [1, 0]]
    assert chain.adjacency(0, self_loops=True).toarray().tolist() == [[3, 1], [1, 0]]


# ------------------------------------------------------------------ equality and files


@given(chains())
def test_save_and_load(tmp_path_factory, chain):
    path = tmp_path_factory.mktemp("chain") / "some chain.npz"
    chain.save(path)
    loaded = Chain.load(str(path))
    assert loaded == chain
    assert hash(loaded) == hash(chain)
    assert loaded.digest == chain.digest
    assert (loaded.order, loaded.measure) == (chain.order, chain.measure)
    assert (loaded.adjacency(1) != chain.adjacency(1)).nnz == 0
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing left behind
    assert pickle.loads(pickle.dumps(chain)) == chain


def test_saving_replaces_and_needs_no_graph(tmp_path):
    path = tmp_path / "chain"  # the name is taken as it is
    Chain.from_parents([[0, 0]]).save(path)
    Chain.from_parents(PARENTS).save(path)
    assert Chain.load(path) == Chain.from_parents(PARENTS)
    assert path.stat().st_mode & 0o444 == 0o444


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "chain.npz"
    Chain.from_parents(PARENTS).save(path)

    def stopped_half_way(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", stopped_half_way)
    with pytest.raises(KeyboardInterrupt):
        Chain.from_parents([[0, 0]]).save(path)
    assert Chain.load(path) == Chain.from_parents(PARENTS)
    assert [p.name for p in tmp_path.iterdir()] == ["chain.npz"]


def test_a_pickle_carries_no_plans():
    import haarpool as hp

    chain = Chain.from_parents(PARENTS)
    small = len(pickle.dumps(chain))
    hp.adjoint(chain, torch.zeros(8))
    assert len(pickle.dumps(chain)) == small


def test_equality_sees_everything():
    graph = nx.path_graph(8)
    base = Chain.from_parents(PARENTS, adjacency=graph)
    others = [
        Chain.from_parents(PARENTS),
        Chain.from_parents(PARENTS, adjacency=graph, measure="mass"),
        Chain.from_parents(PARENTS, adjacency=graph, order="degree"),
        Chain.from_parents(PARENTS, adjacency=nx.cycle_graph(8)),
        Chain.from_parents(PARENTS, adjacency=2 * nx.to_numpy_array(graph)),
        Chain.from_parents([[0, 0, 1, 1, 1, 1, 2, 2], [0, 0, 0]], adjacency=graph),
        Chain.from_parents([*PARENTS, [0]], adjacency=graph),
    ]
    assert base == Chain.from_parents(PARENTS, adjacency=graph)
    assert len({base, *others}) == 1 + len(others)
    assert base != "Chain(8 -> 3 -> 1)"


def test_the_digest_is_the_same_in_another_process():
    code = (
        "import networkx as nx; from haarpool import build_chain;"
        "print(build_chain(nx.karate_club_graph(), num_levels=3).digest)"
    )
    digest = build_chain(nx.karate_club_graph(), num_levels=3).digest
    assert run_python(code).out.strip() == digest


def test_html():
    html = Chain.from_parents(PARENTS, adjacency=nx.path_graph(8))._repr_html_()
    assert "8 &rarr; 3 &rarr; 1" in html
    assert "<td>1</td><td>3</td><td>2–3</td><td>2</td>" in html
    assert "edges" not in Chain.from_parents(PARENTS)._repr_html_()


# ------------------------------------------------------------------ conversions


@given(graphs())
def test_all_kinds_of_graph_are_the_same_graph(graph):
    dense = graph.toarray()
    # networkx lists an undirected edge once, a self-loop included.
    from_nx = nx.from_scipy_sparse_array(graph)
    coo = graph.tocoo()
    data = Data(
        edge_index=torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)),
        edge_weight=torch.from_numpy(coo.data),
        num_nodes=graph.shape[0],
    )
    kinds = [graph, dense, dense.tolist(), sparse.coo_matrix(dense), from_nx, data]
    for kind in kinds:
        assert np.array_equal(as_adjacency(kind).toarray(), dense)


def test_pyg_data_without_weights_edges_or_direction():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert as_adjacency(Data(edge_index=edges, num_nodes=4)).toarray().sum() == 4
    assert as_adjacency(Data(x=torch.zeros(3, 1))).shape == (3, 3)
    one_way = Data(edge_index=edges[:, ::2], num_nodes=3)
    assert as_adjacency(one_way, symmetrize=True).toarray().sum() == 4
    twice = Data(edge_index=torch.cat([edges, edges], 1), num_nodes=3)
    assert as_adjacency(twice).toarray().max() == 2  # parallel edges add up


def test_directed_graphs_take_the_larger_weight():
    directed = nx.DiGraph()
    directed.add_weighted_edges_from([(0, 1, 3.0), (1, 0, 5.0), (1, 2, 1.0)])
    result = as_adjacency(directed, symmetrize=True).toarray().tolist()
    assert result == [[0, 5, 0], [5, 0, 1], [0, 1, 0]]


def test_rounding_is_no_asymmetry():
    A = np.array([[0, 0.1 + 0.2], [0.3, 0]])
    result = as_adjacency(A).toarray()
    assert (result == result.T).all()
    with pytest.raises(HaarPoolError, match="symmetric"):
        as_adjacency([[0, 1], [1 + 1e-8, 0]])  # this is more than rounding


def test_a_product_in_float32_is_symmetric_enough():
    A = np.random.default_rng(0).random((20, 20)).astype(np.float32)
    A = A + A.T
    scale = 1 / np.sqrt(A.sum(1))
    normalised = (scale[:, None] * A) * scale
    assert (normalised != normalised.T).any()
    result = as_adjacency(normalised).toarray()
    assert (result == result.T).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, bool, np.uint8])
def test_weights_of_any_real_type(dtype):
    A = nx.to_numpy_array(nx.path_graph(4)).astype(dtype)
    assert as_adjacency(A).dtype == np.float64
    assert as_adjacency(torch.tensor(A).requires_grad_(A.dtype.kind == "f")).sum() == 6


@given(chains())
def test_indices_have_32_bits(chain):
    """Half the memory, and older scipy cannot search graphs with others."""
    for level in range(chain.num_levels + 1):
        assert chain.adjacency(level).indices.dtype == np.int32
        assert chain.adjacency(level, self_loops=True).indptr.dtype == np.int32


def test_explicit_zeros_are_no_edges():
    stored = sparse.csr_array(([0.0, 0.0, 1.0, 1.0], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
    assert as_adjacency(stored).nnz == 2
    assert stored.nnz == 4  # and the matrix that came in is as it was

"""`ChainTensors`: each row by its definition, batches by several ways, sizes and devices."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from torch_geometric.data import Batch

import haarpool as hp
from haarpool.data import AddHaarChain
from haarpool.errors import HaarPoolError
from haarpool.haar.building import chain_tensors
from haarpool.haar.chain_tensors import ChainTensors, Tree, is_chain_key
from haarpool.haar.joining import concatenate
from haarpool.nn import AddEigenModes
from helpers.layers import built, carrier, lists_of_chains, random_graph
from helpers.strategies import at_most, each_device


def expected_tensors(many):
    """The tensors of a batch from their definition, node by node."""
    K = many[0].num_levels
    sizes = np.array([chain.sizes for chain in many])
    begin = np.cumsum(sizes, 0) - sizes  # (G, K+1) first node of each graph
    result = {"haar_start": [*begin.T, np.arange(len(many))]}
    for j in range(K + 1):
        tree = np.zeros((len(Tree), sizes[:, j].sum()), np.int64)
        edges, position = [], 0
        for g, chain in enumerate(many):
            top = j == K
            parent = np.zeros(chain.sizes[K], int) if top else chain.parents[j]
            first_node, first_parent = begin[g, j], g if top else begin[g, j + 1]
            order = [0] if top else chain.ordering(j + 1).tolist()
            detail, measure = len(order), chain.measures(j)
            nodes = {p: [v for v in chain.ordering(j) if parent[v] == p] for p in order}
            for p in order:  # details follow the order of the clusters
                for t, v in enumerate(nodes[p]):
                    column = tree[:, first_node + v]
                    column[Tree.PARENT] = first_parent + p
                    column[Tree.GRAPH] = g
                    column[Tree.MASS] = measure[v]
                    column[Tree.LATER] = measure[nodes[p][t + 1 :]].sum()
                    column[Tree.TOTAL] = measure[nodes[p]].sum()
                    if t < len(nodes[p]) - 1:
                        column[Tree.DETAIL] = detail
                        detail += 1
            for p in sorted(order):  # members follow the numbers of the clusters
                for v in nodes[p]:
                    tree[Tree.MEMBER, position] = first_node + v
                    position += 1
            if j > 0:
                ends = np.cumsum(np.bincount(chain.parents[j - 1]))
                tree[Tree.CHILD, first_node : first_node + len(ends)] = (
                    begin[g, j - 1] + np.r_[0, ends[:-1]]
                )
                graph = chain.adjacency(j).tocsr()
                for v in range(chain.sizes[j]):
                    tree[Tree.EDGE, first_node + v] = len(edges)
                    for w in graph.indices[slice(*graph.indptr[v : v + 2])]:
                        weight = np.float64(graph[v, w]).view(np.int64)
                        edges.append([first_node + v, first_node + w, weight])
        result[f"haar_tree_{j}"] = tree
        if j > 0:
            rows, columns, weights = np.array(edges, np.int64).reshape(-1, 3).T
            bits = [weights.view(np.float64).astype(np.float32), np.zeros(len(edges), np.float32)]
            single = np.stack(bits, 1).reshape(-1).view(np.int64)
            result[f"haar_edges_{j}"] = np.stack([rows, columns, weights, single])
    return {key: torch.from_numpy(np.asarray(value)) for key, value in result.items()}


def assert_same(tensors, expected):
    assert tensors.keys() == expected.keys()
    for key, value in expected.items():
        assert tensors[key].shape == value.shape, key
        assert tensors[key].dtype == (torch.int64 if "edges" in key else torch.int32)
        assert torch.equal(tensors[key].long(), value), key


@at_most(30)
@given(lists_of_chains())
def test_rows_are_what_their_names_say(many):
    expected = expected_tensors(many)
    assert_same(concatenate([chain_tensors(chain) for chain in many]), expected)
    batch = Batch.from_data_list([carrier(chain) for chain in many])
    assert_same({key: v for key, v in batch.tensors.items() if is_chain_key(key)}, expected)


@at_most(20)
@given(lists_of_chains())
def test_what_transforms_need_has_no_edges(many):
    plan, full = ChainTensors.from_chains(many), concatenate([chain_tensors(c) for c in many])
    assert not [key for key in plan.tensors if "edges" in key]
    for key, value in plan.tensors.items():
        value, other = value.clone(), full[key].clone()
        if "tree" in key:
            assert not value[Tree.EDGE].any()
            value[Tree.EDGE] = other[Tree.EDGE] = 0
        assert torch.equal(value, other)


@pytest.mark.parametrize("order", ["degree", "index"])
@pytest.mark.parametrize("measure", ["children", "mass"])
@pytest.mark.parametrize(
    "transform", [AddHaarChain, partial(AddEigenModes, 2)], ids=["chain", "modes"]
)
def test_many_graphs_at_once_are_one_by_one(transform, order, measure):
    options = {"method": "matching", "order": order, "measure": measure}
    graphs = [random_graph(n, seed=n) for n in (9, 1, 30, 2, 14)]
    transform = transform(2, **options)
    (forest,) = hp.precompute(graphs, num_levels=2, cache=False, **options).forests()
    joined = transform.join(forest)
    chains = [hp.build_chain(graph, 2, **options) for graph in graphs]
    each = [
        {key: value for key, value in data.tensors.items() if is_chain_key(key)}
        for data in (transform.add(carrier(chain), chain) for chain in chains)
    ]
    assert joined.tensors.keys() == each[0].keys()
    for key, value in joined.tensors.items():
        parts = [tensors[key] for tensors in each]
        assert joined.lengths[key].tolist() == [part.shape[-1] for part in parts]
        expected = torch.cat(parts, -1)
        assert value.dtype == expected.dtype
        if "modes" in key:
            torch.testing.assert_close(value, expected)
        else:
            assert torch.equal(value, expected), key


@each_device
def test_sizes_and_devices(device):
    many = built([7, 1, 4])
    plan = ChainTensors.from_chains(many, device)
    assert plan.device.type == device
    assert plan.num_graphs == 3
    assert plan.sizes == tuple(np.sum([chain.sizes for chain in many], 0))
    for level in range(3):
        assert plan.num_nodes(level).tolist() == [chain.sizes[level] for chain in many]
    assert all(value.device.type == "cpu" for value in plan.to("cpu").tensors.values())


def test_a_coarse_graph_is_that_of_the_chain():
    (chain,) = built([12])
    tensors = ChainTensors(chain_tensors(chain))
    for level in (1, 2):
        edges, weights, graph = tensors.coarse_graph(level, torch.float64)
        dense = torch.zeros(2 * (chain.sizes[level],), dtype=torch.float64)
        dense[edges[0], edges[1]] = weights
        assert np.array_equal(dense, chain.adjacency(level).toarray())
        assert graph.tolist() == [0] * chain.sizes[level]


def test_missing_tensors_are_named():
    tensors = chain_tensors(built([12])[0])
    with pytest.raises(HaarPoolError, match="add AddHaarChain"):
        ChainTensors({})
    with pytest.raises(HaarPoolError, match="at least 3 levels, got one of 2"):
        ChainTensors(tensors, level=3)
    plan = ChainTensors.from_chains(built([12]))
    with pytest.raises(HaarPoolError, match="data with haar_edges_1"):
        plan.coarse_graph(1, torch.float32)
    del tensors["haar_tree_1"]
    with pytest.raises(HaarPoolError, match=r"haar_tree_1.*do not exclude this key"):
        ChainTensors(tensors)


def test_views_of_longer_tensors_are_read_like_whole_ones():
    """As in a graph of an InMemoryDataset."""
    chain = hp.Chain.from_parents([[0, 0, 1, 1, 2], [0, 0, 1], [0, 0]])
    tensors = ChainTensors.from_chains([chain]).tensors
    wide = {key: torch.cat([t, t * 0 + 1], 1)[:, : t.shape[1]] for key, t in tensors.items()}
    assert not wide["haar_tree_0"].is_contiguous()
    views = ChainTensors(wide)
    assert all(tree.is_contiguous() for tree in views.trees)
    x = torch.randn(5, 3)
    assert torch.equal(hp.adjoint(views, x), hp.adjoint(chain, x))

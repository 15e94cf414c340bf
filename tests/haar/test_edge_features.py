"""Features of coarse edges: by their definition, one graph and many, types and shapes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors, is_chain_key
from haarpool.nn import AddEigenModes, EigenPooling, HaarPooling
from helpers.layers import lists_of_chains, random_graph
from helpers.strategies import at_most
from helpers.tolerances import close

REDUCTIONS = {"mean": np.mean, "sum": np.sum, "max": np.max, "min": np.min}
each_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)


def with_edges(chain, seed=0, columns=2, dtype=torch.float64):
    """A graph with the nodes of a chain: some of its edges, some twice, in any order."""
    rng = np.random.default_rng(seed)
    graph = chain.adjacency(0, self_loops=True).tocoo()
    chosen = rng.permutation(np.repeat(np.arange(graph.nnz), rng.integers(0, 3, graph.nnz)))
    edges = np.stack([graph.row, graph.col]).astype(np.int64)[:, chosen]
    features = torch.from_numpy(rng.standard_normal((len(chosen), columns))).to(dtype)
    return Data(
        x=torch.ones(chain.sizes[0], 1, dtype=torch.float64),
        edge_index=torch.from_numpy(edges),
        edge_attr=features,
    )


def expected_features(chain, data, level, reduction):
    """The features of the coarse edges of a level, (E_j, C + 1), edge by edge."""
    cluster = np.arange(chain.sizes[0])
    for parent in chain.parents[:level]:
        cluster = parent[cluster]
    between = {}
    for (u, v), row in zip(data.edge_index.T.tolist(), data.edge_attr.tolist(), strict=True):
        between.setdefault((cluster[u], cluster[v]), []).append(row)
    graph, result = chain.adjacency(level).tocsr(), []
    for p in range(chain.sizes[level]):
        for q in graph.indices[graph.indptr[p] : graph.indptr[p + 1]]:
            rows = between.get((p, q), [])
            values = REDUCTIONS[reduction](rows, axis=0) if rows else [0] * data.edge_attr.shape[1]
            result.append([*values, len(rows)])
    return np.array(result).reshape(-1, data.edge_attr.shape[1] + 1)


def features_of(data):
    return {k: v for k, v in data.tensors.items() if k.startswith(("haar_attr", "haar_reverse"))}


@each_reduction
@at_most(20)
@given(data=st.data())
def test_definition(reduction, data):
    many = data.draw(lists_of_chains())
    plain = [with_edges(chain, seed) for seed, chain in enumerate(many)]
    each = [ChainData.from_chain(*pair, reduction) for pair in zip(plain, many, strict=True)]
    batch = Batch.from_data_list(each)
    for level in range(1, many[0].num_levels + 1):
        expected = [
            expected_features(*pair, level, reduction) for pair in zip(many, plain, strict=True)
        ]
        for one, rows in zip(each, expected, strict=True):
            assert close(one[f"haar_attr_{level}"].T, rows)
        assert close(batch[f"haar_attr_{level}"].T, np.concatenate(expected))
        for one in (*each, batch):
            edges, (reverse,) = one[f"haar_edges_{level}"][:2], one[f"haar_reverse_{level}"]
            assert torch.equal(edges[:, reverse], edges.flip(0))


@each_reduction
@pytest.mark.parametrize("transform", [AddHaarChain, AddEigenModes])
def test_many_graphs_at_once_are_one_by_one(transform, reduction):
    graphs = [random_graph(n, seed=n) for n in (9, 1, 30, 2, 14)]
    chains = hp.precompute(graphs, num_levels=2, method="matching", cache=False)
    add = transform(num_levels=2, method="matching", edge_attr=reduction)
    plain = [with_edges(chain, seed, dtype=torch.float32) for seed, chain in enumerate(chains)]
    each = [add.add(*pair) for pair in zip(plain, chains, strict=True)]
    whole = Batch.from_data_list(plain)
    (forest,) = chains.forests()
    joined = add.join(forest, whole.edge_index.numpy(), whole.edge_attr.numpy())
    assert {key for key in each[0].tensors if is_chain_key(key)} == joined.tensors.keys()
    for key in features_of(each[0]):
        parts = [one[key] for one in each]
        assert joined.lengths[key].tolist() == [part.shape[1] for part in parts]
        assert joined.tensors[key].dtype == parts[0].dtype
        assert torch.equal(joined.tensors[key], torch.cat(parts, 1)), key
    with pytest.raises(HaarPoolError, match="add edge_attr to the graphs"):
        add.join(forest)


def small(edge_attr, edges=((0, 1), (1, 0), (1, 2), (2, 1))):
    index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return Data(x=torch.ones(3, 1), edge_index=index, edge_attr=edge_attr)


CHAIN = hp.Chain.from_parents([[0, 1, 1], [0, 0]], adjacency=[[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [
        (torch.float64, torch.float64), (torch.float32, torch.float32),
        (torch.float16, torch.float32), (torch.bfloat16, torch.float32),
        (torch.int64, torch.float32), (torch.bool, torch.float32),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(4, 1), (4,)])
def test_types_and_shapes(dtype, stored, shape):
    values = torch.tensor([1, 0, 1, 1]).view(shape).to(dtype)
    data = ChainData.from_chain(small(values), CHAIN, "mean")
    assert data.haar_attr_1.dtype == stored
    assert data.haar_attr_1.tolist() == [[1, 0], [1, 1]]
    assert data.haar_reverse_1.tolist() == [[1, 0]]
    assert data.haar_attr_2.shape == (2, 0)
    assert data.haar_reverse_2.shape == (1, 0)
    assert data.haar_reverse_1.dtype == torch.int32


@pytest.mark.parametrize("columns", [0, 3])
def test_no_edges_and_no_columns(columns):
    nothing = small(torch.zeros(0, columns), edges=())
    chain = hp.Chain.from_parents([[0, 1, 1], [0, 0]])
    data = ChainData.from_chain(nothing, chain, "max")
    other = ChainData.from_chain(small(torch.ones(4, columns)), CHAIN, "max")
    assert data.haar_attr_1.shape == (columns + 1, 0)
    assert other.haar_attr_1.tolist() == [[1, 1]] * (columns + 1)
    batch = Batch.from_data_list([data, other, data, other])
    assert batch.haar_reverse_1.tolist() == [[1, 0, 3, 2]]


def test_a_chain_of_another_graph_and_edges_between_other_clusters():
    """The chain may know a graph of its own: its coarse edges count, and those of the data not."""
    chain = hp.Chain.from_parents([[0, 1, 2], [0, 0, 1]], adjacency=np.eye(3)[::-1].copy())
    data = ChainData.from_chain(small(torch.tensor([[1.0], [2], [3], [4]])), chain, "sum")
    assert data.haar_edges_1[:2].tolist() == [[0, 2], [2, 0]]
    assert data.haar_attr_1.tolist() == [[0, 0], [0, 0]]
    assert data.haar_edges_2[:2].tolist() == [[0, 1], [1, 0]]
    assert data.haar_attr_2.tolist() == [[3, 4], [1, 1]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("pool", [HaarPooling(0), HaarPooling(0, "vertex", "full")])
def test_poolings_return_them(pool, dtype):
    features = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    data = ChainData.from_chain(small(features), CHAIN, "mean")
    out = pool(data.x.to(dtype), data)
    assert out._fields[-1] == "edge_attr"
    assert out.edge_attr.dtype == dtype
    assert out.edge_index.tolist() == [[0, 1], [1, 0]]
    assert out.edge_attr.tolist() == [[1, 2, 1], [3, 4, 1]]
    assert pool(data.x, ChainData.from_chain(small(features), CHAIN)).edge_attr is None
    assert ChainTensors.from_chains(CHAIN).coarse_features(1, dtype) is None


def test_eigen_pooling_returns_them():
    data = AddEigenModes(1, num_levels=1, edge_attr="sum", top=None)(small(torch.ones(4, 1)))
    out = EigenPooling(0, 1)(data.x, data)
    assert out.edge_attr.shape == (out.edge_index.shape[1], 2)


@pytest.mark.parametrize(
    "values", [torch.ones(3, 1), torch.ones(4, 1, 1), torch.ones(4, 1, dtype=torch.complex64)]
)
def test_wrong_features(values):
    with pytest.raises(HaarPoolError, match=r"edge_attr of shape \(4, columns\), real numbers"):
        AddHaarChain(1, edge_attr="mean")(small(values))


def test_no_features():
    for data in (small(None), Data(x=torch.ones(3, 1), edge_index=small(None).edge_index)):
        with pytest.raises(HaarPoolError, match=r"leave edge_attr out of AddHaarChain"):
            AddHaarChain(1, edge_attr="mean")(data)

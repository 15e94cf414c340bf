"""Chains beside PyG's own transforms and subclasses of `Data`."""

import functools
import re

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import is_chain_key
from haarpool.nn import (
    AddEigenModes,
    EigenPooling,
    HaarConv,
    HaarPooling,
    HaarReadout,
    build_model,
)
from helpers.chain_data import EVERYTHING, LARGE, positioned_data
from helpers.layers import P


def chain_part(data: Data) -> dict[str, torch.Tensor]:
    return {key: value for key, value in data.to_dict().items() if is_chain_key(key)}


def unchanged(one: Data, two: Data) -> bool:
    first, second = chain_part(one), chain_part(two)
    return first.keys() == second.keys() and all(
        first[key].dtype == second[key].dtype and torch.equal(first[key], second[key])
        for key in first
    )


# Graphs of all sizes; every fifth has no edges, and many have as many as nodes, counted both ways.
SIZES = [1 + (7 * i) % 40 for i in range(60)]
GRAPHS = [
    positioned_data(n, [0, n // 2, n, n // 2, 2 * n][i % 5], seed=i) for i, n in enumerate(SIZES)
]
CARRIED = [EVERYTHING(data) for data in GRAPHS]
CHAIN = AddHaarChain(num_levels=2, method="matching")
CHAINED = CHAIN(LARGE)


TRANSFORMS = {
    "ToSparseTensor": T.ToSparseTensor(layout=torch.sparse_coo),
    "ToUndirected": T.ToUndirected(),
    "RandomLinkSplit": T.RandomLinkSplit(0.2, 0.2, is_undirected=True, neg_sampling_ratio=0.0),
    "RandomNodeSplit": T.RandomNodeSplit(num_val=0.2, num_test=0.2),
    "NormalizeFeatures": T.NormalizeFeatures(),
    "AddSelfLoops": T.AddSelfLoops("edge_weight"),
    "RemoveSelfLoops": T.RemoveSelfLoops("edge_weight"),
    "RemoveDuplicatedEdges": T.RemoveDuplicatedEdges("edge_weight"),
    "SortEdges": lambda data: data.coalesce(),
    "Cartesian": T.Cartesian(norm=False),
    "Distance": T.Distance(norm=False),
    "Constant": T.Constant(),
    "LocalDegreeProfile": T.LocalDegreeProfile(),
    "GCNNorm": T.GCNNorm(),
    "RandomJitter": T.RandomJitter(0.1),
    "AddRandomWalkPE": T.AddRandomWalkPE(2, attr_name=None),
}


def test_sizes_coincide():
    """What makes the next test one: PyG would take these for features of edges or of nodes."""
    pairs = [(data, value) for data in CARRIED for value in chain_part(data).values()]
    assert sum(value.shape[-1] == data.num_edges > 0 for data, value in pairs) > 20
    assert sum(value.shape[0] == data.num_edges > 0 for data, value in pairs) > 5
    assert sum(value.shape[-1] == data.num_nodes for data, value in pairs) > 120
    assert sum(value.shape[0] == data.num_nodes for data, value in pairs) > 5
    assert sum(data.num_edges == 0 for data in GRAPHS) >= 12


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # of torch, once
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_pyg_leave_chains_alone(name):
    for number, data in enumerate(CARRIED):
        if name == "RandomLinkSplit" and data.num_edges < 6:
            continue  # it wants some to train with
        before = data.clone()
        after = TRANSFORMS[name](data.clone())
        for one in after if isinstance(after, tuple) else (after,):
            assert isinstance(one, ChainData)
            assert unchanged(one, before), f"graph {number}: {data}"
        assert unchanged(data, before)


def test_chain_tensors_are_neither_of_nodes_nor_of_edges():
    for data in [*CARRIED, Batch.from_data_list(CARRIED)]:
        assert {"x", "pos"} <= set(data.node_attrs())
        for key in chain_part(data):
            assert not data.is_node_attr(key)
            assert not data.is_edge_attr(key)
            assert key not in [*data.node_attrs(), *data.edge_attrs()]


def test_a_transform_of_the_features_reaches_the_layers():
    data = T.NormalizeFeatures()(CHAINED)
    out = HaarPooling(0, "vertex")(data.x, data)
    assert not torch.allclose(out.x, HaarPooling(0, "vertex")(CHAINED.x, CHAINED).x)


LAYERS = {
    "pool": HaarPooling(0),
    "pool-vertex": HaarPooling(0, "vertex"),
    "pool-energy": HaarPooling(0, details="energy"),
    "readout": HaarReadout(),
    "conv": HaarConv(3, 4, num_levels=2),
    "eigen": EigenPooling(0),
    "network": None,
}


def applied(name: str, data: Data):
    if name == "network":
        torch.manual_seed(0)
        return build_model("GC8-HP-GC8-HP-FC8", 3, 2).eval()(data)
    out = LAYERS[name](data.x, data)
    return out if isinstance(out, torch.Tensor) else out.x


@pytest.mark.parametrize("name", LAYERS)
def test_removed_nodes_are_an_error(name):
    """Cutting a graph behind AddHaarChain: an error, and no result for the wrong nodes."""
    data = EVERYTHING(positioned_data(20, 15, seed=5))
    assert data.has_isolated_nodes()
    mask = torch.arange(20) % 3 > 0
    for cut in (data.subgraph(mask), data.subgraph(mask.nonzero()[:, 0])):
        assert cut.num_nodes == mask.sum() < 20
        with pytest.raises(HaarPoolError, match="one row per node"):
            applied(name, cut)
        with pytest.raises(HaarPoolError, match="one row per node"):
            applied(name, Batch.from_data_list([data, cut]))
    with pytest.raises(HaarPoolError, match="one row per node"):
        applied(name, T.RemoveIsolatedNodes()(data.clone()))
    assert torch.equal(applied(name, data.subgraph(torch.ones(20).bool())), applied(name, data))


def test_without_isolated_nodes_none_are_removed():
    data = EVERYTHING(positioned_data(20, 90, seed=5))
    assert not data.has_isolated_nodes()
    kept = T.RemoveIsolatedNodes()(data.clone())
    assert torch.equal(applied("network", kept), applied("network", data))


class Incremented(Data):
    def __inc__(self, key, value, *args, **kwargs):
        return self.num_nodes if key == "partner" else super().__inc__(key, value, *args, **kwargs)


class Joined(Data):
    def __cat_dim__(self, key, value, *args, **kwargs):
        return 1 if key == "wide" else super().__cat_dim__(key, value, *args, **kwargs)


class Incorporated(ChainData):
    """Both rules, on top of ChainData."""

    def __inc__(self, key, value, *args, **kwargs):
        return self.num_nodes if key == "partner" else super().__inc__(key, value, *args, **kwargs)

    def __cat_dim__(self, key, value, *args, **kwargs):
        return 1 if key == "wide" else super().__cat_dim__(key, value, *args, **kwargs)


class Molecule(Data):
    """No rules for batches, but other things."""

    @property
    def num_atoms(self):
        return self.num_nodes


def extended(kind: type[Data], nodes: int, seed: int) -> Data:
    attributes = positioned_data(nodes, nodes, seed).to_dict()
    partner = torch.arange(nodes).flip(0)
    return kind(**attributes, partner=partner, wide=torch.full((2, nodes), float(seed)))


@pytest.mark.parametrize("kind", [Incremented, Joined, type("Grandchild", (Joined,), {})])
@pytest.mark.parametrize("transform", [AddHaarChain(num_levels=1), AddEigenModes(num_levels=1)])
def test_subclasses_with_batching_rules_are_an_error(kind, transform):
    with pytest.raises(HaarPoolError, match="would be lost") as error:
        transform(extended(kind, 5, 0))
    assert kind.__name__ in error.value.got
    assert "from haarpool.data.ChainData" in error.value.remedy


def test_the_same_rules_on_top_of_chain_data():
    sizes = [5, 9, 1]
    each = [CHAIN(extended(Incorporated, n, i)) for i, n in enumerate(sizes)]
    assert [type(data) for data in each] == [Incorporated] * 3
    batch = Batch.from_data_list(each)
    assert isinstance(batch, Incorporated)
    expected = torch.cat([torch.arange(4, -1, -1), torch.arange(13, 4, -1), torch.tensor([14])])
    assert torch.equal(batch.partner, expected)
    assert batch.wide.shape == (2, 15)
    plain = [CHAIN(positioned_data(n, n, i)) for i, n in enumerate(sizes)]
    assert unchanged(batch, Batch.from_data_list(plain))
    for one, data in zip(batch.to_data_list(), each, strict=True):
        assert type(one) is Incorporated
        assert torch.equal(one.partner, data.partner)
        assert unchanged(one, data)


def test_a_subclass_without_such_rules_is_fine():
    data = CHAIN(Molecule(**LARGE.to_dict()))
    assert isinstance(data, ChainData)
    assert unchanged(data, CHAINED)


def test_positional_arguments_are_those_of_data():
    parts = [torch.randn(3, 2), torch.tensor([[0], [1]]), torch.randn(1, 4), torch.tensor([1])]
    parts += [torch.randn(3, 2), torch.zeros(1)]
    for number in range(1, len(parts) + 1):
        one, two = ChainData(*parts[:number], extra=5), Data(*parts[:number], extra=5)
        assert one.to_dict().keys() == two.to_dict().keys()
        assert all(one[key] is two[key] for key in two.to_dict())
        assert one.num_nodes == two.num_nodes
    with pytest.raises(TypeError):
        ChainData(*parts, 1, 2, 3)


def test_repr_shows_the_chain_and_not_its_tensors():
    small = LARGE.clone()
    del small.pos, small.edge_weight, small.edge_attr, small.y
    data = CHAIN(small)
    edges = small.num_edges
    shown = " -> ".join(map(str, data.chain_sizes))
    assert data.chain_sizes[0] == 30
    assert repr(data) == f"ChainData(x=[30, 3], edge_index=[2, {edges}], chain={shown})"
    batch = Batch.from_data_list([data, data])
    shown = " -> ".join(str(2 * n) for n in data.chain_sizes)
    assert repr(batch) == (
        f"ChainDataBatch(x=[60, 3], edge_index=[2, {2 * edges}], batch=[60], ptr=[3], "
        f"chain={shown})"
    )
    assert repr(ChainData(x=torch.ones(2, 1))) == "ChainData(x=[2, 1])"
    assert "haar_" not in repr(EVERYTHING(LARGE))
    assert repr(CHAIN(extended(Incorporated, 5, 0))).startswith("Incorporated(")


def test_tensors_are_what_it_holds():
    for data in (CHAINED, Batch.from_data_list([CHAINED, CHAINED])):
        assert type(data.tensors) is dict
        assert data.tensors.keys() == data.to_dict().keys()
        assert all(data.tensors[key] is data[key] for key in data.tensors)
    data = CHAINED.clone()
    data.more = 1
    assert data.tensors["more"] == 1


@pytest.mark.parametrize("transform", [CHAIN, AddEigenModes(num_levels=2)])
def test_the_number_of_nodes_survives_without_features(transform):
    edges = torch.tensor([[0, 1], [1, 0]])
    each = [transform(Data(edge_index=edges, num_nodes=n)) for n in (5, 2, 3)]
    assert [data.num_nodes for data in each] == [5, 2, 3]
    batch = Batch.from_data_list(each)
    assert batch.num_nodes == 10 == batch.chain_sizes[0]
    assert batch.batch.tolist() == [0] * 5 + [1] * 2 + [2] * 3
    assert [data.num_nodes for data in batch.to_data_list()] == [5, 2, 3]
    x = torch.randn(10, 2)
    assert HaarPooling(0, "vertex")(x, batch).x.shape[0] == batch.chain_sizes[1]


def test_a_graph_known_by_its_positions_keeps_its_number_of_nodes():
    data = CHAIN(Data(pos=torch.randn(4, 2), edge_index=torch.tensor([[0, 1], [1, 0]])))
    assert data.num_nodes == 4
    assert Batch.from_data_list([data, data]).num_nodes == 8


def test_a_number_of_nodes_that_was_guessed_is_written_down():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.warns(UserWarning, match="infer 'num_nodes'"):
        carried = CHAIN(data)
    assert carried.num_nodes == 2  # without the warning, which is an error here
    assert Batch.from_data_list([carried, carried]).num_nodes == 4


def test_another_chain_replaces_everything():
    full = AddEigenModes(3, num_levels=4)(LARGE)
    assert {"haar_modes_3", "haar_tree_4", "haar_edges_4"} <= full.tensors.keys()
    again = CHAIN(full)
    assert again.to_dict().keys() == CHAINED.to_dict().keys()
    assert unchanged(again, CHAINED)
    assert "haar_modes_3" in full.tensors  # the input is left alone
    with pytest.raises(HaarPoolError, match="AddEigenModes"):
        EigenPooling(0)(again.x, again)


def test_a_chain_without_graph_keeps_its_measure_and_order():
    parents = [[0, 0, 0, 1, 1, 2], [0, 0, 1], [0, 0]]
    tree = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0, 1, 2, 3, 4]])
    data = Data(x=torch.randn(6, 2).double(), edge_index=tree)
    chain = hp.Chain.from_parents(parents, measure="mass")
    assert not chain.has_graph
    carried = AddHaarChain(chain=lambda data: chain)(data)
    x = data.x
    for level in range(3):
        expected = torch.from_numpy(P(chain, level)).T @ x
        out = HaarPooling(level, "vertex")(x, carried)
        assert_close(out.x, expected)
        x = expected
    other = AddHaarChain(chain=lambda data: hp.Chain.from_parents(parents))(data)
    assert not torch.equal(other.haar_tree_1, carried.haar_tree_1)
    known = hp.Chain.from_parents(parents, adjacency=data, measure="mass")
    assert unchanged(ChainData.from_chain(data, known), carried)


def halves(adjacency, num_clusters, *, seed, offset=0):
    return np.arange(adjacency.shape[0]) * num_clusters // adjacency.shape[0]


class Halves:
    def __call__(self, adjacency, num_clusters, *, seed):
        return halves(adjacency, num_clusters, seed=seed)

    def method(self, data):
        return hp.Chain.from_parents([np.zeros(data.num_nodes, int)])


def one_step(clusters, data):
    return hp.Chain.from_parents([np.arange(data.num_nodes) % clusters])


@pytest.mark.parametrize(
    ("transform", "parts"),
    [
        (AddHaarChain(2, method=functools.partial(halves, offset=3)), ["partial(", "halves", "=3"]),
        (AddHaarChain(chain=functools.partial(one_step, 2)), ["partial(", "one_step", "2)"]),
        (AddHaarChain(2, method=functools.partial(Halves())), ["partial(", "Halves"]),
        (AddHaarChain(2, method=Halves()), ["method=", "Halves"]),
        (AddHaarChain(chain=Halves().method), ["chain=", "Halves.method"]),
        (AddHaarChain(chain=lambda data: None), ["chain=", "<lambda>"]),
        (AddEigenModes(3, 2, method=Halves()), ["num_modes=3", "Halves"]),
        (AddEigenModes(3, 2, method=functools.partial(halves)), ["num_modes=3", "partial("]),
    ],
)
def test_repr_has_no_address(transform, parts):
    text = repr(transform)
    assert not re.search(r"0x[0-9a-f]{4,}", text)
    assert " at " not in text
    for part in parts:
        assert part in text
    if transform.chain is None or isinstance(transform.chain, functools.partial):
        assert isinstance(transform(LARGE), ChainData)


def test_features_that_are_not_there():
    with pytest.raises(HaarPoolError, match="'foo'") as error:
        AddHaarChain(2, method="kmeans", features="foo")(LARGE)
    assert 'features="x"' in error.value.remedy

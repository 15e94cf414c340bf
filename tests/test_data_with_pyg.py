"""Chains among PyG's own means: its transforms, its subclasses, and what people do with them.

`test_data.py` has batches, loaders and files; here is what could go wrong without a word.
"""

import functools
import re

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

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
    HaarUnpooling,
    build_model,
)
from helpers.layers import DOMAINS, P, each_domain


def graph(nodes: int, edges: int, seed: int = 0) -> Data:
    """A random graph of so many edges with weights, positions and a label."""
    rng = np.random.default_rng(seed)
    row, column = np.triu_indices(nodes, 1)
    chosen = rng.permutation(len(row))[:edges]
    row, column = np.stack([row, column])[:, np.sort(chosen)]
    weight = rng.uniform(1, 2, len(row))
    row, column = np.concatenate([row, column]), np.concatenate([column, row])
    return Data(
        x=torch.from_numpy(rng.standard_normal((nodes, 3))).float(),
        edge_index=torch.from_numpy(np.stack([row, column])),
        edge_weight=torch.from_numpy(np.tile(weight, 2)).float(),
        pos=torch.from_numpy(rng.standard_normal((nodes, 2))).float(),
        y=torch.tensor([nodes % 2]),
    )


def chain_part(data: Data) -> dict[str, torch.Tensor]:
    return {key: value for key, value in data.to_dict().items() if is_chain_key(key)}


def unchanged(one: Data, two: Data) -> bool:
    first, second = chain_part(one), chain_part(two)
    return first.keys() == second.keys() and all(
        first[key].dtype == second[key].dtype and torch.equal(first[key], second[key])
        for key in first
    )


# All that a graph can carry, over graphs of all sizes; every fifth has no edges, and many have as
# many as nodes, counted both ways.
EVERYTHING = AddEigenModes(2, num_levels=2, method="matching", domain="haar", details=True)
SIZES = [1 + (7 * i) % 40 for i in range(60)]
GRAPHS = [graph(n, [0, n // 2, n, n // 2, 2 * n][i % 5], seed=i) for i, n in enumerate(SIZES)]
CARRIED = [EVERYTHING(data) for data in GRAPHS]
LARGE = graph(30, 60, seed=3)
CHAIN = AddHaarChain(num_levels=2, method="matching")
CHAINED = CHAIN(LARGE)


# ---------------------------------------------------------------------- transforms behind the chain

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
    assert sum(value.shape[0] == data.num_edges > 0 for data, value in pairs) > 20
    assert sum(value.shape[-1] == data.num_nodes for data, value in pairs) > 120
    assert sum(value.shape[0] == data.num_nodes for data, value in pairs) > 20
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
def test_nodes_that_are_gone_are_noticed(name):
    """Cutting a graph behind AddHaarChain: an error, and no result for the wrong nodes."""
    data = EVERYTHING(graph(20, 15, seed=5))
    assert data.has_isolated_nodes()
    mask = torch.arange(20) % 3 > 0
    for cut in (data.subgraph(mask), data.subgraph(mask.nonzero()[:, 0])):
        assert cut.num_nodes == mask.sum() < 20
        with pytest.raises(HaarPoolError, match="a row for each node"):
            applied(name, cut)
        with pytest.raises(HaarPoolError, match="a row for each node"):
            applied(name, Batch.from_data_list([data, cut]))
    with pytest.raises(HaarPoolError, match="a row for each node"):
        applied(name, T.RemoveIsolatedNodes()(data.clone()))
    assert torch.equal(applied(name, data.subgraph(torch.ones(20).bool())), applied(name, data))


def test_without_isolated_nodes_none_are_removed():
    data = EVERYTHING(graph(20, 90, seed=5))
    assert not data.has_isolated_nodes()
    kept = T.RemoveIsolatedNodes()(data.clone())
    assert torch.equal(applied("network", kept), applied("network", data))


# ---------------------------------------------------------------------- subclasses


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
    attributes = graph(nodes, nodes, seed).to_dict()
    partner = torch.arange(nodes).flip(0)
    return kind(**attributes, partner=partner, wide=torch.full((2, nodes), float(seed)))


@pytest.mark.parametrize("kind", [Incremented, Joined, type("Grandchild", (Joined,), {})])
@pytest.mark.parametrize("transform", [AddHaarChain(num_levels=1), AddEigenModes(num_levels=1)])
def test_rules_that_would_be_lost_are_refused(kind, transform):
    with pytest.raises(HaarPoolError, match="rules of its own") as error:
        transform(extended(kind, 5, 0))
    assert kind.__name__ in error.value.got
    assert "inherit from haarpool.data.ChainData" in error.value.remedy


def test_the_same_rules_on_top_of_chain_data():
    sizes = [5, 9, 1]
    each = [CHAIN(extended(Incorporated, n, i)) for i, n in enumerate(sizes)]
    assert [type(data) for data in each] == [Incorporated] * 3
    batch = Batch.from_data_list(each)
    assert isinstance(batch, Incorporated)
    expected = torch.cat([torch.arange(4, -1, -1), torch.arange(13, 4, -1), torch.tensor([14])])
    assert torch.equal(batch.partner, expected)
    assert batch.wide.shape == (2, 15)
    plain = [CHAIN(graph(n, n, i)) for i, n in enumerate(sizes)]
    assert unchanged(batch, Batch.from_data_list(plain))
    for one, data in zip(batch.to_data_list(), each, strict=True):
        assert type(one) is Incorporated
        assert torch.equal(one.partner, data.partner)
        assert unchanged(one, data)


def test_a_subclass_without_such_rules_is_fine():
    data = CHAIN(Molecule(**LARGE.to_dict()))
    assert isinstance(data, ChainData)
    assert unchanged(data, CHAINED)


# ---------------------------------------------------------------------- ChainData


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
    del small.pos, small.edge_weight, small.y
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
    assert "haar_" not in repr(EVERYTHING(small))
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
    full = AddEigenModes(3, num_levels=4, domain="haar", details=True)(LARGE)
    assert {"haar_modes_3", "haar_basis_0", "haar_tree_4", "haar_depth_4"} <= full.tensors.keys()
    again = AddHaarChain(num_levels=2, method="matching", domain="vertex")(full)
    fresh = AddHaarChain(num_levels=2, method="matching", domain="vertex")(LARGE)
    assert again.to_dict().keys() == fresh.to_dict().keys()
    assert unchanged(again, fresh)
    assert [key for key in again.tensors if "depth" in key] == ["haar_depth_2"]
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


# ---------------------------------------------------------------------- repr of the transform


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
        (AddEigenModes(3, 2, method=Halves(), domain="haar"), ["num_modes=3", "Halves", "'haar'"]),
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
    assert "features='x'" in error.value.remedy


# ---------------------------------------------------------------------- what layers refuse

FULL = EVERYTHING(LARGE)
READERS = {
    "pool": HaarPooling(0),
    "pool-vertex": HaarPooling(0, "vertex"),
    "pool-energy": HaarPooling(1, "vertex", "energy"),
    "pool-full": HaarPooling(1, "haar", "full"),
    "unpool": HaarUnpooling(0),
    "unpool-vertex": HaarUnpooling(1, "vertex"),
    "readout": HaarReadout(),
    "conv": HaarConv(3, 4, num_levels=2),
    "eigen": EigenPooling(0),
}
each_reader = pytest.mark.parametrize("name", READERS)


@each_reader
def test_no_features(name):
    with pytest.raises(HaarPoolError) as error:
        READERS[name](None, FULL)
    assert "node features x" in error.value.expected
    assert "T.OneHotDegree" in error.value.remedy
    assert "T.Constant()" in error.value.remedy


def test_no_features_in_a_network():
    bare = CHAIN(Data(edge_index=LARGE.edge_index, num_nodes=30))
    for data in (bare, Batch.from_data_list([bare, bare]), bare.to_dict()):
        with pytest.raises(HaarPoolError, match=r"T\.OneHotDegree.*T\.Constant"):
            build_model("GC8-HP-GC8-HP-FC8", 3, 2)(data)


@each_reader
def test_integer_features(name):
    reader = READERS[name]
    level = reader.level + (1 if "unpool" in name else 0)
    rows = torch.ones(FULL.chain_sizes[level], 3)
    reader(rows, FULL)
    for x in (rows.long(), rows.bool()):
        with pytest.raises(HaarPoolError, match=r"x\.float\(\)"):
            reader(x, FULL)


@each_reader
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: LARGE.edge_index,
        lambda: None,
        lambda: hp.build_chain(LARGE, 2),
        lambda: [FULL],
    ],
    ids=["edge_index", "None", "chain", "list"],
)
def test_something_else_in_the_place_of_data(name, wrong):
    with pytest.raises(HaarPoolError, match="DataLoader"):
        READERS[name](torch.ones(30, 3), wrong())


@pytest.mark.parametrize("wrong", [lambda: LARGE.x, lambda: None, lambda: [FULL]])
def test_something_else_for_a_network(wrong):
    with pytest.raises(HaarPoolError, match="DataLoader"):
        build_model("GC8-HP-FC8", 3, 2)(wrong())


@pytest.mark.parametrize("key", ["haar_links_1", "haar_weights_1", "haar_basis_1", "haar_values_1"])
def test_keys_that_were_excluded(key):
    batch = next(iter(DataLoader([FULL, FULL], batch_size=2, exclude_keys=[key])))
    assert key not in batch
    with pytest.raises(HaarPoolError, match=f"no '?{key}"):
        HaarPooling(0)(batch.x, batch)


def test_the_number_of_graphs_was_excluded():
    batch = next(iter(DataLoader([FULL, FULL], batch_size=2, exclude_keys=["haar_growth"])))
    with pytest.raises(HaarPoolError, match="no haar_growth"):
        HaarReadout()(batch.x, batch)


def test_details_are_a_yes_or_no_of_the_transform():
    with pytest.raises(HaarPoolError, match="details=True"):
        AddHaarChain(2, details="full")


def test_an_excluded_tree_is_a_missing_chain():
    batch = Batch.from_data_list([FULL, FULL], exclude_keys=["haar_tree_1"])
    with pytest.raises(HaarPoolError, match="levels"):
        HaarPooling(0)(batch.x, batch)


# ---------------------------------------------------------------------- details on demand


@each_domain
def test_details_of_level_zero_can_be_left_out(domain):
    plain = AddHaarChain(2, method="matching", details=False)(LARGE)
    assert "haar_basis_0" in AddHaarChain(2, method="matching")(LARGE)
    assert "haar_basis_0" not in AddHaarChain(2, method="matching", domain="vertex")(LARGE)
    assert {"haar_basis_0", "haar_values_0"}.isdisjoint(plain.tensors)
    with pytest.raises(HaarPoolError, match="details=True"):
        HaarPooling(0, domain, "full")(LARGE.x, plain)
    rows = torch.randn(plain.chain_sizes[1], 3)
    out = HaarPooling(1, domain, "full")(rows, plain)
    assert_close(HaarUnpooling(1, domain)(out.x, plain, out.details), rows)
    HaarPooling(0, domain)(LARGE.x, plain)
    HaarPooling(0, domain, "energy")(LARGE.x, plain)


@pytest.mark.parametrize("made", DOMAINS)
@each_domain
@pytest.mark.parametrize("level", [0, 1])
def test_with_all_details_everything_is_restored(made, domain, level):
    transform = AddHaarChain(2, method="matching", domain=made, details=True)
    assert "details=True" in repr(transform)
    batch = Batch.from_data_list([transform(data) for data in (LARGE, GRAPHS[0], GRAPHS[7])])
    x = torch.randn(batch.chain_sizes[level], 3).double()
    out = HaarPooling(level, domain, "full")(x, batch)
    assert len(out.x) + len(out.details) == len(x)
    assert_close(HaarUnpooling(level, domain)(out.x, batch, out.details), x)
    assert_close(out.x.square().sum() + out.details.square().sum(), x.square().sum())


def test_details_without_bases():
    data = AddHaarChain(2, method="matching", domain="vertex")(LARGE)
    assert not [key for key in data.tensors if "basis" in key or "values" in key]
    for level in (0, 1):
        rows = torch.randn(data.chain_sizes[level], 3)
        with pytest.raises(HaarPoolError, match="AddHaarChain"):
            HaarPooling(level, "vertex", "full")(rows, data)


# ---------------------------------------------------------------------- short types


@each_domain
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_energies_of_short_types_do_not_overflow(dtype, domain):
    """Squares of 300 are more than float16 can hold."""
    signs = 1 - 2 * (torch.arange(30) % 2)
    x = (300 * signs)[:, None].expand(-1, 3).to(dtype).requires_grad_()
    out = HaarPooling(0, domain, "energy")(x, FULL)
    assert out.x.dtype == dtype
    assert out.details.dtype == torch.float32
    assert out.details.isfinite().all()
    assert out.details.max() > torch.finfo(torch.float16).max
    expected = HaarPooling(0, domain, "energy")(x.float(), FULL).details
    assert_close(out.details, expected)
    out.details.mean().backward()
    assert x.grad.dtype == dtype
    assert x.grad.isfinite().all()


@pytest.fixture(scope="module")
def many_nodes() -> ChainData:
    ring = torch.arange(2000)
    edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    chain = hp.Chain.from_parents([np.arange(2000) // 40, np.zeros(50, int)])
    data = Data(edge_index=edges, num_nodes=2000)
    return ChainData.from_chain(data, chain, domain="vertex")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_readouts_of_short_types_are_rounded_once(dtype, many_nodes):
    torch.manual_seed(0)
    x = (1 + 0.1 * torch.randn(2000, 3)).to(dtype)
    for statistics in (["sum"], ["mean"], ["scaled_sum"], ["energy"], ["sum", "mean", "energy"]):
        readout = HaarReadout(statistics=statistics)
        out = readout(x, many_nodes)
        assert out.dtype == dtype
        assert torch.equal(out, readout(x.float(), many_nodes).to(dtype))
    # One by one in the short type it would be far off.
    total = torch.zeros(3, dtype=dtype)
    for row in x:
        total = total + row
    exact = x.double().sum(0)
    bad = (total.double() / exact - 1).abs().max()
    good = (HaarReadout(statistics="sum")(x, many_nodes)[0].double() / exact - 1).abs().max()
    assert good < torch.finfo(dtype).eps
    assert bad > (0.5 if dtype == torch.bfloat16 else 2 * good)

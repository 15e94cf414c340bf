"""Graphs with chains through all of PyG: transforms, loaders, datasets, files, devices."""

import copy
import inspect
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.data.datapipes import DatasetAdapter
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import BaseTransform, Compose, Constant

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.nn import HaarPooling, HaarReadout
from helpers.strategies import at_most, chains, close, each_device


def graph(nodes: int, degree: float = 3.0, seed: int = 0, columns: int = 3) -> Data:
    """A random graph with weights, a label and, if the degree is small, isolated nodes."""
    rng = np.random.default_rng(seed)
    chosen = rng.random((nodes, nodes)) < degree / nodes
    upper = np.triu(chosen * rng.uniform(1, 2, (nodes, nodes)), 1)
    row, column = np.nonzero(upper + upper.T)
    return Data(
        x=torch.from_numpy(rng.standard_normal((nodes, columns))),
        edge_index=torch.from_numpy(np.stack([row, column])),
        edge_weight=torch.from_numpy((upper + upper.T)[row, column]),
        y=torch.tensor([nodes]),
    )


def carrier(chain: hp.Chain) -> ChainData:
    """The graph of a chain, with the chain and a signal."""
    whole = chain.adjacency(0, self_loops=True).tocoo()
    data = Data(
        x=torch.from_numpy(np.random.default_rng(0).standard_normal((chain.sizes[0], 2))),
        edge_index=torch.from_numpy(np.stack([whole.row, whole.col]).astype(np.int64)),
        edge_weight=torch.from_numpy(whole.data),
    )
    return ChainData.from_chain(data, chain)


def same(one: Data, two: Data) -> bool:
    """The same keys, and for each the same type and value."""
    first, second = one.to_dict(), two.to_dict()
    assert first.keys() == second.keys()
    for key, value in first.items():
        other = second[key]
        if isinstance(value, torch.Tensor):
            assert value.dtype == other.dtype, key
            assert torch.equal(value, other), key
        else:
            assert value == other, key
    return type(one) is type(two)


def merge_all(data: Data) -> hp.Chain:
    return hp.Chain.from_parents([np.zeros(data.num_nodes, int)])


def halves(adjacency, num_clusters, *, seed):
    """A clustering: neighbours in the numbering."""
    return np.arange(adjacency.shape[0]) * num_clusters // adjacency.shape[0]


CHAINED = AddHaarChain(num_levels=3, method="matching")
# One node, two, many; no edges; isolated nodes; fewer nodes than levels (2 < 3).
MIXED = [graph(1), graph(300, seed=1), graph(2, 9.0), graph(5, 0.0), graph(30, 1.0), graph(4)]
CARRIED = [CHAINED(data) for data in MIXED]


def test_the_mixture_is_one():
    """What the tests below rely on."""
    edges = [data.num_edges for data in MIXED]
    assert edges[0] == edges[3] == 0
    assert edges[2] == 2
    assert MIXED[1].num_nodes == 300
    assert MIXED[4].has_isolated_nodes()
    assert all(len(d.edge_weight.unique()) == d.num_edges / 2 for d in MIXED)


# ------------------------------------------------------------------ the transform


def test_a_transform_like_others():
    assert isinstance(CHAINED, BaseTransform)
    transform = Compose([Constant(), AddHaarChain(num_levels=2)])
    data = transform(MIXED[4])
    assert isinstance(data, ChainData)
    assert data.x.shape == (30, 4)
    assert data.chain_sizes == (30, 15, 1)


def test_registered_by_name_for_datapipes():
    pipe = DatasetAdapter(MIXED).add_haar_chain(num_levels=3, method="matching")
    assert all(same(one, two) for one, two in zip(pipe, CARRIED, strict=True))


@pytest.mark.parametrize(
    "parameters",
    [
        {"num_levels": 2},
        {"num_levels": 2, "ratio": 0.25},
        {"ratio": [0.5, 0.25, 0.5]},
        {"num_levels": 2, "top": None},
        {"num_levels": 2, "method": "matching"},
        {"num_levels": 2, "method": halves},
        {"num_levels": 2, "method": "kmeans", "seed": 3},
        {"sizes": [7, 3, 2]},
        {"num_levels": 3, "sizes": "paper"},
        {"num_levels": 2, "order": "index"},
        {"num_levels": 2, "measure": "mass"},
        {},
    ],
    ids=str,
)
def test_takes_the_parameters_of_build_chain(parameters):
    data = MIXED[4]
    chain = hp.build_chain(data, **parameters)
    assert same(AddHaarChain(**parameters)(data), ChainData.from_chain(data, chain))


def test_features_by_name():
    data = MIXED[4]
    by_x = AddHaarChain(2, method="kmeans", features="x")(data)
    chain = hp.build_chain(data, 2, method="kmeans", features=data.x)
    assert same(by_x, ChainData.from_chain(data, chain))
    assert not torch.equal(by_x.haar_tree_0, AddHaarChain(2, method="kmeans")(data).haar_tree_0)


def test_symmetrize():
    one_way = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(hp.HaarPoolError, match="symmetrize"):
        AddHaarChain(num_levels=1)(one_way)
    data = AddHaarChain(sizes=[2], symmetrize=True, method="matching")(one_way)
    assert data.chain_sizes == (3, 2)
    assert data.haar_links_1.tolist() == [[0, 1], [1, 0]]


def test_a_function_instead_of_parameters():
    data = AddHaarChain(chain=merge_all)(MIXED[4])
    assert data.chain_sizes == (30, 1)
    # A chain that knows its graph, with an order of its own, is taken as it is.
    chain = hp.build_chain(MIXED[4], 2, order="degree", measure="mass")
    kept = AddHaarChain(chain=lambda data: chain)(MIXED[4])
    assert same(kept, ChainData.from_chain(MIXED[4], chain))


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (AddHaarChain(), "AddHaarChain()"),
        (AddHaarChain(3), "AddHaarChain(num_levels=3)"),
        (
            AddHaarChain(2, method="kmeans", features="x", domain="vertex", seed=1),
            "AddHaarChain(num_levels=2, features='x', method='kmeans', seed=1, domain='vertex')",
        ),
        (AddHaarChain(sizes=[4, 1]), "AddHaarChain(sizes=[4, 1])"),
        (AddHaarChain(chain=merge_all), f"AddHaarChain(chain={__name__}.merge_all)"),
        (
            AddHaarChain(2, method=halves, order="index"),
            f"AddHaarChain(num_levels=2, method={__name__}.halves, order='index')",
        ),
    ],
)
def test_repr_has_names_and_no_addresses(transform, expected):
    assert repr(transform) == expected


def test_the_signature_shows_the_parameters():
    names = list(inspect.signature(AddHaarChain).parameters)
    assert names == ["num_levels", "chain", "features", "domain", "details", "parameters"]


def test_the_input_is_left_alone():
    data = graph(9)
    before = data.clone()
    carried = CHAINED(data)
    assert same(data, before)
    assert type(data) is Data
    assert carried.x is data.x  # nothing is copied


def test_a_chain_replaces_the_one_before():
    deep = AddHaarChain(num_levels=5)(MIXED[4])
    assert same(CHAINED(deep), CARRIED[4])


@pytest.mark.parametrize("domain", ["haar", "vertex"])
@pytest.mark.parametrize("number", range(len(MIXED)))
def test_flat_contiguous_tensors(number, domain):
    data = AddHaarChain(num_levels=3, domain=domain)(MIXED[number])
    own = {key: data[key] for key in data.keys() if key.startswith("haar_")}  # noqa: SIM118
    assert all(isinstance(value, torch.Tensor) for value in own.values())
    assert all(value.is_contiguous() for value in own.values())
    assert any("basis" in key for key in own) == (domain == "haar")


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), (None, torch.float32)],
)
def test_coarse_weights_have_the_type_of_the_weights(weight, expected):
    data = graph(12)
    data.edge_weight = None if weight is None else data.edge_weight.to(weight)
    assert CHAINED(data).haar_weights_1.dtype == expected


def test_a_graph_without_features_keeps_its_number_of_nodes():
    bare = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=4)
    batch = Batch.from_data_list([CHAINED(bare), CHAINED(bare)])
    assert batch.num_nodes == 8
    assert batch.batch.tolist() == [0] * 4 + [1] * 4


# ------------------------------------------------------------------ batches


def test_every_graph_comes_back_out_of_a_batch():
    batch = Batch.from_data_list(CARRIED)
    assert isinstance(batch, ChainData)
    assert isinstance(batch, Batch)
    assert all(same(batch[i], data) for i, data in enumerate(CARRIED))
    assert all(map(same, batch.to_data_list(), CARRIED))
    assert all(map(same, batch[[4, 1]], [CARRIED[4], CARRIED[1]]))


def test_a_batch_of_batches_is_a_batch():
    parts = [Batch.from_data_list(CARRIED[:2]), Batch.from_data_list(CARRIED[2:])]
    nested, flat = Batch.from_data_list(parts), Batch.from_data_list(CARRIED)
    ours = [key for key in flat.keys() if key.startswith("haar_")]  # noqa: SIM118
    assert all(torch.equal(nested[key], flat[key]) for key in ours)
    back = nested.to_data_list()
    assert all(
        torch.equal(part[key], b[key]) for part, b in zip(parts, back, strict=True) for key in ours
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers):
    loader = DataLoader(CARRIED, batch_size=4, num_workers=workers)
    batches = list(loader)
    assert [batch.num_graphs for batch in batches] == [4, 2]
    assert all(map(same, [d for batch in batches for d in batch.to_data_list()], CARRIED))


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_that_shuffles(workers):
    generator = torch.Generator().manual_seed(0)
    loader = DataLoader(
        CARRIED, batch_size=4, shuffle=True, num_workers=workers, generator=generator
    )
    seen = [data for batch in loader for data in batch.to_data_list()]
    by_size = {data.num_nodes: data for data in CARRIED}
    assert sorted(data.num_nodes for data in seen) == sorted(by_size)
    assert [data.num_nodes for data in seen] != [data.num_nodes for data in CARRIED]
    assert all(same(data, by_size[data.num_nodes]) for data in seen)


@pytest.mark.gpu
def test_loader_that_pins():
    (batch,) = DataLoader(CARRIED, batch_size=6, pin_memory=True)
    assert batch.haar_tree_0.is_pinned()
    assert all(map(same, batch.to_data_list(), CARRIED))


@pytest.mark.gpu
def test_pin_memory():
    pinned = CARRIED[1].clone().pin_memory()
    assert pinned.haar_basis_1.is_pinned()
    assert same(pinned, CARRIED[1])


def test_follow_batch_and_exclude_keys():
    (batch,) = DataLoader(
        CARRIED, batch_size=6, follow_batch=["haar_tree_1"], exclude_keys=["haar_basis_2"]
    )
    assert "haar_basis_2" not in batch
    pooled = HaarPooling(0)(batch.x, batch)  # needs the basis of level 1 only
    assert torch.equal(batch.haar_tree_1_batch, pooled.batch)
    assert batch.haar_tree_1_ptr.diff().tolist() == [data.chain_sizes[1] for data in CARRIED]


@each_device
def test_moves_between_devices(device):
    for data in (CARRIED[1], Batch.from_data_list(CARRIED)):
        moved = data.clone().to(device)
        assert all(
            moved[key].device.type == device
            for key in moved.keys()  # noqa: SIM118
            if isinstance(moved[key], torch.Tensor)
        )
        assert same(moved.cpu(), data)
    on_device = Batch.from_data_list([data.clone().to(device) for data in CARRIED])
    assert same(on_device.cpu(), Batch.from_data_list(CARRIED))
    assert all(map(same, on_device.to_data_list(), CARRIED))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, Data.clone])
@pytest.mark.parametrize("data", [CARRIED[4], Batch.from_data_list(CARRIED)], ids=["data", "batch"])
def test_copies(data, copied):
    twin = copied(data)
    assert same(twin, data)
    assert twin.chain_sizes == data.chain_sizes
    twin.x = twin.x + 1
    twin.haar_tree_0 = twin.haar_tree_0 + 1
    assert not torch.equal(twin.x, data.x)  # the original has not followed
    assert not torch.equal(twin.haar_tree_0, data.haar_tree_0)
    # The copy asks its own storage how it grows, also where the original is gone.
    assert Batch.from_data_list([copied(CARRIED[4])] * 2).chain_sizes == (60, 30, 14, 2)


def test_chain_sizes_add_up():
    sizes = np.array([data.chain_sizes for data in CARRIED])
    assert Batch.from_data_list(CARRIED).chain_sizes == tuple(sizes.sum(0))
    assert (sizes[:, -1] == 1).all()


@pytest.mark.parametrize("number", range(len(CARRIED)))
def test_one_graph_needs_no_batch_vector(number):
    data = CARRIED[number]
    assert data.batch is None
    alone, batch = HaarPooling(0)(data.x, data), Batch.from_data_list([data])
    together = HaarPooling(0)(batch.x, batch)
    assert all(map(torch.equal, alone[:4], together[:4]))
    assert alone.batch.tolist() == [0] * data.chain_sizes[1]


# ------------------------------------------------------------------ against the reference


def blocks(x, many, level):
    return np.split(x, np.cumsum([chain.sizes[level] for chain in many])[:-1])


@given(st.data(), st.integers(1, 4))
def test_pooling_of_a_batch_has_the_reference_as_its_blocks(data, num_levels):
    many = data.draw(st.lists(chains(num_levels=num_levels, max_nodes=12), min_size=1, max_size=5))
    batch = Batch.from_data_list([carrier(chain) for chain in many])
    for j in range(num_levels):
        x = np.random.default_rng(j).standard_normal((batch.chain_sizes[j], 2))
        expected = [
            hp.compressive_basis(chain, j).T @ block
            for chain, block in zip(many, blocks(x, many, j), strict=True)
        ]
        out = HaarPooling(j)(torch.from_numpy(x), batch)
        assert close(out.x, np.concatenate(expected))


@at_most(20)
@given(st.data(), st.integers(1, 3))
def test_every_graph_comes_back_out_of_any_batch(data, num_levels):
    many = data.draw(st.lists(chains(num_levels=num_levels, max_nodes=12), min_size=1, max_size=5))
    carried = [carrier(chain) for chain in many]
    assert all(map(same, Batch.from_data_list(carried).to_data_list(), carried))


@pytest.mark.parametrize("level", range(3))
def test_graphs_of_very_different_size_in_one_batch(level):
    batch = Batch.from_data_list(CARRIED)
    many = [hp.build_chain(data, 3, method="matching") for data in MIXED]
    x = np.random.default_rng(0).standard_normal((batch.chain_sizes[level], 2))
    out = HaarPooling(level)(torch.from_numpy(x), batch)
    expected = [
        hp.compressive_basis(chain, level).T @ block
        for chain, block in zip(many, blocks(x, many, level), strict=True)
    ]
    assert close(out.x, np.concatenate(expected))
    # The plan of the fast transforms is a second way to join graphs.
    assert close(out.x, hp.compress(hp.TransformPlan.from_chains(many), x, level))


# ------------------------------------------------------------------ files and datasets


@pytest.mark.parametrize("data", [CARRIED[4], Batch.from_data_list(CARRIED)], ids=["data", "batch"])
def test_a_dict_of_tensors_loads_with_weights_only(tmp_path, data):
    torch.save(data.to_dict(), tmp_path / "dict.pt")
    loaded = torch.load(tmp_path / "dict.pt", weights_only=True)
    assert loaded.keys() == data.to_dict().keys()
    assert all(torch.equal(loaded[key], data[key]) for key in loaded)


def test_a_graph_loads_with_weights_only(tmp_path):
    torch.save(CARRIED[4], tmp_path / "graph.pt")
    assert same(torch.load(tmp_path / "graph.pt", weights_only=True), CARRIED[4])


def test_graphs_of_a_loaded_list_still_batch(tmp_path):
    torch.save(CARRIED, tmp_path / "graphs.pt")
    loaded = torch.load(tmp_path / "graphs.pt", weights_only=True)
    assert all(map(same, loaded, CARRIED))
    assert same(Batch.from_data_list(loaded), Batch.from_data_list(CARRIED))


def test_a_batch_loads_and_separates(tmp_path):
    """Pickled as a whole: the class of a batch is made on the fly, which weights_only refuses for
    every batch of PyG."""
    batch = Batch.from_data_list(CARRIED)
    torch.save(batch, tmp_path / "batch.pt")
    loaded = torch.load(tmp_path / "batch.pt", weights_only=False)
    assert same(loaded, batch)
    assert all(map(same, loaded.to_data_list(), CARRIED))


class Mixture(InMemoryDataset):
    def __init__(self, root):
        super().__init__(root)
        self.load(self.processed_paths[0], data_cls=ChainData)

    processed_file_names = "mixture.pt"

    def process(self):
        self.save(CARRIED, self.processed_paths[0])


def test_in_memory_dataset(tmp_path):
    for dataset in (Mixture(tmp_path), Mixture(tmp_path)):  # made, then read
        assert all(map(same, dataset, CARRIED))
        assert same(dataset[[4, 1]][0], CARRIED[4])
        (batch,) = DataLoader(dataset, batch_size=6)
        assert same(batch, Batch.from_data_list(CARRIED))


@pytest.fixture
def mutag_root(tmp_path):
    """A folder with MUTAG as it is downloaded, to be processed there."""
    root = os.environ.get("HAARPOOL_DATA")
    if not root:
        pytest.skip("HAARPOOL_DATA is not set: no real datasets here")
    shutil.copytree(Path(root) / "MUTAG" / "raw", tmp_path / "MUTAG" / "raw")
    return tmp_path


def test_chains_of_a_dataset_are_built_once(mutag_root, monkeypatch):
    def dataset():
        return TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(3, method="matching"))

    first = list(dataset())

    def again(self):
        raise AssertionError("processed a second time")

    monkeypatch.setattr(TUDataset, "process", again)
    # Any warning is an error here: of pickled code, or of a transform that looks like another.
    second = dataset()
    assert len(second) == 188
    assert all(map(same, first, second))
    for batch in DataLoader(second, batch_size=64):
        plan = hp.TransformPlan.from_chains(
            [hp.build_chain(data, 3, method="matching") for data in batch.to_data_list()]
        )
        assert close(HaarPooling(0)(batch.x, batch).x, hp.compress(plan, batch.x), torch.float32)


def test_another_transform_is_noticed(mutag_root):
    """By its repr: PyG warns that the processed files are those of another."""
    TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(chain=merge_all))
    TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(chain=merge_all))
    with pytest.warns(UserWarning, match="pre_transform"):
        TUDataset(mutag_root, "MUTAG", pre_transform=AddHaarChain(2))


# ------------------------------------------------------------------ what is refused


SHALLOW, DEEP = (AddHaarChain(num_levels=K, method="matching")(MIXED[4]) for K in (2, 4))


@pytest.mark.parametrize(
    ("pair", "got"), [((SHALLOW, DEEP), "of 4 levels"), ((DEEP, SHALLOW), "of 2 levels")]
)
def test_chains_of_different_depth_in_one_batch(pair, got):
    with pytest.raises(hp.HaarPoolError, match="same kind of chain") as caught:
        Batch.from_data_list(list(pair))
    assert got in caught.value.got
    assert "num_levels=" in caught.value.remedy


def test_bases_in_some_graphs_only():
    bare = AddHaarChain(num_levels=2, method="matching", domain="vertex")(MIXED[4])
    with pytest.raises(hp.HaarPoolError, match="haar_basis_0"):
        Batch.from_data_list([SHALLOW, bare])


def test_a_chain_data_without_a_chain():
    with pytest.raises(hp.HaarPoolError, match="one without"):
        Batch.from_data_list([SHALLOW, ChainData(**MIXED[4].to_dict())])


def test_a_plain_graph_after_one_with_a_chain():
    """PyG itself looks for the key in the plain one, and can only name it."""
    with pytest.raises(KeyError, match="haar_depth_2"):
        Batch.from_data_list([SHALLOW, MIXED[4]])


def test_a_plain_graph_first():
    """The keys of the first graph are those of the batch."""
    batch = Batch.from_data_list([MIXED[4], SHALLOW])
    assert "haar_tree_0" not in batch
    with pytest.raises(hp.HaarPoolError, match="data without one; add AddHaarChain"):
        HaarPooling(0)(batch.x, batch)


@pytest.mark.parametrize("pair", [(SHALLOW, DEEP), (DEEP, SHALLOW)])
def test_the_message_comes_through_from_a_worker(pair):
    with pytest.raises(Exception, match="the same AddHaarChain, with num_levels= set"):
        list(DataLoader(list(pair), batch_size=2, num_workers=2))


def test_other_missing_keys_are_no_matter_of_chains():
    with pytest.raises(KeyError) as caught:
        SHALLOW["nothing"]
    assert not isinstance(caught.value, hp.HaarPoolError)
    assert not hasattr(SHALLOW, "haar_tree_9")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AddHaarChain(2, domain="node"), 'domain "haar" or "vertex", got \'node\''),
        (lambda: AddHaarChain(0), "num_levels >= 1"),
        (lambda: AddHaarChain(2, ratio=1.5), "ratio in"),
        (lambda: AddHaarChain(2, method="nothing"), "nothing"),
        (lambda: AddHaarChain(2, speed=3), "speed"),
        (lambda: AddHaarChain(2, sizes=[4, 8]), "never grow"),
        (lambda: AddHaarChain(2, order="random"), "order"),
        (lambda: AddHaarChain(2, measure="area"), "measure"),
        (lambda: AddHaarChain(2, seed=-1), "seed"),
        (lambda: AddHaarChain(2, top=3), "top"),
        (lambda: AddHaarChain(chain=[0, 0]), "chain= as a function"),
        (lambda: AddHaarChain(2, chain=merge_all), "num_levels"),
        (lambda: AddHaarChain(chain=merge_all, ratio=0.5), "ratio"),
        (lambda: AddHaarChain(chain=merge_all, features="x"), "features"),
    ],
)
def test_bad_parameters_complain_at_once(make, message):
    """When the transform is made, not hours later at a graph."""
    with pytest.raises(hp.HaarPoolError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda data: hp.Chain.from_parents([[0, 0, 1]]), "over the 30 nodes of the graph"),
        (lambda data: [[0] * 30], "a Chain from the function chain=, got list"),
        (lambda data: None, "got NoneType"),
    ],
)
def test_a_function_that_gives_no_chain_of_this_graph(function, message):
    with pytest.raises(hp.HaarPoolError) as caught:
        AddHaarChain(chain=function)(MIXED[4])
    assert message in str(caught.value)


def test_an_error_of_the_function_stays_its_own():
    def broken(data):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        AddHaarChain(chain=broken)(MIXED[4])


def test_a_chain_of_another_graph():
    with pytest.raises(hp.HaarPoolError, match="build the chain from this graph"):
        ChainData.from_chain(MIXED[4], hp.build_chain(MIXED[5], 2))
    with pytest.raises(hp.HaarPoolError, match="domain"):
        ChainData.from_chain(MIXED[4], hp.build_chain(MIXED[4], 2), domain="both")


def test_a_batch_has_no_chain_of_its_own():
    with pytest.raises(hp.HaarPoolError, match="to_data_list"):
        CHAINED(Batch.from_data_list(MIXED))


def test_bases_that_are_too_dense(monkeypatch):
    monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", 100)
    with pytest.raises(hp.HaarPoolError) as caught:
        CHAINED(MIXED[4])
    assert "num_levels=None" in caught.value.remedy
    assert 'domain="vertex"' in caught.value.remedy
    data = AddHaarChain(num_levels=3, method="matching", domain="vertex")(MIXED[4])
    out = HaarPooling(0, "vertex")(data.x, data)
    sums = torch.zeros(15, 3, dtype=torch.float64)
    sums.index_add_(0, data.haar_tree_0[0], data.x)
    assert close(out.x, sums / data.haar_tree_0[0].bincount()[:, None].double().sqrt())
    assert close(HaarReadout(statistics="mean")(data.x, data), data.x.mean(0, keepdim=True))


def test_the_limit_is_the_number_of_entries(monkeypatch):
    bare = AddHaarChain(num_levels=3, method="matching", details=False)
    for transform, lowest in ((CHAINED, 0), (bare, 1)):
        data = transform(MIXED[4])
        entries = sum(data[f"haar_basis_{j}"].shape[1] for j in range(lowest, 4))
        monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", entries)
        assert same(transform(MIXED[4]), data)
        monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", entries - 1)
        with pytest.raises(hp.HaarPoolError, match="non-zeros"):
            transform(MIXED[4])
        monkeypatch.undo()


def test_the_limit_counts_details(monkeypatch):
    """One cluster of n nodes has n² / 2 entries in its details."""
    monkeypatch.setattr("haarpool.haar.chain_tensors.MAX_NONZEROS", 2_000)
    with pytest.raises(hp.HaarPoolError, match="non-zeros"):
        AddHaarChain(chain=merge_all)(MIXED[1])
    bare = AddHaarChain(chain=merge_all, details=False)(MIXED[1])
    assert bare.haar_basis_1.shape[1] == MIXED[1].num_nodes

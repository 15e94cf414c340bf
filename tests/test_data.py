"""`AddHaarChain` and `ChainData`: the transform, batches, loaders, devices."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode
from torch_geometric.data import Batch, Data
from torch_geometric.data.datapipes import DatasetAdapter
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import BaseTransform, Compose, Constant

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.nn import HaarPooling
from helpers.chain_data import (
    CARRIED,
    CHAINED,
    MIXED,
    carrier,
    halves,
    merge_all,
    random_data,
    same_data,
)
from helpers.strategies import at_most, chains, each_device
from helpers.tolerances import close


def test_mixed_graphs_cover_all_cases():
    """What the tests below rely on."""
    edges = [data.num_edges for data in MIXED]
    assert edges[0] == edges[3] == 0
    assert edges[2] == 2
    assert MIXED[1].num_nodes == 300
    assert MIXED[4].has_isolated_nodes()
    assert all(len(d.edge_weight.unique()) == d.num_edges / 2 for d in MIXED)


def test_is_a_pyg_transform():
    assert isinstance(CHAINED, BaseTransform)
    transform = Compose([Constant(), AddHaarChain(num_levels=2)])
    data = transform(MIXED[4])
    assert isinstance(data, ChainData)
    assert data.x.shape == (30, 4)
    assert data.chain_sizes == (30, 15, 1)


def test_registered_by_name_for_datapipes():
    pipe = DatasetAdapter(MIXED).add_haar_chain(num_levels=3, method="matching")
    assert all(same_data(one, two) for one, two in zip(pipe, CARRIED, strict=True))


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
    ids="-".join,  # their names; the address of a function differs from process to process
)
def test_takes_the_parameters_of_build_chain(parameters):
    data = MIXED[4]
    chain = hp.build_chain(data, **parameters)
    assert same_data(AddHaarChain(**parameters)(data), ChainData.from_chain(data, chain))


def test_features_by_name():
    data = MIXED[4]
    by_x = AddHaarChain(2, method="kmeans", features="x")(data)
    chain = hp.build_chain(data, 2, method="kmeans", features=data.x)
    assert same_data(by_x, ChainData.from_chain(data, chain))
    assert not torch.equal(by_x.haar_tree_0, AddHaarChain(2, method="kmeans")(data).haar_tree_0)


def test_symmetrize():
    one_way = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(hp.HaarPoolError, match="symmetrize"):
        AddHaarChain(num_levels=1)(one_way)
    data = AddHaarChain(sizes=[2], symmetrize=True, method="matching")(one_way)
    assert data.chain_sizes == (3, 2)
    assert data.haar_edges_1[:2].tolist() == [[0, 1], [1, 0]]


def test_a_function_instead_of_parameters():
    data = AddHaarChain(chain=merge_all)(MIXED[4])
    assert data.chain_sizes == (30, 1)
    # A chain that knows its graph, with an order of its own, is taken as it is.
    chain = hp.build_chain(MIXED[4], 2, order="degree", measure="mass")
    kept = AddHaarChain(chain=lambda data: chain)(MIXED[4])
    assert same_data(kept, ChainData.from_chain(MIXED[4], chain))


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (AddHaarChain(), "AddHaarChain()"),
        (AddHaarChain(3), "AddHaarChain(num_levels=3)"),
        (
            AddHaarChain(2, method="kmeans", features="x", seed=1),
            "AddHaarChain(num_levels=2, method='kmeans', seed=1, features='x')",
        ),
        (AddHaarChain(2, edge_attr="max"), "AddHaarChain(num_levels=2, edge_attr='max')"),
        (AddHaarChain(sizes=[4, 1]), "AddHaarChain(num_levels=2, sizes=(4, 1))"),
        (AddHaarChain(chain=merge_all), "AddHaarChain(chain=helpers.chain_data.merge_all)"),
        (
            AddHaarChain(2, method=halves, order="index"),
            "AddHaarChain(num_levels=2, method=helpers.chain_data.halves, order='index')",
        ),
    ],
)
def test_repr_has_names_and_no_addresses(transform, expected):
    assert repr(transform) == expected


def test_the_input_is_left_alone():
    data = random_data(9)
    before = data.clone()
    carried = CHAINED(data)
    assert same_data(data, before)
    assert type(data) is Data
    assert carried.x is data.x  # nothing is copied


FEATURED = [
    ChainData.from_chain(data, chain, "mean")
    for data, chain in [
        (Data(edge_attr=torch.randn(d.num_edges, 2), **d.to_dict()), CHAINED.build(d))
        for d in MIXED
    ]
]


@pytest.mark.parametrize("workers", [0, 2])
def test_features_of_coarse_edges_in_batches(workers, tmp_path):
    loader = DataLoader(FEATURED, batch_size=4, num_workers=workers)
    parts = [data for batch in loader for data in batch.to_data_list()]
    assert all(map(same_data, parts, FEATURED))
    batch = Batch.from_data_list(FEATURED)
    assert same_data(batch[2], FEATURED[2])
    nested = Batch.from_data_list([Batch.from_data_list(FEATURED[i : i + 3]) for i in (0, 3)])
    for level in (1, 2):
        edges, (reverse,) = batch[f"haar_edges_{level}"][:2], batch[f"haar_reverse_{level}"]
        assert torch.equal(edges[:, reverse], edges.flip(0))
        assert torch.equal(nested[f"haar_reverse_{level}"][0], reverse)
        assert batch[f"haar_attr_{level}"].shape == (3, edges.shape[1])
    torch.save(FEATURED[1], tmp_path / "data.pt")
    assert same_data(torch.load(tmp_path / "data.pt", weights_only=True), FEATURED[1])
    assert same_data(pickled(batch), batch)


@each_device
def test_features_of_coarse_edges_move(device):
    batch = Batch.from_data_list(FEATURED)
    moved = batch.clone().to(device)
    out = pooled(moved)
    assert out.edge_attr.device.type == device
    assert torch.equal(out.edge_attr.cpu(), pooled(batch).edge_attr)
    assert same_data(moved.cpu(), batch)


def test_another_chain_replaces_features_of_coarse_edges():
    assert "haar_attr_1" in FEATURED[4]
    plain = CHAINED(FEATURED[4])
    assert "haar_attr_1" not in plain
    with pytest.raises(hp.HaarPoolError, match="the same kind of chain in all graphs"):
        Batch.from_data_list([FEATURED[4], plain])


@pytest.mark.parametrize("level", range(4))
def test_coarse_positions_are_means_over_the_nodes_of_the_graph(level):
    graphs = [random_data(n, seed=n) for n in (30, 1, 7)]
    for data in graphs:
        data.pos = torch.randn(data.num_nodes, 2).double()
    expected, each = [], []
    for measure in ("mass", "children"):
        expected.clear()
        each = [AddHaarChain(3, method="matching", measure=measure)(data) for data in graphs]
        for data in each:
            cluster = torch.arange(data.num_nodes)
            for j in range(level):
                cluster = data[f"haar_tree_{j}"][0].long()[cluster]
            parts = [data.pos[cluster == p].mean(0) for p in range(data.chain_sizes[level])]
            expected.append(torch.stack(parts))
            assert close(data.coarse_pos(level), expected[-1])
        assert close(Batch.from_data_list(each).coarse_pos(level), torch.cat(expected))
    each[0].pos = torch.arange(30)[:, None]
    assert each[0].coarse_pos(level).dtype == torch.float32


def test_a_chain_replaces_the_one_before():
    deep = AddHaarChain(num_levels=5)(MIXED[4])
    assert same_data(CHAINED(deep), CARRIED[4])


@pytest.mark.parametrize("number", range(len(MIXED)))
def test_flat_contiguous_tensors(number):
    data = AddHaarChain(num_levels=3)(MIXED[number])
    own = {key: data[key] for key in data.keys() if key.startswith("haar_")}  # noqa: SIM118
    assert own.keys() == {
        "haar_start",
        *(f"haar_tree_{j}" for j in range(4)),
        *(f"haar_edges_{j}" for j in range(1, 4)),
    }
    for key, value in own.items():
        assert value.is_contiguous()
        assert value.dtype == (torch.int64 if "edges" in key else torch.int32)


@pytest.mark.parametrize("weight", [torch.float64, torch.float32, torch.float16, None])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_coarse_weights_have_the_type_of_the_signal(weight, dtype):
    data = random_data(12)
    data.edge_weight = None if weight is None else data.edge_weight.to(weight)
    carried, chain = CHAINED(data), hp.build_chain(data, 3, method="matching")
    for level in range(3):
        rows = torch.zeros(carried.chain_sizes[level], 1, dtype=dtype)
        out = HaarPooling(level)(rows, carried)
        assert out.edge_weight.dtype == dtype
        exact = torch.from_numpy(chain.adjacency(level + 1).data)
        single = exact.to(torch.float64 if dtype == torch.float64 else torch.float32)
        assert torch.equal(out.edge_weight, single.to(dtype))
        # Our networks sum with weights that are not rounded to 8 bits.
        assert torch.equal(ChainTensors(carried.tensors).coarse_weights(level + 1, dtype), single)


def test_a_graph_without_features_keeps_its_number_of_nodes():
    bare = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=4)
    batch = Batch.from_data_list([CHAINED(bare), CHAINED(bare)])
    assert batch.num_nodes == 8
    assert batch.batch.tolist() == [0] * 4 + [1] * 4


def test_every_graph_comes_back_out_of_a_batch():
    batch = Batch.from_data_list(CARRIED)
    assert isinstance(batch, ChainData)
    assert isinstance(batch, Batch)
    assert all(same_data(batch[i], data) for i, data in enumerate(CARRIED))
    assert all(map(same_data, batch.to_data_list(), CARRIED))
    assert all(map(same_data, batch[[4, 1]], [CARRIED[4], CARRIED[1]]))


def test_a_batch_of_batches_is_a_batch():
    parts = [Batch.from_data_list(CARRIED[:2]), Batch.from_data_list(CARRIED[2:])]
    nested, flat = Batch.from_data_list(parts), Batch.from_data_list(CARRIED)
    ours = [key for key in flat.keys() if key.startswith("haar_")]  # noqa: SIM118
    assert all(torch.equal(nested[key], flat[key]) for key in ours)
    for i, (part, back) in enumerate(zip(parts, nested.to_data_list(), strict=True)):
        assert all(torch.equal(part[key], back[key]) for key in ours)
        assert all(torch.equal(part[key], nested[i][key]) for key in ours)
    x = torch.randn(nested.chain_sizes[0], 2)
    pools = HaarPooling(0), HaarPooling(0, "vertex", "full")
    for pool in pools:
        assert all(map(torch.equal, pool(x, nested)[:4], pool(x, flat)[:4]))


@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers):
    loader = DataLoader(CARRIED, batch_size=4, num_workers=workers)
    batches = list(loader)
    assert [batch.num_graphs for batch in batches] == [4, 2]
    assert all(map(same_data, [d for batch in batches for d in batch.to_data_list()], CARRIED))


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
    assert all(same_data(data, by_size[data.num_nodes]) for data in seen)


@pytest.mark.gpu
def test_loader_that_pins():
    (batch,) = DataLoader(CARRIED, batch_size=6, pin_memory=True)
    assert batch.haar_tree_0.is_pinned()
    assert all(map(same_data, batch.to_data_list(), CARRIED))


@pytest.mark.gpu
def test_pin_memory():
    pinned = CARRIED[1].clone().pin_memory()
    assert pinned.haar_edges_1.is_pinned()
    assert same_data(pinned, CARRIED[1])


def test_follow_batch_and_exclude_keys():
    (batch,) = DataLoader(
        CARRIED, batch_size=6, follow_batch=["haar_tree_1"], exclude_keys=["haar_edges_2"]
    )
    assert "haar_edges_2" not in batch
    pooled = HaarPooling(0)(batch.x, batch)  # needs the edges of level 1 only
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
        assert same_data(moved.cpu(), data)
    on_device = Batch.from_data_list([data.clone().to(device) for data in CARRIED])
    assert same_data(on_device.cpu(), Batch.from_data_list(CARRIED))
    assert all(map(same_data, on_device.to_data_list(), CARRIED))


def pickled(data):
    return pickle.loads(pickle.dumps(data))


COPIES = [copy.copy, copy.deepcopy, Data.clone, pickled]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("data", [CARRIED[4], Batch.from_data_list(CARRIED)], ids=["data", "batch"])
def test_copies(data, copied):
    twin = copied(data)
    assert same_data(twin, data)
    assert twin.chain_sizes == data.chain_sizes
    twin.x = twin.x + 1
    twin.haar_tree_0 = twin.haar_tree_0 + 1
    assert not torch.equal(twin.x, data.x)  # the original has not followed
    assert not torch.equal(twin.haar_tree_0, data.haar_tree_0)


@pytest.mark.parametrize("copied", COPIES)
def test_copies_batch_as_the_originals_do(copied):
    """A storage remembers how it grows; a copy must forget it with the tensors it replaces."""
    before = Batch.from_data_list(CARRIED)
    copies = [copied(data) for data in CARRIED]
    assert same_data(Batch.from_data_list(copies), before)
    copies[0].update({key: v for key, v in CARRIED[1].tensors.items() if key.startswith("haar_")})
    copies[0].x = CARRIED[1].x
    changed = Batch.from_data_list(copies)
    expected = Batch.from_data_list([CARRIED[1], *CARRIED[1:]])
    assert all(
        torch.equal(changed[key], expected[key]) for key in expected.tensors if "haar" in key
    )
    assert same_data(Batch.from_data_list(CARRIED), before)


def pooled(data):
    return HaarPooling(0)(data.x, data)


@pytest.mark.parametrize("copied", COPIES)
def test_layers_see_the_chain_that_replaces_another(copied):
    """What they keep of a chain belongs to its tensors, of the original and of its copies."""
    data = CARRIED[1].clone()
    first, other = pooled(data), copied(data)
    for key, value in AddHaarChain(num_levels=3, seed=1, method="kmeans")(data).to_dict().items():
        other[key] = value
    second = AddHaarChain(num_levels=3, seed=1, method="kmeans")(data)
    assert not torch.equal(pooled(other).x, first.x)
    for mine, new in zip(pooled(other)[:4], pooled(second)[:4], strict=True):
        assert torch.equal(mine, new)
    for before, again in zip(first[:4], pooled(data)[:4], strict=True):
        assert torch.equal(before, again)
    del other["haar_tree_1"]
    with pytest.raises(hp.HaarPoolError, match="haar_tree_1"):
        pooled(other)


def test_layers_see_changes_in_place():
    data, other = CARRIED[1].clone(), AddHaarChain(num_levels=3, order="index")(CARRIED[1])
    pooled(data)
    for key in data.to_dict():
        if key.startswith("haar_tree"):
            data[key].copy_(other[key])
    assert torch.equal(pooled(data).x, pooled(other).x)


@pytest.mark.parametrize("copied", COPIES[1:])
def test_layers_see_changes_in_place_of_a_copy(copied):
    data = CARRIED[1].clone()
    before = pooled(data).edge_weight.clone()
    twin = copied(data)
    twin.haar_edges_1[2:] = 0
    assert not pooled(twin).edge_weight.any()
    assert torch.equal(pooled(data).edge_weight, before)


def test_layers_see_what_is_written_to_the_tensors():
    data = CARRIED[1].clone()
    pooled(data)
    data.tensors["haar_edges_1"] = data.haar_edges_1[:, :2]
    assert pooled(data).edge_index.shape == (2, 2)
    data.tensors["haar_tree_0"] = data.haar_tree_0[:, :-1]
    with pytest.raises(hp.HaarPoolError, match="one row per node"):
        pooled(data)


def test_what_is_done_with_a_result_does_not_reach_the_next():
    data = CARRIED[1].clone()
    for _ in range(2):
        weight = pooled(data).edge_weight
        assert not weight.requires_grad
        weight.requires_grad_()
        weight.square().sum().backward()
        assert torch.equal(weight.grad, 2 * weight)


def test_a_batch_that_was_read_in_inference_mode_can_be_trained_on():
    data = CARRIED[1].clone()
    with torch.inference_mode():
        first = pooled(data)
    out = HaarPooling(0)(data.x.clone().requires_grad_(), data)
    (torch.nn.Linear(1, 1).double()(out.edge_weight[:, None]).sum() + out.x.sum()).backward()
    assert torch.equal(out.x, first.x)


def test_a_batch_that_was_read_with_fake_tensors_can_be_used():
    data = CARRIED[1].clone()
    expected = pooled(data.clone())
    with FakeTensorMode(allow_non_fake_inputs=True):
        data.chain_tensors.steps(1, skip=True)
    assert torch.equal(
        HaarPooling(1)(expected.x, data).x, HaarPooling(1)(expected.x, data.clone()).x
    )


def test_a_chain_is_read_once_unless_its_tensors_are_views():
    data = CARRIED[1].clone()
    assert data.chain_tensors is data.chain_tensors
    assert copy.copy(data).chain_tensors is not data.chain_tensors
    assert pickled(data).chain_tensors.sizes == data.chain_tensors.sizes
    data["haar_tree_0"] = torch.cat([data["haar_tree_0"]] * 2, 1)[:, : data.num_nodes]
    assert data.chain_tensors is not data.chain_tensors


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
    assert all(map(same_data, Batch.from_data_list(carried).to_data_list(), carried))


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

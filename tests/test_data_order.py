"""`AddHaarChain(reorder=True)`: all that belongs to nodes is renumbered."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.haar.node_order import ORIGINAL_INDEX
from haarpool.nn import AddEigenModes, EigenPooling, HaarPooling, HaarUNet
from helpers.chain_data import LARGE, MIXED, positioned_data, random_data, same_data
from helpers.tolerances import close

PLAIN = AddHaarChain(num_levels=3, method="matching")
REORDER = AddHaarChain(num_levels=3, method="matching", reorder=True)


def decorated(nodes=40, seed=2):
    """A graph with attributes of all kinds."""
    data = random_data(nodes, seed=seed)
    rng = np.random.default_rng(seed)
    data.y = torch.arange(nodes)
    data.pos = torch.from_numpy(rng.random((nodes, 2)))
    data.train_mask = torch.from_numpy(rng.random(nodes) < 0.5)
    data.masks = torch.from_numpy(rng.random((nodes, 3)) < 0.5)
    data.names = [f"bus {node}" for node in range(nodes)]
    data.array = rng.random((nodes, 2))
    data.edge_attr = torch.arange(data.num_edges)[:, None]
    data.root_index = torch.tensor([3])
    data.title = "grid"
    return data


def test_every_attribute_of_nodes_follows_its_node():
    data = decorated()
    new = REORDER(data)
    order = new.original_index
    assert sorted(order.tolist()) == list(range(40))
    assert not torch.equal(order, torch.arange(40))
    for key in ("x", "y", "pos", "train_mask", "masks"):
        assert torch.equal(new[key], data[key][order]), key
    assert np.array_equal(new.array, data.array[order.numpy()])
    assert new.names == [f"bus {node}" for node in order.tolist()]
    assert new.title == "grid"
    # Edges stay in order, with the new numbers of their ends.
    assert torch.equal(order[new.edge_index], data.edge_index)
    assert torch.equal(order[new.root_index], data.root_index)
    for key in ("edge_weight", "edge_attr"):
        assert torch.equal(new[key], data[key]), key
    # The given graph has not changed.
    assert "original_index" not in data
    assert torch.equal(data.y, torch.arange(40))


def test_the_chain_is_that_of_the_renumbered_graph():
    data = decorated()
    chain, order = hp.build_chain(data, num_levels=3, method="matching").reorder()
    new = REORDER(data)
    expected = ChainData.from_chain(Data(new.x, new.edge_index, edge_weight=new.edge_weight), chain)
    assert torch.equal(new.original_index, torch.from_numpy(order))
    for key, value in expected.to_dict().items():
        if key.startswith("haar_"):
            assert torch.equal(new[key], value), key


@pytest.mark.parametrize("data", MIXED, ids=lambda data: data.num_nodes)
def test_coarse_signals_are_the_same(data):
    before, after = PLAIN(data), REORDER(data)
    pooled = HaarPooling(0, "vertex")
    old, new = pooled(before.x, before), pooled(after.x, after)
    assert close(new.x.sort(0).values, old.x.sort(0).values)
    assert after.chain_sizes == before.chain_sizes


def test_signals_on_one_graph():
    data = decorated()
    data.x, data.y = torch.randn(5, 40, 3), torch.randn(5, 40)
    data.num_nodes = 40
    new = REORDER(data)
    assert torch.equal(new.x, data.x[:, new.original_index])
    assert torch.equal(new.y, data.y[:, new.original_index])
    assert torch.equal(new.pos, data.pos[new.original_index])


@pytest.mark.parametrize("nodes", [(40, 25), (30,), (7, 20, 5)])
def test_predictions_of_a_batch_in_the_order_of_the_input(nodes):
    graphs = [decorated(n) for n in nodes]
    torch.manual_seed(0)
    model = HaarUNet(3, 2, width=8, levels=3).double().eval()
    expected = model(Batch.from_data_list([PLAIN(data) for data in graphs]))
    batch = Batch.from_data_list([REORDER(data) for data in graphs])
    out = model(batch)
    assert close(out[batch.original_index.argsort()], expected)
    assert torch.equal(batch.y[batch.original_index.argsort()],
                       torch.cat([data.y for data in graphs]))  # fmt: skip
    # Each graph comes back as it was.
    for one, data in zip(batch.to_data_list(), graphs, strict=True):
        assert torch.equal(one.original_index, REORDER(data).original_index)


def test_renumbering_again_keeps_the_first_numbers():
    data = decorated()
    once = REORDER(data)
    other = AddHaarChain(num_levels=2, method="spectral", reorder=True)
    twice = other(once)
    assert torch.equal(data.y[twice.original_index], twice.y)
    assert torch.equal(twice.original_index, twice.y)


def test_modes_belong_to_the_renumbered_nodes():
    data = positioned_data(30, 60)
    before, after = (
        AddEigenModes(2, num_levels=2, method="matching", reorder=reorder)(data)
        for reorder in (False, True)
    )
    pool = EigenPooling(0, 2)
    old, new = pool(before.x, before).x, pool(after.x, after).x
    assert close(new[:, :3].sort(0).values, old[:, :3].sort(0).values, torch.float32)
    assert torch.equal(after.x, data.x[after.original_index])


@pytest.mark.parametrize("reduction", ["mean", "max"])
def test_features_of_coarse_edges(reduction):
    graphs = [decorated(), decorated(25)]
    for data in graphs:
        data.edge_attr = torch.rand(data.num_edges, 2)
    torch.manual_seed(0)
    model = HaarUNet(3, 2, edge_channels=2, width=8, levels=3).double().eval()
    outputs = []
    for reorder in (False, True):
        transform = AddHaarChain(3, edge_attr=reduction, reorder=reorder)
        batch = Batch.from_data_list([transform(data) for data in graphs])
        batch.edge_attr = batch.edge_attr.double()
        outputs.append(model(batch))
    assert close(outputs[1][batch.original_index.argsort()], outputs[0])


def test_a_chain_that_was_built_before():
    chain = hp.build_chain(LARGE, num_levels=3, method="matching")
    assert same_data(REORDER.add(LARGE, chain), REORDER(LARGE))
    made = AddHaarChain(chain=lambda data: chain, reorder=True)
    assert same_data(made(LARGE), REORDER(LARGE))
    assert repr(REORDER) == "AddHaarChain(num_levels=3, method='matching', reorder=True)"


def test_a_dataset_is_saved_in_tree_order(tmp_path):
    class Pair(InMemoryDataset):
        def __init__(self, graphs):
            super().__init__()
            self.data, self.slices = self.collate(graphs)

    graphs = [REORDER(decorated()), REORDER(decorated(25))]
    for read, written in zip(Pair(graphs), graphs, strict=True):
        assert torch.equal(read[ORIGINAL_INDEX], written[ORIGINAL_INDEX])
        assert torch.equal(read.x, written.x)


@pytest.mark.parametrize("key", ["adj", "adj_t"])
def test_a_sparse_adjacency_matrix_is_an_error(key):
    data = decorated()
    data[key] = torch.eye(40)
    with pytest.raises(hp.HaarPoolError, match=f"a Data with {key}") as caught:
        REORDER(data)
    assert "before ToSparseTensor" in str(caught.value)

"""What layers need of their data: features, keys, types."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, GraphConv

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.errors import HaarPoolError
from haarpool.nn import (
    EigenPooling,
    HaarConv,
    HaarPooling,
    HaarReadout,
    HaarUnpooling,
    build_model,
)
from helpers.chain_data import EVERYTHING, LARGE, positioned_data
from helpers.layers import each_domain

CHAIN = AddHaarChain(num_levels=2, method="matching")
CHAINED = CHAIN(LARGE)


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
def test_data_of_another_type(name, wrong):
    with pytest.raises(HaarPoolError, match="DataLoader"):
        READERS[name](torch.ones(30, 3), wrong())


@pytest.mark.parametrize("wrong", [lambda: LARGE.x, lambda: None, lambda: [FULL]])
def test_network_input_of_another_type(wrong):
    with pytest.raises(HaarPoolError, match="DataLoader"):
        build_model("GC8-HP-FC8", 3, 2)(wrong())


@pytest.mark.parametrize("key", ["haar_edges_1", "haar_tree_0", "haar_tree_1", "haar_tree_2"])
def test_keys_that_were_excluded(key):
    batch = next(iter(DataLoader([FULL, FULL], batch_size=2, exclude_keys=[key])))
    assert key not in batch
    with pytest.raises(HaarPoolError, match=f"data with {key}, got .*; do not exclude this key"):
        HaarPooling(0)(batch.x, batch)


@each_domain
@pytest.mark.parametrize("level", [0, 1])
def test_with_all_details_everything_is_restored(domain, level):
    small = positioned_data(1, 0), positioned_data(10, 10, seed=7)
    batch = Batch.from_data_list([CHAIN(data) for data in (LARGE, *small)])
    x = torch.randn(batch.chain_sizes[level], 3).double()
    out = HaarPooling(level, domain, "full")(x, batch)
    assert len(out.x) + len(out.details) == len(x)
    assert_close(HaarUnpooling(level, domain)(out.x, batch, out.details), x)
    assert_close(out.x.square().sum() + out.details.square().sum(), x.square().sum())


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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("pool", [HaarPooling(0), HaarPooling(0, "vertex"), EigenPooling(0, 1)])
def test_everything_has_the_type_of_the_signal(pool, dtype):
    """So that a convolution of PyG in this type can follow."""
    x = LARGE.x.to(dtype)
    out = pool(x, FULL)
    expected = pool(x.double(), FULL)
    assert out.x.dtype == out.edge_weight.dtype == dtype
    assert torch.equal(out.edge_weight, expected.edge_weight.to(dtype))
    for conv in (GCNConv(3, 2), GraphConv(3, 2)):
        y = conv.to(dtype)(out.x, out.edge_index, out.edge_weight)
        assert y.dtype == dtype
    restored = HaarUnpooling(0)(out.x, FULL)
    assert restored.dtype == HaarReadout()(restored, FULL).dtype == dtype
    assert HaarConv(3, 2, 2).to(dtype)(restored, FULL).dtype == dtype


@pytest.mark.parametrize("method", ["parents", "matching"])
def test_a_graph_of_200_000_nodes(method):
    """The Haar domain needs memory and time for rows alone, not for bases."""
    n, K = 200_000, 3
    side = torch.arange(n - 1)
    path = torch.stack([side, side + 1])
    data = Data(x=torch.randn(n, 4), edge_index=torch.cat([path, path.flip(0)], 1), num_nodes=n)
    if method == "parents":
        parents = [np.arange(n // 2**j) // 2 for j in range(K - 1)] + [np.zeros(n // 4, int)]
        data = AddHaarChain(chain=lambda _: hp.Chain.from_parents(parents))(data)
    else:
        data = AddHaarChain(K, method=method)(data)
    assert data.chain_sizes == (n, n // 2, n // 4, 1)
    rows = data.x
    for level in range(K):
        out = HaarPooling(level, details="full")(rows, data)
        restored = HaarUnpooling(level)(out.x, data, out.details)
        assert_close(restored, rows)
        assert_close(HaarPooling(level)(rows, data).x, out.x)
        energy = out.x.double().square().sum() + out.details.double().square().sum()
        assert_close(energy, rows.double().square().sum())
        rows = out.x


@pytest.fixture(scope="module")
def many_nodes() -> ChainData:
    ring = torch.arange(2000)
    edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    chain = hp.Chain.from_parents([np.arange(2000) // 40, np.zeros(50, int)])
    data = Data(edge_index=edges, num_nodes=2000)
    return ChainData.from_chain(data, chain)


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

"""The readout of DGCNN: sorted nodes and convolutions along their order."""

import pytest
import torch
from torch.testing import assert_close

from haarpool import HaarPoolError
from haarpool.nn import build_model
from haarpool.nn.layers.dgcnn import SortConvolution
from helpers.networks import FEATURES, SIZES, batch_for

KEPT = 12


def slow(pool, x):
    """The rows of one graph, step by step."""
    x = x[x[:, -1].argsort(descending=True)][:KEPT]
    x = torch.cat([x, x.new_zeros(KEPT - len(x), x.shape[1])])
    channels = (x @ pool.first.weight[:, :, 0].T + pool.first.bias).relu()
    pairs = torch.stack([channels[i : i + 2].amax(0) for i in range(0, KEPT, 2)])
    windows = [pairs[i : i + 5].T for i in range(len(pairs) - 4)]
    columns = [(pool.second.weight * one).sum((1, 2)) + pool.second.bias for one in windows]
    return torch.stack(columns, 1).relu().flatten()


def test_rows_are_those_of_the_formula():
    torch.manual_seed(0)
    pool = SortConvolution(4, KEPT).double()
    sizes = (3, 20, 12)
    x = torch.randn(sum(sizes), 4, dtype=torch.float64)
    batch = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    rows = pool(x, batch, dim_size=3)
    assert rows.shape == (3, pool.out_channels) == (3, 64)
    assert_close(rows, torch.stack([slow(pool, one) for one in x.split(sizes)]))


def test_the_network_of_the_authors():
    model = build_model("3GC32-GC1-JK-DGCNN-FC128", FEATURES, 2, sorted_nodes=30)
    assert model.stages[1].aggregation.first.in_channels == 97
    assert model.adapter.in_features == 32 * 11
    assert model(batch_for(model)).shape == (len(SIZES), 2)


def test_weights_can_be_reset():
    pool = SortConvolution(4, KEPT)
    before = pool.first.weight.clone()
    pool.reset_parameters()
    assert not torch.equal(pool.first.weight, before)


def test_too_few_nodes():
    with pytest.raises(HaarPoolError, match=r"sorted_nodes in 10\.\."):
        build_model("GC8-DGCNN", FEATURES, 2, sorted_nodes=9)

"""How far networks look."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from haarpool.nn import build_model
from paper.pooling.reach import reach


def path(nodes):
    pairs = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    return Data(x=torch.randn(nodes, 2), edge_index=torch.cat([pairs, pairs.flip(0)], 1))


def net(arch, **options):
    return build_model(arch, 2, 3, width=8, task="node_regression", **options)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_flat_network_looks_as_far_as_it_has_layers(depth):
    assert 0 < reach(net(f"haarunet:levels=0,depth={depth}"), path(60).to_dict()) <= depth


def test_pooling_looks_further():
    model = net("haarunet:levels=4")
    data = model.transform()(path(60)).to_dict()
    flat = net("haarunet:levels=0,depth=2")  # as many convolutions on the input graph
    assert reach(model, data) > 1.5 * reach(flat, data)
    assert reach(model, data) == reach(model, data)
    assert model.training


def test_the_mean_distance():
    """Of a network whose output at a node is the sum over all nodes."""

    class Sum(torch.nn.Module):
        def forward(self, data):
            return data["x"].sum(-2, keepdim=True).expand_as(data["x"])

    nodes, number = 9, 9
    data = path(nodes).to_dict()
    index = np.arange(nodes)
    expected = np.abs(index[:, None] - index).mean()
    assert reach(Sum(), data, number) == pytest.approx(expected)
    data["x"] = data["x"][None]  # one signal
    assert reach(Sum(), data, number) == pytest.approx(expected)

"""Minibatches of graphs as they were read: the same chain tensors as those of `AddHaarChain`."""

import numpy as np
import pytest
import torch

from haarpool.chains import dataset_chains
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.pyg import GraphDataset
from haarpool.nn import build_model
from haarpool.training.minibatches import Minibatches
from haarpool.training.preparation import prepare_minibatches

ARCH = "haarunet:levels=2,width=8"


def grids(sizes=(12, 5, 30, 1, 8)):
    """Random graphs with features of edges, other ones in each direction, and a value per node."""
    rng, start = np.random.default_rng(0), np.concatenate([[0], np.cumsum(sizes)])
    edges = [np.zeros((2, 0), int)]
    for first, size in zip(start, sizes, strict=False):
        upper = np.triu(rng.random((size, size)) < 3 / size, 1)
        edges.append(first + np.stack((upper | upper.T).nonzero()))
    edges, nodes = np.concatenate(edges, 1), int(start[-1])
    return Graphs(
        "grids",
        start,
        edges,
        columns={"x": rng.standard_normal((nodes, 2))},
        edge_columns={"attributes": rng.standard_normal((edges.shape[1], 3))},
        task="node_regression",
        targets=rng.standard_normal((nodes, 1)),
    )


def prepared(graphs, network):
    encoding = Encoding.fit(graphs, "x")
    batches, _ = prepare_minibatches(
        graphs, encoding, network, {"method": "matching"}, torch.device("cpu"), cache=False
    )
    return batches, encoding


@pytest.mark.parametrize("block", [2, 2048])
def test_coarse_edges_have_features(block, monkeypatch):
    """However many graphs are joined at once."""
    monkeypatch.setattr(dataset_chains, "BLOCK_GRAPHS", block)
    graphs = grids()
    network = build_model(ARCH, 2, 1, task="node_regression", edge_channels=3)
    batches, encoding = prepared(graphs, network)
    transform = network.transform(method="matching")
    expected = Minibatches.of([transform(data) for data in GraphDataset(graphs, encoding)])
    for chosen in ([0, 1, 2, 3, 4], [4, 2, 2]):
        own, other = batches.take(chosen), expected.take(chosen)
        assert {key for key in own if "haar" in key} == {key for key in other if "haar" in key}
        assert all(torch.equal(own[key], other[key]) for key in own if "haar" in key)
        assert own["haar_attr_1"].any()
        torch.testing.assert_close(network(own), network(other))


def test_signals_on_one_graph():
    """The graph is stored once, with the features of its edges."""
    graph = grids([20])
    x = np.random.default_rng(1).standard_normal((60, 2))
    signals = Graphs(
        "signals",
        np.arange(4) * 20,
        graph.edges,
        columns={"x": x},
        edge_columns=graph.edge_columns,
        task="node_regression",
        targets=x[:, :1],
        signals=True,
    )
    network = build_model(ARCH, 2, 1, task="node_regression", edge_channels=3)
    (one, _), (many, _) = prepared(graph, network), prepared(signals, network)
    single, batch = one.take([0]), many.take([2, 0])
    for key in single:
        if "haar" in key:
            assert torch.equal(batch[key], single[key]), key
    output = network(batch)
    assert output.shape == (2, 20, 1)
    alone = network({**single, "x": batch["x"][1]})
    torch.testing.assert_close(output[1], alone)

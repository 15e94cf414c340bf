"""EdgePool by a compiled loop: PyG's clusters, output and gradients."""

import sys

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import EdgePooling

from haarpool.nn.layers import edgepool
from haarpool.nn.layers.edgepool import FastEdgePooling, contract

WIDTH = 3


def random_input(seed, num_nodes, num_edges, ties, device):
    """Random directed graphs with self-loops and repeated edges, and isolated nodes."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(num_nodes, WIDTH, generator=rng)
    if ties:
        x = torch.ones_like(x)  # scores depend on the number of edges into a node alone
    batch = torch.randint(4, (num_nodes,), generator=rng).sort().values
    source = torch.randint(num_nodes, (num_edges,), generator=rng)
    sizes, first = batch.bincount()[batch], torch.searchsorted(batch, batch)
    offset = torch.rand(num_edges, generator=rng) * sizes[source]  # edges stay in their graph
    edges = torch.stack([source, first[source] + offset.long()])
    return x.to(device).requires_grad_(), edges.to(device), batch.to(device)


def both_classes(device="cpu"):
    """PyG's class on the CPU, since on a GPU it takes edges of equal scores in any order."""
    torch.manual_seed(0)
    peer, ours = EdgePooling(WIDTH), FastEdgePooling(WIDTH).to(device)
    ours.load_state_dict(peer.state_dict())
    return peer, ours


def gradients(pool, x, features):
    return torch.autograd.grad((features**2).sum(), [x, *pool.parameters()])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("num_edges", [0, 1, 20, 60, 400])
def test_it_is_the_class_of_pyg(num_edges, ties, device):
    peer, ours = both_classes(device)
    for seed in range(5):
        x, edges, batch = random_input(seed, 40, num_edges, ties, "cpu")
        *expected, their_info = peer(x, edges, batch)
        slopes = gradients(peer, x, expected[0]) if num_edges else ()
        x, edges, batch = random_input(seed, 40, num_edges, ties, device)
        *out, info = EdgePooling.forward(ours, x, edges, batch)
        if ties and num_edges > 1:
            assert len(info.new_edge_score.unique()) < len(info.new_edge_score)
        for one, other in zip((*out, *info), (*expected, *their_info), strict=True):
            assert_close(one.cpu(), other)  # integers: equal
        if num_edges:
            for one, other in zip(gradients(ours, x, out[0]), slopes, strict=True):
                assert_close(one.cpu(), other)
        back = ours.unpool(out[0], info)
        for one, other in zip(back, peer.unpool(expected[0], their_info), strict=True):
            assert_close(one.cpu(), other)


def test_without_nodes():
    x, edges, batch = torch.ones(0, WIDTH), torch.ones(2, 0).long(), torch.ones(0).long()
    out, _, _, graphs, *_ = both_classes()[1](x, edges, None, batch)
    assert out.shape == (0, WIDTH)
    assert graphs.shape == (0,)


def test_compiled_loop_is_the_plain_one():
    rng = np.random.default_rng(0)
    for num_edges in (0, 5, 100):
        source, target = rng.integers(30, size=(2, num_edges))
        compiled, plain = (f(source, target, 30) for f in (edgepool._compiled(), contract))
        for one, other in zip(compiled, plain, strict=True):
            np.testing.assert_array_equal(one, other)


def test_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    edgepool._compiled.cache_clear()
    assert edgepool._compiled() is contract
    edgepool._compiled.cache_clear()

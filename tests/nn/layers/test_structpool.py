"""StructPool as its paper defines it."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch

from haarpool.nn.layers.dense_batch import hop_counts
from haarpool.nn.layers.structpool import StructPool
from helpers.dense import (
    MIXED,
    WIDTH,
    dense_data,
    pool_data,
    random_data,
)
from helpers.networks import FEATURES

# StructPool


def test_without_iterations_the_assignment_is_the_softmax_of_the_unary() -> None:
    pool = StructPool(WIDTH, num_clusters=3, num_iterations=0).double()
    x, adj, mask = dense_data(random_data(10, 20))
    assert torch.equal(pool.assign(x, adj, mask), pool.energy(x, adj).softmax(-1))


def test_the_unary_energy_is_a_graph_convolution_by_layer() -> None:
    pool = StructPool(WIDTH, num_clusters=3, hidden_channels=(4,)).double()
    nn.init.normal_(pool.unary[0].bias)
    (h,), (adj,), _ = x, a, _ = dense_data(random_data(10, 20))
    walk = torch.eye(10, dtype=torch.double) + adj
    walk = walk / walk.sum(1, keepdim=True)
    for layer in pool.unary:
        h = (walk @ h @ layer.weight.T + layer.bias).tanh()
    torch.testing.assert_close(pool.energy(x, a)[0], h)


@pytest.mark.parametrize("hops", [None, 1, 3])
def test_mean_field_as_the_paper_writes_it_node_by_node(hops: int | None) -> None:
    pool = StructPool(WIDTH, num_clusters=3, num_iterations=2, hops=hops).double()
    nn.init.normal_(pool.compatibility)
    data = random_data(7, 8)
    data.x = data.x.abs()  # so that the sum of similarities is that of their magnitudes
    x, adj, mask = dense_data(data)
    u, lam = pool.energy(x, adj)[0], pool.compatibility
    near = hop_counts(adj, torch.eye(7, dtype=torch.bool)[None], hops)[0].isfinite()
    q = u.softmax(-1)
    for _ in range(2):
        new = []
        for i in range(7):
            peers = [j for j in range(7) if j != i and (hops is None or near[i, j])]
            sims = [x[0, i] @ x[0, j] for j in peers]
            zero = torch.zeros(3, dtype=torch.double)
            message = sum((s / sum(sims) * q[j] for s, j in zip(sims, peers, strict=True)), zero)
            new.append((u[i] - message @ lam).softmax(-1))
        q = torch.stack(new)
    torch.testing.assert_close(pool.assign(x, adj, mask)[0], q)


@pytest.mark.parametrize("hops", [None, 1])
def test_similar_neighbours_come_to_agree(hops: int | None) -> None:
    """Two orthogonal kinds of nodes: with each step those of a kind agree more."""
    torch.manual_seed(1)
    kinds = torch.eye(2, WIDTH, dtype=torch.double).repeat_interleave(6, 0)
    adj = torch.ones(12, 12, dtype=torch.double).fill_diagonal_(0)[None]
    mask = torch.ones(1, 12, dtype=torch.bool)
    unary = torch.randn(1, 12, 4, dtype=torch.double)

    def disagreement(steps: int, sign: float = 1) -> float:
        pool = StructPool(WIDTH, num_clusters=4, num_iterations=steps, hops=hops).double()
        pool.energy = lambda x, adj: unary
        pool.compatibility.data *= sign
        q = pool.assign(kinds[None], adj, mask)[0].detach().view(2, 6, 4)
        return float((q - q.mean(1, keepdim=True)).square().sum())

    assert disagreement(5) < disagreement(0)
    assert disagreement(1, sign=-1) > disagreement(1)  # the compatibility is what does it


def test_fewer_nodes_than_clusters() -> None:
    out = pool_data(StructPool(WIDTH, num_clusters=6).double(), random_data(2, 0))
    assert out.x.shape == (6, WIDTH)
    torch.testing.assert_close(out.x.sum(0), random_data(2, 0).x.sum(0))


def test_weight_and_features_are_kept_in_sum() -> None:
    data = Batch.from_data_list(MIXED)
    out = pool_data(StructPool(WIDTH, num_clusters=4).double(), data)
    torch.testing.assert_close(out.x.sum(0), data.x.sum(0))
    torch.testing.assert_close(out.edge_weight.sum(), data.edge_weight.sum())  # with self-loops


def test_a_negative_weight_cannot_make_a_degree_vanish():
    pool = StructPool(FEATURES, num_clusters=2)
    x = torch.randn(3, FEATURES, requires_grad=True)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([-1.0, -1.0, 0.5, 0.5], requires_grad=True)  # 1 - 1 = 0 for node 0
    out = pool(x, edges, weight)
    (out.x.square().sum() + out.edge_weight.square().sum()).backward()
    for tensor in (out.x, out.edge_weight, x.grad, weight.grad):
        assert tensor.isfinite().all()
        assert (tensor.abs() < 1e4).all()

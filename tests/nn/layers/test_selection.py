"""SAGPool and gPool: their formulas, and what weight decay does to their scores."""

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv, SAGPooling, TopKPooling

from haarpool.nn.layers.selection import GPool, SAGPool
from helpers.networks import FEATURES, GRAPH

STEPS = 100


def scores_of(pool, x, edges, weight):
    sign = pool.select.weight.sign().item()
    if isinstance(pool, GPool):
        return torch.sigmoid(sign * pool.gnn.linear(x)[:, 0])
    return torch.tanh(sign * pool.gnn(x, edges, weight)[:, 0])


@pytest.mark.parametrize("kind", [SAGPool, GPool])
@pytest.mark.parametrize("ratio", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_by_their_formulas(kind, ratio, weighted, seed):
    torch.manual_seed(seed)
    pool = kind(FEATURES, ratio).double()
    x, edges = GRAPH.x, GRAPH.edge_index
    weight = GRAPH.edge_weight if weighted else None
    pooled, coarse, coarse_weight, _, chosen, score = pool(x, edges, weight)
    expected = scores_of(pool, x, edges, weight)
    kept = expected.argsort(descending=True)[: len(chosen)]
    assert set(chosen.tolist()) == set(kept.tolist())
    assert len(chosen) == -(-int(ratio * 10) * len(x) // 10)
    assert_close(score, expected[chosen])
    assert_close(pooled, x[chosen] * expected[chosen, None])
    assert (coarse_weight is None) != weighted
    pairs = set(map(tuple, chosen[coarse].T.tolist()))
    assert pairs == {(u, v) for u, v in edges.T.tolist() if {u, v} <= set(kept.tolist())}


def test_sagpool_is_that_of_pyg_with_a_gcn():
    """With the same weights of the same seed, and weights of earlier versions load."""
    torch.manual_seed(3)
    peer = SAGPooling(FEATURES, GNN=GCNConv).double()
    torch.manual_seed(3)
    pool = SAGPool(FEATURES).double()
    assert_close(pool.state_dict(), peer.state_dict())
    assert_close(pool(GRAPH.x, GRAPH.edge_index), peer(GRAPH.x, GRAPH.edge_index))
    pool.load_state_dict(peer.state_dict())


def test_scores_of_a_complete_graph_see_its_weights():
    """Without them all nodes with the same features have the same score."""
    edges = torch.cartesian_prod(torch.arange(5), torch.arange(5)).T
    weight = torch.rand(25, dtype=torch.float64).view(5, 5)
    pool = SAGPool(FEATURES).double()
    for one, distinct in ((None, 1), ((weight + weight.T).flatten(), 5)):
        scores = pool.gnn(torch.ones(5, FEATURES).double(), edges, one)
        assert len(scores.round(decimals=6).unique()) == distinct
    pooled = pool(torch.ones(5, FEATURES).double(), edges, (weight + weight.T).flatten())
    best = (pool.select.weight.sign() * scores)[:, 0].argsort(descending=True)[:3]
    assert set(pooled[4].tolist()) == set(best.tolist())


def trained_with_decay(pool):
    """Weight decay and no gradient: every hundredth of a weight is one step."""
    optimizer = torch.optim.Adam(pool.parameters(), 0.01, weight_decay=0.0005)
    for parameter in pool.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    signs = []
    for _ in range(STEPS):
        optimizer.step()
        signs.append(pool.select.weight.sign().flatten()[0].item())
    return set(signs)


def test_weight_decay_does_not_turn_the_order_around():
    torch.manual_seed(0)
    peer = SAGPooling(FEATURES, GNN=GCNConv)
    torch.nn.init.constant_(peer.select.weight, 0.2)
    assert trained_with_decay(peer) == {-1.0, 1.0}  # the reason for our class
    for kind in (SAGPool, GPool):
        assert len(trained_with_decay(kind(FEATURES))) == 1


def test_weights_of_zero_leave_gpool_finite():
    """Weight decay takes them there where features vanish."""
    peer, pool = TopKPooling(FEATURES).double(), GPool(FEATURES).double()
    x = GRAPH.x.clone().requires_grad_()
    for layer in (peer, pool):
        for parameter in layer.parameters():
            if parameter.requires_grad:
                torch.nn.init.zeros_(parameter)
    assert peer(x, GRAPH.edge_index)[0].isnan().all()  # the reason for our class
    out = pool(x, GRAPH.edge_index)[0]
    assert_close(out.abs().amax(1), x[pool(x, GRAPH.edge_index)[4]].abs().amax(1) / 2)
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in pool.parameters() if p.requires_grad)


@pytest.mark.parametrize("kind", [SAGPool, GPool])
def test_new_weights_by_reset(kind):
    pool = kind(FEATURES)
    before = pool.gnn.state_dict()
    before = {name: value.clone() for name, value in before.items()}
    pool.reset_parameters()
    assert any(
        not torch.equal(before[name], value) for name, value in pool.gnn.state_dict().items()
    )
    assert not pool.select.weight.requires_grad

"""StructPool and LaPool: padding, order of nodes, gradients, errors."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from haarpool.errors import HaarPoolError
from haarpool.nn.layers.dense_batch import hop_counts
from haarpool.nn.layers.diffpool import DiffPool
from haarpool.nn.layers.lapool import LaPool
from haarpool.nn.layers.structpool import StructPool
from helpers.dense import (
    MIXED,
    WIDTH,
    dense_adjacency,
    dense_data,
    pool_data,
    random_data,
    relabelled,
)

POOLS = {
    "struct": lambda: StructPool(WIDTH, num_clusters=4),
    "struct-hops": lambda: StructPool(WIDTH, num_clusters=4, hops=2),
    "lap": lambda: LaPool(WIDTH, 3),
    "lap-relaxed": lambda: LaPool(WIDTH, 3, relaxed=True),
    "lap-k": lambda: LaPool(WIDTH, 3, num_clusters=4),
    "lap-cosine": lambda: LaPool(WIDTH, 3, distance=False, sigma=0.0),
}


@pytest.fixture(params=POOLS)
def pool(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return POOLS[request.param]().double()


def test_a_batch_gives_what_its_graphs_give_alone(pool: nn.Module) -> None:
    out = pool_data(pool, Batch.from_data_list(MIXED))
    assert (out.batch.diff() >= 0).all()
    assert out.batch.unique().tolist() == list(range(len(MIXED)))
    assert (out.edge_weight != 0).all()
    assert (out.batch[out.edge_index[0]] == out.batch[out.edge_index[1]]).all()
    whole = dense_adjacency(out)
    for number, data in enumerate(MIXED):
        alone, mine = pool_data(pool, data), out.batch == number
        torch.testing.assert_close(out.x[mine], alone.x)
        torch.testing.assert_close(whole[mine][:, mine], dense_adjacency(alone))


def test_padding_has_neither_values_nor_gradients(pool: nn.Module) -> None:
    def assign(x: Tensor) -> Tensor:
        assigned = pool.assign(x, adj, mask)
        return assigned if isinstance(assigned, Tensor) else assigned[0]

    clean, adj, mask = dense_data(Batch.from_data_list(MIXED))
    x = torch.where(mask[..., None], clean, 1e3).requires_grad_()
    c = assign(x)
    assert torch.equal(c, assign(clean))
    torch.testing.assert_close(c.sum(-1), mask.double())
    (c * torch.randn(c.shape, dtype=c.dtype)).sum().backward()
    assert x.grad is not None
    assert (x.grad[~mask] == 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_nodes_does_not_matter(pool: nn.Module, seed: int) -> None:
    data = random_data(20, 30, seed)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(seed))
    one, two = pool_data(pool, data), pool_data(pool, relabelled(data, order))
    a, b = dense_adjacency(one), dense_adjacency(two)
    if isinstance(pool, LaPool):  # rows follow the centroids, and so are found by what they hold
        first, second = ((o.x + m @ m @ o.x).sum(1) for o, m in ((one, a), (two, b)))
        i, j = first.argsort(), second.argsort()
        one, two = one._replace(x=one.x[i]), two._replace(x=two.x[j])
        torch.testing.assert_close(first[i], second[j])
        torch.testing.assert_close(a.sum(), b.sum())
    else:
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(one.x, two.x)


@pytest.mark.parametrize(
    "x",
    [torch.zeros(4, WIDTH), torch.ones(4, WIDTH), torch.eye(4, WIDTH), -torch.ones(4, WIDTH)],
    ids=["zeros", "ones", "orthogonal", "negative"],
)
@pytest.mark.parametrize("edges", [[], [[0, 1], [1, 0]], [[0, 1, 1, 2], [1, 0, 2, 1]]])
@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_degenerate_graphs_go_forward_and_back(
    pool: nn.Module, x: Tensor, edges: list[list[int]], dtype: torch.dtype
) -> None:
    pool, x = pool.to(dtype), x.to(dtype, copy=True).requires_grad_()
    index = torch.tensor(edges, dtype=torch.long).view(2, -1)
    weight = torch.ones(index.shape[1], dtype=dtype, requires_grad=True)
    out = pool(x, index, weight)
    assert out.x.dtype == out.edge_weight.dtype == dtype
    assert out.details is None
    assert len(out.x) >= 1
    (out.x.square().sum() + out.edge_weight.square().sum()).backward()
    for tensor in (out.x, out.edge_weight, x.grad, *(p.grad for p in pool.parameters())):
        assert tensor is None or (tensor.isfinite().all() and (tensor.abs() < 1e4).all())


def test_a_seed_fixes_everything() -> None:
    for make in POOLS.values():
        outs = []
        for _ in range(2):
            torch.manual_seed(3)
            outs.append(pool_data(make().double(), Batch.from_data_list(MIXED)))
        assert all(torch.equal(a, b) for a, b in zip(outs[0][:4], outs[1][:4], strict=True))
        pool = make()
        before = [p.clone() for p in pool.parameters()]
        torch.manual_seed(4)
        for p in pool.parameters():
            p.data.fill_(7)
        pool.reset_parameters()
        assert all((p != 7).any() for p in pool.parameters())
        assert [p.shape for p in before] == [p.shape for p in pool.parameters()]


def test_gradients_reach_all_parameters_and_the_weights(pool: nn.Module) -> None:
    data = random_data(12, 30)
    data.edge_weight.requires_grad_()
    out = pool_data(pool, data)
    (out.x.square().sum() + out.edge_weight.square().sum()).backward()
    assert data.edge_weight.grad.abs().sum() > 0
    assert all(p.grad.abs().sum() > 0 for p in pool.parameters())


@pytest.mark.parametrize(
    ("bad", "got"),
    [
        (lambda: StructPool(4, num_clusters=0), "0"),
        (lambda: StructPool(4, num_clusters=2.5), "2.5"),
        (lambda: StructPool(4, num_iterations=-1), "-1"),
        (lambda: LaPool(4, num_clusters=0), "0"),
        (lambda: LaPool(4, sigma=1.0), "1.0"),
        (lambda: StructPool(4)(torch.ones(3, 5), torch.ones(2, 0).long()), "(3, 5)"),
        (lambda: LaPool(4)(torch.ones(3, 5), torch.ones(2, 0).long()), "(3, 5)"),
        (lambda: LaPool(4)(torch.ones(4), torch.ones(2, 0).long()), "(4,)"),
    ],
)
def test_bad_arguments(bad, got: str) -> None:
    with pytest.raises(HaarPoolError) as error:
        bad()
    assert error.value.got == got


def test_repr() -> None:
    for text in (
        "StructPool(16, num_clusters=8, num_iterations=3)",
        "StructPool(16, num_clusters=8, num_iterations=3, hops=2, hidden_channels=(4,))",
        "LaPool(16, 8, num_clusters=None)",
        "LaPool(16, 16, num_clusters=3, relaxed=True, distance=False, sigma=0.5)",
    ):
        assert repr(eval(text)) == text
    assert LaPool(7).out_channels == 7


def test_hop_counts_of_a_path() -> None:
    adj = torch.diag(torch.ones(4), 1)[None]  # one direction is enough
    start = torch.eye(5, dtype=torch.bool)[None]
    expected = (torch.arange(5)[:, None] - torch.arange(5)).abs().float()
    assert torch.equal(hop_counts(adj, start)[0], expected)
    near = hop_counts(adj, start, limit=2)[0]
    assert torch.equal(near, expected.masked_fill(expected > 2, torch.inf))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DiffPool, StructPool, LaPool])
@torch.no_grad()
def test_compiles_with_graph_breaks(kind: type[nn.Module]) -> None:
    torch.compiler.reset()
    pool, data = kind(WIDTH).double(), Batch.from_data_list(MIXED)
    compiled = torch.compile(pool, dynamic=True, backend="eager")
    torch.testing.assert_close(pool_data(compiled, data).x, pool_data(pool, data).x)
    torch.compiler.reset()

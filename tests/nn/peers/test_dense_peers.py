"""StructPool and LaPool: what their papers promise, and that padding never matters."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj, to_undirected

from haarpool.errors import HaarPoolError
from haarpool.nn.output import PoolingOutput
from haarpool.nn.peers.dense_batch import hop_counts, to_dense
from haarpool.nn.peers.lapool import LaPool, sparsemax
from haarpool.nn.peers.structpool import StructPool

WIDTH = 5
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


def graph(nodes: int, edges: int, seed: int = 0) -> Data:
    """A random graph with isolated nodes here and there, weighted, features of both signs."""
    rng = torch.Generator().manual_seed(seed)
    row, column = torch.randint(nodes, (2, edges), generator=rng)
    weight = 0.5 + torch.rand(edges, generator=rng, dtype=torch.double)
    kept = row != column
    index, weight = to_undirected(torch.stack([row, column])[:, kept], weight[kept], nodes)
    x = torch.randn(nodes, WIDTH, generator=rng, dtype=torch.double)
    return Data(x=x, edge_index=index, edge_weight=weight, num_nodes=nodes)


def run(pool: nn.Module, data: Data) -> PoolingOutput:
    return pool(data.x, data.edge_index, data.edge_weight, data.batch)


def dense(data: Data) -> tuple[Tensor, Tensor, Tensor]:
    return to_dense(data.x, data.edge_index, data.edge_weight, data.batch)


def adjacency(out: PoolingOutput) -> Tensor:
    return to_dense_adj(out.edge_index, None, out.edge_weight, len(out.x))[0]


def relabelled(data: Data, order: Tensor) -> Data:
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
    return Data(x=data.x[order], edge_index=place[data.edge_index], edge_weight=data.edge_weight)


MIXED = [graph(6, 9, 1), graph(40, 90, 2), graph(1, 0, 3), graph(3, 0, 4), graph(9, 5, 5)]


def test_a_batch_gives_what_its_graphs_give_alone(pool: nn.Module) -> None:
    out = run(pool, Batch.from_data_list(MIXED))
    assert (out.batch.diff() >= 0).all()
    assert out.batch.unique().tolist() == list(range(len(MIXED)))
    assert (out.edge_weight != 0).all()
    assert (out.batch[out.edge_index[0]] == out.batch[out.edge_index[1]]).all()
    whole = adjacency(out)
    for number, data in enumerate(MIXED):
        alone, mine = run(pool, data), out.batch == number
        torch.testing.assert_close(out.x[mine], alone.x)
        torch.testing.assert_close(whole[mine][:, mine], adjacency(alone))


def test_padding_has_neither_values_nor_gradients(pool: nn.Module) -> None:
    def assign(x: Tensor) -> Tensor:
        assigned = pool.assign(x, adj, mask)
        return assigned if isinstance(assigned, Tensor) else assigned[0]

    clean, adj, mask = dense(Batch.from_data_list(MIXED))
    x = torch.where(mask[..., None], clean, 1e3).requires_grad_()
    c = assign(x)
    assert torch.equal(c, assign(clean))
    torch.testing.assert_close(c.sum(-1), mask.double())
    (c * torch.randn(c.shape, dtype=c.dtype)).sum().backward()
    assert x.grad is not None
    assert (x.grad[~mask] == 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_nodes_does_not_matter(pool: nn.Module, seed: int) -> None:
    data = graph(20, 30, seed)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(seed))
    one, two = run(pool, data), run(pool, relabelled(data, order))
    a, b = adjacency(one), adjacency(two)
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
            outs.append(run(make().double(), Batch.from_data_list(MIXED)))
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
    data = graph(12, 30)
    data.edge_weight.requires_grad_()
    out = run(pool, data)
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


# StructPool


def test_without_iterations_the_assignment_is_the_softmax_of_the_unary() -> None:
    pool = StructPool(WIDTH, num_clusters=3, num_iterations=0).double()
    x, adj, mask = dense(graph(10, 20))
    assert torch.equal(pool.assign(x, adj, mask), pool.energy(x, adj).softmax(-1))


def test_the_unary_energy_is_a_graph_convolution_by_layer() -> None:
    pool = StructPool(WIDTH, num_clusters=3, hidden_channels=(4,)).double()
    nn.init.normal_(pool.unary[0].bias)
    (h,), (adj,), _ = x, a, _ = dense(graph(10, 20))
    walk = torch.eye(10, dtype=torch.double) + adj
    walk = walk / walk.sum(1, keepdim=True)
    for layer in pool.unary:
        h = (walk @ h @ layer.weight.T + layer.bias).tanh()
    torch.testing.assert_close(pool.energy(x, a)[0], h)


@pytest.mark.parametrize("hops", [None, 1, 3])
def test_mean_field_as_the_paper_writes_it_node_by_node(hops: int | None) -> None:
    pool = StructPool(WIDTH, num_clusters=3, num_iterations=2, hops=hops).double()
    nn.init.normal_(pool.compatibility)
    data = graph(7, 8)
    data.x = data.x.abs()  # so that the sum of similarities is that of their magnitudes
    x, adj, mask = dense(data)
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
    out = run(StructPool(WIDTH, num_clusters=6).double(), graph(2, 0))
    assert out.x.shape == (6, WIDTH)
    torch.testing.assert_close(out.x.sum(0), graph(2, 0).x.sum(0))


def test_weight_and_features_are_kept_in_sum() -> None:
    data = Batch.from_data_list(MIXED)
    out = run(StructPool(WIDTH, num_clusters=4).double(), data)
    torch.testing.assert_close(out.x.sum(0), data.x.sum(0))
    torch.testing.assert_close(out.edge_weight.sum(), data.edge_weight.sum())  # with self-loops


# LaPool


def test_sparsemax_is_the_projection_onto_the_simplex() -> None:
    rng = torch.Generator().manual_seed(0)
    z = 2 * torch.randn(50, 9, generator=rng, dtype=torch.double)
    allowed = torch.rand(50, 9, generator=rng) < 0.7
    allowed[:, 0] = True
    p = sparsemax(z, allowed)
    assert (p >= 0).all()
    assert (p[~allowed] == 0).all()
    torch.testing.assert_close(p.sum(-1), torch.ones(50, dtype=torch.double))
    # KKT of min ‖p - z‖²: p = z - τ where p > 0, and z <= τ where p = 0.
    tau = ((z - p) * p).sum(-1, keepdim=True)
    torch.testing.assert_close((z - p)[p > 0], tau.expand_as(z)[p > 0])
    assert (z <= tau + 1e-12)[(p == 0) & allowed].all()
    assert ((p == 0) & allowed).sum() > 50
    torch.testing.assert_close(sparsemax(z + 1e3, allowed), p)
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: sparsemax(z, allowed), z)


def test_centroids_are_larger_in_variation_than_all_neighbours() -> None:
    x, adj, mask = dense(graph(30, 45))
    chosen = LaPool(WIDTH).centroids(x, adj, mask)[0]
    laplacian = torch.diag(adj[0].sum(1)) - adj[0]
    s = (laplacian @ x[0]).norm(dim=1)
    largest = torch.where(adj[0] != 0, s, -1).amax(1)
    assert torch.equal(chosen, s > largest)
    assert 0 < chosen.sum() < 30
    more = LaPool(WIDTH, relaxed=True).centroids(x, adj, mask)[0]
    assert torch.equal(more, (laplacian @ s > 0) | chosen)
    assert (more & ~chosen).any()
    top = LaPool(WIDTH, num_clusters=7).centroids(x, adj, mask)[0]
    assert set(top.nonzero()[:, 0].tolist()) == set(s.topk(7).indices.tolist())


def test_ties_give_one_centroid_to_each_component() -> None:
    clique = to_undirected(torch.combinations(torch.arange(5)).T)
    for relaxed in (False, True):
        pool = LaPool(3, relaxed=relaxed)
        out = pool(torch.full((7, 3), 0.1), torch.cat([clique, torch.tensor([[5], [6]])], 1))
        assert len(out.x) == 2


def test_assignment() -> None:
    data = graph(30, 45)
    data.x = data.x.relu()
    x, adj, mask = dense(data)
    pool = LaPool(WIDTH, sigma=0.5)
    (c,), _ = pool.assign(x, adj, mask)
    chosen = pool.centroids(x, adj, mask)[0]
    assert torch.equal(c[chosen], torch.eye(int(chosen.sum()), dtype=torch.double))
    hops = hop_counts(adj, torch.eye(30, dtype=torch.bool)[None])[0][:, chosen]
    assert (c[hops.isinf()] == 0).all()
    for i in (~chosen).nonzero()[:, 0].tolist():
        cosine = torch.cosine_similarity(x[0, i], x[0, chosen], dim=-1)
        reach = hops[i].isfinite()
        torch.testing.assert_close(c[i, reach], sparsemax(2 * (cosine / hops[i])[reach]))
    (sparser,), _ = LaPool(WIDTH, sigma=0.9).assign(x, adj, mask)
    assert chosen.numel() <= (sparser > 0).sum() < (c > 0).sum() < hops.isfinite().sum()


def test_centroids_that_resemble_each_other_stay_apart() -> None:
    data = graph(30, 45)
    x, adj, mask = dense(data)
    pool = LaPool(WIDTH, distance=False, sigma=0.0)
    (c,), _ = pool.assign(x.abs(), adj, mask)
    chosen = pool.centroids(x.abs(), adj, mask)[0]
    assert torch.equal(c[chosen], torch.eye(int(chosen.sum()), dtype=torch.double))


def test_a_component_without_centroid_is_assigned_by_cosine() -> None:
    """A path 0 - 1 - 2 with both centroids, 0 and 2, and a smooth pair 3 - 4 like node 0."""
    x = torch.tensor([[0, 9.0], [1, 1], [9, 0], [0, 1], [0, 2]])
    index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    weight = torch.tensor([1.0, 1, 1, 1, 0.1, 0.1])
    x, adj, mask = to_dense(x, index, weight, None)
    adj[0, 0, 1] = adj[0, 2, 1] = 3  # the ends vary more than the middle
    (c,), _ = LaPool(2, num_clusters=2).assign(x, adj, mask)
    assert c.tolist() == [[1, 0], [0.5, 0.5], [0, 1], [1, 0], [1, 0]]


def test_coarse_adjacency_is_the_product_without_its_diagonal() -> None:
    data = graph(30, 60)
    x, adj, mask = dense(data)
    pool = LaPool(WIDTH).double()
    (c,), _ = pool.assign(x, adj, mask)
    expected = (c.T @ adj[0] @ c).fill_diagonal_(0)
    out = run(pool, data)
    torch.testing.assert_close(adjacency(out), expected)
    torch.testing.assert_close(out.x, pool.update(c.T @ data.x).relu())


def test_fixed_number_of_clusters_and_small_graphs() -> None:
    out = run(LaPool(WIDTH, num_clusters=4).double(), Batch.from_data_list(MIXED))
    assert out.batch.bincount().tolist() == [4, 4, 1, 3, 4]

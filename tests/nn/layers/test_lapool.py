"""LaPool as its paper defines it."""

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch
from torch_geometric.utils import to_undirected

from haarpool.nn.layers.dense_batch import hop_counts, to_dense
from haarpool.nn.layers.lapool import LaPool, sparsemax
from helpers.dense import (
    MIXED,
    WIDTH,
    dense_adjacency,
    dense_data,
    pool_data,
    random_data,
)
from helpers.networks import FEATURES, SIZES, weighted_graphs

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
    x, adj, mask = dense_data(random_data(30, 45))
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
    data = random_data(30, 45)
    data.x = data.x.relu()
    x, adj, mask = dense_data(data)
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
    data = random_data(30, 45)
    x, adj, mask = dense_data(data)
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
    data = random_data(30, 60)
    x, adj, mask = dense_data(data)
    pool = LaPool(WIDTH).double()
    (c,), _ = pool.assign(x, adj, mask)
    expected = (c.T @ adj[0] @ c).fill_diagonal_(0)
    out = pool_data(pool, data)
    torch.testing.assert_close(dense_adjacency(out), expected)
    torch.testing.assert_close(out.x, pool.update(c.T @ data.x).relu())


def test_fixed_number_of_clusters_and_small_graphs() -> None:
    out = pool_data(LaPool(WIDTH, num_clusters=4).double(), Batch.from_data_list(MIXED))
    assert out.batch.bincount().tolist() == [4, 4, 1, 3, 4]


# Cliques whose nodes all vary alike, but where a sum of s is rounded to less than a multiple of s.
@pytest.mark.parametrize(
    ("nodes", "scale", "dtype"),
    [(7, 1.0, torch.float32), (9, 0.1, torch.float32), (7, 1.0, torch.float64)],
)
def test_rounding_alone_makes_no_centroids(nodes, scale, dtype):
    x = scale * torch.eye(nodes, dtype=dtype)
    A = 1 - torch.eye(nodes, dtype=dtype)
    s = torch.linalg.vector_norm(A.sum(1, keepdim=True) * x - A @ x, dim=1)
    assert_close(s, s[:1].expand(nodes))
    mask = torch.ones(1, nodes, dtype=torch.bool)
    chosen = LaPool(nodes, relaxed=True).centroids(x[None], A[None], mask)
    assert chosen[0].tolist() == [True] + [False] * (nodes - 1)


@pytest.mark.parametrize("relaxed", [False, True])
def test_constant_features_leave_every_graph_a_centroid(relaxed):
    data = weighted_graphs((12, 1, 5, 30, 2, 8))
    for one in data:
        one.x = torch.full_like(one.x, 0.1)
    batch = Batch.from_data_list(data)
    out = LaPool(FEATURES, relaxed=relaxed)(
        batch.x, batch.edge_index, batch.edge_weight, batch.batch
    )
    assert out.batch.unique().tolist() == list(range(len(SIZES)))
    assert out.x.isfinite().all()

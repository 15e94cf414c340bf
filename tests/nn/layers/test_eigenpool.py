"""EigenPool: what its paper proves, what we promise beyond it, and that it batches."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import linalg, sparse
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose, Constant

import haarpool as hp
from haarpool.chains.modes import cluster_modes
from haarpool.data import AddHaarChain, ChainData
from haarpool.errors import HaarPoolError
from haarpool.nn import HaarPooling
from haarpool.nn.layers.eigenpool import AddEigenModes, EigenPooling
from helpers.strategies import chains, signal
from helpers.tolerances import LOOSER, TOLERANCE, close

levels = st.integers(0, 10**6)  # taken modulo what the chain has
seeds = st.integers(0, 2**32 - 1)


def as_data(graph, **attributes) -> Data:
    coo = sparse.coo_array(graph)
    edges = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    weight = torch.from_numpy(coo.data.astype(np.float64))
    return Data(edge_index=edges, edge_weight=weight, num_nodes=graph.shape[0], **attributes)


def with_modes(chain, num_modes) -> ChainData:
    data = as_data(chain.adjacency(0, self_loops=True))
    return AddEigenModes(num_modes, chain=lambda _: chain)(data)


def largest(chain, level) -> int:
    return int(np.bincount(chain.parents[level]).max())


def clusters(chain, level):
    """Each cluster: its nodes, and the Laplacian of the subgraph on them."""
    graph = chain.adjacency(level).toarray()
    for p in range(chain.sizes[level + 1]):
        nodes = np.flatnonzero(chain.parents[level] == p)
        inner = graph[np.ix_(nodes, nodes)]
        yield nodes, np.diag(inner.sum(0)) - inner


def random_graph(n, rng, density=0.2):
    upper = np.triu((rng.random((n, n)) < density) * rng.uniform(0.5, 2, (n, n)), 1)
    return upper + upper.T


def samples(sizes=(9, 1, 14, 3, 20), num_modes=3, num_levels=2):
    rng = np.random.default_rng(0)
    transform = AddEigenModes(num_modes, num_levels, method="matching", seed=0)
    draws = [(random_graph(n, rng), torch.from_numpy(rng.standard_normal((n, 2)))) for n in sizes]
    return [transform(as_data(graph, x=x)) for graph, x in draws]


# ------------------------------------------------------------------ the modes


@given(chains(), levels)
def test_modes_are_eigenvectors_by_rising_eigenvalue(chain, number):
    j = number % chain.num_levels
    modes = cluster_modes(chain, j, largest(chain, j) + 1)
    assert not modes[-1].any()
    for nodes, laplacian in clusters(chain, j):
        k = len(nodes)
        u, values = modes[:k, nodes].T, linalg.eigvalsh(laplacian)
        assert not modes[k:, nodes].any()
        assert close(u.T @ u, np.eye(k))
        scale = max(1.0, laplacian.max())
        assert np.allclose(laplacian @ u, u * values, atol=LOOSER["eigenvectors"] * scale)
        assert (u[:, 0] == 1 / np.sqrt(k)).all()
        assert ((u**3).sum(0) > -1e-5).all()


@given(chains(), levels, st.integers(1, 5))
def test_fewer_modes_are_the_first_of_more(chain, number, count):
    j = number % chain.num_levels
    assert close(cluster_modes(chain, j, count), cluster_modes(chain, j, 24)[:count])


@pytest.mark.parametrize("weight", [0.0, 3.0])
@pytest.mark.parametrize("k", [1, 2, 3, 8, 30])
def test_without_edges_or_with_all_of_them_modes_are_haar_wavelets(k, weight):
    flat = hp.Chain.from_parents([np.zeros(k, int)], adjacency=np.full((k, k), weight))
    assert close(cluster_modes(flat, 0, k), hp.haar_basis(flat).toarray().T)


def test_disconnected_cluster():
    """An edge, an edge and a lone node in one cluster: three eigenvectors of eigenvalue zero."""
    graph = np.zeros((5, 5))
    graph[0, 1] = graph[1, 0] = graph[2, 3] = graph[3, 2] = 1
    modes = cluster_modes(hp.Chain.from_parents([[0] * 5], adjacency=graph), 0, 5)
    assert close(modes @ modes.T, np.eye(5))
    laplacian = np.diag(graph.sum(0)) - graph
    assert close(modes @ laplacian @ modes.T, np.diag([0.0, 0, 0, 2, 2]))
    assert close(modes[0], np.full(5, 1 / np.sqrt(5)))
    assert close(modes[1], np.array([3, 3, -2, -2, -2]) / np.sqrt(30))
    assert close(modes[2], np.array([0, 0, -1, -1, 2]) / np.sqrt(6))


def test_weak_links_leave_the_constant_first():
    """An eigenvalue of 1e-14 beside zero: still 1/sqrt(k), and the rest orthogonal to it."""
    graph = np.kron(np.eye(2), 1 - np.eye(3))
    graph[0, 3] = graph[3, 0] = 1e-14
    modes = cluster_modes(hp.Chain.from_parents([[0] * 6], adjacency=graph), 0, 2)
    assert close(modes, np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, -1, -1, -1]]) / np.sqrt(6))


@given(st.integers(2, 24), seeds, st.sampled_from([1e-200, 1e-6, 1e6, 1e200]))
def test_modes_do_not_depend_on_the_unit_of_weights(n, seed, unit):
    rng = np.random.default_rng(seed)
    graph, parents = random_graph(n, rng, 0.6), [rng.permutation(np.arange(n) % max(1, n // 5))]
    pair = [
        cluster_modes(hp.Chain.from_parents(parents, adjacency=graph * by), 0, 3)
        for by in (1, unit)
    ]
    assert np.abs(pair[0] - pair[1]).max() < LOOSER["eigenvectors of other units"]


@given(chains(orders=["index"], num_levels=1), seeds)
def test_relabelled_nodes_keep_energies_where_eigenvalues_are_simple(chain, seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(1, 2, (chain.sizes[0],) * 2), 1)
    graph, perm = weights + weights.T, rng.permutation(chain.sizes[0])
    old = hp.Chain.from_parents(chain.parents, adjacency=graph)
    gaps = [np.diff(linalg.eigvalsh(laplacian)) for _, laplacian in clusters(old, 0)]
    assume(np.concatenate([[1.0], *gaps]).min() > 1e-3)
    new = hp.Chain.from_parents([chain.parents[0][perm]], adjacency=graph[np.ix_(perm, perm)])
    x, H = torch.from_numpy(signal(chain)), largest(chain, 0)
    pool = EigenPooling(0, H)
    before, after = pool(x, with_modes(old, H)).x, pool(x[perm], with_modes(new, H)).x
    assert torch.allclose(before.abs(), after.abs(), atol=LOOSER["eigenvectors"])


@given(seeds, st.sampled_from([0.0, 1.0]))
def test_with_the_order_by_degree_numbering_never_matters(seed, inner):
    """Clusters alike inside, so that no eigenvalue is simple; degrees differ by edges outside."""
    rng = np.random.default_rng(seed)
    parent = np.repeat([0, 1, 2], [2, 4, 5])
    weights = np.triu(rng.uniform(1, 2, (11, 11)), 1)
    graph = np.where(parent[:, None] == parent, inner, weights + weights.T)
    perm = rng.permutation(11)
    old = hp.Chain.from_parents([parent], adjacency=graph, order="degree")
    renamed = graph[np.ix_(perm, perm)]
    new = hp.Chain.from_parents([parent[perm]], adjacency=renamed, order="degree")
    assert close(cluster_modes(new, 0, 5), cluster_modes(old, 0, 5)[:, perm])


def test_many_small_clusters_are_one_call_and_large_ones_an_error(monkeypatch):
    calls, eigh = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda a: calls.append(a.shape) or eigh(a))
    n = 30_000
    ring = sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1], format="csr")
    modes = cluster_modes(hp.Chain.from_parents([np.arange(n) // 3], adjacency=ring), 0, 2)
    assert calls == [(n // 3, 3, 3)]
    assert close(modes[1, -3:], np.array([1, 0, -1]) / np.sqrt(2))
    with pytest.raises(HaarPoolError, match=r"900,000,000 at level 0 .* more levels"):
        cluster_modes(hp.Chain.from_parents([np.zeros(n, int)], adjacency=ring), 0, 2)


# ------------------------------------------------------------------ the layer


@given(chains(), levels)
def test_perfect_reconstruction_with_all_modes(chain, number):
    j = number % chain.num_levels
    H, d = largest(chain, j), 3
    data, x = with_modes(chain, H), torch.from_numpy(signal(chain, j, d))
    z = EigenPooling(j, H)(x, data).x
    assert z.shape == (chain.sizes[j + 1], H * d)
    assert close(z.square().sum(), x.square().sum())
    parts = z.view(-1, H, d)[torch.from_numpy(chain.parents[j].copy())]  # X_l, then Θ_l X_l
    assert close((data[f"haar_modes_{j}"].T[:, :, None] * parts).sum(1), x)


@given(chains(), levels, st.integers(1, 4))
def test_it_is_the_product_with_theta(chain, number, H):
    j = number % chain.num_levels
    x, modes = signal(chain, j), cluster_modes(chain, j, H)
    members = np.eye(chain.sizes[j + 1])[chain.parents[j]]
    expected = np.concatenate([(members * mode[:, None]).T @ x for mode in modes], axis=1)
    out = EigenPooling(j, H)(torch.from_numpy(x), with_modes(chain, H))
    assert close(out.x, expected)


@given(chains(measures=["children"]), levels)
def test_one_mode_is_haar_pooling_in_the_vertex_domain(chain, number):
    j = number % chain.num_levels
    data, x = with_modes(chain, 2), torch.from_numpy(signal(chain, j))
    ours, haar = EigenPooling(j, 1)(x, data), HaarPooling(j, domain="vertex")(x, data)
    assert close(ours.x, haar.x)
    for mine, theirs in zip(ours[1:4], haar[1:4], strict=True):
        assert torch.equal(mine, theirs)
    assert ours.details is None


def test_a_batch_is_its_graphs_one_by_one():
    graphs = samples()
    batch = next(iter(DataLoader(graphs, batch_size=len(graphs))))
    x, own = batch.x, [data.x for data in graphs]
    for j in range(2):
        pool = EigenPooling(j, num_modes=2)
        outs = [pool(v, data) for v, data in zip(own, graphs, strict=True)]
        out = pool(x, batch)
        assert close(out.x, torch.cat([o.x for o in outs]))
        counts = torch.tensor([len(o.x) for o in outs])
        assert torch.equal(out.batch, torch.arange(len(graphs)).repeat_interleave(counts))
        starts = [0, *counts.cumsum(0).tolist()]
        edges = [o.edge_index + s for o, s in zip(outs, starts, strict=False)]
        assert torch.equal(out.edge_index, torch.cat(edges, dim=1))
        assert torch.equal(out.edge_weight, torch.cat([o.edge_weight for o in outs]))
        x, own = out.x, [o.x for o in outs]
    for i, data in enumerate(graphs):
        for key in data.to_dict():
            assert torch.equal(torch.as_tensor(batch[i][key]), torch.as_tensor(data[key])), key


def test_saving(tmp_path):
    """By PyG's own means, with all checks of torch.load on."""
    graphs = samples()
    InMemoryDataset.save(graphs, tmp_path / "data.pt")
    dataset = InMemoryDataset()
    dataset.load(tmp_path / "data.pt")
    for data, loaded in zip(graphs, dataset, strict=True):
        assert torch.equal(EigenPooling(0)(loaded.x, loaded).x, EigenPooling(0)(data.x, data).x)


@pytest.mark.parametrize("nodes", [1, 6])
def test_graphs_without_edges(nodes):
    data = AddEigenModes(3, num_levels=1)(as_data(np.zeros((nodes, nodes))))
    out = EigenPooling(0, 3)(torch.ones(nodes, 2), data)
    assert out.x.isfinite().all()
    assert out.edge_index.shape == (2, 0)
    assert torch.allclose(out.x.square().sum(), torch.tensor(2.0 * nodes))  # constants: mode 1


def test_gradients():
    batch = Batch.from_data_list(samples(sizes=(5, 1, 7)))
    x = batch.x.clone().requires_grad_()
    pool = EigenPooling(0, 3)
    assert torch.autograd.gradcheck(lambda v: pool(v, batch).x, x)
    assert torch.autograd.gradgradcheck(lambda v: pool(v, batch).x, x)


@pytest.mark.slow
def test_it_compiles_whole_with_free_shapes():
    batches = [Batch.from_data_list(samples(sizes=s)) for s in ((9, 14), (20, 3, 7))]
    pool = EigenPooling(0, 2)
    compiled = torch.compile(pool, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in batches:
        grads = []
        for run in (pool, compiled):
            x = batch.x.clone().requires_grad_()
            out = run(x, batch.to_dict())
            out.x.pow(3).sum().backward()
            grads += [out.x, x.grad]
        assert close(grads[2], grads[0])
        assert close(grads[3], grads[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision(dtype):
    batch = Batch.from_data_list(samples())
    x = batch.x.to(dtype)
    out = EigenPooling(0, 3)(x, batch).x
    assert out.dtype == dtype
    assert close(out, EigenPooling(0, 3)(x.double(), batch).x, dtype)
    if dtype == torch.bfloat16:  # sums of 1000 ones, which bfloat16 itself could not count
        chain = hp.Chain.from_parents([np.zeros(1000, int)], adjacency=np.zeros((1000, 1000)))
        one = EigenPooling(0, 1)(torch.ones(1000, 1, dtype=dtype), with_modes(chain, 1)).x
        assert abs(one.item() - 1000**0.5) < TOLERANCE[dtype] * 16


# ------------------------------------------------------------------ around it


def test_repr_and_parameters():
    pool = EigenPooling(1, num_modes=4)
    pool.reset_parameters()
    assert repr(pool) == "EigenPooling(level=1, num_modes=4)"
    assert not list(pool.parameters())
    for text in (
        "AddEigenModes(num_modes=2)",
        "AddEigenModes(num_modes=3, num_levels=2, seed=1)",
        "AddEigenModes(num_modes=3, num_levels=2, features='x')",
    ):
        assert repr(eval(text)) == text


def test_the_transform_gives_what_add_haar_chain_gives_and_the_modes():
    graph = as_data(random_graph(12, np.random.default_rng(1)))
    plain = AddHaarChain(num_levels=2, seed=3)(graph)
    data = Compose([Constant(), AddEigenModes(2, 2, seed=3)])(graph)
    for key in plain.to_dict():
        assert torch.equal(torch.as_tensor(data[key]), torch.as_tensor(plain[key])), key
    assert {key for key in data.to_dict() if key.startswith("haar_modes")} == {
        "haar_modes_0",
        "haar_modes_1",
    }
    assert "haar_modes_0" not in graph
    assert "haar_modes_1" not in AddEigenModes(num_levels=1)(data)  # replaced, none left over


def test_a_chain_without_its_graph_gets_it():
    parents, graph = [[0, 0, 1, 1, 1], [0, 0]], random_graph(5, np.random.default_rng(0), 1.0)
    data = AddEigenModes(3, chain=lambda _: hp.Chain.from_parents(parents))(as_data(graph))
    chain = hp.Chain.from_parents(parents, adjacency=graph)
    for j in range(2):
        assert np.array_equal(data[f"haar_modes_{j}"], cluster_modes(chain, j, 3))


def test_errors():
    graph = as_data(random_graph(12, np.random.default_rng(1)), x=torch.ones(12, 1))
    chained, modes = AddHaarChain(num_levels=2)(graph), AddEigenModes(2, num_levels=2)(graph)
    for bad in (0, -1, 1.5, True, None, "2"):
        with pytest.raises(HaarPoolError, match="num_modes >= 1"):
            EigenPooling(0, bad)
        with pytest.raises(HaarPoolError, match="num_modes >= 1"):
            AddEigenModes(bad)
        with pytest.raises(HaarPoolError, match="num_modes >= 1"):
            cluster_modes(hp.build_chain(graph), 0, bad)
    with pytest.raises(HaarPoolError, match="level >= 0"):
        EigenPooling(-1)
    with pytest.raises(HaarPoolError, match=r"level in 0\.\.0"):
        cluster_modes(hp.Chain.from_parents([[0, 0]], adjacency=np.eye(2)), 1, 2)
    with pytest.raises(HaarPoolError, match="knows its graph"):
        cluster_modes(hp.Chain.from_parents([[0, 0]]), 0, 2)
    with pytest.raises(HaarPoolError, match="a function that returns a Chain"):
        AddEigenModes(chain=lambda data: None)(graph)
    with pytest.raises(HaarPoolError, match="without one"):
        EigenPooling(0)(graph.x, graph)
    with pytest.raises(HaarPoolError, match=r"no haar_modes_0; add AddEigenModes\(num_modes=2"):
        EigenPooling(0)(graph.x, chained)
    with pytest.raises(HaarPoolError, match=r"3 modes .* shape \(2, 12\); .*num_modes=3"):
        EigenPooling(0, 3)(graph.x, modes)
    with pytest.raises(HaarPoolError, match="at least 3 levels"):
        EigenPooling(2)(graph.x, modes)
    for x in (torch.ones(1, 2), torch.ones(12), torch.ones(11, 2)):
        with pytest.raises(HaarPoolError, match=r"a signal of shape \(12, d\)"):
            EigenPooling(0)(x, modes)
    modes.haar_modes_0 = modes.haar_modes_0[:, 1:]  # of another chain
    with pytest.raises(HaarPoolError, match=r"shape \(2, 11\)"):
        EigenPooling(0)(graph.x, modes)


@pytest.mark.slow
def test_real_graphs(tu_graphs):
    """60 graphs of NCI1, some with isolated nodes: nothing is lost with all modes."""
    graphs = tu_graphs("NCI1")[60:120]
    assert any((graph.sum(0) == 0).any() for graph in graphs)
    transform = AddEigenModes(num_modes=40, num_levels=2, seed=0)
    data = [transform(as_data(graph)) for graph in graphs]
    batch = next(iter(DataLoader(data, batch_size=60)))
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((batch.num_nodes, 2)))
    z = EigenPooling(0, 40)(x, batch)
    top = EigenPooling(1, 40)(z.x, batch)
    assert close(z.x.square().sum(), x.square().sum())
    assert close(top.x.square().sum(), x.square().sum())
    assert top.x.shape == (60, 3200)
    few = EigenPooling(0, 2)(x, batch).x
    assert close(few, z.x[:, :4])
    assert few.square().sum() < x.square().sum()

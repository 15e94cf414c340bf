"""Minibatches are what PyG's own collating makes, tensor for tensor."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from haarpool import HaarPoolError, precompute
from haarpool.data import AddHaarChain
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.joining import JoinedTensors
from haarpool.haar.operators import analysis, synthesis
from haarpool.nn import AddEigenModes, build_model
from haarpool.training import minibatches
from haarpool.training.minibatches import Minibatches

LISTS = ("neighbour_starts", "neighbour_order")
ARCHS = {
    "without chain": ("2GC8-SUM-FC8", "haar"),
    "one level": ("GC8-HP-FC8", "haar"),
    "three levels": ("GC8-HP-GC8-HP-GC8-HP-FC8", "haar"),
    "open top": ("GC8-HP-GC8-HP-MP", "haar"),
    "vertex domain": ("GC8-HP-GC8-HP-FC8", "vertex"),
    "eigenvectors": ("GC8-EIG-GC8-EIG-MP", "haar"),
}


def random_graphs(count=20, *, weighted=False, seed=0):
    """Graphs of 1 to 15 nodes, some without edges."""
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        n = int(rng.integers(1, 16))
        upper = np.triu(rng.random((n, n)) < 0.25, 1)
        edges = np.stack((upper | upper.T).nonzero())
        data = Data(
            x=torch.tensor(rng.standard_normal((n, 3)), dtype=torch.float32),
            edge_index=torch.from_numpy(edges),
            y=torch.tensor([int(rng.integers(2))]),
        )
        if weighted:
            weights = rng.random((n, n))
            weights = (weights + weights.T)[edges[0], edges[1]]
            data.edge_weight = torch.tensor(weights, dtype=torch.float32)
            data.edge_attr = torch.tensor(rng.random((len(weights), 2)), dtype=torch.float32)
        graphs.append(data)
    return graphs


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ARCHS)
def test_the_same_tensors_as_collating(name, weighted):
    arch, domain = ARCHS[name]
    transform = build_model(arch, 3, 2, domain=domain).transform()
    graphs = random_graphs(weighted=weighted)
    if transform is not None:
        graphs = [transform(data) for data in graphs]
    store = Minibatches.of(graphs)
    assert len(store) == 20
    rng = np.random.default_rng(1)
    for chosen in ([0], [3, 3, 1], rng.permutation(20), rng.integers(0, 20, 50)):
        own = store.take(chosen)
        batch = Batch.from_data_list([graphs[g] for g in chosen])
        tensors = {k: v for k, v in batch.to_dict().items() if isinstance(v, torch.Tensor)}
        assert set(own) == {*tensors, *LISTS}
        # The edges of each graph are sorted by their target.
        by_target = tensors["edge_index"][1].argsort(stable=True)
        for key, value in tensors.items():
            if key.startswith("edge_"):
                value = value.index_select(-1 if key == "edge_index" else 0, by_target)
            assert own[key].dtype == value.dtype, key
            assert torch.equal(own[key], value), key


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [
    {}, {"measure": "mass"}, {"order": "index"}, {"top": None}, {"method": "matching", "seed": 3},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("transform", [AddHaarChain, AddEigenModes])
def test_many_chains_at_once_are_those_one_by_one(transform, parameters):
    """Whichever graphs stand together, every tensor is the same to the last bit."""
    graphs = random_graphs(40, weighted=True)
    for levels in (1, 3):
        add = transform(num_levels=levels, **parameters)
        one_by_one = Minibatches.of([add(data) for data in graphs])
        chains = precompute(graphs, num_levels=levels, cache=False, **parameters)
        plain = JoinedTensors({"x": one_by_one["x"]}, {"x": np.array([len(d.x) for d in graphs])})
        joined = Minibatches([plain, *map(add.join, chains.forests())])
        for chosen in (range(40), [7, 3, 3]):
            for key, value in joined.take(chosen).items():
                assert torch.equal(value, one_by_one.take(chosen)[key]), key
        keys = {key for key in one_by_one.take([0]) if key.startswith("haar")}
        assert keys <= set(joined.take([0]))


def test_chains_of_different_depth_do_not_join():
    graphs = random_graphs()
    with pytest.raises(HaarPoolError, match="the same number of levels"):
        list(precompute(graphs, cache=False).forests())


def test_features_of_coarse_edges():
    """As in collating; in a padded minibatch reversed edges are those of valid graphs."""
    graphs = random_graphs(40, weighted=True)
    graphs = [AddHaarChain(2, top=None, edge_attr="mean")(data) for data in graphs]
    store, chosen = Minibatches.of(graphs), np.array([3, 3, 0, 7, 30])
    own, batch = store.take(chosen), Batch.from_data_list([graphs[g] for g in chosen])
    capacity = store.capacity(5)
    padded = store.take_padded(torch.from_numpy(chosen), capacity)
    for level in (1, 2):
        attr, reverse = f"haar_attr_{level}", f"haar_reverse_{level}"
        assert torch.equal(own[attr], batch[attr])
        assert torch.equal(own[reverse], batch[reverse])
        edges, real = padded[f"haar_edges_{level}"][:2], own[attr].shape[1]
        assert edges.shape[1] == padded[attr].shape[1] == padded[reverse].shape[1] > real
        assert torch.equal(padded[attr][:, :real], own[attr])
        assert torch.equal(edges[:, padded[reverse][0]], edges.flip(0))
        assert torch.equal(padded[reverse][:, :real], own[reverse])


def test_padding_where_no_graph_has_coarse_edges():
    dots = [Data(x=torch.ones(2, 3), edge_index=torch.zeros(2, 0, dtype=torch.long),
                 edge_attr=torch.zeros(0, 4))] * 4  # fmt: skip
    store = Minibatches.of([AddHaarChain(1, edge_attr="max")(data) for data in dots])
    batch = store.take_padded(torch.arange(3), store.capacity(3))
    assert batch["haar_attr_1"].tolist() == [[0.0]] * 5
    assert batch["haar_reverse_1"].tolist() == [[0]]


def test_networks_read_them_like_batches():
    model = build_model("GC8-HP-GC8-HP-FC8", 3, 2).eval()
    graphs = [model.transform()(data) for data in random_graphs()]
    (batch,) = DataLoader(graphs, batch_size=20)
    torch.testing.assert_close(model(Minibatches.of(graphs).take(range(20))), model(batch))


def test_taking_leaves_the_store_alone():
    graphs = random_graphs()
    store = Minibatches.of(graphs)
    before = store["edge_index"].clone()
    store.take([1, 2])["edge_index"] += 100
    assert torch.equal(store["edge_index"], before)


def test_an_epoch_has_every_graph_once():
    store = Minibatches.of(random_graphs())
    graphs = np.arange(3, 17)
    batches = list(store.epoch(graphs, 5, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [5, 5, 4]
    assert sorted(np.concatenate(batches)) == sorted(graphs)
    assert list(np.concatenate(batches)) != list(graphs)
    assert np.array_equal(np.concatenate(list(store.epoch(graphs, 5))), graphs)


@pytest.mark.parametrize(
    ("num_graphs", "min_size", "sizes"),
    [(13, 4, [5, 5]), (13, 3, [5, 5, 3]), (10, 4, [5, 5]), (3, 4, [3]), (0, 4, [])],
)
def test_a_small_last_minibatch_is_left_out_unless_it_is_the_only_one(num_graphs, min_size, sizes):
    batches = Minibatches.of(random_graphs()).epoch(np.arange(num_graphs), 5, min_size=min_size)
    assert [len(batch) for batch in batches] == sizes


@pytest.mark.parametrize("limit", [1, 30, 100, 2**17])
@pytest.mark.parametrize("size", [1, 7, 20])
def test_chunks_are_limited_by_graphs_and_by_rows(limit, size, monkeypatch):
    monkeypatch.setattr(minibatches, "MAX_ROWS", limit)
    graphs = random_graphs()
    rows = np.array([data.num_nodes + data.num_edges for data in graphs])
    chosen = np.random.default_rng(0).permutation(20)[:15]
    chunks = list(Minibatches.of(graphs).chunks(chosen, size))
    assert np.array_equal(np.concatenate(chunks), chosen)
    for chunk, following in zip(chunks, [*chunks[1:], chosen[:0]], strict=True):
        assert len(chunk) <= size
        assert len(chunk) == 1 or rows[chunk].sum() <= limit
        if len(following) and len(chunk) < size:  # no graph more would fit
            assert rows[chunk].sum() + rows[following[0]] > limit


# ---------------------------------------------------------------------- padded minibatches

PADDED = [
    "2GC8-SUM-FC8",
    "3GIN8-HP-GIN8-SUM-FC8",
    "GC8-HP-GC8-HP-GC8-HP-FC8",
    "SAGE8-HP-SAGE8-HP-MP",
    "GIN8-HP-GIN8-HP-AP",
    "2GINB8-HP-GINB8-JK-SUM",
    "2DGC8-HP-DGC8-SUM",
    "GC8-EIG-GC8-EIG-MP",
    "SUM-3GIN8-JK-SUM-MP-EIG-2GC8-JK-AP-FC8",
]


@pytest.mark.parametrize("domain", ["haar", "vertex"])
@pytest.mark.parametrize("arch", PADDED)
def test_padding_changes_neither_outputs_nor_gradients(arch, domain):
    torch.manual_seed(0)
    model = build_model(arch, 3, 2, domain=domain, dropout=0.0).double()
    graphs = random_graphs(60, weighted=domain == "haar")
    for data in graphs:
        data.x = data.x.double()
    if model.transform() is not None:
        graphs = [model.transform()(data) for data in graphs]
    store, rng = Minibatches.of(graphs), np.random.default_rng(0)
    capacity = store.capacity(8)
    for chosen in (rng.permutation(60)[:8] for _ in range(3)):
        assert capacity.fits(chosen)
        padded = store.take_padded(torch.from_numpy(chosen), capacity)
        results = []
        for batch, is_padded in ((store.take(chosen), False), (padded, True)):
            output = model(batch, padded=is_padded)
            grads = torch.autograd.grad(output.square().sum(), model.parameters())
            results.append((output, *grads))
        for plain, other in zip(*results, strict=True):
            torch.testing.assert_close(other, plain)


def test_padded_minibatches_have_fixed_shapes_and_valid_chains():
    transform = AddHaarChain(num_levels=2, top=None)
    store = Minibatches.of([transform(data) for data in random_graphs(60)])
    capacity, shapes = store.capacity(8), []
    for seed in range(5):
        chosen = np.random.default_rng(seed).permutation(60)[:8]
        batch = store.take_padded(torch.from_numpy(chosen), capacity)
        shapes.append({key: value.shape for key, value in batch.items()})
        chain = ChainTensors(batch)
        assert chain.num_graphs == 9
        x = torch.randn(chain.sizes[0], 2, dtype=torch.float64)
        torch.testing.assert_close(synthesis(chain, analysis(chain, x, 0), 0), x)
    assert all(shape == shapes[0] for shape in shapes)


def test_what_is_too_large_does_not_fit():
    graphs = random_graphs(60)
    store = Minibatches.of(graphs)
    by_size = np.argsort([data.num_nodes for data in graphs])
    assert store.capacity(4).fits(by_size[:4])
    assert not store.capacity(4).fits(by_size[-5:])


def test_a_single_row_does_not_fit():
    """It has no variance, so a batch norm takes its running statistics."""
    dots = [Data(x=torch.ones(1, 2), edge_index=torch.zeros(2, 0, dtype=torch.long))] * 4
    store = Minibatches.of(dots)
    assert not store.capacity(1).fits(np.array([0]))
    assert store.capacity(2).fits(np.array([0, 1]))


def test_negative_weights_do_not_reach_the_padding():
    graphs = random_graphs(20, weighted=True)
    for data in graphs:
        data.edge_weight = -0.3 * torch.ones_like(data.edge_weight)
    store = Minibatches.of(graphs)
    chosen = np.arange(5)
    batch = store.take_padded(torch.from_numpy(chosen), store.capacity(5))
    real = int(store.take(chosen)["edge_weight"].shape[0])
    assert (batch["edge_weight"][:real] < 0).all()
    assert (batch["edge_weight"][real:] == 1).all()


def test_padding_has_edge_features_of_a_real_edge():
    store, chosen = Minibatches.of(random_graphs(20, weighted=True)), np.arange(5)
    batch, plain = (
        store.take_padded(torch.from_numpy(chosen), store.capacity(5)),
        store.take(chosen),
    )
    real = len(plain["edge_attr"])
    assert len(batch["edge_attr"]) == batch["edge_index"].shape[1] > real
    assert torch.equal(batch["edge_attr"][:real], plain["edge_attr"])
    assert (batch["edge_attr"][real:] == store["edge_attr"][0]).all()


def test_padding_where_no_graph_has_edges():
    dots = [Data(x=torch.ones(2, 3), edge_index=torch.zeros(2, 0, dtype=torch.long),
                 edge_attr=torch.zeros(0, 4), edge_weight=torch.zeros(0))] * 4  # fmt: skip
    store = Minibatches.of(dots)
    batch = store.take_padded(torch.arange(3), store.capacity(3))
    assert batch["edge_attr"].tolist() == [[0.0] * 4]
    assert batch["edge_weight"].tolist() == [1.0]

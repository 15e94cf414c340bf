"""Large graphs are in tree order inside minibatches; what comes out has the order of the file."""

import numpy as np
import pytest
import torch
from scipy import sparse

from haarpool import build_chain
from haarpool.datasets import as_graphs
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.nodes import graphs_of_arrays
from haarpool.haar.node_order import ORIGINAL_INDEX
from haarpool.nn import build_model
from haarpool.training import tree_order
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup
from haarpool.training.loop import Trainer
from haarpool.training.preparation import prepare_minibatches
from haarpool.training.run import Member, start_run
from haarpool.training.train import predict_graphs, train_run
from helpers.chain_data import random_data
from helpers.tolerances import LOOSER

# Without dropout, whose random numbers meet other nodes in another order.
SETTINGS = {"arch": "haarunet:width=8,levels=3", "epochs": 3, "batch_size": 4, "dropout": 0.0}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tree_order, "GAIN", 0.0)  # small graphs have all nodes near


def one_graph(seed=0):
    """A graph with a value at some nodes."""
    rng = np.random.default_rng(seed)
    data = random_data(60, 4.0, seed)
    y = np.where(rng.random(60) < 0.9, rng.standard_normal(60), np.nan)
    arrays = {"edge_index": data.edge_index.numpy(), "edge_weight": data.edge_weight.numpy()}
    arrays["edge_attr"] = rng.random((data.num_edges, 2))
    return graphs_of_arrays(arrays | {"x": data.x.numpy(), "y": y}, "one graph")


def classes():
    """A graph with a class at each node."""
    data, rng = random_data(60, 4.0), np.random.default_rng(0)
    arrays = {"edge_index": data.edge_index.numpy(), "x": data.x.numpy()}
    return graphs_of_arrays(arrays | {"y": rng.integers(0, 3, 60)}, "classes")


def signals():
    """Signals on a graph, with two values at each node."""
    data, rng = random_data(40, 4.0), np.random.default_rng(0)
    arrays = {"x": rng.standard_normal((20, 40, 3)), "y": rng.standard_normal((20, 40, 2))}
    return graphs_of_arrays(arrays | {"edge_index": data.edge_index.numpy()}, "signals")


def many_graphs():
    """Graphs with a value at each node."""
    graphs, rng = [random_data(n, 4.0, n) for n in range(10, 30)], np.random.default_rng(0)
    for data in graphs:
        data.y = torch.from_numpy(rng.standard_normal((data.num_nodes, 1)))
    return as_graphs(graphs)


DATASETS = {"graph": one_graph, "classes": classes, "signals": signals, "graphs": many_graphs}


def runs(monkeypatch, graphs, **settings):
    """Yield a run in the order of the file, and one in tree order."""
    for least in (10**9, 1):
        monkeypatch.setattr(tree_order, "MIN_NODES", least)
        config = RunConfig(**SETTINGS | settings)
        run = start_run(graphs, config, ProcessGroup(), progress=False)
        assert (ORIGINAL_INDEX in run.batches.take([0])) == (least == 1)
        yield run


@pytest.mark.parametrize("name", DATASETS)
def test_training_is_the_same(name, monkeypatch):
    graphs, predicted, losses = DATASETS[name](), [], []
    for run in runs(monkeypatch, graphs):
        train_run(run, progress=False)
        losses.append([(epoch.train_loss, epoch.validation_loss) for epoch in run.epochs])
        predicted.append([run.result.predicted, run.model.predict(graphs)])
    assert np.allclose(*losses, rtol=LOOSER["training"], atol=0)
    for before, after in zip(*predicted, strict=True):
        assert before.shape == after.shape
        assert np.abs(after - before).max() <= LOOSER["training"] * np.abs(before).max()


@pytest.mark.parametrize("name", DATASETS)
def test_a_model_that_was_trained_in_another_order(name, monkeypatch):
    graphs = DATASETS[name]()
    first, second = runs(monkeypatch, graphs)
    train_run(first, progress=False)
    expected = first.model.predict(graphs)
    nothing = np.zeros((0, 1))
    member = Member(first.model.networks[0], first.model.scale, 1, nothing, nothing)
    predicted = predict_graphs(second, [member], np.arange(len(graphs)))
    assert np.abs(predicted - expected).max() <= LOOSER["training"]


@pytest.mark.parametrize("name", DATASETS)
def test_padded_steps(name, monkeypatch):
    losses = []
    for run in runs(monkeypatch, DATASETS[name]()):
        for padded in (False, True):
            trainer = Trainer(run, 0, padded=padded)
            losses.append([trainer.run_epoch(lambda: None).train_loss for _ in range(3)])
    assert np.allclose(losses, losses[0], rtol=LOOSER["training"], atol=0)


def test_minibatches_follow_their_nodes(monkeypatch):
    graphs = many_graphs()
    plain, ordered = (run.batches for run in runs(monkeypatch, graphs))
    for chosen in ([0], [3, 3, 1], [19, 0, 7]):
        before, after = plain.take(chosen), ordered.take(chosen)
        order = after[ORIGINAL_INDEX]
        assert torch.equal(after["x"], before["x"][order])
        assert torch.equal(after["y"], before["y"][order])
        assert torch.equal(after["batch"], before["batch"])
        edges = {tuple(edge) for edge in order[after["edge_index"]].T.tolist()}
        assert edges == {tuple(edge) for edge in before["edge_index"].T.tolist()}
        for j in range(3):
            parent = after[f"haar_tree_{j}"][0]
            assert (parent.diff() >= 0).all()


@pytest.mark.parametrize(
    ("arch", "settings", "expected"),
    [
        ("haarnet:width=4,levels=2", {}, True),
        ("haarsum:width=4,levels=2", {"task": "regression"}, True),
        ("haarnet:width=4,levels=2", {"domain": "haar"}, False),  # rows are no nodes
        ("GC4-HP-GC4-HP-FC4", {}, False),
        ("haarnet:width=4,levels=0", {}, False),  # without a chain
    ],
)
def test_graphs_with_a_label_each(arch, settings, expected, monkeypatch):
    graphs = [random_data(n, 4.0, n) for n in range(10, 30)]
    for g, data in enumerate(graphs):
        data.y = torch.tensor([float(g)] if settings.get("task") else [g % 2])
    graphs = as_graphs(graphs)
    encoding = Encoding.fit(graphs)
    torch.manual_seed(0)
    network = build_model(arch, encoding.width, 2, **settings).eval()
    outputs = []
    for least in (10**9, 1):
        monkeypatch.setattr(tree_order, "MIN_NODES", least)
        batches, _ = prepare_minibatches(
            graphs, encoding, network, {}, torch.device("cpu"), cache=False, progress=False
        )
        batch = batches.take(np.arange(len(graphs)))
        outputs.append(tree_order.output_rows(network, batch))
    assert (ORIGINAL_INDEX in batch) == expected
    assert torch.allclose(*outputs, atol=LOOSER["training"])


@pytest.mark.parametrize("is_random", [False, True])
def test_a_good_order_stays(is_random, monkeypatch):
    monkeypatch.undo()
    rows, columns = np.arange(32 * 32).reshape(32, 32), np.arange(32 * 32).reshape(32, 32).T
    edges = np.concatenate(
        [np.stack([n[:, :-1].ravel(), n[:, 1:].ravel()]) for n in (rows, columns)], 1
    )
    if is_random:
        edges = np.random.default_rng(0).permutation(32 * 32)[edges]
    weights = np.ones(edges.shape[1])
    graph = sparse.coo_array((weights, tuple(edges)), shape=(1024, 1024))
    chain = build_chain(graph + graph.T, num_levels=5, method="matching")
    forest, order = tree_order.in_tree_order(chain)
    assert (forest is chain) == (not is_random)
    assert np.array_equal(order, np.arange(1024)) == (not is_random)
    assert tree_order.in_tree_order(build_chain(np.eye(4), 2)).order.tolist() == [0, 1, 2, 3]

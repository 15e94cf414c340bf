"""Training on labels of nodes: graphs, signals on one graph, and the nodes of one graph."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import haarpool as hp
from haarpool import _progress
from haarpool.datasets import as_graphs
from haarpool.datasets.nodes import node_label_fields
from haarpool.datasets.splits import make_splits
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, find_device
from haarpool.training.loop import Trainer
from haarpool.training.minibatches import Minibatches
from haarpool.training.run import start_run
from haarpool.training.signal_batches import SignalBatches
from helpers.commands import run_main, run_until_signal
from helpers.errors import error_with
from helpers.nodes import RING, graph_data, halves, heat, signal_data
from helpers.runs import numbers, same_weights, train
from helpers.tolerances import LOOSER

DATA = {
    "signals": signal_data(30, targets=2),
    "graphs": graph_data(),
    "classes": graph_data(classes=True),
    "nodes": halves(),
    "masks": halves(masks=2),
}
LABELLED = [one.clone().update({"y": torch.tensor([g % 2])}) for g, one in enumerate(graph_data())]
every = pytest.mark.parametrize("name", DATA)
SMALL = {"arch": "haarunet:width=8,levels=2", "batch_size": 4, "monitor": "last", "dropout": 0.0}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run_of(name, device="cpu", **settings):
    config = RunConfig(**SMALL | {"epochs": 3} | settings)
    group = ProcessGroup(device=find_device(device))
    return start_run(as_graphs(DATA[name]), config, group, progress=False)


def trained(run, epochs=3, **options):
    trainer = Trainer(run, 0, **options)
    for _ in range(epochs):
        trainer.run_epoch(lambda: None)
    return trainer


def saved(name, folder):
    path = Path(folder, f"{name}.pt")
    torch.save(DATA[name], path)
    return path


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@every
def test_padded_minibatches_train_alike(name, device):
    """On a GPU padded steps are captured."""
    run = run_of(name, device)
    states = [trained(run, padded=padded).network.state_dict() for padded in (False, True)]
    assert not run.group.captures.failed
    torch.testing.assert_close(*states, rtol=LOOSER["training"], atol=1e-5)


@every
def test_labels_of_other_parts_are_never_used(name):
    """Other labels in validation and test part give the same network."""
    run = run_of(name)
    (split, *_), graphs = run.splits, run.graphs
    targets = graphs.targets.copy()
    for part in (split.validation, split.test):
        rows = split.rows(part, graphs)
        targets[rows] = 1 - targets[rows] if graphs.task.reads_classes else 1000.0
    other = start_run(
        replace(graphs, targets=targets), run.config, ProcessGroup(), progress=False,
        splits=run.splits,
    )  # fmt: skip
    states = [trained(one).network.state_dict() for one in (run, other)]
    torch.testing.assert_close(*states, rtol=0, atol=0)


def test_outputs_are_rows_of_the_part():
    for name in DATA:
        run = run_of(name)
        trainer, split = Trainer(run, 0), run.splits[0]
        for part in split:
            rows = split.rows(part, run.graphs)
            output = trainer.outputs(part)
            assert len(output) == len(rows)
            graphs = split.graphs(part)
            batch = run.batches.take(graphs)
            with torch.no_grad():
                together = trainer.network.eval()(batch).flatten(0, -2)
            chosen = np.isin(run.graphs.rows(graphs), rows)
            torch.testing.assert_close(output, together[torch.from_numpy(chosen)])


def test_a_step_on_signals_is_a_loop_written_by_hand():
    run = run_of("signals", epochs=1, lr=0.01, weight_decay=0.0)
    fit, hand = Trainer(run, 0), Trainer(run, 0).network
    split, graphs = run.splits[0], run.graphs
    adam = torch.optim.Adam(hand.parameters(), 0.01)
    order = np.random.default_rng(fit._seeds(1)).permutation(split.train)
    hand.train()
    for i in range(0, len(order), 4):
        chosen = order[i : i + 4]
        batch = run.batches.take(chosen)
        y = torch.from_numpy(graphs.targets[graphs.rows(chosen)]).float()
        assert torch.equal(batch["y"], y)
        target = fit.scale.standardize(y)
        loss = (hand(batch).reshape(-1, 2) - target).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    fit.run_epoch(lambda: None)
    states = (network.state_dict() for network in (fit.network, hand))
    torch.testing.assert_close(*states, rtol=LOOSER["training"], atol=1e-6)


def test_minibatches_of_signals():
    x, y = heat(7)
    ring = Minibatches.of([graph_data(1)[0]])
    assert isinstance(run_of("signals").batches, SignalBatches)
    batches = run_of("signals").batches
    batch = batches.take([4, 2])
    x, y = heat(30)
    np.testing.assert_array_equal(batch["x"][1, :, :1], x[2])
    np.testing.assert_array_equal(batch["y"][:RING], y[4])
    assert batch["edge_index"].shape == (2, 2 * RING)  # once
    assert len(batches) == 30
    assert len(ring) == 1
    padded = batches.take_padded(torch.tensor([4, 2]), batches.capacity(2))
    assert all(torch.equal(padded[key], value) for key, value in batch.items())
    chunks = list(batches.chunks(np.arange(30), 8))
    assert np.concatenate(chunks).tolist() == list(range(30))
    assert max(map(len, chunks)) <= 8


@every
def test_the_shell_trains_predicts_and_scores(name, tmp_path):
    path = saved(name, tmp_path)
    result = train(path, "--arch", SMALL["arch"], "--epochs", 2, "--quiet", "--out", "run")
    graphs = as_graphs(DATA[name])
    header, *rows = Path("run/test.csv").read_text().splitlines()
    assert header.startswith("repeat,graph,node,target")
    splits = make_splits("auto" if name == "auto" else str(Path("run/split.json")), graphs)
    expected = sum(len(split.rows(split.test, graphs)) for split in splits)
    assert len(rows) == expected
    assert result["metric"] == graphs.task.scores[0].name
    run_main("predict", "run", path, "--out", "new.csv", "--quiet")
    header, *rows = Path("new.csv").read_text().splitlines()
    assert header.startswith("graph,node,")
    assert len(rows) == graphs.start[-1]
    model = hp.load("run")
    if not graphs.task.reads_classes:
        values = np.array([row.split(",")[2:] for row in rows], float)
        np.testing.assert_allclose(values, model.predict(graphs).reshape(len(rows), -1), rtol=1e-5)
    assert "node" in Path("run/report.html").read_text()
    assert np.isfinite(model.score(graphs))


@pytest.mark.parametrize("name", ["signals", "masks", "graphs"])
def test_an_interrupted_run_resumes_to_the_same_numbers(name, tmp_path, monkeypatch):
    arguments = (
        saved(name, tmp_path), "--arch", SMALL["arch"], "--epochs", 3, "--ensemble", 2, "--quiet",
    )  # fmt: skip
    train(*arguments, "--out", "whole")
    rename, number = os.replace, 4

    def counted(source, target, **options):
        nonlocal number
        number -= str(target).endswith("checkpoint.safetensors")
        if number == 0:
            raise KeyboardInterrupt
        return rename(source, target, **options)

    monkeypatch.setattr(os, "replace", counted)
    run_main("train", *arguments, "--out", "cut", code=130)
    monkeypatch.setattr(os, "replace", rename)
    train("--resume", "cut", "--quiet")
    assert numbers("cut") == numbers("whole")
    same_weights("cut", "whole")


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_numbers(tmp_path):
    arguments = (
        saved("signals", tmp_path), "--arch", SMALL["arch"], "--epochs", 6, "--quiet",
    )  # fmt: skip
    train(*arguments, "--out", "whole")

    moment = ("os", "replace", "checkpoint.safetensors", 4)
    run_until_signal(signal.SIGKILL, moment, "train", *arguments, "--out", "cut")
    train("--resume", "cut", "--quiet")
    assert numbers("cut") == numbers("whole")


def test_automatic_network_and_levels(tmp_path):
    train(saved("signals", tmp_path), "--epochs", 1, "--quiet", "--out", "run")
    config = json.loads(Path("run/config.json").read_text())
    assert config["model"]["arch"] == "haarunet:levels=1"
    assert config["chain"]["method"] == "matching"
    assert config["chain"]["num_levels"] == 1
    other = run_of("graphs", arch="haarunet:shared=true")
    assert other.config.arch == "haarunet:shared=true"
    assert other.chains.example.num_levels == 2  # so that all weights are used
    large = hp.HaarNodeRegressor(arch="haarunet:shared=true,width=8", epochs=1)
    large.fit(graph_data())
    assert large.predict(graph_data(3, 100)).shape == (21,)


def test_networks_of_graphs_and_nodes_do_not_mix(tmp_path):
    path = saved("signals", tmp_path)
    error = run_main("train", path, "--arch", "haarnet", "--out", "run", code=2).err
    assert "an output for nodes" in error
    assert error.endswith("; pass --arch haarunet\n")
    error = run_main("train", "rings", "--arch", "haarunet", "--out", "run", code=2).err
    assert "an output for graphs" in error
    assert not Path("run").exists()
    with error_with("an output for nodes", '; pass arch="haarunet"'):
        hp.HaarNodeRegressor(arch="haarnet").fit(DATA["signals"])
    compare = ("--repeats", 1, "--epochs", 1, "--quiet", "--out", "table")
    out = run_main("compare", path, "--method", "plain", *compare, code=1).out
    assert "; pass --method haarunet" in " ".join(out.split())
    failed = hp.compare(DATA["signals"], methods=["plain"], repeats=1, settings={"epochs": 1})
    [[line]] = failed.lines.values()
    assert line["reason"].endswith('; pass methods=["haarunet"]')


def test_estimators():
    model = hp.HaarNodeRegressor(arch="haarunet:width=16,levels=1", epochs=30, lr=0.01)
    data = signal_data(60)
    assert model.fit(data).score(data) > 0.8
    y = heat(60)[1]
    assert model.fit(data, y).predict(data).shape == (60 * RING, 2)
    nodes = hp.HaarNodeClassifier(arch="haarunet:width=16,levels=3", epochs=30, lr=0.01)
    one = halves(masks=1)
    names = np.where(one.y.numpy() == 1, "right", "left")
    assert set(nodes.fit(one, names).predict(one)) <= {"left", "right"}
    assert nodes.score(one, names) > 0.8
    assert nodes.classes_.tolist() == ["left", "right"]
    with pytest.raises(hp.HaarPoolError, match="with values of nodes as labels"):
        hp.HaarNodeRegressor(task="regression").fit(data)
    with pytest.raises(hp.HaarPoolError, match="use HaarNodeClassifier"):
        hp.HaarClassifier(task="node_classification").fit(one)


def test_features_of_the_graph_are_stored_once():
    run = run_of("signals", features="x+degree")
    assert run.batches._x.shape == (30, RING, 1)
    x = run.batches.take([2, 5])["x"]
    encoded = run.encoding.encode(run.graphs).reshape(30, RING, -1)
    np.testing.assert_array_equal(x, encoded[[2, 5]])
    other = run_of("signals", features="degree+x")
    encoded = other.encoding.encode(other.graphs).reshape(30, RING, -1)
    np.testing.assert_array_equal(other.batches.take([7])["x"], encoded[[7]])


def test_automatic_levels_are_those_of_the_largest_component():
    edge = torch.tensor([[0, 1], [1, 0]])
    pairs = torch.cat([edge + 2 * i for i in range(300)], 1)
    data = Data(x=torch.randn(600, 1), y=torch.randn(600), edge_index=pairs)
    run = start_run(as_graphs(data), RunConfig(arch="auto"), ProcessGroup(), progress=False)
    assert run.config.arch == "haarunet:levels=1"


def test_a_class_without_training_nodes_is_an_error(tmp_path):
    data = halves(masks=1)
    data.y[data.test_mask.nonzero()[:3, 0]] = 2
    torch.save(data, "lack.pt")
    error = run_main("train", "lack.pt", "--quiet", "--out", "run", code=2).err
    assert "training nodes of each class that is validated or tested, got none of class" in error
    assert not Path("run").exists()
    other = (data.y == 2) & data.test_mask
    data.test_mask[other] = False  # in no part
    with pytest.warns(hp.HaarPoolWarning, match="no node of class '2' in the training part"):
        start_run(as_graphs(data), RunConfig(**SMALL), ProcessGroup(), progress=False)


@pytest.mark.parametrize("name", ["nodes", "classes", "masks"])
def test_class_weights_with_missing_labels(name):
    graphs = as_graphs(DATA[name])
    y = graphs.targets.astype(float)
    y[::5] = np.nan
    model = hp.HaarNodeClassifier(**SMALL, epochs=2, class_weights=True)
    assert 0 <= model.fit(DATA[name], y).score(DATA[name], y) <= 1


def test_missing_labels_of_a_file(tmp_path):
    x, y = heat(5)
    arrays = {"edge_index": DATA["signals"].edge_index.numpy(), "x": x}
    for more, remedy in (({}, "add y to the file"), ({"y": y * np.nan}, "add known labels to y")):
        np.savez("a.npz", **arrays, **more)
        error = run_main("train", "a.npz", "--quiet", "--out", "run", code=2).err
        assert f"labels of the graphs of a, got none; {remedy}" in error


@pytest.mark.parametrize(
    ("estimator", "graphs", "has", "other"),
    [
        (hp.HaarClassifier, DATA["nodes"], "nodes", "HaarNodeClassifier"),
        (hp.HaarClassifier, DATA["classes"], "nodes", "HaarNodeClassifier"),
        (hp.HaarClassifier, DATA["signals"], "nodes", "HaarNodeRegressor"),
        (hp.HaarRegressor, DATA["graphs"], "nodes", "HaarNodeRegressor"),
        (hp.HaarRegressor, DATA["graphs"][0], "nodes", "HaarNodeRegressor"),
        (hp.HaarRegressor, DATA["signals"], "nodes", "HaarNodeRegressor"),
        (hp.HaarRegressor, DATA["classes"], "nodes", "HaarNodeClassifier"),
        (hp.HaarNodeClassifier, "rings", "graphs", "HaarClassifier"),
        (hp.HaarNodeRegressor, "rings", "graphs", "HaarClassifier"),
        (hp.HaarNodeClassifier, LABELLED, "graphs", "HaarClassifier"),
    ],
)
def test_labels_of_others_name_the_estimator_for_them(estimator, graphs, has, other):
    wanted = "graphs" if has == "nodes" else "nodes"
    with error_with(f"labels of {wanted}, got labels of the {has}", f"; pass them to {other}"):
        estimator(epochs=1).fit(graphs)


def test_values_at_nodes_are_no_classes():
    with error_with("got real values", "pass them to HaarNodeRegressor"):
        hp.HaarNodeClassifier(epochs=1).fit(as_graphs(DATA["graphs"]))
    one = halves()
    one.y = torch.zeros_like(one.y)
    with error_with("add nodes of another class", "HaarNodeRegressor"):
        hp.HaarNodeClassifier(epochs=1).fit(one)
    with error_with("numbers as labels", "HaarNodeClassifier"):
        text = np.array(["a", "b"] * 30)
        hp.HaarNodeRegressor(epochs=1).fit(replace(as_graphs(one), **node_label_fields(text)))


@pytest.mark.parametrize("ratio", [[0.5, 0.4], (0.5, 0.4)])
@pytest.mark.parametrize("arch", ["haarunet", "haarunet:shared=true"])
def test_a_list_of_ratios_or_sizes_has_an_entry_per_level(arch, ratio):
    for chain in ({"ratio": ratio}, {"sizes": [5, 2]}):
        run = run_of("signals", arch=arch, chain=chain)
        assert run.chains.example.num_levels == 2
        assert run.config.arch == ("haarunet:levels=2" if arch == "haarunet" else arch)


def test_messages_count_signals_and_predictions(tmp_path, monkeypatch):
    path = saved("signals", tmp_path)
    small = ("--arch", SMALL["arch"], "--epochs", 1, "--quiet", "--out", "run")
    out = " ".join(run_main("train", path, *small).out.split())
    assert "3 signals: its scores say little; --split kfold:K tests every signal once" in out
    assert run_main("predict", "run", path, "--out", "new.csv").out == (
        f"{30 * RING} predictions for 30 signals in new.csv\n"
    )
    monkeypatch.setattr(_progress, "SECONDS_PER_LINE", 0)
    err = run_main("predict", "run", path, "--out", "new.csv").err
    assert err == "haarpool: predictions: 30 signals, 0:00\n"


def test_one_published_split_is_no_fold(tmp_path):
    torch.save(halves(masks=1), tmp_path / "one.pt")
    small = ("--arch", SMALL["arch"], "--epochs", 1, "--quiet", "--repeats", 2)
    for repeats, counted in ((1, "(1 repeat)"), (2, "(2 repeats)")):
        arguments = (*small[:-1], repeats, "--out", f"run{repeats}")
        out = run_main("train", tmp_path / "one.pt", *arguments).out
        assert counted in out
        assert "folds" not in out

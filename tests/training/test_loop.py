"""One repeat: its steps are those of a loop written by hand, its losses those of the formulas."""

import gc
import json
import os
import warnings
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy, cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from haarpool import HaarPoolError, HaarPoolWarning
from haarpool.datasets import as_graphs, read_graphs
from haarpool.datasets.pyg import GraphDataset
from haarpool.datasets.splits import Split
from haarpool.haar.operators import can_be_captured
from haarpool.nn.networks.standardize import Standardize
from haarpool.tasks import Scale
from haarpool.training import minibatches
from haarpool.training.config import RunConfig
from haarpool.training.devices import (
    CPU,
    ProcessGroup,
    deterministic,
    find_device,
    join_process_group,
)
from haarpool.training.loop import Progress, Trainer
from haarpool.training.minibatches import Minibatches
from haarpool.training.padded_step import PaddedStep
from haarpool.training.preparation import choose_threads
from haarpool.training.presets import BEST
from haarpool.training.results import run_result
from haarpool.training.run import Member, _batch_size, make_network, start_run
from haarpool.training.train import train_run
from helpers.graphs import rings_and_paths
from helpers.tolerances import LOOSER, TOLERANCE


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))


def started(y, **settings):
    graphs, *_ = rings_and_paths(len(y))
    for data, label in zip(graphs, y, strict=True):
        data.y = torch.as_tensor(label).reshape(1, -1) if np.ndim(label) else torch.tensor([label])
    defaults = {"arch": "GC8-HP-GC8-HP-FC8", "dropout": 0.0, "batch_size": 7, "split": "random"}
    return start_run(
        as_graphs(graphs), RunConfig(**defaults | settings), ProcessGroup(), progress=False
    )


def trainer_of(run, dtype=torch.float32, **options):
    network = make_network(run.config, run.graphs, run.encoding).to(run.group.device, dtype)
    run.batches._flat["x"] = run.batches["x"].to(dtype)
    return Trainer(run, 0, network=network, **options)


# ---------------------------------------------------------------------- padded minibatches

devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
PADDED = {
    "arch": "2GIN16-HP-GIN16-SUM-FC16",
    "features": "labels+log_degree",  # one-hot and standardised columns
    "dropout": 0.0,
    "batch_size": 16,
    "lr": 2.0**-8,  # the same number in float32, which a captured step reads
    "epochs": 4,
}


def rings_run(device, **settings):
    group = ProcessGroup(device=find_device(device))
    return start_run(read_graphs("rings"), RunConfig(**PADDED | settings), group, progress=False)


def losses_of_steps(trainer):
    """Run one epoch and return the loss of each step."""
    totals = [0.0]
    trainer.run_epoch(lambda: totals.append(float(trainer._total_loss)))
    return np.diff(totals)


@devices
def test_padded_steps_have_the_losses_of_plain_ones(device):
    run = rings_run(device)
    plain, padded = (losses_of_steps(trainer_of(run, padded=padded)) for padded in (False, True))
    assert len(plain) == 12
    np.testing.assert_allclose(padded, plain, rtol=LOOSER["training"])


@devices
@pytest.mark.parametrize("class_weights", [False, True])
def test_padded_steps_of_several_targets(device, class_weights):
    graphs = read_graphs("rings")
    odd = np.where(np.arange(len(graphs)) % 7 == 0, np.nan, np.arange(len(graphs)) % 2)
    labels = {"targets": np.stack([graphs.targets, odd], axis=1), "target_names": ("kind", "odd")}
    config = RunConfig(**PADDED | {"class_weights": class_weights, "split": "random"})
    group = ProcessGroup(device=find_device(device))
    run = start_run(replace(graphs, task="multilabel", **labels), config, group, progress=False)
    trainers = [trainer_of(run, torch.float64, padded=padded) for padded in (False, True)]
    plain, padded = map(losses_of_steps, trainers)
    np.testing.assert_allclose(padded, plain, rtol=LOOSER["training"])
    states = (trainer.network.state_dict() for trainer in trainers)
    torch.testing.assert_close(*states, rtol=0, atol=1e-8)


@devices
@pytest.mark.parametrize("arch", [PADDED["arch"], "haarnet:width=8,depth=2", "haarsum:width=8"])
def test_weights_after_a_padded_epoch_are_those_of_a_plain_one(device, arch):
    run, networks = rings_run(device, arch=arch), []
    for padded in (False, True):
        trainer = trainer_of(run, torch.float64, padded=padded)
        trainer.run_epoch(lambda: None)
        networks.append(trainer.network)
    used = trainer._padded_steps[16]
    assert used._calls == 12
    assert (used._graph is not None) == (device == "cuda")
    states = (network.state_dict() for network in networks)
    torch.testing.assert_close(*states, rtol=0, atol=1e-8)


@devices
def test_a_minibatch_that_does_not_fit_is_not_padded(device, monkeypatch):
    run, fits = rings_run(device), iter([True, False] * 6)
    trainer, plain = trainer_of(run, torch.float64, padded=True), trainer_of(run, torch.float64)
    monkeypatch.setattr(PaddedStep, "fits", lambda self, chosen: next(fits))
    trainer.run_epoch(lambda: None)
    assert trainer._padded_steps[16]._calls == 6
    plain._padded = False
    plain.run_epoch(lambda: None)
    states = (t.network.state_dict() for t in (trainer, plain))
    torch.testing.assert_close(*states, rtol=0, atol=1e-8)


@pytest.fixture
def fake_cuda(monkeypatch):
    """As much of torch.cuda as a padded step needs, on a machine without a GPU."""
    stream = MagicMock(device_index=0)
    fakes = {
        "CUDAGraph": MagicMock,
        "graph": MagicMock(),  # the context of a capture
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": nullcontext,
        "set_stream": MagicMock(),
        "default_generators": (MagicMock(),),
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    return SimpleNamespace(**fakes)


def test_training_continues_after_a_failed_capture(fake_cuda):
    run = rings_run("cpu")
    trainer, plain = (trainer_of(run, torch.float64, padded=padded) for padded in (True, False))
    trainer._padded_step(16)._on_gpu = True
    message = "operation failed due to a previous error during capture\nSearch for ..."
    fake_cuda.graph.side_effect = RuntimeError(message)
    with pytest.warns(HaarPoolWarning, match="are slower: .* error during capture$") as warned:
        losses = losses_of_steps(trainer)
    np.testing.assert_allclose(losses, losses_of_steps(plain), rtol=LOOSER["training"])
    assert len(warned) == fake_cuda.graph.call_count == 1
    fake_cuda.set_stream.assert_called_once_with(fake_cuda.current_stream())
    (generator,) = fake_cuda.default_generators
    generator.graphsafe_set_state.assert_called_once_with(generator.clone_state())
    losses_of_steps(trainer)  # another capture is not tried, nor by another trainer
    other = trainer_of(run, torch.float64, padded=True)
    other._padded_step(16)._on_gpu = True
    other.run_epoch(lambda: None)
    assert fake_cuda.graph.call_count == 1
    assert run.group.captures.failed
    assert not rings_run("cpu").group.captures.failed


def test_graphs_captured_before_are_not_replayed_after_a_failed_capture(fake_cuda):
    trainer = trainer_of(rings_run("cpu"), padded=True)
    step, other = trainer._padded_step(16), trainer._padded_step(8)
    for one, calls in ((step, 5), (other, 4)):
        one._on_gpu = True
        fake_cuda.graph.side_effect = RuntimeError("capture") if one is other else None
        with nullcontext() if one is step else pytest.warns(HaarPoolWarning):
            for _ in range(calls):
                one(trainer.split.train[: len(one._numbers)])
    assert step._graph.replay.call_count == 2
    step(trainer.split.train[:16])
    assert step._graph.replay.call_count == 2


def test_no_garbage_is_collected_during_a_capture(fake_cuda):
    enabled = []
    trainer = trainer_of(rings_run("cpu"), padded=True)
    step = trainer._padded_step(16)
    step._step, step._on_gpu = (lambda batch, numbers: enabled.append(gc.isenabled())), True
    for _ in range(5):
        step(trainer.split.train[:16])
    assert enabled == [True, True, True, False]  # warm-up, capture; then replays
    assert gc.isenabled()


@devices
def test_a_padded_run_resumes(device):
    run = rings_run(device)
    whole, first, second = (trainer_of(run, padded=True) for _ in range(3))
    for _ in range(3):
        whole.run_epoch(lambda: None)
    first.run_epoch(lambda: None)
    second.restore(first.progress, first.tensors())
    for _ in range(2):
        second.run_epoch(lambda: None)
    states = (t.network.state_dict() for t in (whole, second))
    torch.testing.assert_close(*states, rtol=LOOSER["training"], atol=1e-6)


def test_who_is_padded():
    run = rings_run("cpu")
    assert not trainer_of(run)._padded  # the CPU gains nothing
    assert not can_be_captured("cpu")  # nor can a GPU without Triton, which has the same kernels
    assert trainer_of(run, padded=True)._padded
    peers = rings_run("cpu", arch="2GIN16-TP-GIN16-SUM-FC16")
    assert not trainer_of(peers, padded=True)._padded  # its shapes depend on values


def two_targets():
    """Zeros and ones of 40 graphs for two targets, some of them missing."""
    values = np.stack([np.arange(40) % 2, np.arange(40) % 3 == 0], axis=1).astype(float)
    values[3, 0] = values[5:8, 1] = np.nan
    return values


TASKS = ["classification", "weighted classes", "targets", "weighted targets", "regression"]


@pytest.mark.parametrize("task", TASKS)
def test_an_epoch_is_a_loop_written_by_hand(task):
    if task == "regression":
        values = np.random.default_rng(0).standard_normal((40, 2)) * [3.0, 70.0] + [0.0, 500.0]
        values[3, 0] = values[5] = np.nan
        with pytest.warns(HaarPoolWarning, match="1 of 40 graphs of graphs have no label"):
            run = started(values)
    elif "targets" in task:
        run = started(two_targets(), class_weights=task != "targets")
    else:
        weighted = task == "weighted classes"
        classes = (np.arange(40) % 5 == 0).astype(int)
        run = started(classes, class_weights=weighted, split="stratified")
    fit = trainer_of(run)
    by_hand = make_network(run.config, run.graphs, run.encoding)
    transform, dataset = by_hand.transform(), GraphDataset(run.graphs, run.encoding)
    train = run.splits[0].train
    adam = torch.optim.Adam(by_hand.parameters(), run.config.lr, weight_decay=0.0005)
    losses, masses = [], []
    targets = run.graphs.targets
    order = np.random.default_rng([0, 0, 1]).permutation(train)
    for batch in DataLoader([transform(dataset[int(g)]) for g in order], batch_size=7):
        output = by_hand(batch)
        if task == "regression":
            mean, std = np.nanmean(targets[train], 0), np.nanstd(targets[train], 0)
            y = (batch.y - torch.tensor(mean).float()) / torch.tensor(std).float()
            known = ~y.isnan()
            loss, mass = ((output - y)[known] ** 2).mean(), known.sum()
        elif task == "classification":
            loss, mass = cross_entropy(output, batch.y), len(batch.y)
        elif "targets" in task:
            known, y = ~batch.y.isnan(), batch.y.nan_to_num()
            weight = known.float()
            if task != "targets":
                numbers = np.stack([(targets[train] == label).sum(0) for label in (0, 1)])
                each = torch.tensor(numbers.sum(0) / (2 * numbers)).float()
                weight = weight * each[y.long(), torch.arange(2)]
            error = binary_cross_entropy(output.sigmoid(), y, reduction="none")
            loss, mass = (error * weight).sum() / weight.sum(), weight.sum()
        else:
            counts = np.bincount(targets[train])
            weight = torch.tensor(len(train) / (2 * counts)).float()
            loss, mass = cross_entropy(output, batch.y, weight), weight[batch.y].sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
        masses.append(float(mass))
    epoch = fit.run_epoch(lambda: None)
    for ours, theirs in zip(fit.network.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=LOOSER["training"], atol=1e-6)
    assert epoch.train_loss == pytest.approx(
        np.average(losses, weights=masses), rel=LOOSER["training"]
    )


@pytest.mark.parametrize(("arch", "steps"), [("haarnet:width=4", 1), ("GC8-HP-FC8", 2)])
def test_norms_over_graphs_leave_out_a_small_last_minibatch(arch, steps):
    run = started([0, 1] * 13, arch=arch, batch_size=20)
    assert len(run.splits[0].train) == 22
    trainer, taken = trainer_of(run), []
    trainer.run_epoch(lambda: taken.append(1))
    assert len(taken) == trainer.steps_per_epoch == steps


@pytest.mark.parametrize(
    ("batch_size", "processes", "steps"),
    [(1, 1, 22), (3, 1, 7), (7, 1, 3), (5, 1, 5), (9, 1, 3), (18, 1, 1), (30, 1, 1), (9, 3, 2)],
)
def test_each_process_has_two_graphs_and_a_minibatch_a_quarter(batch_size, processes, steps):
    trainer = trainer_of(started([0, 1] * 13, arch="haarnet:width=4", batch_size=batch_size))
    assert len(trainer.split.train) == 22
    trainer.group = replace(trainer.group, size=processes)
    assert trainer.steps_per_epoch == steps


def test_validation_loss_and_score_by_hand():
    run = started(np.arange(40) % 2)
    fit = trainer_of(run)
    epoch = fit.run_epoch(lambda: None)
    graphs = run.splits[0].validation
    dataset, transform = GraphDataset(run.graphs, run.encoding), fit.network.transform()
    (batch,) = DataLoader([transform(dataset[int(g)]) for g in graphs], batch_size=40)
    output = fit.network.eval()(batch)
    assert epoch.validation_loss == pytest.approx(
        cross_entropy(output, batch.y).item(), rel=TOLERANCE[torch.float32]
    )
    assert epoch.validation_score == (output.argmax(1) == batch.y).float().mean().item()


def test_batches_without_gradients_are_limited_by_their_nodes_and_edges(monkeypatch):
    """Large graphs are evaluated, standardised and predicted a few at a time."""
    run = started(np.arange(40) % 2, features="log_degree")
    fit, part = trainer_of(run), run.splits[0].train
    outputs, predicted = fit.outputs(part), run.trained_model([_member(fit)]).predict(run.graphs)
    taken = []
    monkeypatch.setattr(minibatches, "MAX_ROWS", 60)
    take = Minibatches.take
    monkeypatch.setattr(Minibatches, "take", lambda *a: taken.append(take(*a)) or taken[-1])
    limited = trainer_of(run)
    read = sum(len(batch["x"]) for batch in taken)
    assert read == run.graphs.sizes[part].sum()
    torch.testing.assert_close(limited.network.standardize.mean, fit.network.standardize.mean)
    torch.testing.assert_close(fit.outputs(part), outputs)
    model = run.trained_model([_member(fit)])
    np.testing.assert_allclose(model.predict(run.graphs), predicted, rtol=1e-5)
    assert len(taken) > 40
    assert all(len(b["x"]) + b["edge_index"].shape[1] <= 60 for b in taken)


def _member(trainer):
    return Member(trainer.network, trainer.scale, 1, np.empty((0, 2)), np.empty((0, 2)))


def test_test_labels_do_not_influence_training():
    """Other labels of the test part change nothing but the scores of the test part."""
    labels = np.arange(40) % 2
    one = train_run(started(labels, epochs=4))
    other = labels.copy()
    other[one.splits[0].test] ^= 1
    two = train_run(started(other, epochs=4))
    for ours, theirs in zip(one.epochs, two.epochs, strict=True):
        assert ours._replace(seconds=0) == theirs._replace(seconds=0)
    assert one.results[0].validation == two.results[0].validation
    assert one.results[0].test["accuracy"] == pytest.approx(1 - two.results[0].test["accuracy"])


@pytest.mark.slow
def test_the_model_that_is_kept_is_that_of_the_best_epoch():
    labels = np.random.default_rng(0).integers(0, 2, 40)  # nothing to learn: it gets worse
    run = train_run(started(labels, epochs=15, lr=0.1, repeats=3, features="x"))
    assert all(result.best_epoch < 15 for result in run.results)
    best = int(np.argmax([result.validation["accuracy"] for result in run.results]))
    assert run.model_repeat == best
    losses = [e.validation_loss for e in run.epochs if e.repeat == best]
    assert run.results[best].best_epoch == 1 + int(np.argmin(losses))
    split = run.splits[best]
    predicted = run.model.predict(run.graphs.take(split.validation))
    targets = run.graphs.targets[split.validation]
    loss = cross_entropy(torch.tensor(predicted).log(), torch.tensor(targets)).item()
    assert loss == pytest.approx(min(losses), rel=LOOSER["training"])


def test_comparison_of_epochs():
    fit = trainer_of(started(np.arange(40) % 2, monitor="loss"))
    fit.progress = Progress(3, 2, best_loss=0.5, best_score=0.8)
    assert fit._is_better(0.4, 0.1)
    assert not fit._is_better(0.5, 0.9)
    fit = trainer_of(started(np.arange(40) % 2, monitor="score"))
    fit.progress = Progress(3, 2, best_loss=0.5, best_score=0.8)
    assert fit._is_better(9.0, 0.9)
    assert fit._is_better(0.4, 0.8)
    assert not fit._is_better(0.5, 0.8)
    assert not fit._is_better(0.1, 0.7)
    fit = trainer_of(started(np.arange(40) * 0.5, monitor="score"))  # the lower error is better
    fit.progress = Progress(3, 2, best_loss=0.5, best_score=-0.8)
    assert fit._is_better(9.0, 0.7)
    assert not fit._is_better(0.1, 0.9)


def test_of_equal_scores_the_lower_loss_is_chosen():
    """With four validation graphs most epochs have the same accuracy."""
    run = train_run(started(np.arange(40) % 2, monitor="score", epochs=12, patience=12, lr=0.01))
    keys = [(epoch.validation_score, -epoch.validation_loss) for epoch in run.epochs]
    best = max(score for score, _ in keys)
    assert sum(score == best for score, _ in keys) > 1
    assert run.results[0].best_epoch == 1 + keys.index(max(keys))


def test_a_score_that_is_not_defined_leaves_the_choice_to_the_loss():
    targets = two_targets()
    targets[started(targets).splits[0].validation] = [0.0, np.nan]
    with pytest.warns(HaarPoolWarning, match="a validation part has graphs of one class only"):
        run = started(targets, monitor="score", epochs=6, patience=6, lr=0.01)
    run = train_run(run)
    assert [epoch.validation_score for epoch in run.epochs] == [None] * 6
    losses = [epoch.validation_loss for epoch in run.epochs]
    assert run.results[0].best_epoch == 1 + int(np.argmin(losses))
    assert np.isnan(run.results[0].validation["roc_auc"])
    result = run_result(run)
    json.dumps(result, allow_nan=False)
    assert result["scores"]["roc_auc"]["validation"] == {"mean": None, "std": None, "each": [None]}
    assert result["scored_targets"]["validation"] == [0]


def test_a_target_of_one_class_in_the_training_part():
    targets = two_targets()
    split = started(targets).splits[0]
    targets[split.train, 1] = 0
    with pytest.warns(HaarPoolWarning, match="a training part has graphs of one class only for y1"):
        run = started(targets, class_weights=True, epochs=2)
    train_run(run)
    with pytest.raises(HaarPoolError, match="a target of graphs with two classes"):
        started(np.tile([0.0, 1.0], (40, 1)))


# ---------------------------------------------------------------------- the last epoch

LAST = {"monitor": "last", "lr": 0.1, "features": "x"}


def nothing_to_learn():
    """Classes without a pattern: the validation loss rises soon."""
    return np.random.default_rng(0).integers(0, 2, 40)


def test_monitor_last_keeps_the_last_epoch():
    run = train_run(started(nothing_to_learn(), epochs=6, **LAST))
    losses = [epoch.validation_loss for epoch in run.epochs]
    assert np.argmin(losses) < 5  # another epoch would be chosen by validation
    assert run.results[0].best_epoch == 6
    validation = run.splits[0].validation
    predicted = run.model.predict(run.graphs.take(validation))
    targets = torch.tensor(run.graphs.targets[validation])
    loss = cross_entropy(torch.tensor(predicted).log(), targets).item()
    assert loss == pytest.approx(losses[-1], rel=LOOSER["training"])


def test_monitor_last_ignores_patience():
    run = started(nothing_to_learn(), epochs=8, patience=RunConfig.patience, **LAST)
    with pytest.warns(HaarPoolWarning, match='patience has no effect with monitor="last"'):
        impatient = started(nothing_to_learn(), epochs=8, patience=1, **LAST)
    epochs = [[e._replace(seconds=0) for e in train_run(r).epochs] for r in (run, impatient)]
    assert len(epochs[0]) == 8
    assert epochs[0] == epochs[1]


def test_only_one_process_warns_about_patience():
    run = started(nothing_to_learn())
    config = replace(run.config, epochs=8, patience=1, **LAST)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HaarPoolWarning)
        start_run(run.graphs, config, ProcessGroup(rank=1), progress=False)


def test_monitor_last_resumes_without_a_copy_of_the_weights():
    run = started(nothing_to_learn(), epochs=6, **LAST)
    whole, first, second = (trainer_of(run) for _ in range(3))
    for _ in range(6):
        whole.run_epoch(lambda: None)
    for _ in range(4):
        first.run_epoch(lambda: None)
    tensors = first.tensors()
    assert not first.best
    assert not any(name.startswith("best.") for name in tensors)
    second.restore(first.progress, tensors)
    for _ in range(2):
        second.run_epoch(lambda: None)
    assert second.progress == whole.progress
    assert second.progress.is_complete(run.config)
    second.load_best()
    states = (t.network.state_dict() for t in (whole, second))
    torch.testing.assert_close(*states, rtol=0, atol=0)


# ---------------------------------------------------------------------- nodes that are all alike


@pytest.mark.parametrize("arch", ["haarnet", "haarnet:levels=3,coarse_depth=4"])
@pytest.mark.parametrize("size", [1, 4])
def test_gradients_are_finite_where_all_nodes_are_alike(arch, size):
    ring = torch.arange(size)
    edges = torch.stack([ring, ring.roll(1)]) if size > 1 else torch.zeros(2, 0, dtype=torch.long)
    edges = torch.cat([edges, edges.flip(0)], 1)
    graphs = [
        Data(x=torch.ones(size, 2), edge_index=edges, y=torch.tensor([i % 2])) for i in range(30)
    ]
    config = RunConfig(**{**BEST, "arch": arch, "epochs": 5, "lr": 0.01})
    run = start_run(as_graphs(graphs), config, ProcessGroup(), progress=False)
    trainer = Trainer(run, 0)
    checked = 0

    def check():
        nonlocal checked
        for name, parameter in trainer.network.named_parameters():
            assert torch.isfinite(parameter.grad).all(), name
            checked += 1

    for _ in range(5):
        epoch = trainer.run_epoch(check)
        assert epoch.train_loss < 5
    assert checked
    for name, value in trainer.network.state_dict().items():
        assert torch.isfinite(value).all(), name


def test_learning_rates():
    run = train_run(started(np.arange(40) % 2, epochs=4, schedule="cosine", lr=0.1, patience=4))
    expected = [0.1, 0.05 * (1 + 0.5**0.5), 0.05, 0.05 * (1 - 0.5**0.5)]
    np.testing.assert_allclose([epoch.lr for epoch in run.epochs], expected)


def test_values_without_spread_and_in_their_units():
    scale = Scale.of(np.array([[5.0, 1.0], [5.0, 3.0], [5.0, np.nan]]))
    assert scale.mean.tolist() == [5.0, 2.0]
    assert scale.std.tolist() == [1.0, 1.0]


@pytest.mark.slow
def test_bfloat16_and_compiling():
    for settings in ({"precision": "bfloat16"}, {"compile": True}):
        run = train_run(started(np.arange(40) % 2, epochs=2, **settings))
        plain = train_run(started(np.arange(40) % 2, epochs=2))
        one, two = run.epochs[-1].train_loss, plain.epochs[-1].train_loss
        assert one == pytest.approx(
            two,
            rel=LOOSER["training in bfloat16" if "precision" in settings else "training compiled"],
        )
        if "precision" in settings:
            assert one != two


def test_a_loss_that_explodes():
    run = started(np.arange(40) % 2)
    run.batches["x"].mul_(3e38)
    with pytest.raises(HaarPoolError, match="lower the learning rate"):
        train_run(run)


def test_teams_and_devices(monkeypatch):
    assert find_device("cpu") == CPU
    with pytest.raises(HaarPoolError, match="expected device of this machine"):
        find_device("cuda:99")
    with join_process_group("cpu") as team:
        assert (team.rank, team.size, team.is_main) == (0, 1, True)
    three = [ProcessGroup(rank, 3).local_part(np.arange(10)) for rank in range(3)]
    assert sorted(np.concatenate(three)) == list(range(10))


@pytest.mark.parametrize("algorithms", [True, False])
@pytest.mark.parametrize("value", [None, ":16:8"])
def test_the_environment_is_restored_after_training_on_a_gpu(value, algorithms, monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    if value is not None:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", value)
    with deterministic(torch.device("cuda"), algorithms=algorithms):
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == (value or ":4096:8")
        assert torch.are_deterministic_algorithms_enabled() == algorithms
    assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == value
    assert not torch.are_deterministic_algorithms_enabled()


def test_settings_are_a_value():
    config = RunConfig(arch="2GC8-HP-FC8", tied=(0, 0), chain={"method": "matching"})
    assert RunConfig.from_json(config.to_json()) == config
    with pytest.raises(HaarPoolError, match="install a newer version"):
        RunConfig.from_json(config.to_json() | {"magic": 1})
    for wrong in (
        {"epochs": 1.5}, {"epochs": True}, {"batch_size": -1}, {"patience": -1}, {"repeats": "3"},
        {"lr": 0}, {"weight_decay": -1}, {"monitor": "test"}, {"schedule": "up"}, {"seed": -1},
        {"precision": "int8"}, {"threads": -1}, {"arch": "GC8"}, {"chain": {"method": "magic"}},
    ):  # fmt: skip
        with pytest.raises(HaarPoolError):
            RunConfig(**wrong)


def test_only_labelled_graphs_train():
    graphs = read_graphs("rings")
    graphs = replace(graphs, targets=np.where(np.arange(240) < 50, -1, graphs.targets))
    with pytest.warns(HaarPoolWarning, match="50 of 240"):
        run = start_run(
            graphs, RunConfig(arch="GC8-HP-FC8", epochs=1), ProcessGroup(), progress=False
        )
    assert sum(map(len, run.splits[0])) == 190
    assert min(map(min, run.splits[0])) == 50
    train_run(run)


def test_any_split_can_be_passed():
    graphs = read_graphs("rings")
    split = Split(np.arange(100), np.arange(100, 150), np.arange(150, 240))
    config = RunConfig(arch="GC8-HP-FC8", epochs=1)
    run = train_run(start_run(graphs, config, ProcessGroup(), progress=False, splits=[split]))
    assert run.results[0].predicted.shape == (90, 2)


# ---------------------------------------------------------------------- standardised inputs


def test_inputs_are_standardised_by_the_training_part():
    run = started([0, 1] * 15)
    for g, data in enumerate(run.graphs.sizes):  # a column that differs from graph to graph
        run.batches._flat["x"][run.graphs.start[g] : run.graphs.start[g] + data, 0] = g**2
    run.network.standardize = Standardize(run.network.in_channels, [0])
    trainer = Trainer(run, 0, network=run.network)
    rows = np.isin(run.graphs.owner, run.splits[0].train)
    expected = run.batches["x"][torch.from_numpy(rows), 0]
    mean, std = trainer.network.standardize.mean[0], trainer.network.standardize.std[0]
    assert float(mean) == pytest.approx(float(expected.double().mean()), rel=1e-6)
    assert float(std) == pytest.approx(float(expected.double().std(correction=0)), rel=1e-6)
    assert "network.standardize.mean" in trainer.tensors()


@pytest.mark.parametrize(
    ("graphs", "size"), [(3, 16), (188, 16), (1128, 32), (2039, 64), (4110, 128), (45000, 128)]
)
def test_automatic_batch_size(graphs, size):
    assert _batch_size(graphs) == size


def test_automatic_threads_follow_the_widths_of_the_network(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    labels = np.arange(40) % 2
    for arch, width, threads in (
        ("GC-HP-FC", 8, 1), ("GC-HP-FC", 16384, 8), ("GC16384-HP-FC8", 8, 8),
        ("haarnet", 64, 1), ("haarnet", 512, 1), ("haarnet:width=8", 16384, 1),
    ):  # fmt: skip
        run = started(labels, arch=arch, width=width)
        assert choose_threads(run.network, run.graphs, 7) == threads, (arch, width)
    assert choose_threads(run.network, run.graphs, 10**6) == 8
    assert choose_threads(run.network, run.graphs, 10**6, threads=3) == 3


def test_a_run_records_its_batch_size():
    assert started(np.arange(40) % 2, batch_size=0, split="stratified").config.batch_size == 16

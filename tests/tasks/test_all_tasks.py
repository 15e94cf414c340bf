"""What holds for every task: a task is tested by being registered."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import haarpool as hp
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.estimator import _estimator_of
from haarpool.tasks import Figure, find_task, task_names
from helpers.tolerances import LOOSER

N = 40


@pytest.fixture(params=task_names())
def example(request):
    """A task with labels and their names."""
    task = find_task(request.param)
    return task, *task.example_labels(np.random.default_rng(0), N)


def scale_and_target(task, labels):
    """What a network sees of labels."""
    scale = None if task.scale is None else task.scale.of(labels)
    target = torch.from_numpy(labels.astype(task.dtype))
    return scale, target if scale is None else scale.standardize(target)


def outputs(task, names, seed=0):
    shape = (N, len(task.output_names(names)))
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_loss_is_finite_and_decreases(example):
    task, labels, names = example
    output = outputs(task, names).requires_grad_()
    _, target = scale_and_target(task, labels)
    optimizer, losses = torch.optim.Adam([output], lr=0.05), []
    for _ in range(30):
        loss = task.loss(output, target)
        optimizer.zero_grad()
        loss.backward()
        assert output.grad.isfinite().all()
        optimizer.step()
        losses.append(loss.item())
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]


def test_the_loss_takes_smoothing_and_class_weights(example):
    task, labels, names = example
    weights = task.class_weights(labels, len(names.classes))
    tensor = None if weights is None else torch.tensor(weights, dtype=torch.float32)
    _, target = scale_and_target(task, labels)
    assert task.loss(outputs(task, names), target, tensor, 0.1).isfinite()
    for mass in (task.mass(labels), task.mass(labels, weights)):
        assert mass.shape == (N,)
        assert (mass > 0).all()


def test_a_batch_without_any_known_label_has_loss_zero(example):
    task, labels, names = example
    if not task.has_targets:
        return  # graphs without their only label are in no minibatch
    output = outputs(task, names).requires_grad_()
    loss = task.loss(output, torch.full(labels.shape, torch.nan))
    assert loss.item() == 0
    assert torch.autograd.grad(loss, output)[0].isfinite().all()
    assert task.mass(np.full(labels.shape, np.nan)).sum() == 0


def test_a_scale_is_undone_and_keeps_its_type(example):
    task, labels, _ = example
    scale, target = scale_and_target(task, labels)
    if scale is not None:
        np.testing.assert_allclose(scale.restore(target), labels, rtol=1e-4, atol=1e-4)
        assert type(scale.to(torch.device("cpu"))) is type(scale) is task.scale


def test_predictions_and_tables(example):
    task, labels, names = example
    scale, _ = scale_and_target(task, labels)
    predicted = [task.predictions(outputs(task, names, seed), scale, names) for seed in range(2)]
    header = task.prediction_columns(names)
    assert len(header) == len(set(header))
    assert all(len(task.prediction_cells(row, names)) == len(header) for row in predicted[0])
    header = task.uncertainty_columns(names)
    assert task.uncertainty(np.stack(predicted), names).shape == (N, len(header))
    classes = np.arange(len(names.classes))
    assert len(task.decide(predicted[0], classes, names)) == N
    pairs = zip(labels, predicted[0], strict=True)
    rows = [task.test_cells(*pair, names) for pair in pairs]
    assert all(len(row) == len(task.test_columns(names)) for row in rows)
    target, read = task.read_test_rows(rows, names)
    np.testing.assert_allclose(target, labels, rtol=LOOSER["six digits"])
    figure = task.figure(target, read, names, 1)
    assert isinstance(figure, Figure)
    assert task.describe(names)
    assert task.describe_output(names)


def test_scores(example):
    task, labels, names = example
    scale, _ = scale_and_target(task, labels)
    predicted = task.predictions(outputs(task, names), scale, names)
    scores = task.score(predicted, labels, names)
    assert set(scores) <= {one.name for one in task.scores}
    main = task.scores[0]
    assert scores[main.name] == task.main_score(predicted, labels, names)
    assert np.isfinite(task.estimator_score(predicted, labels, names))
    assert len(task.score_targets(predicted, labels, names)) == max(len(names.targets), 1)
    assert all(one.show(value) for one in task.scores if (value := scores.get(one.name)))
    missing = labels.copy()
    missing[::2] = -1 if labels.dtype.kind == "i" else np.nan
    assert task.labelled(missing).tolist() == [False, True] * (N // 2)
    half = task.score(predicted[1::2], labels[1::2], names)
    np.testing.assert_equal(task.score(predicted, missing, names), half)


def test_class_weights_without_missing_labels(example):
    task, labels, names = example
    number, missing = len(names.classes), labels[:2].copy()
    missing[:] = -1 if labels.dtype.kind == "i" else np.nan
    weights = task.class_weights(np.concatenate([labels, missing]), number)
    np.testing.assert_array_equal(weights, task.class_weights(labels, number))


def test_json_and_statistics(example):
    task, labels, names = example
    assert json.loads(json.dumps(task)) == task
    assert json.dumps(task.summary(labels, names), allow_nan=False)
    task.check(labels, names, "example")
    assert task.check_parts(labels, names, [(np.arange(30), np.arange(30, N), np.arange(0))]) == ""


def test_an_estimator_trains_and_is_saved(example, tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    task, labels, names = example
    graphs, arch = read_graphs("rings").take(np.arange(N)), "GC8-HP-FC8"
    if task.of_nodes:  # the labels of one graph after the other
        size, arch = int(graphs.start[-1]), "haarunet:width=8,levels=2"
        labels = np.resize(labels, (size, *labels.shape[1:]))
    fields = {"task": task, "targets": labels, "classes": names.classes}
    graphs: Graphs = replace(graphs, **fields, target_names=names.targets)
    estimator = _estimator_of(task)
    model = estimator(task=str(task), arch=arch, epochs=2, ensemble=2).fit(graphs)
    assert model.trained.task is task
    assert np.isfinite(model.score(graphs))
    model.save(tmp_path / "run")
    again = hp.load(tmp_path / "run")
    assert type(again) is estimator
    assert again.get_params()["task"] == task
    np.testing.assert_array_equal(again.predict(graphs), model.predict(graphs))
    assert len(again.predict_uncertainty(graphs)) == len(labels)
    assert again.fit(graphs).trained.task is task
    assert Path(tmp_path / "run" / "config.json").exists()

"""Mixtures of networks, nested selection, and scores of all parts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import haarpool
import paper
from haarpool.comparison.table import Cell
from haarpool.comparison.trials import source_digest
from haarpool.datasets import read_graphs
from haarpool.training.train import predict_graphs
from helpers.trials import SMALL, split_of, train
from paper import learners
from paper.learners import MixtureLearner, NestedLearner, NestedPartsLearner, PartsLearner, kinds_of
from paper.tables import find_table

LAST = SMALL | {"monitor": "last"}
pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def runs(monkeypatch):
    """The runs of a mixture with their trained repeats, in the order of training."""
    trained, train = [], learners.train_repeat

    def train_and_keep(run, repeat, folder):
        trained.append((run, train(run, repeat, folder)))
        return trained[-1][1]

    monkeypatch.setattr(learners, "train_repeat", train_and_keep)
    return trained


def test_scores_of_all_parts():
    line = train(Cell("rings", "some", "random", SMALL, PartsLearner))
    assert line["status"] == "ok", line["reason"]
    parts = line["parts"]
    assert (parts["validation"], parts["test"]) == (line["validation"], line["value"])
    graphs = read_graphs("rings")
    split = split_of(Cell("rings", "some", "random", SMALL), 0, graphs)
    is_large = graphs.sizes[split.test] > graphs.sizes[split.train].max()
    values = [parts["original sizes"], parts.get("large", 0)]
    mean = np.average(values, weights=[(~is_large).sum(), is_large.sum()])
    assert mean == pytest.approx(parts["test"])
    assert 0 <= parts["train"] <= 1


def test_a_mixture_is_the_mean_of_its_networks_trained_on_both_parts(runs):
    networks = {"one": LAST, "other": LAST | {"lr": 0.1}}
    cell = Cell("rings", "some", "random", {"members": 2, "networks": networks}, MixtureLearner)
    line = train(cell, 1)
    assert line["status"] == "ok", line["reason"]
    graphs = read_graphs("rings")
    split = split_of(cell, 1, graphs)
    mean = np.mean([trained.result.predicted for _, trained in runs], axis=0)
    assert line["value"] == np.mean(mean.argmax(1) == graphs.targets[split.test])
    assert {name: len(v) for name, v in line["networks"].items()} == {"one": 2, "other": 2}
    for run, _ in runs:
        assert set(run.splits[0].train) == {*split.train, *split.validation}
        assert set(run.splits[0].test) == {*split.test}
    assert [one["lr"] for one in line["config"].values()] == [0.001, 0.1]
    assert {one["ensemble"] for one in line["config"].values()} == {2}
    assert cell.learner.has_settings(line["config"], cell)
    for settings in (
        {"members": 3, "networks": networks},
        {"members": 2, "networks": {"one": LAST}},
        {"members": 2, "networks": networks | {"other": LAST | {"lr": 0.2}}},
        {"members": 2, "networks": networks, "final_networks": 9},
    ):
        assert not cell.learner.has_settings(line["config"], replace(cell, settings=settings))


def test_nested_selection_chooses_by_validation_and_trains_again_on_both_parts(runs):
    networks = {"one": LAST, "other": LAST | {"lr": 0.1}, "none": LAST | {"lr": 1e-9}}
    settings = {"members": 2, "networks": networks, "final_networks": 5}
    cell = Cell("rings", "some", "random", settings, NestedLearner)
    line = train(cell, 1)
    assert line["status"] == "ok", line["reason"]
    graphs = read_graphs("rings")
    split = split_of(cell, 1, graphs)
    assert len(line["candidates"]) == 7
    # The candidates are scored by networks that saw the training part alone.
    first = dict(zip(networks, runs[:3], strict=True))
    for run, trained in first.values():
        assert run.splits[0].train.tolist() == split.train.tolist()
        assert len(trained.members) == 2
    losses = {}
    true = graphs.targets[split.validation]
    for names, scores in line["candidates"].items():
        each = [m.validation for name in names.split("+") for m in first[name][1].members]
        mean = np.mean(each, axis=0)
        losses[names] = -np.log(mean[np.arange(len(true)), true]).mean()
        assert scores["log_loss"] == pytest.approx(losses[names], rel=1e-5)
        assert scores["accuracy"] == np.mean(mean.argmax(1) == true)
    assert "+".join(line["chosen"]) == min(losses, key=losses.get)
    assert line["validation"] == line["candidates"]["+".join(line["chosen"])]["accuracy"]
    # Those that predict the test part for the line saw both parts.
    again = runs[3:]
    assert set(line["chain_hashes"]) == set(line["chosen"])
    assert len(again) == len(line["chosen"])
    for run, trained in again:
        assert set(run.splits[0].train) == {*split.train, *split.validation}
        assert len(trained.members) == {1: 5, 2: 3, 3: 2}[len(again)]
    assert set(line["chosen"].values()) == {len(trained.members)}
    mean = np.mean([trained.result.predicted for _, trained in again], axis=0)
    assert line["value"] == np.mean(mean.argmax(1) == graphs.targets[split.test])
    assert cell.learner.has_settings(line["config"], cell)
    for change in ({"members": 3}, {"final_networks": 6}, {"networks": {"one": LAST}}):
        other = replace(cell, settings=settings | change)
        assert not cell.learner.has_settings(line["config"], other)


def test_nested_selection_without_training_again_scores_all_parts(runs, monkeypatch):
    networks = {"one": SMALL, "other": SMALL | {"lr": 0.1}}
    score = learners.score_mixtures

    def both_win(*arguments):
        for names, scores in score(*arguments):
            yield names, scores | {"log_loss": -len(names)}

    monkeypatch.setattr(learners, "score_mixtures", both_win)
    settings = {"members": 1, "networks": networks}
    cell = Cell("rings", "some", "random", settings, NestedPartsLearner)
    line = train(cell, 1)
    assert line["status"] == "ok", line["reason"]
    assert len(runs) == 2
    graphs, trained = read_graphs("rings"), dict(zip(networks, runs, strict=True))
    split = split_of(cell, 1, graphs)
    chosen = [trained[name] for name in line["chosen"]]
    assert line["chosen"] == {"one": 1, "other": 1}
    for run, _ in runs:
        assert run.splits[0].train.tolist() == split.train.tolist()
    mean = np.mean([one.result.predicted for _, one in chosen], axis=0)
    assert line["value"] == np.mean(mean.argmax(1) == graphs.targets[split.test])
    parts = line["parts"]
    assert (parts["test"], parts["validation"]) == (line["value"], line["validation"])
    each = [predict_graphs(run, one.members, split.train) for run, one in chosen]
    hits = np.mean(each, axis=0).argmax(1) == graphs.targets[split.train]
    assert parts["train"] == pytest.approx(hits.mean())
    assert "original sizes" in parts


def test_nested_selection_of_regression_takes_the_lowest_error(runs):
    graphs = read_graphs("rings")
    sizes = {"targets": graphs.sizes[:, None].astype(float), "target_names": ("size",)}
    values = replace(graphs, task="regression", classes=(), **sizes)
    networks = {"one": SMALL, "other": SMALL | {"lr": 0.1}}
    settings = {"members": 1, "networks": networks}
    cell = Cell("rings", "some", "random", settings, NestedLearner)
    line = train(cell, load=lambda name: values)
    assert line["status"] == "ok", line["reason"]
    errors = {names: scores["mae"] for names, scores in line["candidates"].items()}
    assert len(errors) == 3
    assert "+".join(line["chosen"]) == min(errors, key=errors.get)
    assert (line["metric"], line["validation"]) == ("mae", min(errors.values()))
    validation = runs[0][0].splits[0].validation
    predicted = [trained.members[0].validation for _, trained in runs]
    for names, mean in zip(errors, [*predicted, np.mean(predicted, axis=0)], strict=True):
        error = np.abs(mean - values.targets[validation]).mean()
        assert errors[names] == pytest.approx(error, rel=1e-5)


@pytest.mark.parametrize("learner", [MixtureLearner, NestedLearner])
def test_networks_that_train_on_validation_graphs_keep_the_last_epoch(learner):
    settings = {"members": 2, "networks": {"one": SMALL}, "final_networks": 5}
    line = train(Cell("rings", "some", "random", settings, learner), 0)
    assert line["status"] == "failed"
    assert 'expected monitor="last"' in line["reason"]


def test_a_line_names_the_source_code_of_the_library_and_of_its_learner():
    line = train(Cell("rings", "some", "random", SMALL, PartsLearner))
    folders = [Path(package.__file__).parent for package in (haarpool, paper)]
    assert line["versions"]["source"] == source_digest(*folders)


def test_networks_of_a_mixture_that_are_no_settings():
    (cell,) = find_table("table1").select(["MUTAG"], ["best-mixture"], ["random"]).cells
    assert not cell.learner.has_settings({name: [] for name in kinds_of(cell)}, cell)

"""From a trial to its line."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import haarpool
from haarpool.comparison import learners
from haarpool.comparison.table import Cell, Trial
from haarpool.comparison.trials import TrialRunner, source_digest
from haarpool.datasets import read_graphs
from helpers.trials import SMALL, split_of, train

pytestmark = pytest.mark.usefixtures("workplace")


def line_of(seed=0, **settings):
    return train(Cell("rings", "some", "random", SMALL | settings), seed)


def test_splits_do_not_depend_on_the_number_of_repeats():
    graphs = read_graphs("rings")
    for protocol, count in (("random", 12), ("10-fold", 21)):
        cell = Cell("rings", "some", protocol, SMALL)
        hashes = [split_of(cell, seed, graphs).digest() for seed in range(count)]
        assert len(set(hashes)) == count


def test_trials_of_a_cell_in_any_order():
    runner, cell = TrialRunner(read_graphs, "cpu"), Cell("rings", "some", "random", SMALL)
    lines = {seed: runner(Trial(cell, seed)) for seed in (3, 0, 11)}
    for seed, line in lines.items():
        again = line_of(seed)
        for name in ("value", "validation", "split_hash", "chain_hash"):
            assert again[name] == line[name]


def test_the_trials_of_a_cell_share_a_run_and_those_of_a_dataset_its_graphs(monkeypatch):
    starts, reads = [], []
    start_run = learners.start_run
    monkeypatch.setattr(
        learners,
        "start_run",
        lambda *args, **options: starts.append(1) or start_run(*args, **options),
    )
    runner = TrialRunner(lambda name: reads.append(1) or read_graphs(name), "cpu")
    one = Cell("rings", "some", "random", SMALL)
    other = replace(one, settings=SMALL | {"lr": 0.1})
    for number, cell in enumerate((one, other), 1):
        for seed in range(2):
            assert runner(Trial(cell, seed))["status"] == "ok"
        assert (len(starts), len(reads)) == (number, 1)


def test_an_ensemble_has_the_scores_of_its_members():
    assert len(line_of(ensemble=2)["members"]) == 2
    assert "members" not in line_of()


def test_a_score_that_is_not_finite_is_a_failure(monkeypatch):
    result = {"metric": "mae", "value": float("nan")}
    monkeypatch.setattr(learners.NetworkLearner, "train", lambda *_: result)
    line = line_of()
    assert (line["status"], line["reason"]) == ("failed", "mae of the test part is nan")


def test_a_line_names_the_source_code(tmp_path):
    package, copy = Path(haarpool.__file__).parent, tmp_path / "haarpool"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert line_of()["versions"]["source"] == source_digest(copy)
    with open(copy / "nn" / "pooling.py", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert line_of()["versions"]["source"] != source_digest(copy)


def test_an_error_is_a_line():
    line = line_of(features="attributes")
    assert line["status"] == "failed"
    assert line["reason"].startswith("HaarPoolError: expected")
    assert line["problem"].startswith("expected ")
    assert ", got " not in line["problem"]
    assert line["task"] == "classification"
    assert line["split_hash"]
    assert line["value"] is None
    assert line["seconds"] >= 0

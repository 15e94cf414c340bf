"""Trials that are interrupted continue from their checkpoints."""

import pytest

from haarpool.comparison.checkpoints import UNFINISHED, open_checkpoints
from haarpool.comparison.learners import NetworkLearner
from haarpool.comparison.table import Cell, Trial
from haarpool.comparison.trials import TrialRunner
from haarpool.datasets import read_graphs
from haarpool.training import train as training
from haarpool.training.loop import Trainer
from paper.learners import MixtureLearner, NestedLearner, PartsLearner

SMALL = {"arch": "GC8-HP-FC8", "epochs": 3, "batch_size": 32, "threads": 1, "monitor": "last"}
KINDS = {"members": 2, "networks": {"one": SMALL, "other": SMALL | {"lr": 0.1}}}
# Settings of a learner and the number of its epochs.
LEARNERS = {
    NetworkLearner: (SMALL | {"ensemble": 2}, 6),
    PartsLearner: (SMALL, 3),
    MixtureLearner: (KINDS, 12),
    NestedLearner: (KINDS | {"final_networks": 2}, 12 + 6),
}


@pytest.fixture(autouse=True)
def _environment(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(training, "SECONDS_PER_CHECKPOINT", 0.0)


@pytest.fixture
def epochs(monkeypatch):
    """Numbers of the epochs that were trained; `epochs.stop_at` interrupts the training."""

    class Epochs(list):
        stop_at = None

    found, run_epoch = Epochs(), Trainer.run_epoch

    def count(trainer, on_step):
        if len(found) == found.stop_at:
            raise KeyboardInterrupt
        found.append(run_epoch(trainer, on_step))
        return found[-1]

    monkeypatch.setattr(Trainer, "run_epoch", count)
    return found


def trial(learner=NetworkLearner, seed=1, **changes):
    settings = LEARNERS[learner][0] | changes
    return Trial(Cell("rings", "some", "random", settings, learner), seed)


def train(one, folder):
    return TrialRunner(read_graphs, "cpu", folder)(one)


def interrupt(one, folder, epochs, number):
    """Train a trial until it is interrupted behind some epochs."""
    epochs.stop_at = number
    with pytest.raises(KeyboardInterrupt):
        train(one, folder)
    assert len(list((folder / UNFINISHED).iterdir())) == 1
    epochs.stop_at = None
    epochs.clear()


def without_times(line):
    times = ("seconds", "training_seconds", "resumed")
    return {name: value for name, value in line.items() if name not in times}


@pytest.mark.parametrize("learner", LEARNERS)
def test_an_interrupted_trial_has_the_same_line(learner, tmp_path, epochs):
    total = LEARNERS[learner][1]
    expected = train(trial(learner), tmp_path)
    assert expected["status"] == "ok", expected["reason"]
    assert "resumed" not in expected
    for number in (1, total // 2, total - 1):
        epochs.clear()
        interrupt(trial(learner), tmp_path, epochs, number)
        line = train(trial(learner), tmp_path)
        assert without_times(line) == without_times(expected)
        assert line["resumed"]
        if learner is not NestedLearner:  # which trains one or two kinds again
            assert len(epochs) == total - number
        assert not any((tmp_path / UNFINISHED).iterdir())


def test_another_trial_starts_at_its_first_epoch(tmp_path, epochs):
    interrupt(trial(), tmp_path, epochs, 2)
    for other in (trial(seed=2), trial(lr=0.5)):
        assert "resumed" not in train(other, tmp_path)
        assert len(epochs) == 6
        epochs.clear()
    assert len(list((tmp_path / UNFINISHED).iterdir())) == 1  # the interrupted one still waits


def test_a_damaged_checkpoint_fails_once(tmp_path, epochs):
    interrupt(trial(), tmp_path, epochs, 2)
    (path,) = (tmp_path / UNFINISHED).glob("*/*/checkpoint.safetensors")
    path.write_bytes(path.read_bytes()[:-9])
    line = train(trial(), tmp_path)
    assert line["status"] == "failed"
    assert "an undamaged checkpoint.safetensors" in line["reason"]
    again = train(trial(), tmp_path)
    assert again["status"] == "ok"
    assert len(epochs) == 6


def test_a_failed_trial_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(Trainer, "evaluate", lambda trainer, output, graphs: (float("nan"), 0.0))
    line = train(trial(), tmp_path)
    assert line["status"] == "failed"
    assert "a finite validation loss" in line["reason"]
    assert line["split_hash"]
    assert not any((tmp_path / UNFINISHED).iterdir())


def test_two_processes_with_the_same_trial_do_not_share_checkpoints(tmp_path):
    with open_checkpoints(tmp_path, "some") as first:
        with open_checkpoints(tmp_path, "some") as second:
            assert second.folder("network") is None
        assert first.path.exists()
    assert not first.path.exists()

"""Ensembles: members of a repeat, trained on the same split, whose predictions are averaged."""

import numpy as np
import pytest
import torch

from haarpool.datasets import read_graphs
from haarpool.tasks import Names, find_task
from haarpool.training import train
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, seed_sequence
from haarpool.training.loop import Trainer
from haarpool.training.results import run_result
from haarpool.training.run import start_run
from haarpool.training.run_folder import RunFolder
from haarpool.training.train import predict_graphs, train_repeat, train_run
from haarpool.training.trained_model import average
from helpers.tolerances import LOOSER

SMALL = {"arch": "GC8-HP-FC8", "epochs": 3, "batch_size": 32, "split": "stratified"}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAARPOOL_CACHE", str(tmp_path / "cache"))


def trained(**settings):
    config = RunConfig(**SMALL | settings)
    return train_run(start_run(read_graphs("rings"), config, ProcessGroup(), progress=False))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HAARPOOL_CACHE", str(tmp_path_factory.mktemp("cache")))
        return trained(ensemble=3, repeats=2)


def without_time(epochs):
    return [epoch._replace(seconds=0.0) for epoch in epochs]


def test_the_first_member_is_the_network_of_a_run_without_ensemble(run):
    alone = trained(repeats=2)
    first = [epoch for epoch in run.epochs if epoch.member == 0]
    assert without_time(first) == without_time(alone.epochs)
    for ours, theirs in zip(run.results, alone.results, strict=True):
        assert ours.members[0] == theirs.members[0]
        assert (theirs.validation, theirs.test) == theirs.members[0][1:3]


def test_members_differ_in_weights_and_shuffling(run):
    order = [(epoch.repeat, epoch.member) for epoch in run.epochs if epoch.epoch == 1]
    assert order == [(repeat, member) for repeat in range(2) for member in range(3)]
    assert len({epoch.train_loss for epoch in run.epochs}) == len(run.epochs)
    trainers = [Trainer(run, 0, member) for member in (1, 2)]
    shuffled = [np.random.default_rng(t._seeds(1)).permutation(99).tolist() for t in trainers]
    assert shuffled[0] != shuffled[1]
    assert len({t._dropout_seed(1) for t in trainers}) == 2


def test_seeds_of_members():
    """Member 0 has the seeds of numpy's own list; no member has those of other numbers."""
    plain = np.random.SeedSequence([3, 1, 4]).generate_state(4)
    assert seed_sequence(3, 1, 4).generate_state(4).tolist() == plain.tolist()
    states = [
        tuple(seed_sequence(*numbers, member=member).generate_state(4).tolist())
        for numbers in ((0, 0), (0, 1), (1, 0), (0, 0, 1), (0, 0, 2), (0, 0, 1, 1))
        for member in range(4)
    ]
    assert len(set(states)) == len(states)


def test_scores_are_those_of_the_mean_prediction(run):
    for repeat, result in enumerate(run.results):
        true = run.graphs.targets[run.splits[repeat].test]
        assert result.test == find_task("classification").score(result.predicted, true)
        assert len(result.members) == 3
    best = run.model_repeat
    graphs = run.graphs.take(run.splits[best].test)
    members = run.model.predict_members(graphs)
    assert members.shape == (3, len(graphs), 2)
    np.testing.assert_array_equal(run.model.predict(graphs), members.mean(axis=0))
    np.testing.assert_allclose(
        members.mean(axis=0), run.results[best].predicted, rtol=LOOSER["other batches"]
    )
    for output, member in zip(members, run.results[best].members, strict=True):
        assert find_task("classification").score(output, graphs.targets) == pytest.approx(
            member.test
        )


def test_results_of_members_and_of_their_mean(run):
    result = run_result(run)
    assert result["ensemble"] == 3
    for part in ("validation", "test"):
        members = result["members"]["scores"]["accuracy"][part]
        expected = [
            [getattr(member, part)["accuracy"] for member in one.members] for one in run.results
        ]
        assert members["each"] == expected
        assert members["mean"] == pytest.approx(np.mean(expected))
        assert members["std"] == pytest.approx(np.std(np.mean(expected, axis=1), ddof=1))
    assert result["members"]["best_epoch"] == [
        [m.best_epoch for m in r.members] for r in run.results
    ]
    assert run_result(trained())["members"] is None


def test_uncertainty_is_the_standard_deviation_over_members():
    members = torch.rand(4, 5, 3, dtype=torch.double).numpy()
    spread = np.sqrt(((members - members.mean(0)) ** 2).sum(0) / 3)
    for task in ("regression", "multilabel"):
        np.testing.assert_allclose(find_task(task).uncertainty(members, Names()), spread)
    chosen = average(members).argmax(1)
    np.testing.assert_allclose(
        find_task("classification").uncertainty(members, Names()),
        spread[np.arange(5), chosen][:, None],
    )


def test_one_repeat_alone_gives_the_same_result(run):
    started = start_run(run.graphs, run.config, ProcessGroup(), progress=False)
    for repeat in (1, 0, 0):  # any order, and again
        alone = train_repeat(started, repeat)
        result, epochs, members = alone.result, alone.epochs, alone.members
        assert result.test == run.results[repeat].test
        assert result.members == run.results[repeat].members
        assert np.array_equal(result.predicted, run.results[repeat].predicted)
        expected = [epoch for epoch in run.epochs if epoch.repeat == repeat]
        assert without_time(epochs) == without_time(expected)
        again = predict_graphs(started, members, started.splits[repeat].test)
        assert np.array_equal(again, result.predicted)
    assert started.results == []


@pytest.mark.parametrize("seconds", [0.0, 1e9])  # between two checkpoints of a member
def test_one_repeat_alone_continues_from_its_checkpoint(run, tmp_path, monkeypatch, seconds):
    monkeypatch.setattr(train, "SECONDS_PER_CHECKPOINT", seconds)
    started = start_run(run.graphs, run.config, ProcessGroup(), progress=False)
    trained, run_epoch = [], Trainer.run_epoch

    def count(trainer, on_step):
        if len(trained) == 5:  # in the last epoch of the second of three members
            raise KeyboardInterrupt
        trained.append(run_epoch(trainer, on_step))
        return trained[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run_epoch", count)
        with pytest.raises(KeyboardInterrupt):
            train_repeat(started, 1, RunFolder(tmp_path))
    alone = train_repeat(started, 1, RunFolder(tmp_path))
    result, epochs, members = alone.result, alone.epochs, alone.members
    expected = [epoch for epoch in run.epochs if epoch.repeat == 1]
    assert without_time(epochs) == without_time(expected)
    # These were not trained again: their times are those of before.
    kept = 5 if seconds == 0 else 3
    assert epochs[:kept] == trained[:kept]
    assert epochs[kept:5] != trained[kept:] or kept == 5
    assert result.members == run.results[1].members
    assert np.array_equal(result.predicted, run.results[1].predicted)
    again = predict_graphs(started, members, started.splits[1].test)
    assert np.array_equal(again, result.predicted)


def test_predictions_of_large_graphs_take_smaller_steps(run, monkeypatch):
    members = train_repeat(run, 0).members
    chosen = run.splits[0].train
    together = predict_graphs(run, members, chosen)
    taken = []
    take = run.batches.take
    monkeypatch.setattr("haarpool.training.minibatches.MAX_ROWS", 200)
    monkeypatch.setattr(run.batches, "take", lambda g: taken.append(g) or take(g))
    np.testing.assert_allclose(
        predict_graphs(run, members, chosen), together, rtol=LOOSER["other batches"]
    )
    assert 1 <= min(map(len, taken)) <= max(map(len, taken)) < 32
    assert np.array_equal(np.concatenate(taken), chosen)  # all members share a minibatch

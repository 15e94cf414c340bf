"""The mean prediction of several kinds of networks: of all, or of those that validation chooses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from haarpool._types import Floats, Ints
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.experiments.lines import Line, network_config
from haarpool.experiments.table import Cell, Trial
from haarpool.training.devices import ProcessGroup, device_name, find_device
from haarpool.training.metrics import SCORES, scores_of
from haarpool.training.run import RepeatResult, Run, start_run
from haarpool.training.train import train_repeat
from haarpool.training.trained_model import average


class TrainedKind(NamedTuple):
    """Networks of one kind, trained on one split.

    Attributes:
        run: Their run.
        result: Scores, and the mean prediction of the test part.
        validation: (n, C) mean prediction of the validation part.
    """

    run: Run
    result: RepeatResult
    validation: Floats


def train_mixture(trial: Trial, graphs: Graphs, split: Split, device: str) -> Line:
    """Train all kinds of networks of a trial; the result is their mean prediction.

    Nothing is chosen, so they train on the training and the validation part together.
    """
    cells, joined = trial.cell.networks, _with_validation(split)
    kinds = {name: _train(cell, trial.seed, graphs, joined, device) for name, cell in cells.items()}
    line = _line(kinds, graphs, split)
    metric = line["metric"]
    alone = {
        name: [one.test[metric] for one in kind.result.members] for name, kind in kinds.items()
    }
    return line | {"networks": alone}


def train_nested(trial: Trial, graphs: Graphs, split: Split, device: str) -> Line:
    """Choose kinds of networks by the validation part, then train these again, on both parts.

    Candidates are all kinds and all mixtures of them. They train on the training part; the one with
    the lowest log loss in the validation part is chosen. (Small parts have few different
    accuracies.) Then "final_networks" networks, or a few more to have as many of each chosen kind,
    train on both parts. Only these predict the test part for the line.
    """
    cells, targets = trial.cell.networks, graphs.targets
    assert targets is not None
    kinds = {name: _train(cell, trial.seed, graphs, split, device) for name, cell in cells.items()}
    predicted = {name: kind.validation for name, kind in kinds.items()}
    candidates = dict(score_mixtures(predicted, targets[split.validation]))
    chosen = min(candidates, key=lambda names: candidates[names]["log_loss"])
    number = ceil(trial.cell.settings["final_networks"] / len(chosen))
    again, joined = dict[str, TrainedKind](), _with_validation(split)
    for name in chosen:
        cell = replace(cells[name], settings={**cells[name].settings, "ensemble": number})
        again[name] = _train(cell, trial.seed, graphs, joined, device)
    return _line(again, graphs, split) | {
        "validation": candidates[chosen]["accuracy"],
        "chosen": dict.fromkeys(chosen, number),
        "candidates": {"+".join(names): scores for names, scores in candidates.items()},
    }


def score_mixtures(
    predicted: Mapping[str, Floats], targets: Ints
) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
    """Yield the names of each kind and of each mixture of kinds, with log loss and accuracy.

    Args:
        predicted: (n, C) probabilities of the classes by each kind.
        targets: (n,) classes.

    Example:
        >>> sure, unsure = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.2, 0.8]])
        >>> scores = dict(score_mixtures({"a": sure, "b": unsure}, np.array([0, 1])))
        >>> min(scores, key=lambda names: scores[names]["log_loss"]), scores["a", "b"]["accuracy"]
        (('b',), 0.5)
    """
    from sklearn.metrics import log_loss

    for number in range(1, len(predicted) + 1):
        for names in combinations(predicted, number):
            mean = average(np.stack([predicted[name] for name in names]))
            loss = log_loss(targets, mean, labels=np.arange(mean.shape[1]))
            accuracy = scores_of("classification", mean, targets)["accuracy"]
            yield names, {"log_loss": float(loss), "accuracy": accuracy}


def _with_validation(split: Split) -> Split:
    """Return the split whose training part is both training and validation part."""
    both = np.concatenate([split.train, split.validation])
    return Split(both, split.validation, split.test)


def _train(cell: Cell, seed: int, graphs: Graphs, split: Split, device: str) -> TrainedKind:
    group = ProcessGroup(device=find_device(device))
    config = replace(network_config(cell), seed=seed)
    if config.monitor != "last":  # validation graphs that are trained on must not choose an epoch
        raise HaarPoolError('monitor="last" for each kind', config.monitor, "change its settings")
    run = start_run(graphs, config, group, progress=False, splits=[split])
    trained = train_repeat(run, 0)
    validation = average(np.stack([member.validation for member in trained.members]))
    return TrainedKind(run, trained.result, validation)


def _line(kinds: Mapping[str, TrainedKind], graphs: Graphs, split: Split) -> dict[str, Any]:
    """Return the result of the mean prediction of some kinds."""
    runs, targets = {name: kind.run for name, kind in kinds.items()}, graphs.targets
    first = next(iter(runs.values()))
    assert targets is not None
    mean = average(np.stack([kind.result.predicted for kind in kinds.values()]))
    scores = scores_of(first.network.task, mean, targets[split.test])
    metric = SCORES[first.network.task][0]
    hashes = {name: None if run.chains is None else run.chains.digest for name, run in runs.items()}
    return {
        "metric": metric, "value": scores[metric], "scores": {"test": scores},
        "chain_hash": next(iter(hashes.values())), "chain_hashes": hashes,
        "device": device_name(first.group.device),
    }  # fmt: skip

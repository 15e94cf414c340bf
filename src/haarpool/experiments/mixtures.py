"""The mean prediction of several kinds of networks: of all, or of those that validation chooses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.experiments.execution import Execution
from haarpool.experiments.lines import Line, network_config
from haarpool.experiments.parts import score_parts
from haarpool.experiments.table import Cell, Trial
from haarpool.tasks import Task
from haarpool.training.devices import ProcessGroup, device_name, find_device
from haarpool.training.run import Run, start_run
from haarpool.training.train import predict_graphs, train_repeat
from haarpool.training.trained_model import average

# The score of the validation part by which nested selection chooses. Small parts have few different
# accuracies.
CRITERIA: Mapping[str, str] = {"accuracy": "log_loss", "mae": "mae"}  # by main score


class TrainedKind(NamedTuple):
    """Networks of one kind, trained on one split.

    Attributes:
        run: Their run.
        trained: The networks with scores, and with predictions for the other parts.
    """

    run: Run
    trained: Run

    @property
    def validation(self) -> Floats:
        """(n, C) mean prediction of the validation part."""
        return average(np.stack([member.validation for member in self.trained.members]))


def train_mixture(trial: Trial, graphs: Graphs, split: Split, execution: Execution) -> Line:
    """Train all kinds of networks of a trial; the result is their mean prediction.

    Nothing is chosen, so they train on the training and the validation part together.
    """
    kinds = {
        name: _train_on_both(cell, trial.seed, graphs, split, execution, name)
        for name, cell in trial.cell.networks.items()
    }
    line = _line(kinds, graphs, split)
    alone = {
        name: [one.test[line["metric"]] for one in kind.trained.result.members]
        for name, kind in kinds.items()
    }
    return line | {"networks": alone}


def train_nested(trial: Trial, graphs: Graphs, split: Split, execution: Execution) -> Line:
    """Choose kinds of networks by the validation part, and predict the test part with these."""
    return _train_nested(trial, graphs, split, execution)[0]


def train_nested_parts(trial: Trial, graphs: Graphs, split: Split, execution: Execution) -> Line:
    """Do what `train_nested` does; score also the training part, and test graphs by size."""
    line, chosen = _train_nested(trial, graphs, split, execution)
    train = [predict_graphs(x.run, x.trained.members, split.train) for x in chosen]
    test = average(np.stack([kind.trained.result.predicted for kind in chosen]))
    task = chosen[0].run.network.task
    line["parts"] = score_parts(line, task, graphs, split, average(np.stack(train)), test)
    return line


def _train_nested(
    trial: Trial, graphs: Graphs, split: Split, execution: Execution
) -> tuple[Line, list[TrainedKind]]:
    """Return the line of nested selection, and the networks that predict the test part for it.

    Candidates are all kinds and all mixtures of them. They train on the training part; the one with
    the lowest loss in the validation part is chosen. With the setting "final_networks" that many
    networks, or a few more to have as many of each chosen kind, then train on both parts.
    """
    cells, targets = trial.cell.networks, graphs.targets
    assert targets is not None
    kinds = {
        name: _train(cell, trial.seed, graphs, split, execution, name)
        for name, cell in cells.items()
    }
    task = next(iter(kinds.values())).run.network.task
    predicted = {name: kind.validation for name, kind in kinds.items()}
    candidates = dict(score_mixtures(predicted, targets[split.validation], task))
    names = min(candidates, key=lambda names: candidates[names][CRITERIA[task.scores[0].name]])
    chosen = {name: kinds[name] for name in names}
    if total := trial.cell.settings.get("final_networks"):
        ensemble = {"ensemble": ceil(total / len(names))}
        for name in names:
            cell = replace(cells[name], settings={**cells[name].settings, **ensemble})
            chosen[name] = _train_on_both(cell, trial.seed, graphs, split, execution, name)
    line = _line(chosen, graphs, split)
    line |= {
        "validation": candidates[names][line["metric"]],
        "chosen": {name: len(kind.trained.members) for name, kind in chosen.items()},
        "candidates": {"+".join(names): scores for names, scores in candidates.items()},
    }
    return line, list(chosen.values())


def score_mixtures(
    predicted: Mapping[str, Floats], targets: NDArray[Any], task: Task
) -> Iterator[tuple[tuple[str, ...], dict[str, float]]]:
    """Yield the names of each kind and of each mixture of kinds, with its scores.

    Args:
        predicted: (n, C) probabilities of the classes, or (n, T) values, by each kind.
        targets: (n,) classes, or (n, T) values.
        task: The task.

    Example:
        >>> from haarpool.tasks import find_task
        >>> sure, unsure = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.2, 0.8]])
        >>> predicted = {"a": sure, "b": unsure}
        >>> scores = dict(score_mixtures(predicted, np.array([0, 1]), find_task("classification")))
        >>> min(scores, key=lambda names: scores[names]["log_loss"]), scores["a", "b"]["accuracy"]
        (('b',), 0.5)
    """
    from sklearn.metrics import log_loss

    main = task.scores[0].name
    for number in range(1, len(predicted) + 1):
        for names in combinations(predicted, number):
            mean = average(np.stack([predicted[name] for name in names]))
            scores = {main: task.main_score(mean, targets)}
            if CRITERIA[main] == "log_loss":
                loss = log_loss(targets, mean, labels=np.arange(mean.shape[1]))
                scores = {"log_loss": float(loss)} | scores
            yield names, scores


def _with_validation(split: Split) -> Split:
    """Return the split whose training part is both training and validation part."""
    both = np.concatenate([split.train, split.validation])
    return Split(both, split.validation, split.test)


def _train_on_both(
    cell: Cell, seed: int, graphs: Graphs, split: Split, execution: Execution, name: str
) -> TrainedKind:
    """Train on the training and the validation part together."""
    monitor = network_config(cell).monitor
    if monitor != "last":  # validation graphs that are trained on must not choose an epoch
        raise HaarPoolError('monitor="last" for each kind', monitor, "change its settings")
    both = _with_validation(split)
    return _train(cell, seed, graphs, both, execution, f"{name}, both parts")


def _train(
    cell: Cell, seed: int, graphs: Graphs, split: Split, execution: Execution, name: str
) -> TrainedKind:
    group = ProcessGroup(device=find_device(execution.device))
    config = replace(network_config(cell), seed=seed)
    run = start_run(graphs, config, group, progress=False, splits=[split])
    return TrainedKind(run, train_repeat(run, 0, execution.checkpoints(name)))


def _line(kinds: Mapping[str, TrainedKind], graphs: Graphs, split: Split) -> dict[str, Any]:
    """Return the result of the mean prediction of some kinds."""
    runs, targets = {name: kind.run for name, kind in kinds.items()}, graphs.targets
    first = next(iter(runs.values()))
    assert targets is not None
    mean = average(np.stack([kind.trained.result.predicted for kind in kinds.values()]))
    task = first.network.task
    scores, metric = task.score(mean, targets[split.test]), task.scores[0].name
    hashes = {name: None if run.chains is None else run.chains.digest for name, run in runs.items()}
    return {
        "metric": metric, "value": scores[metric], "scores": {"test": scores},
        "chain_hash": next(iter(hashes.values())), "chain_hashes": hashes,
        "best_epochs": {
            name: [member.best_epoch for member in kind.trained.members]
            for name, kind in kinds.items()
        },
        "device": device_name(first.group.device),
    }  # fmt: skip

"""Mixtures of networks, and scores that only a table of the paper has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._numbers import as_json
from haarpool._types import Floats
from haarpool.comparison.checkpoints import Checkpoints
from haarpool.comparison.learners import (
    Learner,
    Line,
    NetworkLearner,
    TrainedNetworks,
    network_config,
)
from haarpool.comparison.table import Cell
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.tasks import Task
from haarpool.training.devices import ProcessGroup, device_name, find_device
from haarpool.training.run import start_run
from haarpool.training.train import train_repeat
from haarpool.training.trained_model import average

# The score of the validation part by which nested selection chooses. Small parts have few different
# accuracies.
CRITERIA: Mapping[str, str] = {"accuracy": "log_loss", "mae": "mae"}  # by main score


class HistoryLearner(NetworkLearner):
    """Trains a network; the line has its losses and errors over the epochs, for a figure."""

    def more(self, line: Line, networks: TrainedNetworks, split: Split) -> Line:
        """Return loss and validation score of all epochs."""
        epochs = networks.trained.epochs
        history = {
            "train_loss": [epoch.train_loss for epoch in epochs],
            "validation": [epoch.validation_score for epoch in epochs],
        }
        return {"history": as_json(history, digits=5)}


class PartsLearner(NetworkLearner):
    """Trains a network; the line has scores of all parts, of test graphs also by size."""

    def more(self, line: Line, networks: TrainedNetworks, split: Split) -> Line:
        """Return the scores of all parts."""
        return part_scores(line, [networks], split)


class MixtureLearner(Learner):
    """Trains networks of several kinds; the result is their mean prediction.

    Nothing is chosen, so they train on the training and the validation part together. The setting
    "networks" has the settings of each kind, "members" the number of networks of each.
    """

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train all kinds of networks of a trial."""
        split = splits[seed]
        kinds = {
            name: self._train_on_both(cell, seed, split, checkpoints, name)
            for name, cell in kinds_of(self.cell).items()
        }
        line = self._line(kinds, split)
        alone = {
            name: [one.test[line["metric"]] for one in kind.trained.result.members]
            for name, kind in kinds.items()
        }
        return line | {"networks": alone}

    @classmethod
    def config(cls, cell: Cell) -> dict[str, Any]:
        """Return the settings of each kind."""
        networks = {name: NetworkLearner.config(one) for name, one in kinds_of(cell).items()}
        return networks | _others(cell)

    @classmethod
    def has_settings(cls, made: Mapping[str, Any], cell: Cell) -> bool:
        """Return whether a line was made with the settings of a cell."""
        kinds = kinds_of(cell)
        others = {name: value for name, value in made.items() if name not in kinds}
        return (
            kinds.keys() <= made.keys()
            and others == _others(cell)
            and all(NetworkLearner.has_settings(made[name], one) for name, one in kinds.items())
        )

    def _train_on_both(
        self, cell: Cell, seed: int, split: Split, checkpoints: Checkpoints, name: str
    ) -> TrainedNetworks:
        """Train on the training and the validation part together."""
        monitor = network_config(cell).monitor
        if monitor != "last":  # validation graphs that are trained on must not choose an epoch
            raise HaarPoolError('monitor="last" for each kind', monitor, "change its settings")
        both = split._replace(train=np.concatenate([split.train, split.validation]))
        return self._train(cell, seed, both, checkpoints, f"{name}, both parts")

    def _train(
        self, cell: Cell, seed: int, split: Split, checkpoints: Checkpoints, name: str
    ) -> TrainedNetworks:
        group = ProcessGroup(device=find_device(self.device))
        config = replace(network_config(cell), seed=seed)
        run = start_run(self.graphs, config, group, progress=False, splits=[split])
        return TrainedNetworks(run, train_repeat(run, 0, checkpoints.folder(name)))

    def _line(self, kinds: Mapping[str, TrainedNetworks], split: Split) -> Line:
        """Return the result of the mean prediction of some kinds."""
        first = next(iter(kinds.values()))
        assert self.graphs.targets is not None
        mean = average(np.stack([kind.test for kind in kinds.values()]))
        scores = first.task.score(mean, self.graphs.targets[split.test])
        metric = first.task.scores[0].name
        chains = {name: kind.run.chains for name, kind in kinds.items()}
        hashes = {name: None if one is None else one.digest for name, one in chains.items()}
        return {
            "metric": metric, "value": scores[metric], "scores": {"test": scores},
            "chain_hash": next(iter(hashes.values())), "chain_hashes": hashes,
            "best_epochs": {
                name: [member.best_epoch for member in kind.trained.members]
                for name, kind in kinds.items()
            },
            "device": device_name(first.run.group.device),
        }  # fmt: skip


class NestedLearner(MixtureLearner):
    """Chooses kinds of networks by the validation part, and predicts the test part with these.

    Candidates are all kinds and all mixtures of them. They train on the training part; the one with
    the lowest loss in the validation part is chosen. With the setting "final_networks" that many
    networks, or a few more to have as many of each chosen kind, then train on both parts.
    """

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train, choose, and train again."""
        cells, split, targets = kinds_of(self.cell), splits[seed], self.graphs.targets
        assert targets is not None
        kinds = {
            name: self._train(cell, seed, split, checkpoints, name) for name, cell in cells.items()
        }
        task = next(iter(kinds.values())).task
        predicted = {name: kind.validation for name, kind in kinds.items()}
        candidates = dict(score_mixtures(predicted, targets[split.validation], task))
        names = min(candidates, key=lambda names: candidates[names][CRITERIA[task.scores[0].name]])
        chosen = {name: kinds[name] for name in names}
        if total := self.cell.settings.get("final_networks"):
            ensemble = {"ensemble": ceil(total / len(names))}
            for name in names:
                cell = replace(cells[name], settings={**cells[name].settings, **ensemble})
                chosen[name] = self._train_on_both(cell, seed, split, checkpoints, name)
        line = self._line(chosen, split)
        line |= {
            "validation": candidates[names][line["metric"]],
            "chosen": {name: len(kind.trained.members) for name, kind in chosen.items()},
            "candidates": {"+".join(names): scores for names, scores in candidates.items()},
        }
        return line | self.more(line, list(chosen.values()), split)

    def more(self, line: Line, networks: Sequence[TrainedNetworks], split: Split) -> Line:
        """Return what else the line says."""
        return {}


class NestedPartsLearner(NestedLearner):
    """Nested selection; the line has scores of all parts, of test graphs also by size."""

    def more(self, line: Line, networks: Sequence[TrainedNetworks], split: Split) -> Line:
        """Return the scores of all parts."""
        return part_scores(line, networks, split)


def kinds_of(cell: Cell) -> dict[str, Cell]:
    """Return a cell for each kind of networks of a mixture, each with several members."""
    members = {"ensemble": cell.settings["members"]}
    return {
        name: replace(cell, settings={**settings, **members}, learner=NetworkLearner)
        for name, settings in cell.settings["networks"].items()
    }


def _others(cell: Cell) -> dict[str, Any]:
    """Return the settings of a mixture beside its kinds, such as "final_networks"."""
    of_kinds = ("networks", "members")
    return {name: value for name, value in cell.settings.items() if name not in of_kinds}


def score_mixtures(
    predicted: Mapping[str, Floats], targets: NDArray[np.generic], task: Task
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
        >>> task = find_task("classification")
        >>> scores = dict(score_mixtures(predicted, np.array([0, 1]), task))
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


def part_scores(line: Line, networks: Sequence[TrainedNetworks], split: Split) -> Line:
    """Return the scores of all parts, of test graphs also by size.

    Args:
        line: The line, with its validation and test scores.
        networks: Networks whose mean prediction is scored.
        split: The split. Large graphs are larger than all of the training part.
    """
    graphs, task = networks[0].run.graphs, networks[0].task
    targets, sizes = graphs.targets, graphs.sizes
    assert targets is not None
    train = average(np.stack([one.predict(split.train) for one in networks]))
    test = average(np.stack([one.test for one in networks]))
    is_large = sizes[split.test] > sizes[split.train].max()
    predicted = {
        "train": (train, split.train),
        "original sizes": (test[~is_large], split.test[~is_large]),
        "large": (test[is_large], split.test[is_large]),
    }
    scores = {
        part: task.score(output, targets[part_graphs])[line["metric"]]
        for part, (output, part_graphs) in predicted.items()
        if len(part_graphs)
    }
    return {"parts": {"validation": line["validation"], "test": line["value"]} | scores}

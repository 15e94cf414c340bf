"""What trains the trials of a cell: networks, mixtures of networks, and models of scikit-learn.

A learner is made once for a cell. It holds what all trials of the cell share, such as minibatches
and chains.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import ceil
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from haarpool._numbers import as_json
from haarpool._types import Floats, Ints
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.experiments.checkpoints import Checkpoints
from haarpool.experiments.lines import Line, network_config
from haarpool.experiments.table import Cell
from haarpool.tasks import Task
from haarpool.training.devices import ProcessGroup, device_name, find_device
from haarpool.training.run import Run, start_run
from haarpool.training.train import predict_graphs, train_repeat
from haarpool.training.trained_model import average

# The score of the validation part by which nested selection chooses. Small parts have few different
# accuracies.
CRITERIA: Mapping[str, str] = {"accuracy": "log_loss", "mae": "mae"}  # by main score


class Learner(Protocol):
    """Trains the trials of a cell."""

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train on a split and return what its line says about the result.

        Args:
            seed: Number of the split.
            splits: The splits up to this one.
            checkpoints: Checkpoints of the trial.
        """


class TrainedNetworks(NamedTuple):
    """Networks of one kind, trained on one split.

    Attributes:
        run: Their run.
        trained: The networks with scores, and with predictions for the other parts.
    """

    run: Run
    trained: Run

    @property
    def task(self) -> Task:
        """The task."""
        return self.run.network.task

    @property
    def validation(self) -> Floats:
        """(n, C) mean prediction of the validation part."""
        return average(np.stack([member.validation for member in self.trained.members]))

    @property
    def test(self) -> Floats:
        """(n, C) mean prediction of the test part."""
        return self.trained.result.predicted

    def predict(self, graphs: Ints) -> Floats:
        """Return the (n, C) mean prediction of some graphs of the dataset."""
        return predict_graphs(self.run, self.trained.members, graphs)


@dataclass
class NetworkLearner:
    """Trains a network; its run serves all trials of the cell."""

    cell: Cell
    graphs: Graphs
    device: str

    @cached_property
    def run(self) -> Run:
        """The run, before any training: features and chains do not depend on the split."""
        group = ProcessGroup(device=find_device(self.device))
        return start_run(self.graphs, network_config(self.cell), group, progress=False)

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train the network of a trial."""
        run, start = replace(self.run, splits=splits), time.perf_counter()
        networks = TrainedNetworks(run, train_repeat(run, seed, checkpoints.folder("network")))
        result, epochs = networks.trained.result, networks.trained.epochs
        metric = networks.task.scores[0].name
        line: Line = {
            "metric": metric,
            "value": result.test[metric],
            "validation": result.validation[metric],
            "epoch": result.best_epoch,
            "chain_hash": _chain_hash(run),
            "scores": {"validation": result.validation, "test": result.test},
            "epochs": len(epochs),
            "training_seconds": round(time.perf_counter() - start, 2),
            "num_parameters": sum(p.numel() for p in run.network.parameters()),
            "device": device_name(run.group.device),
        }
        if not networks.task.reads_classes:  # for the figure of the paper
            history = {
                "train_loss": [epoch.train_loss for epoch in epochs],
                "validation": [epoch.validation_score for epoch in epochs],
            }
            line["history"] = as_json(history, digits=5)
        if len(result.members) > 1:
            line["members"] = [member.test[metric] for member in result.members]
        return line | _part_scores(self.cell, line, [networks], splits[seed])


@dataclass
class MixtureLearner:
    """Trains networks of several kinds; the result is their mean prediction.

    Nothing is chosen, so they train on the training and the validation part together.
    """

    cell: Cell
    graphs: Graphs
    device: str

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train all kinds of networks of a trial."""
        split = splits[seed]
        kinds = {
            name: self._train_on_both(cell, seed, split, checkpoints, name)
            for name, cell in self.cell.networks.items()
        }
        line = self._line(kinds, split)
        alone = {
            name: [one.test[line["metric"]] for one in kind.trained.result.members]
            for name, kind in kinds.items()
        }
        return line | {"networks": alone}

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
        hashes = {name: _chain_hash(kind.run) for name, kind in kinds.items()}
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
        cells, split, targets = self.cell.networks, splits[seed], self.graphs.targets
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
        return line | _part_scores(self.cell, line, list(chosen.values()), split)


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


def _chain_hash(run: Run) -> str | None:
    return None if run.chains is None else run.chains.digest


def _part_scores(
    cell: Cell, line: Line, networks: Sequence[TrainedNetworks], split: Split
) -> dict[str, dict[str, float]]:
    """Return the scores of all parts, of test graphs also by size; {} for a cell without them.

    Args:
        cell: The cell.
        line: Its validation and test scores.
        networks: Networks whose mean prediction is scored.
        split: The split. Large graphs are larger than all of the training part.
    """
    if not cell.with_parts:
        return {}
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

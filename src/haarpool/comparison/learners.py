"""What trains the trials of a cell; here, networks.

A learner is made once for a cell. It holds what all trials of the cell share, such as minibatches
and chains.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from haarpool._types import Floats, Ints
from haarpool.comparison.checkpoints import Checkpoints
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.nn.networks.network import num_weights
from haarpool.tasks import Task
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, device_name, find_device
from haarpool.training.run import Run, start_run
from haarpool.training.train import predict_graphs, train_repeat
from haarpool.training.trained_model import average

if TYPE_CHECKING:
    from haarpool.comparison.table import Cell

Line = dict[str, Any]  # the result of a trial


@dataclass
class Learner(ABC):
    """Trains the trials of a cell.

    Attributes:
        cell: The cell.
        graphs: Its dataset.
        device: Name of the device.
    """

    cell: Cell
    graphs: Graphs
    device: str

    @abstractmethod
    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train on a split and return what its line says about the result.

        Args:
            seed: Number of the split.
            splits: The splits up to this one.
            checkpoints: Checkpoints of the trial.
        """

    @classmethod
    def config(cls, cell: Cell) -> dict[str, Any]:
        """Return the settings of a cell as plain values."""
        return dict(cell.settings)

    @classmethod
    def has_settings(cls, made: Mapping[str, Any], cell: Cell) -> bool:
        """Return whether the settings of a line are those of a cell."""
        return made == cls.config(cell)


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


class NetworkLearner(Learner):
    """Trains a network; its run serves all trials of the cell."""

    @cached_property
    def run(self) -> Run:
        """The run, before any training: features and chains do not depend on the split."""
        group = ProcessGroup(device=find_device(self.device))
        return start_run(self.graphs, network_config(self.cell), group, progress=False)

    def train(self, seed: int, splits: list[Split], checkpoints: Checkpoints) -> Line:
        """Train the network of a trial."""
        run, start = replace(self.run, splits=splits), time.perf_counter()
        networks = TrainedNetworks(run, train_repeat(run, seed, checkpoints.folder("network")))
        result, metric = networks.trained.result, networks.task.scores[0].name
        line: Line = {
            "metric": metric,
            "value": result.test[metric],
            "validation": result.validation[metric],
            "epoch": result.best_epoch,
            "chain_hash": None if run.chains is None else run.chains.digest,
            "scores": {"validation": result.validation, "test": result.test},
            "epochs": len(networks.trained.epochs),
            "training_seconds": round(time.perf_counter() - start, 2),
            "num_parameters": num_weights(run.network),
            "device": device_name(run.group.device),
        }
        if len(result.members) > 1:
            line["members"] = [member.test[metric] for member in result.members]
        return line | self.more(line, networks, splits[seed])

    def more(self, line: Line, networks: TrainedNetworks, split: Split) -> Line:
        """Return what else the line says.

        Args:
            line: What it says already.
            networks: The trained networks.
            split: The split.
        """
        return {}

    @classmethod
    def config(cls, cell: Cell) -> dict[str, Any]:
        """Return all settings of the run."""
        return network_config(cell).to_json()

    @classmethod
    def has_settings(cls, made: Mapping[str, Any], cell: Cell) -> bool:
        """Return whether a line was made with the settings of a cell.

        Settings that an older version did not have, or that a line leaves out, count as their
        defaults.
        """
        try:
            config, asked = RunConfig.from_json(made), network_config(cell)
            same_chains = config.recipe() == asked.recipe()
            return same_chains and bool(replace(config, chain={}) == replace(asked, chain={}))
        except (HaarPoolError, TypeError, AttributeError):
            return False


def network_config(cell: Cell) -> RunConfig:
    """Return the settings of a cell; a trial is one repeat of it.

    `haarpool train` with these settings and several repeats trains the same networks.
    """
    return RunConfig(**{**cell.settings, "split": cell.split_rule})

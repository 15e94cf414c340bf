"""From a trial to its line: train on one split, and say what came out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import haarpool
from haarpool._versions import find_versions
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split, make_splits, num_folds
from haarpool.experiments.checkpoints import open_checkpoints
from haarpool.experiments.classical import CsmLearner, RegressionLearner
from haarpool.experiments.learners import Learner, MixtureLearner, NestedLearner, NetworkLearner
from haarpool.experiments.lines import Line, network_config
from haarpool.experiments.table import PROTOCOLS, Cell, Trial
from haarpool.training.devices import num_threads

LEARNERS: Mapping[str, Callable[[Cell, Graphs, str], Learner]] = {
    "network": NetworkLearner,
    "mixture": MixtureLearner,
    "nested": NestedLearner,
    "csm": CsmLearner,
    "classical": RegressionLearner,
}
SPLIT_SEED = 0
_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "grakel")


class TrialRunner:
    """Trains trials one after the other, on one thread.

    It keeps the dataset and the learner of the last trial, since the trials of a cell follow each
    other.

    Args:
        device: Name of the device.
        root: Folder of datasets.
        results: Folder of results. A trial that was killed continues from its checkpoints there; by
            default there are none.
    """

    def __init__(self, device: str, root: str | None = None, results: Path | None = None) -> None:
        self.device, self.root, self.results = device, root, results
        self._dataset: tuple[str, Graphs] | None = None
        self._learner: tuple[Cell, Learner] | None = None

    def __call__(self, trial: Trial) -> Line:
        """Train a trial and return its line; an error becomes a line with its reason."""
        cell, start, line = trial.cell, time.perf_counter(), new_line(trial, self.device)
        identity = [cell.key, trial.seed, line["config"], line["versions"], self.device, self.root]
        with open_checkpoints(self.results, identity) as checkpoints, num_threads(1):
            if checkpoints:
                line["resumed"] = True  # so `seconds` are those since it was resumed
            try:
                graphs = self._read(cell.dataset)
                splits = splits_of(trial, graphs)
                line["split_hash"] = splits[trial.seed].digest()
                line["sizes"] = [len(part) for part in splits[trial.seed]]
                line |= self._learner_of(cell, graphs).train(trial.seed, splits, checkpoints)
                if math.isfinite(line["value"]):
                    line["status"] = "ok"
                else:
                    line["reason"] = f"{line['metric']} of the test part is {line['value']}"
            except Exception as error:  # the other trials still run
                line["reason"] = describe(error)
        line["seconds"] = round(time.perf_counter() - start, 2)
        return line

    def _read(self, dataset: str) -> Graphs:
        if self._dataset is None or self._dataset[0] != dataset:
            self._dataset = self._learner = None  # before the next one takes memory
            self._dataset = dataset, read_graphs(dataset, self.root)
        return self._dataset[1]

    def _learner_of(self, cell: Cell, graphs: Graphs) -> Learner:
        if self._learner is None or self._learner[0] != cell:
            self._learner = None
            self._learner = cell, LEARNERS[cell.learner](cell, graphs, self.device)
        return self._learner[1]


def new_line(trial: Trial, device: str) -> Line:
    """Return the line of a trial that did not end; what is measured is `None`."""
    cell = trial.cell
    return {
        "dataset": cell.dataset, "method": cell.method, "protocol": cell.protocol,
        "seed": trial.seed, "status": "failed", "reason": None, "metric": None, "value": None,
        "validation": None, "epoch": None, "split_hash": None, "chain_hash": None, "seconds": None,
        "config": config_of(cell), "versions": _versions(), "device": device,
    }  # fmt: skip


def describe(error: Exception) -> str:
    """Return an error in one line."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def config_of(cell: Cell) -> dict[str, Any]:
    """Return the settings of a cell as plain values; of several networks, those of each."""
    if networks := cell.networks:
        return {name: config_of(one) for name, one in networks.items()} | cell.mixture_settings
    return network_config(cell).to_json() if cell.is_network else dict(cell.settings)


@cache
def _versions() -> dict[str, str]:
    """Return the versions of everything that the numbers depend on, and a hash of this package."""
    found = find_versions(*_PACKAGES)
    source = source_digest(Path(haarpool.__file__).parent)
    return {name: one for name, one in found.items() if one} | {"source": source}


def source_digest(folder: Path) -> str:
    """Return a hash of the Python files of a package, which change between two versions."""
    digest = sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def splits_of(trial: Trial, graphs: Graphs) -> list[Split]:
    """Return the splits up to that of a trial: the same for all methods and numbers of repeats."""
    rule = PROTOCOLS[trial.cell.protocol]
    repeats = trial.seed // (num_folds(rule) or 1) + 1
    return make_splits(rule, graphs, SPLIT_SEED, repeats)

"""From a trial to its line: train on one split, and say what came out."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from haarpool import __version__
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split, make_splits, num_folds
from haarpool.experiments.classical import score_regression
from haarpool.experiments.csm import score_csm
from haarpool.experiments.execution import Execution, open_execution
from haarpool.experiments.lines import Line, network_config
from haarpool.experiments.mixtures import train_mixture, train_nested, train_nested_parts
from haarpool.experiments.parts import score_parts
from haarpool.experiments.table import PROTOCOLS, REPEATS, Cell, Trial
from haarpool.training.devices import ProcessGroup, device_name, find_device
from haarpool.training.run import Run, start_run
from haarpool.training.train import predict_graphs, train_repeat

Trainer = Callable[[Trial, Graphs, Split, Execution], Line]
SPLIT_SEED = 0
_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "grakel")


def train_trial(trial: Trial, root: str | None, device: str, results: Path | None = None) -> Line:
    """Train a trial and return its line; an error becomes a line with its reason.

    Args:
        trial: The trial.
        root: Folder of datasets.
        device: Name of the device.
        results: Folder of results. A trial that was killed continues from its checkpoints there; by
            default there are none.
    """
    cell, start, line = trial.cell, time.perf_counter(), new_line(trial, device)
    identity = [cell.key, trial.seed, line["config"], line["versions"], device, root]
    with open_execution(device, results, identity) as execution:
        if execution.is_resumed:
            line["resumed"] = True  # so `seconds` are those since it was resumed
        try:
            graphs = _graphs(cell.dataset, root)
            split = split_of(trial, graphs)
            line["split_hash"] = split.digest()
            line["sizes"] = [len(part) for part in split]
            line |= TRAINERS[cell.trainer](trial, graphs, split, execution)
            if math.isfinite(line["value"]):
                line["status"] = "ok"
            else:
                line["reason"] = f"{line['metric']} of the test part is {line['value']}"
        except Exception as error:  # the other trials still run
            line["reason"] = describe(error)
    line["seconds"] = round(time.perf_counter() - start, 2)
    return line


def new_line(trial: Trial, device: str) -> Line:
    """Return the line of a trial that did not end; what is measured is `None`."""
    cell = trial.cell
    return {
        "dataset": cell.dataset, "method": cell.method, "protocol": cell.protocol,
        "seed": trial.seed, "status": "failed", "reason": None, "metric": None, "value": None,
        "validation": None, "epoch": None, "split_hash": None, "chain_hash": None, "seconds": None,
        "config": config_of(cell), "versions": versions(), "device": device,
    }  # fmt: skip


def describe(error: Exception) -> str:
    """Return an error in one line."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def config_of(cell: Cell) -> dict[str, Any]:
    """Return the settings of a cell as plain values; of several networks, those of each."""
    if networks := cell.networks:
        return {name: config_of(one) for name, one in networks.items()} | cell.mixture_settings
    if not cell.is_network:
        return dict(cell.settings)
    config: dict[str, Any] = network_config(cell).to_json()
    return config


@cache
def versions() -> dict[str, str]:
    """Return the versions of everything that the numbers depend on, and a hash of this package."""
    found = {"haarpool": __version__, "source": _source(), "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _source() -> str:
    """Return a hash of the Python files of this package, which change between two versions."""
    folder, digest = Path(__file__).parents[1], sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def split_of(trial: Trial, graphs: Graphs) -> Split:
    """Return the split of a trial: the same for all methods, and for any number of repeats."""
    rule = PROTOCOLS[trial.cell.protocol]
    repeats = trial.seed // (num_folds(rule) or 1) + 1
    return make_splits(rule, graphs, SPLIT_SEED, repeats)[trial.seed]


@lru_cache(maxsize=1)
def _graphs(dataset: str, root: str | None) -> Graphs:
    return read_graphs(dataset, root)


_last: list[tuple[Cell, str, Run]] = []  # the last run: its data serve all trials of a cell


def _run(cell: Cell, seed: int, graphs: Graphs, device: str) -> Run:
    for last, its_device, run in _last:
        same = (last, its_device) == (cell, device) and run.graphs is graphs
        if same and seed < len(run.splits):
            return run
    _last.clear()  # before the next one takes memory
    config, rule = network_config(cell), PROTOCOLS[cell.protocol]
    repeats = max(seed + 1, REPEATS) // (num_folds(rule) or 1) + 1
    splits = make_splits(rule, graphs, SPLIT_SEED, repeats)
    group = ProcessGroup(device=find_device(device))
    run = start_run(graphs, config, group, progress=False, splits=splits)
    _last.append((cell, device, run))
    return run


def train_network(trial: Trial, graphs: Graphs, split: Split, execution: Execution) -> Line:
    """Train the network of a trial."""
    return _network_line(trial, graphs, execution)[0]


def train_network_parts(trial: Trial, graphs: Graphs, split: Split, execution: Execution) -> Line:
    """Train the network of a trial; score also the training part, and test graphs by size."""
    line, run, trained = _network_line(trial, graphs, execution)
    train = predict_graphs(run, trained.members, split.train)
    test = trained.result.predicted
    line["parts"] = score_parts(line, run.network.task, graphs, split, train, test)
    return line


def _network_line(trial: Trial, graphs: Graphs, execution: Execution) -> tuple[Line, Run, Run]:
    run = _run(trial.cell, trial.seed, graphs, execution.device)
    start = time.perf_counter()
    trained = train_repeat(run, trial.seed, execution.checkpoints("network"))
    result, epochs = trained.result, trained.epochs
    metric = run.network.task.scores[0].name
    line: Line = {
        "metric": metric,
        "value": result.test[metric],
        "validation": result.validation[metric],
        "epoch": result.best_epoch,
        "chain_hash": None if run.chains is None else run.chains.digest,
        "scores": {"validation": result.validation, "test": result.test},
        "epochs": len(epochs),
        "training_seconds": round(time.perf_counter() - start, 2),
        "num_parameters": sum(p.numel() for p in run.network.parameters()),
        "device": device_name(run.group.device),
    }
    if not run.network.task.reads_classes:  # for the figure of the paper
        line["history"] = {
            "train_loss": [float(f"{epoch.train_loss:.5g}") for epoch in epochs],
            "validation": [float(f"{epoch.validation_score:.5g}") for epoch in epochs],
        }
    if len(result.members) > 1:
        line["members"] = [member.test[metric] for member in result.members]
    return line, run, trained


def train_csm(trial: Trial, graphs: Graphs, split: Split, execution: Execution) -> Line:
    """Score the subgraph matching kernel with an SVM."""
    scores = score_csm(graphs, split, **trial.cell.settings)
    return {
        "metric": "accuracy",
        "value": scores.test,
        "validation": scores.validation,
        "scores": {"C": scores.C},
        "device": "cpu",
    }


def train_regression(trial: Trial, graphs: Graphs, split: Split, execution: Execution) -> Line:
    """Score a regression model of scikit-learn."""
    scores = score_regression(graphs, split, **trial.cell.settings, seed=trial.seed)
    return {
        "metric": "mae",
        "value": scores.test,
        "validation": scores.validation,
        "scores": {"parameters": scores.parameters},
        "device": "cpu",
    }


TRAINERS: Mapping[str, Trainer] = {
    "network": train_network,
    "network_parts": train_network_parts,
    "mixture": train_mixture,
    "nested": train_nested,
    "nested_parts": train_nested_parts,
    "csm": train_csm,
    "classical": train_regression,
}

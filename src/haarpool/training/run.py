"""A run: all repeats of one configuration on one dataset, from its start to its scores."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
import torch
import torch_geometric
from numpy.typing import NDArray

import haarpool
from haarpool._types import Task
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split, make_splits, num_folds
from haarpool.datasets.summary import summary
from haarpool.errors import HaarPoolError, HaarPoolWarning
from haarpool.nn import Network, build_model
from haarpool.training.config import RunConfig
from haarpool.training.devices import Team
from haarpool.training.loop import Epoch, seeded, uses_bfloat16
from haarpool.training.metrics import SCORES
from haarpool.training.minibatches import Minibatches
from haarpool.training.trained_model import ChainSummary, TrainedModel, prepare

Scores = dict[str, float]
_MODULES = (haarpool, torch, torch_geometric, np, scipy)  # whose versions are kept


class Outcome(NamedTuple):
    """What a repeat gave: its best epoch, and the scores of that."""

    best_epoch: int
    validation: Scores
    test: Scores
    predicted: NDArray[np.float64]  # (n, ...) probabilities or values for the test part


@dataclass
class Run:
    """A run while it goes, and when it is complete.

    Attributes:
        graphs: the dataset.
        config: all settings.
        encoding: of the features.
        splits: one per repeat.
        batches: of all graphs.
        chains: what is worth knowing of the chains; None for a network without.
        epochs: of all repeats so far.
        outcomes: of the repeats that are done.
        trained: the model of the repeat with the best validation score so far.
        model_of: the number of that repeat.
    """

    graphs: Graphs
    config: RunConfig
    encoding: Encoding
    splits: list[Split]
    team: Team
    batches: Minibatches
    chains: ChainSummary | None
    epochs: list[Epoch] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    trained: TrainedModel | None = None
    model_of: int = -1

    def result(self) -> dict[str, Any]:
        """The scores of all repeats, as plain data."""
        task = task_of(self.graphs)
        # Some scores are not defined for a part that holds one class, or one graph.
        parts = [part for o in self.outcomes for part in (o.validation, o.test)]
        names = [name for name in SCORES[task] if all(name in part for part in parts)]
        return {
            "dataset": self.graphs.name,
            "arch": self.config.arch,
            "metric": SCORES[task][0],
            "repeats": len(self.outcomes),
            "folds": num_folds(self.config.split),
            "scores": {
                name: {
                    part: _statistics([getattr(o, part)[name] for o in self.outcomes])
                    for part in ("validation", "test")
                }
                for name in names
            },
            "best_epoch": [outcome.best_epoch for outcome in self.outcomes],
            "model_of_repeat": self.model_of,
            "graphs": {p: [len(getattr(s, p)) for s in self.splits] for p in Split._fields},
            "seconds": sum(epoch.seconds for epoch in self.epochs),
        }


def _statistics(each: list[float]) -> dict[str, Any]:
    std = float(np.std(each, ddof=1)) if len(each) > 1 else None
    return {"mean": float(np.mean(each)), "std": std, "each": each}


def task_of(graphs: Graphs) -> Task:
    """The task of a dataset, or an error if its graphs cannot train anything."""
    if graphs.task is None or graphs.targets is None or not graphs.is_labelled.any():
        raise HaarPoolError(
            f"labels of the graphs of {graphs.name}",
            "none",
            "name the column with --target, or add NAME_graph_labels.txt",
        )
    if graphs.task == "classification":
        found = np.unique(graphs.targets[graphs.is_labelled])
        if len(found) < 2:
            raise HaarPoolError(
                f"at least two classes in {graphs.name}",
                f"only {graphs.classes[found[0]]!r}",
                "add graphs of another class, or say --task regression",
            )
    return graphs.task


def make_network(config: RunConfig, graphs: Graphs, encoding: Encoding, repeat: int = 0) -> Network:
    """The network of a repeat, its weights drawn from (seed, repeat)."""
    task = task_of(graphs)
    outputs = len(graphs.classes) if task == "classification" else len(graphs.target_names)
    seed = np.random.SeedSequence([config.seed, repeat]).generate_state(1)[0]
    with seeded(int(seed), torch.device("cpu")):
        return build_model(
            config.arch,
            encoding.width,
            outputs,
            task=task,
            domain=config.domain,
            tied=config.tied,
            dropout=config.dropout,
            width=config.width,
        )


def start_run(
    graphs: Graphs, config: RunConfig, team: Team, *, progress: bool | None = None,
    splits: list[Split] | None = None,
) -> Run:  # fmt: skip
    """Everything up to the first step: splits, features, chains, batches."""
    task_of(graphs)
    if (missing := int((~graphs.is_labelled).sum())) and team.leads:
        text = f"{missing} of {len(graphs)} graphs of {graphs.name} have no label and are left out"
        warnings.warn(text, HaarPoolWarning, stacklevel=2)
    rule = config.split
    if rule == "auto":
        rule = "random" if graphs.split is None else "given"
        config = replace(config, split=rule)
    splits = splits or make_splits(rule, graphs, config.seed, config.repeats)
    _check_values(graphs, splits)
    encoding = replace(Encoding.fit(graphs, config.features), edges=())  # networks see weights
    network = make_network(config, graphs, encoding)
    with team.leader_first():
        batches, chains = prepare(
            graphs, encoding, network, config.chain, team.device,
            progress=progress if team.leads else False, example=_example(graphs),
        )  # fmt: skip
    return Run(graphs, config, encoding, splits, team, batches, chains)


def _check_values(graphs: Graphs, splits: list[Split]) -> None:
    """Every target needs a value to learn from."""
    if graphs.task != "regression" or graphs.targets is None:
        return
    for split in splits:
        known = np.isfinite(graphs.targets[split.train]).any(axis=0)
        if not known.all():
            name = graphs.target_names[int(np.flatnonzero(~known)[0])]
            raise HaarPoolError(
                f"a value of {name!r} in every training part", "none in one", "leave it out"
            )


def _example(graphs: Graphs) -> int:
    """A graph to draw: the one whose size is the median."""
    order = np.argsort(graphs.sizes, kind="stable")
    return int(order[len(order) // 2])


def describe(run: Run, command: str, read: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in `config.json`.

    Args:
        run: the run.
        command: that started it.
        read: the arguments of `read_graphs`.
    """
    graphs, network = run.graphs, make_network(run.config, run.graphs, run.encoding)
    chains = None
    if run.chains is not None:
        chains = dict(run.config.chain) | network.chain_parameters | {"digest": run.chains.digest}
    return {
        "command": command,
        "versions": {"python": platform.python_version()}
        | {module.__name__: module.__version__ for module in _MODULES},
        "device": _device_name(run.team),
        "processes": run.team.size,
        "bfloat16": uses_bfloat16(run.config, run.team),
        "data": {
            "read": dict(read),
            "name": graphs.name,
            "task": graphs.task,
            "classes": list(graphs.classes),
            "target_names": list(graphs.target_names),
            "encoding": run.encoding.to_json(),
            "features": run.encoding.kinds,
            "width": run.encoding.width,
            "digest": graphs.digest(),
            "summary": summary(graphs),
        },
        "model": {
            "arch": run.config.arch,
            "in_channels": network.in_channels,
            "out_channels": network.out_channels,
            "domain": run.config.domain,
            "dropout": run.config.dropout,
            "num_parameters": sum(p.numel() for p in network.parameters()),
        },
        "chain": chains,
        "training": run.config.to_json(),
        "split_digests": [split.digest() for split in run.splits],
    }


def _device_name(team: Team) -> str:
    if team.device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(team.device)})"
    return str(team.device)

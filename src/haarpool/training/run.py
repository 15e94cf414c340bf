"""A run: all repeats of one configuration on one dataset, and how it starts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from haarpool._progress import ProgressOption
from haarpool._types import Floats, Ints
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.splits import Split, default_rule, make_splits
from haarpool.errors import HaarPoolError, HaarPoolWarning
from haarpool.nn import Network, parse_architecture
from haarpool.tasks import Scale, Task
from haarpool.training.config import RunConfig
from haarpool.training.devices import ProcessGroup, seed_sequence, seeded
from haarpool.training.minibatches import Minibatches
from haarpool.training.preparation import ChainSummary, prepare_minibatches
from haarpool.training.trained_model import TrainedModel, build_network

SCORED = ("validation", "test")  # parts


class Member(NamedTuple):
    """A trained network, one of the members of a repeat.

    Attributes:
        network: The network with the weights of the kept epoch.
        scale: Scale of the targets, if the task has one.
        best_epoch: The epoch that was kept: the one that validation chose, or the last.
        validation: (n, C) or (n, T) predictions for the validation part.
        test: (n, C) or (n, T) predictions for the test part.
    """

    network: Network
    scale: Scale | None
    best_epoch: int
    validation: Floats
    test: Floats


class Result(NamedTuple):
    """The scores of one member of a repeat, or of the mean prediction of all its members.

    Attributes:
        best_epoch: The epoch that was kept; of several members, that of the first one.
        validation: Scores on the validation part.
        test: Scores on the test part.
        members: Result of each member alone; it has none of what follows.
        targets: Scores of each target by part, if there are several targets.
        predicted: (n, C) or (n, T) predictions for the n graphs of the test part.
    """

    best_epoch: int
    validation: Mapping[str, float]
    test: Mapping[str, float]
    members: Sequence[Result] = ()
    targets: Mapping[str, Sequence[Mapping[str, float]]] | None = None
    predicted: Floats = np.zeros((0, 0))


class Epoch(NamedTuple):
    """The metrics of one epoch: one line of `metrics.jsonl`."""

    repeat: int
    epoch: int
    train_loss: float
    validation_loss: float
    validation_score: float | None
    lr: float
    seconds: float
    best: bool
    member: int


@dataclass
class Run:
    """A run in progress, or complete.

    Attributes:
        graphs: The dataset.
        config: All settings.
        encoding: How node features are made.
        splits: One split per repeat.
        group: The processes that train together.
        network: A network with new weights.
        batches: Minibatches of all graphs.
        chains: Summary of the chains; None for a network without chains.
        epochs: Metrics of all epochs so far.
        members: Complete members of the current repeat.
        results: Results of the complete repeats.
        model: Model of the repeat with the best validation score so far.
        model_repeat: Number of that repeat.
        first_repeat: Number of the first repeat that is trained.
    """

    graphs: Graphs
    config: RunConfig
    encoding: Encoding
    splits: list[Split]
    group: ProcessGroup
    network: Network
    batches: Minibatches
    chains: ChainSummary | None
    epochs: list[Epoch] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    model: TrainedModel | None = None
    model_repeat: int = -1
    first_repeat: int = 0

    @property
    def repeat(self) -> int:
        """Number of the repeat that is trained next, or now."""
        return self.first_repeat + len(self.results)

    @property
    def result(self) -> Result:
        """Result of the repeat that was completed last."""
        return self.results[-1]

    def trained_model(self, members: Sequence[Member]) -> TrainedModel:
        """Return the members of a repeat together with everything that prediction needs."""
        networks = tuple(member.network.eval() for member in members)
        names, scale = self.graphs.names, members[0].scale
        return TrainedModel(networks, self.encoding, names, scale, self.config.chain)


def start_run(
    graphs: Graphs,
    config: RunConfig,
    group: ProcessGroup,
    *,
    progress: ProgressOption = None,
    splits: list[Split] | None = None,
    strict: bool = False,
) -> Run:
    """Do everything before the first training step: splits, features, chains, minibatches.

    Args:
        graphs: The dataset.
        config: All settings.
        group: The processes that train together.
        progress: True shows progress bars, False hides them, `None` shows them on a terminal; a
            function is called with lines of text.
        splits: One split per repeat; by default those of `config.split`.
        strict: Raise an error if a part of a split lacks a class; by default this is a warning.
    """
    task, targets = check_labels(graphs)

    def warn(text: str, **values: Any) -> None:
        if group.is_main:
            warnings.warn(HaarPoolWarning(text, **values), stacklevel=3)

    no_effect = config.monitor == "last" and config.epochs > config.patience != RunConfig.patience
    if no_effect:
        text = "{patience} has no effect with {monitor}: all epochs are trained"
        warn(text, patience=..., monitor="last")
    if missing := int((~graphs.is_labelled).sum()):  # some nodes without label are no news
        warn(f"{missing} of {len(graphs)} graphs of {graphs.name} have no label and are left out")
    if config.batch_size == 0:
        config = replace(config, batch_size=_batch_size(int(graphs.is_labelled.sum())))
    if config.split == "auto":
        config = replace(config, split=default_rule(graphs))
    splits = splits or make_splits(config.split, graphs, config.seed, config.repeats)
    rows = [[split.rows(part, graphs) for part in split] for split in splits]
    if task.of_nodes and task.reads_classes:
        _check_training_classes(graphs, rows)
    if missing_classes := task.check_parts(targets, graphs.names, rows):
        if strict:
            raise HaarPoolError(
                "all classes in every part",
                missing_classes,
                f"{task.remedy}, or leave out {{strict}}",
                split="stratified",
                strict=...,
            )
        warn(f"{missing_classes}: scores of such a part can mislead")
    config = replace(config, arch=_choose_arch(config, graphs))
    encoding = Encoding.fit(graphs, config.features)
    network = make_network(config, graphs, encoding)
    if not network.reads_edges:
        encoding = replace(encoding, edges=())
    with group.main_first():
        batches, chains = prepare_minibatches(
            graphs,
            encoding,
            network,
            config.chain,
            group.device,
            progress=progress if group.is_main else False,
        )
    return Run(graphs, config, encoding, splits, group, network, batches, chains)


def _check_training_classes(graphs: Graphs, splits: Sequence[Sequence[Ints]]) -> None:
    """Raise an error if nodes are validated or tested whose class no training node has."""
    task, targets = graphs.task, graphs.targets
    assert task is not None
    assert targets is not None
    for repeat, (train, *others) in enumerate(splits):
        scored = targets[np.concatenate(others)]
        missing = np.setdiff1d(scored[task.known(scored)], targets[train])
        for wrong in missing[:1].tolist():
            where = f" of repeat {repeat + 1}" if len(splits) > 1 else ""
            raise HaarPoolError(
                f"training nodes of each class that is validated or tested{where}",
                f"none of class {graphs.classes[wrong]!r}",
                "move some to the training part, or make these labels missing",
            )


def _choose_arch(config: RunConfig, graphs: Graphs) -> str:
    """Return the architecture: that of the task for "auto", with the levels for these graphs."""
    assert graphs.task is not None
    arch = config.arch
    if arch == "auto":
        arch = "haarunet" if graphs.task.of_nodes else "haarnet"
    parsed = parse_architecture(arch)
    chosen = parsed.with_levels(graphs.largest_component, config.chain)
    return arch if chosen is parsed else str(chosen)


def _batch_size(num_graphs: int) -> int:
    """Return a power of 2: about 40 steps per epoch, each of 16 to 128 graphs."""
    exponent = round(math.log2(max(num_graphs, 1) / 40))
    return 1 << min(max(exponent, 4), 7)


def make_network(
    config: RunConfig, graphs: Graphs, encoding: Encoding, repeat: int = 0, member: int = 0
) -> Network:
    """Make a member of a repeat, with random weights by (seed, repeat, member)."""
    task, _ = check_labels(graphs)
    seed = seed_sequence(config.seed, repeat, member=member).generate_state(1)[0]
    with seeded(int(seed), torch.device("cpu")):
        return build_network(config, encoding, task, len(task.output_names(graphs.names)))


def check_labels(graphs: Graphs) -> tuple[Task, NDArray[Any]]:
    """Return the task and the targets; raise an error if these cannot train a network."""
    if graphs.task is None or graphs.targets is None or not graphs.is_labelled.any():
        remedy = "set y of the PyG Data, or add NAME_graph_labels.txt"
        if graphs.ids is not None:
            remedy = "pass {targets}"
        elif graphs.signals or graphs.has_node_labels or len(graphs) == 1:
            remedy = "add y to the file" if graphs.task is None else "add known labels to y"
        expected = f"labels of the graphs of {graphs.name}"
        raise HaarPoolError(expected, "none", remedy, targets="COLUMN")
    graphs.task.check(graphs.targets, graphs.names, graphs.name)
    return graphs.task, graphs.targets

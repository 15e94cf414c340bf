"""Trained networks with everything that prediction needs: features, task, names, scale, chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from haarpool._types import Floats, Ints
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import TensorDict
from haarpool.nn import Network, build_model
from haarpool.tasks import Names, Scale, Task, find_task
from haarpool.training.config import RunConfig
from haarpool.training.devices import num_threads
from haarpool.training.minibatches import Minibatches
from haarpool.training.preparation import choose_threads, prepare_minibatches
from haarpool.training.run_folder import CONFIG, MODEL, RunFolder, names_in
from haarpool.training.tree_order import output_rows

BATCH_SIZE = 256  # graphs per step of prediction at most


@dataclass(frozen=True)
class TrainedModel:
    """Trained networks, whose predictions are averaged, and what they need to predict.

    Attributes:
        networks: (M,) The members of an ensemble, or one network, with their weights.
        encoding: How node features are made.
        names: Names of what is predicted.
        scale: Scale of the targets, if the task has one.
        chain: Parameters of `Recipe` besides the levels.
    """

    networks: tuple[Network, ...]
    encoding: Encoding
    names: Names
    scale: Scale | None
    chain: Mapping[str, Any]

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.networks[0].task

    def predict(self, graphs: Graphs) -> Floats:
        """Predict G graphs: the mean over all members.

        Returns:
            (G, C) probabilities of classes, (G, T) probabilities of the second class of each
            target, or (G, T) values in the units of the targets; a row per node for tasks of nodes.
        """
        return average(self.predict_members(graphs))

    def predict_members(self, graphs: Graphs) -> Floats:
        """Predict with each member: (M, G, C) or (M, G, T), see `predict`."""
        first = self.networks[0]
        with num_threads(choose_threads(first, graphs, BATCH_SIZE)):
            device = next(first.parameters()).device
            batches, _ = prepare_minibatches(
                graphs,
                self.encoding,
                first,
                self.chain,
                device,
                cache=False,
                summarize=False,
                progress=False,
            )
            every = np.arange(len(graphs))
            members = predict_batches(
                self.networks, self.scale, self.names, batches, every, BATCH_SIZE
            )
        for row in np.flatnonzero(~np.isfinite(members).all(axis=(0, 2)))[:1].tolist():
            g = int(np.searchsorted(graphs.start, row, "right")) - 1 if self.task.of_nodes else row
            raise HaarPoolError(
                "finite predictions",
                f"NaN or infinity for {graphs.where(g)} of {graphs.name}",
                "check its features: they may be much larger than those of the training part",
            )
        return members


@torch.no_grad()
def predict_batches(
    networks: Sequence[Network],
    scale: Scale | None,
    names: Names,
    batches: Minibatches,
    graphs: Ints,
    batch_size: int,
) -> Floats:
    """Predict graphs with each of M networks: (M, n, C) or (M, n, T).

    Args:
        networks: The networks.
        scale: Scale of their targets.
        names: Names of what they predict.
        batches: Minibatches of a dataset.
        graphs: (n,) Numbers of graphs.
        batch_size: Graphs per step at most.
    """
    outputs: list[list[Tensor]] = [[] for _ in networks]
    for chosen in batches.chunks(graphs, batch_size):
        batch = batches.take(chosen)
        for network, parts in zip(networks, outputs, strict=True):
            parts.append(output_rows(network.eval(), batch).cpu())
    task = networks[0].task
    return np.stack([task.predictions(torch.cat(parts), scale, names) for parts in outputs])


def average(members: Floats) -> Floats:
    """Return the mean of the (M, n, C) predictions of M members."""
    return np.asarray(members.mean(axis=0))


def build_network(config: RunConfig, encoding: Encoding, task: str, num_outputs: int) -> Network:
    """Make the network of a configuration, with new weights."""
    return build_model(
        config.arch,
        encoding.width,
        num_outputs,
        task=task,
        domain=config.domain,
        tied=config.tied,
        dropout=config.dropout,
        width=config.width,
        **(config.pooling or {}),
        standardize=encoding.real_nodes,
        edge_channels=encoding.edge_width,
        standardize_edges=encoding.real_edges,
    )


def model_tensors(model: TrainedModel) -> TensorDict:
    """Return the weights of all members, and the scale, by name."""
    tensors: TensorDict = {}
    for member, network in enumerate(model.networks):
        prefix = _prefix(member)
        tensors |= {f"{prefix}{name}": value for name, value in network.state_dict().items()}
    if model.scale is not None:
        tensors |= {f"scale.{name}": value for name, value in model.scale._asdict().items()}
    return {name: value.detach().cpu() for name, value in tensors.items()}


def _prefix(member: int) -> str:
    """Return how the names of the weights of a member start; a single network is member 0."""
    return f"member.{member}." if member else "network."


def scale_from(tensors: TensorDict, task: Task) -> Scale | None:
    """Return the scale of a task from the tensors of a model."""
    return None if task.scale is None else task.scale(**strip_prefix("scale.", tensors))


def strip_prefix(prefix: str, tensors: TensorDict) -> TensorDict:
    """Return the tensors whose names start with a prefix, named without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def load_model(folder: RunFolder, device: torch.device) -> TrainedModel:
    """Load the model of a run; only numbers and JSON are read, never a pickle."""
    folder.check_complete()
    config = folder.config()
    tensors, _ = folder.read_tensors(MODEL)
    try:
        folder.check_registered()
        data, num_outputs = config["data"], config["model"]["out_channels"]
        settings = RunConfig.from_json(config["training"])  # old runs do not have all of them
        encoding = Encoding.from_json(data["encoding"])
        task = find_task(data["task"])
        names = names_in(data)
        if len(task.output_names(names)) != num_outputs:
            raise ValueError(f"{len(task.output_names(names))} names for {num_outputs} outputs")
        networks = []
        for member in range(settings.ensemble):
            network = build_network(settings, encoding, task, num_outputs)
            network.load_state_dict(strip_prefix(_prefix(member), tensors))
            networks.append(network.to(device).eval())
        return TrainedModel(
            tuple(networks), encoding, names, scale_from(tensors, task), settings.chain
        )
    except HaarPoolError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise folder.damaged(CONFIG, error) from error

"""Trained networks with everything that prediction needs: features, classes, scale, chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool._types import Floats, Task
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import TensorDict
from haarpool.nn import Network, build_model
from haarpool.nn.strings.architecture import UnknownTokenError
from haarpool.training.config import RunConfig
from haarpool.training.devices import num_threads
from haarpool.training.preparation import choose_threads, prepare_minibatches
from haarpool.training.run_folder import CONFIG, MODEL, RunFolder


class Scale(NamedTuple):
    """Mean and standard deviation of the targets; networks see standardised targets.

    Attributes:
        mean: (T,) mean of each target.
        std: (T,) standard deviation of each target, 1 for a constant target.
    """

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, targets: NDArray[Any]) -> Scale:
        """Compute the scale of (n, T) targets; NaN is a missing value."""
        std = np.nanstd(targets, axis=0)
        std[~(std > 0)] = 1.0
        return cls(
            torch.tensor(np.nanmean(targets, axis=0), dtype=torch.float32),
            torch.tensor(std, dtype=torch.float32),
        )

    def to(self, device: torch.device) -> Scale:
        """Return a copy on a device."""
        return Scale(self.mean.to(device), self.std.to(device))


@dataclass(frozen=True)
class TrainedModel:
    """Trained networks, whose predictions are averaged, and what they need to predict.

    Attributes:
        networks: (M,) The members of an ensemble, or one network, with their weights.
        encoding: How node features are made.
        task: The task.
        classes: Names of the classes.
        target_names: Names of the targets.
        scale: Scale of the targets, for regression.
        chain: Parameters of `Recipe` besides the levels.
    """

    networks: tuple[Network, ...]
    encoding: Encoding
    task: Task
    classes: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    scale: Scale | None = None
    chain: Mapping[str, Any] = field(default_factory=dict)

    def predict(self, graphs: Graphs, *, batch_size: int = 256) -> Floats:
        """Predict the mean over all members.

        Args:
            graphs: G graphs.
            batch_size: Graphs per step at most; large graphs are predicted in smaller steps.

        Returns:
            (G, C) probabilities of classes, (G, T) probabilities of the second class of each
            target, or (G, T) values in the units of the targets.
        """
        return average(self.predict_members(graphs, batch_size=batch_size))

    @torch.no_grad()
    def predict_members(self, graphs: Graphs, *, batch_size: int = 256) -> Floats:
        """Predict with each member: (M, G, C) or (M, G, T), see `predict`."""
        first = self.networks[0]
        with num_threads(choose_threads(first, graphs, batch_size)):
            device = next(first.parameters()).device
            batches, _ = prepare_minibatches(
                graphs, self.encoding, first, self.chain, device, cache=False, progress=False
            )
            outputs: list[list[Tensor]] = [[] for _ in self.networks]
            for chosen in batches.chunks(np.arange(len(graphs)), batch_size):
                batch = batches.take(chosen)
                for network, parts in zip(self.networks, outputs, strict=True):
                    parts.append(network.eval()(batch).float().cpu())
            members = np.stack(
                [to_predictions(torch.cat(parts), self.task, self.scale) for parts in outputs]
            )
        for g in np.flatnonzero(~np.isfinite(members).all(axis=(0, 2)))[:1].tolist():
            raise HaarPoolError(
                "finite predictions",
                f"NaN or infinity for {graphs.where(g)} of {graphs.name}",
                "check its features: they may be much larger than those of the training part",
            )
        return members


def average(members: Floats) -> Floats:
    """Return the mean of the (M, n, C) predictions of M members."""
    return np.asarray(members.mean(axis=0))


def uncertainty(members: Floats, task: Task) -> Floats:
    """Compute the standard deviation of predictions over the members of an ensemble.

    Args:
        members: (M, n, C) or (M, n, T) predictions, M >= 2.
        task: The task.

    Returns:
        (n, 1) for "classification": that of the probability of the predicted class; else (n, T),
        one column per target.

    Example:
        >>> uncertainty(np.array([[[0.9, 0.1]], [[0.7, 0.3]]]), "classification").round(3)
        array([[0.141]])
    """
    spread = np.asarray(members.std(axis=0, ddof=1))
    if task != "classification":
        return spread
    return np.take_along_axis(spread, average(members).argmax(axis=1)[:, None], axis=1)


def to_predictions(output: Tensor, task: Task, scale: Scale | None) -> Floats:
    """Turn the output of a network into probabilities, or into the units of the targets."""
    if task == "classification":
        output = output.double().softmax(dim=1)
    elif task == "multilabel":
        output = output.double().sigmoid()
    elif scale is not None:
        output = output.double() * scale.std.double() + scale.mean.double()
    predictions: Floats = output.numpy()
    return predictions


def model_tensors(model: TrainedModel) -> TensorDict:
    """Return the weights of all members, and the scale, by name."""
    tensors: TensorDict = {}
    for member, network in enumerate(model.networks):
        prefix = _prefix(member)
        tensors |= {f"{prefix}{name}": value for name, value in network.state_dict().items()}
    if model.scale is not None:
        tensors |= {"scale.mean": model.scale.mean, "scale.std": model.scale.std}
    return {name: value.detach().cpu() for name, value in tensors.items()}


def _prefix(member: int) -> str:
    """Return how the names of the weights of a member start; those of the first as without others.

    So the models of runs without ensemble, and of earlier versions, are ensembles of one.
    """
    return f"member.{member}." if member else "network."


def scale_from(tensors: TensorDict) -> Scale | None:
    """Return the scale among the tensors of a model."""
    return Scale(tensors["scale.mean"], tensors["scale.std"]) if "scale.mean" in tensors else None


def strip_prefix(prefix: str, tensors: TensorDict) -> TensorDict:
    """Return the tensors whose names start with a prefix, named without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def build_network(config: RunConfig, encoding: Encoding, task: Task, out_channels: int) -> Network:
    """Build a network with random weights.

    Args:
        config: All settings of the run.
        encoding: The features that it reads.
        task: What is predicted.
        out_channels: Number of classes or targets.
    """
    return build_model(
        config.arch,
        encoding.width,
        out_channels,
        edge_channels=encoding.edge_width,
        task=task,
        domain=config.domain,
        tied=config.tied,
        dropout=config.dropout,
        width=config.width,
        standardize=encoding.real_nodes,
        standardize_edges=encoding.real_edges,
        **(config.pooling or {}),
    )


def load_model(folder: RunFolder, device: torch.device) -> TrainedModel:
    """Load the model of a run; only numbers and JSON are read, never a pickle."""
    folder.check_complete()
    config = folder.config()
    tensors, _ = folder.read_tensors(MODEL)
    try:
        data, model = config["data"], config["model"]
        settings = RunConfig.from_json(config["training"])  # old runs do not have all of them
        settings = replace(settings, arch=model["arch"])
        encoding = Encoding.from_json(data["encoding"])
        networks = []
        for member in range(settings.ensemble):
            network = build_network(settings, encoding, data["task"], model["out_channels"])
            network.load_state_dict(strip_prefix(_prefix(member), tensors))
            networks.append(network.to(device).eval())
        names = data["classes"] if data["task"] == "classification" else data["target_names"]
        if len(names) != model["out_channels"]:
            raise ValueError(f"{len(names)} names for {model['out_channels']} outputs")
        return TrainedModel(
            tuple(networks),
            encoding,
            data["task"],
            tuple(data["classes"]),
            tuple(data["target_names"]),
            scale_from(tensors),
            settings.chain,
        )
    except UnknownTokenError:
        raise
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise folder.damaged(CONFIG, error) from error

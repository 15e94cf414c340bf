"""A trained network with everything that prediction needs: features, classes, scale, chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """A trained network and what it needs to predict.

    Attributes:
        network: The network with its weights.
        encoding: How node features are made.
        task: "classification" or "regression".
        classes: Names of the classes.
        target_names: Names of the targets.
        scale: Scale of the targets, for regression.
        chain: Parameters of `Recipe` besides the levels.
    """

    network: Network
    encoding: Encoding
    task: Task
    classes: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    scale: Scale | None = None
    chain: Mapping[str, Any] = field(default_factory=dict)

    @torch.no_grad()
    def predict(self, graphs: Graphs, *, batch_size: int = 256) -> Floats:
        """Predict (G, C) class probabilities, or (G, T) values in the units of the targets.

        Args:
            graphs: G graphs.
            batch_size: Graphs per step.
        """
        with num_threads(choose_threads(self.network.arch, graphs, batch_size)):
            self.network.eval()
            device = next(self.network.parameters()).device
            batches, _ = prepare_minibatches(
                graphs, self.encoding, self.network, self.chain, device, cache=False, progress=False
            )
            outputs = [
                self.network(batches.take(chosen)).float().cpu()
                for chosen in batches.epoch(np.arange(len(graphs)), batch_size)
            ]
            return to_predictions(torch.cat(outputs), self.task, self.scale)


def to_predictions(output: Tensor, task: Task, scale: Scale | None) -> Floats:
    """Turn the output of a network into probabilities, or into the units of the targets."""
    if task == "classification":
        output = output.double().softmax(dim=1)
    elif scale is not None:
        output = output.double() * scale.std.double() + scale.mean.double()
    predictions: Floats = output.numpy()
    return predictions


def model_tensors(model: TrainedModel) -> TensorDict:
    """Return weights and scale of a model by name."""
    tensors = {f"network.{name}": value for name, value in model.network.state_dict().items()}
    if model.scale is not None:
        tensors |= {"scale.mean": model.scale.mean, "scale.std": model.scale.std}
    return {name: value.detach().cpu() for name, value in tensors.items()}


def scale_from(tensors: TensorDict) -> Scale | None:
    """Return the scale among the tensors of a model."""
    return Scale(tensors["scale.mean"], tensors["scale.std"]) if "scale.mean" in tensors else None


def strip_prefix(prefix: str, tensors: TensorDict) -> TensorDict:
    """Return the tensors whose names start with a prefix, named without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def load_model(folder: RunFolder, device: torch.device) -> TrainedModel:
    """Load the model of a run; only numbers and JSON are read, never a pickle."""
    if not folder.has(MODEL):
        raise HaarPoolError(
            f"a complete run in {folder.path}",
            "a run without model",
            f"finish the run: haarpool train --resume {folder.path}",
        )
    config = folder.config()
    tensors, _ = folder.read_tensors(MODEL)
    try:
        data, model, settings = config["data"], config["model"], config["training"]
        encoding = Encoding.from_json(data["encoding"])
        network = build_model(
            model["arch"],
            model["in_channels"],
            model["out_channels"],
            edge_channels=encoding.edge_width,
            task=data["task"],
            standardize=encoding.real_nodes,
            standardize_edges=encoding.real_edges,
            **{name: settings[name] for name in ("domain", "tied", "dropout", "width")},
        )
        network.load_state_dict(strip_prefix("network.", tensors))
        names = data["classes"] if data["task"] == "classification" else data["target_names"]
        if len(names) != network.out_channels:
            raise ValueError(f"{len(names)} names for {network.out_channels} outputs")
        return TrainedModel(
            network.to(device).eval(),
            encoding,
            data["task"],
            tuple(data["classes"]),
            tuple(data["target_names"]),
            scale_from(tensors),
            settings["chain"],
        )
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise folder.damaged(CONFIG, error) from error

"""A trained network with all that it takes to use it: features, classes, scale, chains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool._types import Task
from haarpool.chains.chain import Chain
from haarpool.chains.clustering import find_method
from haarpool.chains.dataset_chains import precompute
from haarpool.data import AddHaarChain
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.pyg import GraphDataset
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import JoinedTensors
from haarpool.nn import Architecture, Network, build_model
from haarpool.training.minibatches import Minibatches
from haarpool.training.run_folder import CONFIG, MODEL, RunFolder

TensorDict = dict[str, Tensor]
LARGE = 2**19  # entries of the widest signal of a batch, from which on several threads pay


class Scale(NamedTuple):
    """Mean and spread of the values to predict; networks see values with mean 0 and spread 1."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, targets: NDArray[Any]) -> Scale:
        """That of (n, T) values, NaN left out."""
        std = np.nanstd(targets, axis=0)
        std[~(std > 0)] = 1.0  # all values are the same
        return cls(
            torch.tensor(np.nanmean(targets, axis=0), dtype=torch.float32),
            torch.tensor(std, dtype=torch.float32),
        )

    def to(self, device: torch.device) -> Scale:
        """The same on a device."""
        return Scale(self.mean.to(device), self.std.to(device))


@dataclass(frozen=True)
class TrainedModel:
    """What a run leaves behind.

    Attributes:
        network: with its weights.
        encoding: how nodes become its features.
        task, classes, target_names: what it predicts.
        scale: of the values, for regression.
        chain: further parameters of `build_chain`.
    """

    network: Network
    encoding: Encoding
    task: Task
    classes: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    scale: Scale | None = None
    chain: Mapping[str, Any] = field(default_factory=dict)

    @torch.no_grad()
    def predict(self, graphs: Graphs, *, batch_size: int = 256) -> NDArray[np.float64]:
        """(G, C) probabilities of classes, or (G, T) values in their own units."""
        with threads_for(self.network.arch, graphs, batch_size):
            return self._predict(graphs, batch_size)

    def _predict(self, graphs: Graphs, batch_size: int) -> NDArray[np.float64]:
        self.network.eval()
        device = next(self.network.parameters()).device
        batches, _ = prepare(
            graphs, self.encoding, self.network, self.chain, device, cache=False, progress=False
        )
        outputs = [
            self.network(batches.take(chosen)).float().cpu()
            for chosen in batches.epoch(np.arange(len(graphs)), batch_size)
        ]
        return to_predictions(torch.cat(outputs), self.task, self.scale)


def to_predictions(output: Tensor, task: Task, scale: Scale | None) -> NDArray[np.float64]:
    """What a network gave, as probabilities or in the units of the target."""
    if task == "classification":
        output = output.double().softmax(dim=1)
    elif scale is not None:
        output = output.double() * scale.std.double() + scale.mean.double()
    result: NDArray[np.float64] = output.numpy()
    return result


# ---------------------------------------------------------------------- files


def model_tensors(model: TrainedModel) -> TensorDict:
    """Weights and scale by name."""
    state = {f"network.{name}": value for name, value in model.network.state_dict().items()}
    if model.scale is not None:
        state |= {"scale.mean": model.scale.mean, "scale.std": model.scale.std}
    return {name: value.detach().cpu() for name, value in state.items()}


def save_model(model: TrainedModel, folder: RunFolder) -> None:
    """Write the weights into the folder of a run."""
    folder.write_tensors(MODEL, model_tensors(model))


def load_model(folder: RunFolder, device: torch.device) -> TrainedModel:
    """The model of a run; nothing but numbers and JSON is read."""
    if not folder.has(MODEL):
        remedy = f"finish it first: haarpool train --resume {folder.path}"
        raise HaarPoolError(f"a complete run in {folder.path}", "one without model", remedy)
    config = folder.config()
    tensors, _ = folder.read_tensors(MODEL)
    try:
        data, model, settings = config["data"], config["model"], config["training"]
        network = build_model(
            model["arch"],
            model["in_channels"],
            model["out_channels"],
            task=data["task"],
            **{name: settings[name] for name in ("domain", "tied", "dropout", "width")},
        )
        network.load_state_dict(strip_prefix("network.", tensors))
        names = data["classes"] if data["task"] == "classification" else data["target_names"]
        if len(names) != network.out_channels:
            raise ValueError(f"{len(names)} names for {network.out_channels} outputs")
        return TrainedModel(
            network.to(device).eval(),
            Encoding.from_json(data["encoding"]),
            data["task"],
            tuple(data["classes"]),
            tuple(data["target_names"]),
            scale_from(tensors),
            settings["chain"],
        )
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise folder.damaged(CONFIG, error) from error


def scale_from(tensors: TensorDict) -> Scale | None:
    """The scale among the tensors of a model."""
    return Scale(tensors["scale.mean"], tensors["scale.std"]) if "scale.mean" in tensors else None


def strip_prefix(prefix: str, tensors: TensorDict) -> TensorDict:
    """The tensors whose names begin with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


# ---------------------------------------------------------------------- from graphs to batches


@contextmanager
def threads_for(
    arch: Architecture, graphs: Graphs, batch_size: int, wanted: int = 0
) -> Iterator[None]:
    """As many threads as pay, unless a number is wanted.

    It depends on nothing that could change between runs, since sums over several threads differ.
    """
    before = torch.get_num_threads()
    widths = [block.width or 64 for block in arch.blocks]
    entries = batch_size * graphs.sizes.mean() * max(widths)
    torch.set_num_threads(wanted or (before if entries >= LARGE else 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class ChainSummary(NamedTuple):
    """What is worth knowing of the chains of a dataset."""

    digest: str
    number: int  # of a graph
    example: Chain  # its chain


def prepare(
    graphs: Graphs,
    encoding: Encoding,
    network: Network,
    chain: Mapping[str, Any],
    device: torch.device,
    *,
    cache: bool = True,
    progress: bool | None = None,
    example: int = 0,
) -> tuple[Minibatches, ChainSummary | None]:
    """All that a network reads of graphs, on its device.

    Args:
        graphs: the graphs.
        encoding: of their features.
        network: decides about the levels of chains.
        chain: further parameters of `build_chain`.
        device: where the batches shall lie.
        cache: whether to take chains from the cache.
        progress: whether to show bars; `None` shows them on a terminal.
        example: the graph whose chain is wanted.
    """
    dataset = GraphDataset(graphs, encoding)
    flat = dataset._data.to_dict()
    own = JoinedTensors(flat, {key: np.diff(dataset.slices[key].numpy()) for key in flat})
    transform = network.transform(**chain)
    if transform is None:
        return Minibatches([own], device), None
    assert isinstance(transform, AddHaarChain)
    recipe = network.chain_parameters | dict(chain)
    features = None
    if find_method(recipe.get("method", "spectral"), {}).takes_features:
        features = np.split(encoding.encode(graphs), graphs.start[1:-1])
    chains = precompute(graphs.batch, features=features, cache=cache, progress=progress, **recipe)
    state = sha256()

    def parts() -> Iterator[JoinedTensors]:
        yield own
        for forest in chains.forests():
            for parent in forest.parents:
                state.update(parent.tobytes())
            yield transform.join(forest)

    batches = Minibatches(parts(), device)
    return batches, ChainSummary(state.hexdigest(), example, chains[example])

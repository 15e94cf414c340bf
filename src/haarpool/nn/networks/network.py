"""`Network`, the base class of all networks for graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor
from torch_geometric.transforms import BaseTransform

from haarpool._types import Domain
from haarpool._validate import whole_number
from haarpool.data import AddHaarChain, ChainArguments
from haarpool.errors import HaarPoolError
from haarpool.nn.inputs import Tensors, check_columns, check_signal, missing_features, num_graphs
from haarpool.nn.networks.standardize import Standardize, fit_standardize
from haarpool.nn.strings.architecture import AnyArchitecture, choose_domain
from haarpool.tasks import find_task

MAX_WEIGHTS = 2**30  # with gradients and the state of Adam they take 16 GB


class NetworkSettings(TypedDict, total=False):
    """Keyword arguments of `Network`."""

    edge_channels: int
    domain: Domain | None
    task: str
    standardize: Sequence[int]
    standardize_edges: Sequence[int]


class Network(torch.nn.Module):
    """What all networks for graphs share; `build_model` makes one.

    A subclass has `forward(data, *, padded=False)`, see `SequentialNetwork` and `HaarNet`.

    Args:
        arch: The architecture.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of targets.
        edge_channels: Number of columns of `data.edge_attr`; 0 ignores it.
        domain: Domain of the poolings; `None` is that of the architecture.
        task: See `build_model`.
        standardize: Columns of `data.x` that are standardised, see `fit_inputs`.
        standardize_edges: The same for `data.edge_attr`.

    Attributes:
        reads_edges: Whether it reads `data.edge_attr`; all networks read `data.edge_weight`.
        normalizes_graphs: Whether it normalises over the graphs of a minibatch, so that a training
            step needs more than a few of them.
        has_static_shapes: Whether all shapes follow from the shapes of the input, and sums have a
            fixed order. Then it can be captured in a CUDA graph, and gives the same bits each time.
        ignores_numbering: Whether, in the vertex domain and for a given chain, another numbering
            of nodes and clusters changes no output, but the order of outputs for nodes.
    """

    reads_edges = False
    normalizes_graphs = False
    has_static_shapes = False
    ignores_numbering = False

    def __init__(
        self,
        arch: AnyArchitecture,
        in_channels: int,
        out_channels: int,
        *,
        edge_channels: int = 0,
        domain: Domain | None = None,
        task: str = "classification",
        standardize: Sequence[int] = (),
        standardize_edges: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.arch = arch
        self.task = find_task(task)
        if self.task.of_nodes != arch.of_nodes:
            kind = "nodes" if self.task.of_nodes else "graphs"
            raise HaarPoolError(
                f"a network with an output for {kind}, for the task {str(self.task)!r}",
                f"{str(arch)!r}",
                "pass {arch}",
                arch="haarunet" if self.task.of_nodes else "haarnet",
            )
        self.domain = choose_domain(arch, domain)
        self.in_channels = whole_number("in_channels", in_channels, remedy="pass data.num_features")
        self.out_channels = whole_number("out_channels", out_channels, remedy="count the classes")
        self.edge_channels = whole_number("edge_channels", edge_channels, minimum=0)
        self.standardize = Standardize(self.in_channels, standardize)
        self.standardize_edges = Standardize(self.edge_channels, standardize_edges)

    def output_and_auxiliary(
        self, data: Any, *, padded: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Compute what training needs: the output of `forward`, and losses of layers.

        Args:
            data: See `forward`.
            padded: See `forward`.

        Returns:
            The output, and a loss that is added to that of the task (of DiffPool), or `None`.
        """
        return self(data, padded=padded), None

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """Parameters of its chains: `AddHaarChain(**model.chain_parameters)`; {} without chains."""
        return self.arch.chain_parameters

    def reset_parameters(self) -> None:
        """Reset the weights of all layers."""
        _reset_parts(self)

    def transform(self, **parameters: Unpack[ChainArguments]) -> BaseTransform | None:
        """Return the transform that adds to a graph what this network reads, or `None`.

        Args:
            **parameters: Further parameters of `AddHaarChain`: method, seed, ..., or `chain`, a
                function.
        """
        if not self.chain_parameters:
            return None
        if fixed := self.chain_parameters.keys() & parameters:
            raise HaarPoolError(
                f"parameters besides those of the network, {self.chain_parameters}",
                ", ".join(sorted(fixed)),
                "leave them out, or make the AddHaarChain yourself",
            )
        chosen: dict[str, Any] = {}
        if parameters.get("chain") is None:
            chosen = {**self.chain_parameters, **self.arch.chain_defaults}
        return self._add_chain(**{**chosen, **parameters})

    def fit_inputs(self, batches: Iterable[Any]) -> None:
        """Compute mean and standard deviation of the columns that are standardised.

        Args:
            batches: Minibatches of the training data, for example a PyG `DataLoader`.
        """
        modules = {"x": self.standardize, "edge_attr": self.standardize_edges}
        fit_standardize(modules, batches)

    def fit_baseline(self, batches: Iterable[tuple[Any, Tensor]]) -> None:
        """Fit what a network predicts without its layers; most networks have nothing to fit.

        Args:
            batches: Minibatches of the training data, each with its targets.
        """

    def _add_chain(self, **parameters: Any) -> BaseTransform:
        return AddHaarChain(**parameters)

    def check(self, data: Any) -> None:
        """Raise an error unless the data has all tensors that this network reads.

        Call it with the first graph of a dataset to see errors early; `forward` calls it too.

        Args:
            data: A graph, a batch, or a dict of tensors.
        """
        self._check_graph(data)
        if self.chain_parameters:
            self._check_chain(data)
        if self.edge_channels:
            self._check_edges(data)

    def _check_graph(self, data: Any) -> None:
        if "x" not in data or data["x"] is None:
            raise missing_features()
        x = data["x"]
        check_columns(x, self.in_channels, "pass in_channels=data.num_features to build_model")
        if x.ndim > 2 and not self.arch.of_nodes:
            raise HaarPoolError(
                "x of shape (N, columns)", f"shape {tuple(x.shape)}", "use a network for nodes"
            )
        check_signal(x, x.shape[-2])
        if "edge_index" not in data or data["edge_index"] is None:
            raise HaarPoolError("data with edge_index", "none", "leave ToSparseTensor out")
        if "edge_weight" in data and data["edge_weight"].ndim != 1:
            raise HaarPoolError(
                "edge_weight of shape (E,)",
                f"shape {tuple(data['edge_weight'].shape)}",
                "pass one weight per edge, for example edge_weight.squeeze(-1)",
            )

    def _check_chain(self, data: Any) -> None:
        num_levels = self.arch.num_levels
        if f"haar_tree_{num_levels}" not in data:
            depth = sum(f"haar_tree_{j}" in data for j in range(num_levels)) - 1
            raise HaarPoolError(
                f"a chain of at least {num_levels} levels for {str(self.arch)!r}",
                f"a chain of {depth}" if depth > 0 else "data without a chain",
                self._remedy(),
            )
        check_signal(data["x"], data["haar_tree_0"].shape[-1])
        rows = data[f"haar_tree_{num_levels}"].shape[-1]
        if self.arch.top == 1 and rows != num_graphs(data):
            raise HaarPoolError(
                f"chains that end in one node for {str(self.arch)!r}, which has no global readout",
                f"{rows} nodes on level {num_levels} in {num_graphs(data)} graphs",
                self._remedy(),
            )

    def _check_edges(self, data: Any) -> None:
        shape = (data["edge_index"].shape[1], self.edge_channels)
        found = tuple(data["edge_attr"].shape) if "edge_attr" in data else "none"
        if found != shape:
            raise HaarPoolError(
                f"edge_attr of shape {shape}",
                f"{found}",
                "pass edge_channels=data.num_edge_features",
            )

    def _edge_features(self, data: Tensors, like: Tensor) -> Tensor | None:
        """Return (E, edge_channels) standardised features of the edges, or `None`."""
        if not self.edge_channels:
            return None
        features: Tensor = self.standardize_edges(data["edge_attr"].to(like.dtype))
        return features

    def _remedy(self) -> str:
        return f"add {self.transform()!r} to the transforms of the dataset"

    def loss(
        self,
        output: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """Compute the loss of the task.

        Args:
            output: (B, out_channels) output of the network.
            target: (B,) classes, or (B, out_channels) values; NaN is a missing value.
            weight: Weights of the classes, see `Task.class_weights`.
            label_smoothing: Share of the target that is spread over all classes.
        """
        loss: Tensor = self.task.loss(output, target, weight, label_smoothing)
        return loss

    def extra_repr(self) -> str:
        """Return the architecture, for `print(model)`."""
        return f"{str(self.arch)!r}, {self.in_channels} -> {self.out_channels}, {self.task}"


def _reset_parts(module: torch.nn.Module) -> None:
    """Reset the weights of the parts of a module, each by its own method if it has one."""
    for part in module.children():
        getattr(part, "reset_parameters", partial(_reset_parts, part))()


def num_weights(module: torch.nn.Module) -> int:
    """Return the number of weights of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


def check_num_weights(arch: AnyArchitecture, count: int) -> None:
    """Raise an error if a network has too many weights."""
    if count > MAX_WEIGHTS:
        raise HaarPoolError(
            f"with up to {MAX_WEIGHTS:,} weights",
            f"{count:,} or more in {str(arch)!r}",
            "write smaller widths, or fewer layers",
            parameter="arch",
        )

"""`Network`, the network of an architecture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.transforms import BaseTransform

from haarpool._types import Domain, Task
from haarpool.data import AddHaarChain
from haarpool.errors import HaarPoolError
from haarpool.nn.architecture import Architecture
from haarpool.nn.inputs import check_signal, missing_features, num_graphs, tensors_of
from haarpool.nn.neighbours import Neighbours
from haarpool.nn.peers.eigenpool import AddEigenModes
from haarpool.nn.stages import ChainPooling, LayerState, read_out
from haarpool.nn.standardize import Standardize, fit_standardize


class Network(torch.nn.Module):
    """The network of an architecture; `build_model` makes it.

    Args:
        arch: The architecture.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        stages: Convolutions and poolings.
        readout: Aggregation over the nodes of each graph, or `None`.
        adapter: Linear layer to the width of the first FC, or `None`.
        linear: Linear layers.
        task: See `build_model`.
        domain: See `build_model`.
        dropout: See `build_model`.
        num_modes: See `build_model`.
        standardize: See `build_model`.

    Attributes:
        reads_edges: Whether it reads `data.edge_attr`; all networks read `data.edge_weight`.
        auxiliary: Sum of the losses of poolings (DiffPool) in the last call, or `None`.

    Shapes:
        - **input:** a `ChainData`, a batch of them, or a dict of their tensors
        - **output:** (B, out_channels), scores of classes or values, for B graphs
    """

    reads_edges = False

    def __init__(
        self,
        arch: Architecture,
        in_channels: int,
        out_channels: int,
        *,
        stages: ModuleList,
        readout: Module | None,
        adapter: Module | None,
        linear: ModuleList,
        task: Task,
        domain: Domain,
        dropout: float,
        num_modes: int,
        standardize: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.arch, self.task, self.domain = arch, task, domain
        self.dropout, self.num_modes = dropout, num_modes
        self.in_channels, self.out_channels = in_channels, out_channels
        # The order of modules is that of the parameters in checkpoints and optimizers.
        self.stages, self.linear = stages, linear
        self.readout, self.adapter = readout, adapter
        self.standardize = Standardize(in_channels, standardize)
        self.auxiliary: Tensor | None = None

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """Parameters of its chains: `AddHaarChain(**model.chain_parameters)`; {} without chains."""
        return self.arch.chain_parameters

    @property
    def has_static_shapes(self) -> bool:
        """Whether all shapes follow from the shapes of the input, and sums have a fixed order.

        Then the network can be captured in a CUDA graph, and gives the same bits each time. Other
        poolings choose their clusters by values, and other convolutions scatter.
        """
        static = {"GC", "GIN", "SAGE", "HP", "EIG", "MP", "AP", "SUM", "FC"}
        return all(block.token in static for block in self.arch.blocks)

    def transform(self, **parameters: Any) -> BaseTransform | None:
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
        tokens = {block.token for block in self.arch.blocks}
        if parameters.get("chain") is None:
            parameters = self.chain_parameters | parameters
        if "EIG" in tokens:
            return AddEigenModes(num_modes=self.num_modes, **parameters)
        return AddHaarChain(**parameters)

    def fit_inputs(self, batches: Iterable[Any]) -> None:
        """Compute mean and standard deviation of the columns that are standardised.

        Args:
            batches: Minibatches of the training data, for example a PyG `DataLoader`.
        """
        fit_standardize({"x": self.standardize}, batches)

    def reset_parameters(self) -> None:
        """Reset the weights of all layers."""
        for module in (*self.stages, self.adapter, self.readout, *self.linear):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def check(self, data: Any) -> None:
        """Raise an error unless the data has all tensors that this network reads.

        Call it with the first graph of a dataset to see errors early; `forward` calls it too.

        Args:
            data: A graph, a batch, or a dict of tensors.
        """
        self._check_graph(data)
        if self.chain_parameters:
            self._check_chain(data)

    def _check_graph(self, data: Any) -> None:
        if "x" not in data or data["x"] is None:
            raise missing_features()
        x = data["x"]
        if x.ndim != 2 or x.shape[1] != self.in_channels:
            raise HaarPoolError(
                f"x with {self.in_channels} columns",
                f"shape {tuple(x.shape)}",
                "pass in_channels=data.num_features to build_model",
            )
        check_signal(x, x.shape[0])
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
        rows = data[f"haar_tree_{num_levels}"].shape[-1]
        if self.arch.top == 1 and rows != num_graphs(data):
            raise HaarPoolError(
                f"chains that end in one node for {str(self.arch)!r}, which has no global readout",
                f"{rows} nodes on level {num_levels} in {num_graphs(data)} graphs",
                self._remedy(),
            )
        for stage in self.stages:
            if isinstance(stage, ChainPooling) and (key := stage.missing_key(data)):
                raise HaarPoolError(f"data with {key}", "data without it", self._remedy())

    def _remedy(self) -> str:
        return f"add {self.transform()!r} to the transforms of the dataset"

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute scores or values, (B, out_channels).

        Args:
            data: A `ChainData`, a batch of them, or a dict of their tensors.
            padded: The last graph only fills up the batch, see `Minibatches.take_padded`; it has no
                row in the result.
        """
        data = tensors_of(data)
        self.check(data)
        x, edges = data["x"], data["edge_index"]
        batch = data["batch"] if "batch" in data else edges.new_zeros(x.shape[0])
        weight = data["edge_weight"].to(x.dtype) if "edge_weight" in data else None
        state = LayerState(
            self.standardize(x),
            edges,
            weight,
            batch,
            neighbours=Neighbours.of_input(data, weight),
            start=data["ptr"][:-1] if "ptr" in data else None,
            padded=padded,
        )
        for stage in self.stages:
            state = stage(state, data)
        if state.auxiliary is not None:
            self.auxiliary = state.auxiliary
        x = state.x
        if self.readout is not None:
            x = read_out(self.readout, state, num_graphs(data))
        return self._forward_linear(x[:-1] if padded else x)

    def _forward_linear(self, x: Tensor) -> Tensor:
        if self.adapter is not None:
            x = self.adapter(x).relu()
        *hidden, last = self.linear
        for i, layer in enumerate(hidden):
            x = layer(x).relu()
            if i == 0:
                x = dropout(x, self.dropout, self.training)
        if not hidden:
            x = dropout(x, self.dropout, self.training)
        result: Tensor = last(x)
        return result

    def loss(self, output: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Compute cross entropy or mean squared error, plus the auxiliary losses of the last call.

        Args:
            output: (B, out_channels) output of the network.
            target: (B,) classes, or (B, out_channels) values; NaN is a missing value.
            weight: (out_channels,) weights of the classes.
        """
        if self.task == "classification":
            loss = cross_entropy(output, target.view(-1), weight)
        else:
            target = target.view_as(output).to(output.dtype)
            known = ~target.isnan()
            error = torch.where(known, output - target, 0.0)
            loss = error.square().sum() / known.sum().clamp(min=1)
        return loss if self.auxiliary is None else loss + self.auxiliary

    def __getstate__(self) -> dict[str, Any]:
        # The auxiliary losses of the last call refer to its autograd graph.
        return self.__dict__ | {"auxiliary": None}

    def extra_repr(self) -> str:
        """Return the architecture, for `print(model)`."""
        return f"{str(self.arch)!r}, {self.in_channels} -> {self.out_channels}, {self.task}"

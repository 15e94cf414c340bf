"""`Network`, the base class of all networks for graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import torch
from torch import Tensor
from torch_geometric.transforms import BaseTransform

from haarpool._types import Domain
from haarpool._validate import choice, whole_number
from haarpool.data import AddHaarChain
from haarpool.errors import HaarPoolError
from haarpool.nn.haar_architecture import AnyArchitecture
from haarpool.nn.inputs import check_signal, missing_features, num_graphs
from haarpool.nn.standardize import Standardize, fit_standardize
from haarpool.tasks import find_task


class Network(torch.nn.Module):
    """What all networks for graphs share; `build_model` makes one.

    A subclass has `forward(data, *, padded=False)`, see `SequentialNetwork` and `HaarNet`.

    Args:
        arch: The architecture.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of targets.
        task: See `build_model`.
        domain: See `build_model`.
        standardize: See `build_model`.

    Attributes:
        reads_edges: Whether it reads `data.edge_attr`; all networks read `data.edge_weight`.
        normalizes_graphs: Whether it normalises over the graphs of a minibatch, so that a training
            step needs more than a few of them.
        auxiliary: Sum of the losses of poolings (DiffPool) in the last call, or `None`.
    """

    reads_edges = False
    normalizes_graphs = False

    def __init__(
        self,
        arch: AnyArchitecture,
        in_channels: int,
        out_channels: int,
        *,
        task: str,
        domain: Domain,
        standardize: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.arch = arch
        self.task = find_task(task)
        self.domain: Domain = choice("domain", domain, get_args(Domain))
        self.in_channels = whole_number("in_channels", in_channels, remedy="pass data.num_features")
        self.out_channels = whole_number("out_channels", out_channels, remedy="count the classes")
        self.standardize = Standardize(self.in_channels, standardize)
        self.auxiliary: Tensor | None = None

    @property
    def has_static_shapes(self) -> bool:
        """Whether all shapes follow from the shapes of the input, and sums have a fixed order.

        Then the network can be captured in a CUDA graph, and gives the same bits each time.
        """
        return False

    @property
    def chain_parameters(self) -> dict[str, Any]:
        """Parameters of its chains: `AddHaarChain(**model.chain_parameters)`; {} without chains."""
        return self.arch.chain_parameters

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
        if parameters.get("chain") is None:
            parameters = self.chain_parameters | parameters
        return self._add_chain(**parameters)

    def fit_inputs(self, batches: Iterable[Any]) -> None:
        """Compute mean and standard deviation of the columns that are standardised.

        Args:
            batches: Minibatches of the training data, for example a PyG `DataLoader`.
        """
        fit_standardize(self._standardized_inputs(), batches)

    def fit_baseline(self, batches: Iterable[tuple[Any, Tensor]]) -> None:
        """Fit what a network predicts without its layers; most networks have nothing to fit.

        Args:
            batches: Minibatches of the training data, each with its targets.
        """

    def _standardized_inputs(self) -> dict[str, Standardize]:
        return {"x": self.standardize}

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
        check_signal(data["x"], data["haar_tree_0"].shape[-1])
        rows = data[f"haar_tree_{num_levels}"].shape[-1]
        if self.arch.top == 1 and rows != num_graphs(data):
            raise HaarPoolError(
                f"chains that end in one node for {str(self.arch)!r}, which has no global readout",
                f"{rows} nodes on level {num_levels} in {num_graphs(data)} graphs",
                self._remedy(),
            )

    def _remedy(self) -> str:
        return f"add {self.transform()!r} to the transforms of the dataset"

    def loss(
        self,
        output: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> Tensor:
        """Compute the loss of the task, plus the auxiliary losses of the last call.

        Args:
            output: (B, out_channels) output of the network.
            target: (B,) classes, or (B, out_channels) values; NaN is a missing value.
            weight: Weights of the classes, see `Task.class_weights`.
            label_smoothing: Share of the target that is spread over all classes.
        """
        loss = self.task.loss(output, target, weight, label_smoothing)
        return loss if self.auxiliary is None else loss + self.auxiliary

    def __getstate__(self) -> dict[str, Any]:
        # The auxiliary losses of the last call refer to its autograd graph.
        return self.__dict__ | {"auxiliary": None}

    def extra_repr(self) -> str:
        """Return the architecture, for `print(model)`."""
        return f"{str(self.arch)!r}, {self.in_channels} -> {self.out_channels}, {self.task}"

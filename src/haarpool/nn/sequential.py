"""`SequentialNetwork`, the network of an architecture string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch.nn.functional import dropout
from torch_geometric.transforms import BaseTransform

from haarpool._types import Domain
from haarpool.errors import HaarPoolError
from haarpool.nn.architecture import Architecture
from haarpool.nn.inputs import num_graphs, tensors_of
from haarpool.nn.network import Network
from haarpool.nn.peers.eigenpool import AddEigenModes
from haarpool.nn.stages import ChainPooling, LayerState, Readout


class SequentialNetwork(Network):
    """Convolutions, poolings and readouts, then linear layers; `build_model` makes it.

    Args:
        arch: The architecture.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        stages: Convolutions, poolings and readouts.
        adapter: Linear layer to the width of the first FC, or `None`.
        linear: Linear layers.
        task: See `build_model`.
        domain: See `build_model`.
        dropout: See `build_model`.
        num_modes: See `build_model`.
        standardize: See `build_model`.

    Shapes:
        - **input:** a `ChainData`, a batch of them, or a dict of their tensors
        - **output:** (B, out_channels), scores of classes or values, for B graphs
    """

    arch: Architecture

    def __init__(
        self,
        arch: Architecture,
        in_channels: int,
        out_channels: int,
        *,
        stages: ModuleList,
        adapter: Module | None,
        linear: ModuleList,
        task: str,
        domain: Domain,
        dropout: float,
        num_modes: int,
        standardize: Sequence[int] = (),
    ) -> None:
        super().__init__(
            arch, in_channels, out_channels, task=task, domain=domain, standardize=standardize
        )
        self.dropout, self.num_modes = dropout, num_modes
        # The order of modules is that of the parameters in checkpoints and optimizers.
        self.stages, self.linear, self.adapter = stages, linear, adapter

    @property
    def has_static_shapes(self) -> bool:
        """Whether all shapes follow from the shapes of the input, and sums have a fixed order.

        Other poolings choose their clusters by values, and other convolutions scatter.
        """
        static = {"GC", "DGC", "GIN", "GINB", "SAGE", "JK", "HP", "EIG", "MP", "AP", "SUM", "FC"}
        return all(block.token in static for block in self.arch.blocks)

    def _add_chain(self, **parameters: Any) -> BaseTransform:
        if any(block.token == "EIG" for block in self.arch.blocks):
            return AddEigenModes(num_modes=self.num_modes, **parameters)
        return super()._add_chain(**parameters)

    def reset_parameters(self) -> None:
        """Reset the weights of all layers."""
        for module in (*self.stages, self.adapter, *self.linear):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def check(self, data: Any) -> None:
        """Raise an error unless the data has all tensors that this network reads."""
        super().check(data)
        for stage in self.stages:
            if isinstance(stage, ChainPooling) and (key := stage.missing_key(data)):
                raise HaarPoolError(f"data with {key}", "data without it", self._remedy())

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute scores or values, (B, out_channels).

        Args:
            data: A `ChainData`, a batch of them, or a dict of their tensors.
            padded: The last graph only fills up the batch, see `Minibatches.take_padded`; it has no
                row in the result.
        """
        data = tensors_of(data)
        self.check(data)
        state = LayerState.of_input(self.standardize(data["x"]), data, padded=padded)
        rows = []
        for stage in self.stages:
            if isinstance(stage, Readout):
                rows.append(stage(state, num_graphs(data)))
            else:
                state = stage(state, data)
        if state.auxiliary is not None:
            self.auxiliary = state.auxiliary
        x = torch.cat(rows, -1) if rows else state.x
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

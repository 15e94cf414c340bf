"""The global readouts of architecture strings: one row per graph, which the linear layers read."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Set2Set, SortAggregation

from haarpool.nn.inputs import Tensors, num_graphs
from haarpool.nn.layers.dgcnn import SortConvolution
from haarpool.nn.layers.state import LayerState
from haarpool.nn.strings.registry import layer


class Readout(torch.nn.Module):
    """A global readout.

    Attributes:
        out_channels: Number of columns of its rows.
        aggregation: A module that is called like an aggregation of PyG, or `None`.
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.out_channels = in_channels
        self.aggregation: Any = None

    def forward(self, state: LayerState, data: Tensors) -> Tensor:
        """Return (B, out_channels) rows; that of a graph without nodes is zero."""
        result: Tensor = self.aggregation(state.x, state.batch, dim_size=num_graphs(data))
        return result


@layer("MP", kind="readout", static=True)
class MaxReadout(Readout):
    """Global maximum.

    The same as `MaxAggregation` of PyG, which in training on a GPU warns again and again that
    another package would be faster.
    """

    def forward(self, state: LayerState, data: Tensors) -> Tensor:
        """Return one row per graph."""
        x, index = state.x, state.batch[:, None].expand_as(state.x)
        rows = x.new_zeros(num_graphs(data), x.shape[1])
        return rows.scatter_reduce_(0, index, x, "amax", include_self=False)


@layer("SUM", kind="readout", static=True)
class SumReadout(Readout):
    """Global sum, in a fixed order where it is known."""

    def forward(self, state: LayerState, data: Tensors) -> Tensor:
        """Return one row per graph."""
        return state.sum_nodes(state.x, num_graphs(data))


@layer("AP", kind="readout", static=True)
class MeanReadout(SumReadout):
    """Global mean."""

    def forward(self, state: LayerState, data: Tensors) -> Tensor:
        """Return one row per graph."""
        total = super().forward(state, data)
        return total / state.count_nodes(num_graphs(data)).to(total.dtype)


@layer("S2S", kind="readout", exports=True)
class Set2SetReadout(Readout):
    """Set2Set with three steps."""

    def __init__(self, in_channels: int) -> None:
        super().__init__(2 * in_channels)
        self.aggregation = Set2Set(in_channels, processing_steps=3)


@layer("SORT", kind="readout", limits={"sorted_nodes": (1, 10_000)})
class SortReadout(Readout):
    """SortPooling: the nodes with the largest last column, in this order."""

    def __init__(self, in_channels: int, sorted_nodes: int = 30) -> None:
        super().__init__(sorted_nodes * in_channels)
        self.aggregation = SortAggregation(sorted_nodes)


@layer("DGCNN", kind="readout", limits={"sorted_nodes": (10, 10_000)})
class ConvolvedSortReadout(Readout):
    """SortPooling with convolutions along the order of nodes."""

    def __init__(self, in_channels: int, sorted_nodes: int = 30) -> None:
        super().__init__(in_channels)
        self.aggregation = SortConvolution(in_channels, sorted_nodes)
        self.out_channels = self.aggregation.out_channels

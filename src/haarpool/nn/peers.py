"""What stands behind the tokens of an architecture: one class each, of PyG wherever it has one.

A stage takes the state of a network and the data, and gives the next state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import (
    MLP,
    ChebConv,
    EdgePooling,
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    SAGPooling,
    TopKPooling,
)
from torch_geometric.nn.aggr import (
    MaxAggregation,
    MeanAggregation,
    Set2Set,
    SortAggregation,
    SumAggregation,
)

from haarpool.nn.diffpool import DiffPool
from haarpool.nn.lapool import LaPool
from haarpool.nn.operators import Tensors
from haarpool.nn.structpool import StructPool


class State(NamedTuple):
    """What flows through a network.

    Attributes:
        x: (N, d) features.
        edge_index, edge_weight, batch: the graphs that they stand on.
        auxiliary: losses of poolings that bring one, summed.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    batch: Tensor
    auxiliary: Tensor | None = None


# ---------------------------------------------------------------------- convolutions


class GraphConvolution(GCNConv):  # type: ignore[misc]
    """GCNConv with A + I as in the paper (equation 1).

    PyG looks for self-loops that are there already, which makes the host wait for the device and
    breaks the graph of a compiler. With none there, in all graphs of a chain above level 0 for
    instance, the two are the same; where there are some, as on the diagonal of a Coulomb matrix,
    PyG keeps them and this adds one to each.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, add_self_loops=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """The convolved features."""
        loops = torch.arange(x.shape[0], device=x.device).expand(2, -1)
        if edge_weight is None:
            edge_weight = x.new_ones(edge_index.shape[1])
        weight = torch.cat([edge_weight, edge_weight.new_ones(x.shape[0])])
        result: Tensor = super().forward(x, torch.cat([edge_index, loops], 1), weight)
        return result


def _gin(in_channels: int, width: int) -> GINConv:
    # One row alone, a batch of one graph pooled to one node, has no variance to normalise by.
    norm = {"allow_single_element": True}
    return GINConv(MLP([in_channels, width, width], norm="batch_norm", norm_kwargs=norm))


_CONVOLUTIONS: dict[str, tuple[Callable[[int, int], Any], bool]] = {
    # token: (in_channels, width -> convolution, whether it takes edge weights)
    "GC": (GraphConvolution, True),
    "GIN": (_gin, False),
    "SAGE": (SAGEConv, False),
    "GAT": (GATConv, False),
    "CHEB": (lambda in_channels, width: ChebConv(in_channels, width, K=3), True),
}


class Convolution(torch.nn.Module):
    """A convolution of PyG and a ReLU."""

    def __init__(self, token: str, in_channels: int, width: int) -> None:
        super().__init__()
        make, self.weighted = _CONVOLUTIONS[token]
        self.signature = (token, in_channels, width)
        self.conv = make(in_channels, width)

    def reset_parameters(self) -> None:
        """Fresh weights."""
        self.conv.reset_parameters()

    def forward(self, state: State, data: Tensors) -> State:
        """The next features on the same graphs."""
        weight = (state.edge_weight,) if self.weighted else ()
        return state._replace(x=self.conv(state.x, state.edge_index, *weight).relu())


# ---------------------------------------------------------------------- poolings


class Selection(torch.nn.Module):
    """TopKPooling or SAGPooling: keep the nodes of highest score."""

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.pool = pool

    def reset_parameters(self) -> None:
        """Fresh weights."""
        self.pool.reset_parameters()

    def forward(self, state: State, data: Tensors) -> State:
        """The best nodes and the edges between them."""
        x, edges, weight, batch, *_ = self.pool(
            state.x, state.edge_index, state.edge_weight, state.batch
        )
        return state._replace(x=x, edge_index=edges, edge_weight=weight, batch=batch)


class Contraction(torch.nn.Module):
    """EdgePooling: contract edges of high score; edge weights are not defined behind it."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.pool = EdgePooling(in_channels)

    def reset_parameters(self) -> None:
        """Fresh weights."""
        self.pool.reset_parameters()

    def forward(self, state: State, data: Tensors) -> State:
        """The contracted graphs."""
        x, edges, batch, _ = self.pool(state.x, state.edge_index, state.batch)
        return state._replace(x=x, edge_index=edges, edge_weight=None, batch=batch)


class Clusters(torch.nn.Module):
    """DiffPool, StructPool or LaPool: clusters with an assignment matrix."""

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.pool = pool

    def reset_parameters(self) -> None:
        """Fresh weights."""
        self.pool.reset_parameters()

    def forward(self, state: State, data: Tensors) -> State:
        """The graphs of clusters."""
        out = self.pool(state.x, state.edge_index, state.edge_weight, state.batch)
        auxiliary = state.auxiliary
        if out.details is not None:
            auxiliary = out.details.sum() + (0 if auxiliary is None else auxiliary)
        return State(out.x, out.edge_index, out.edge_weight, out.batch, auxiliary)


class ChainPooling(torch.nn.Module):
    """HaarPooling or EigenPooling: the clusters of the chain."""

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.pool = pool

    def reset_parameters(self) -> None:
        """Nothing to reset."""

    def forward(self, state: State, data: Tensors) -> State:
        """The next level of the chain."""
        out = self.pool(state.x, data)
        return State(out.x, out.edge_index, out.edge_weight, out.batch, state.auxiliary)


def make_pooling(token: str, in_channels: int, ratio: float, num_clusters: int) -> torch.nn.Module:
    """The stage of a pooling that needs no chain."""
    if token == "SP":
        return Selection(SAGPooling(in_channels, ratio))
    if token == "TP":
        return Selection(TopKPooling(in_channels, ratio))
    if token == "EP":
        return Contraction(in_channels)
    pools: dict[str, Callable[[], torch.nn.Module]] = {
        "DP": lambda: DiffPool(in_channels, num_clusters),
        "STRUCT": lambda: StructPool(in_channels, num_clusters),
        "LAP": lambda: LaPool(in_channels),
    }
    return Clusters(pools[token]())


# ---------------------------------------------------------------------- readouts

SORTED_NODES = 30  # of SORT; smaller graphs are filled up with zeros, larger ones cut


def make_readout(token: str, in_channels: int) -> tuple[Any, int]:
    """The aggregation of a global readout, and the width of what it gives."""
    if token == "S2S":
        return Set2Set(in_channels, processing_steps=3), 2 * in_channels
    if token == "SORT":
        return SortAggregation(SORTED_NODES), SORTED_NODES * in_channels
    kinds = {"MP": MaxAggregation, "AP": MeanAggregation, "SUM": SumAggregation}
    return kinds[token](), in_channels

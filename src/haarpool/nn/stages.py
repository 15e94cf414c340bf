"""What stands behind the tokens of poolings and readouts: PyG's classes wherever it has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.nn import EdgePooling, GCNConv, SAGPooling, TopKPooling
from torch_geometric.nn.aggr import (
    MaxAggregation,
    MeanAggregation,
    Set2Set,
    SortAggregation,
    SumAggregation,
)

from haarpool.nn.operators import Tensors
from haarpool.nn.peers.diffpool import DiffPool
from haarpool.nn.peers.lapool import LaPool
from haarpool.nn.peers.structpool import StructPool
from haarpool.nn.state import LayerState

# ---------------------------------------------------------------------- poolings


class Stage(torch.nn.Module):
    """A pooling as a part of a network: from one state to the next."""

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.pool = pool

    def reset_parameters(self) -> None:
        """Fresh weights."""
        self.pool.reset_parameters()


class Selection(Stage):
    """TopKPooling or SAGPooling: keep the nodes of highest score."""

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """The best nodes and the edges between them."""
        x, edges, weight, batch, *_ = self.pool(
            state.x, state.edge_index, state.edge_weight, state.batch
        )
        return state._replace(x=x, edge_index=edges, edge_weight=weight, batch=batch)


class Contraction(Stage):
    """EdgePooling: contract edges of high score; edge weights are not defined behind it.

    PyG contracts by falling score and does not say what happens to equal ones, which are common: a
    node with one neighbour always has the highest. So a graph may be contracted differently in
    another batch.
    """

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """The contracted graphs."""
        x, edges, batch, _ = self.pool(state.x, state.edge_index, state.batch)
        # They come by score; everything else expects them graph by graph.
        order = batch.argsort(stable=True)
        edges = order.argsort()[edges]
        return state._replace(x=x[order], edge_index=edges, edge_weight=None, batch=batch[order])


class Clusters(Stage):
    """DiffPool, StructPool or LaPool: clusters with an assignment matrix."""

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """The graphs of clusters."""
        out = self.pool(state.x, state.edge_index, state.edge_weight, state.batch)
        auxiliary = state.auxiliary
        if out.details is not None:
            auxiliary = out.details.sum() + (0 if auxiliary is None else auxiliary)
        return LayerState(out.x, out.edge_index, out.edge_weight, out.batch, auxiliary)


class ChainPooling(Stage):
    """HaarPooling or EigenPooling: the clusters of the chain."""

    def lacks(self, data: Tensors) -> str | None:
        """The key that its pooling reads and that the data does not have, if there is one."""
        level, modes = self.pool.level, getattr(self.pool, "num_modes", 0)
        if modes:
            key = f"haar_modes_{level}"
            return None if key in data and data[key].shape[0] >= modes else f"{modes} rows {key}"
        keys = (f"haar_basis_{level + 1}", f"haar_values_{level + 1}")
        lacking = [key for key in keys if key not in data]
        return lacking[0] if self.pool.domain == "haar" and lacking else None

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """The next level of the chain."""
        out = self.pool(state.x, data)
        return LayerState(out.x, out.edge_index, out.edge_weight, out.batch, state.auxiliary)


def make_pooling(token: str, in_channels: int, ratio: float, num_clusters: int) -> Stage:
    """The stage of a pooling that needs no chain."""
    makers: dict[str, Callable[[], Stage]] = {
        # SAGPool scores with a GCN in its paper.
        "SP": lambda: Selection(SAGPooling(in_channels, ratio, GNN=GCNConv)),
        "TP": lambda: Selection(TopKPooling(in_channels, ratio)),
        "EP": lambda: Contraction(EdgePooling(in_channels)),
        "DP": lambda: Clusters(DiffPool(in_channels, num_clusters)),
        "STRUCT": lambda: Clusters(StructPool(in_channels, num_clusters)),
        "LAP": lambda: Clusters(LaPool(in_channels)),
    }
    return makers[token]()


# ---------------------------------------------------------------------- readouts


def make_readout(token: str, in_channels: int, sorted_nodes: int) -> tuple[Any, int]:
    """The aggregation of a global readout, and the width of what it gives."""
    if token == "S2S":
        return Set2Set(in_channels, processing_steps=3), 2 * in_channels
    if token == "SORT":
        return SortAggregation(sorted_nodes), sorted_nodes * in_channels
    kinds = {"MP": MaxAggregation, "AP": MeanAggregation, "SUM": SumAggregation}
    return kinds[token](), in_channels

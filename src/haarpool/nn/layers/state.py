"""What passes from layer to layer: the graphs of a minibatch, and their edges for a convolution."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from haarpool.haar.operators import Rows, gather_sum
from haarpool.nn.inputs import Tensors
from haarpool.nn.layers.neighbours import DenseNeighbours, Neighbours


class Edges(NamedTuple):
    """The edges of a batch.

    Attributes:
        edge_index: (2, E) edges, from the first to the second.
        edge_weight: (E,) weights of the edges, or `None`.
        neighbours: The same as lists or matrices, or `None`.
        num_real: Number of rows that count in a batch norm, a tensor without dimensions; `None` if
            all do. A padded batch has more rows.
    """

    edge_index: Tensor
    edge_weight: Tensor | None = None
    neighbours: Neighbours | DenseNeighbours | None = None
    num_real: Tensor | None = None

    def weights(self, x: Tensor) -> Tensor:
        """Return the weights, ones if there are none."""
        if self.edge_weight is None:
            return x.new_ones(self.edge_index.shape[1])
        return self.edge_weight

    def sum(self, x: Tensor) -> Tensor:
        """Return (N, d) the weighted sum of x (N, d) over the incoming edges of each node."""
        if self.neighbours is not None:
            return self.neighbours.sum(x)
        return self.sum_messages(self.at_source(x), x.shape[0])

    def total_weight(self, like: Tensor, *, absolute: bool = False) -> Tensor:
        """Return (N, 1) the sum of the weights of the incoming edges, see `Neighbours`."""
        if self.neighbours is not None:
            return self.neighbours.total_weight(like, absolute=absolute)
        weight = self.weights(like).abs() if absolute else self.weights(like)
        total: Tensor = scatter(weight, self.edge_index[1], 0, like.shape[0], "sum")[:, None]
        return total

    def unweighted(self) -> Edges:
        """Return the edges without weights."""
        neighbours = self.neighbours
        if isinstance(neighbours, Neighbours):
            neighbours = neighbours.unweighted()
        return self._replace(edge_weight=None, neighbours=neighbours)

    def averaging(self, like: Tensor) -> Edges:
        """Return the edges with weights whose `sum` is a mean: 0 for a node without neighbours."""
        total = self.total_weight(like.flatten(1), absolute=True)[:, 0]
        factor = torch.where(total > 0, 1 / total, 0)
        if isinstance(self.neighbours, Neighbours):
            target = self.edge_index[self.neighbours.target_row]
            neighbours = self.neighbours.scaled(factor, target)
            return self._replace(neighbours=neighbours)
        weight = self.weights(like) * factor[self.edge_index[1]]
        return self._replace(edge_weight=weight)

    def at_source(self, x: Tensor) -> Tensor:
        """Return (E, d) the features of the source of each edge."""
        if isinstance(self.neighbours, Neighbours):
            return self.neighbours.at_source(x)
        return x.index_select(0, self.edge_index[0])

    def sum_messages(self, messages: Tensor, num_nodes: int) -> Tensor:
        """Return (N, d) the weighted sum of messages (E, d) over the incoming edges."""
        if isinstance(self.neighbours, Neighbours):
            target = self.edge_index[self.neighbours.target_row]
            return self.neighbours.sum_messages(messages, target)
        target = self.edge_index[1]
        if self.edge_weight is not None:
            messages = self.edge_weight[:, None] * messages
        summed: Tensor = scatter(messages, target, 0, num_nodes, "sum")
        return summed


class LayerState(NamedTuple):
    """The graphs of a minibatch between two stages.

    Attributes:
        x: (N, d) node features, sorted graph by graph.
        edge_index: (2, E) edges.
        edge_weight: (E,) edge weights, or `None`.
        batch: (N,) graph of each node.
        auxiliary: Sum of the losses of poolings so far, or `None`.
        neighbours: The edges as lists or matrices, or `None`.
        start: (B,) first node of each graph, or `None` if it is not known.
        padded: True if the last graph only fills up the minibatch.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    batch: Tensor
    auxiliary: Tensor | None = None
    neighbours: Neighbours | DenseNeighbours | None = None
    start: Tensor | None = None
    padded: bool = False

    @classmethod
    def of_input(cls, x: Tensor, data: Tensors, *, padded: bool = False) -> LayerState:
        """Return the input graphs, with features x (N, d) in the place of `data["x"]`."""
        edges = data["edge_index"]
        weight = data["edge_weight"].to(x.dtype) if "edge_weight" in data else None
        return cls(
            x,
            edges,
            weight,
            data["batch"] if "batch" in data else edges.new_zeros(x.shape[0]),
            neighbours=Neighbours.of_input(data, weight),
            start=data["ptr"][:-1] if "ptr" in data else None,
            padded=padded,
        )

    def edges(self) -> Edges:
        """Return the edges, as convolutions read them."""
        weight = self.edge_weight
        if weight is not None:
            weight = weight.to(self.x.dtype)
        num_real = self.start[-1] if self.padded and self.start is not None else None
        return Edges(self.edge_index, weight, self.neighbours, num_real)

    def sum_nodes(self, x: Tensor, num_graphs: int) -> Tensor:
        """Return (B, d) the sums of x (N, d) over each graph, in a fixed order if it is known."""
        if self.start is None:
            scattered: Tensor = scatter(x, self.batch, 0, num_graphs, "sum")
            return scattered
        nodes = torch.arange(x.shape[0], device=x.device, dtype=self.batch.dtype)
        return gather_sum(x, Rows(nodes, self.start), Rows(self.batch))

    def at_nodes(self, rows: Tensor) -> Tensor:
        """Return (N, d) for each node the row of its graph, the transpose of `sum_nodes`."""
        if self.start is None:
            return rows[self.batch]
        nodes = torch.arange(self.batch.shape[0], device=rows.device, dtype=self.batch.dtype)
        return gather_sum(rows, Rows(self.batch), Rows(nodes, self.start))

    def count_nodes(self, num_graphs: int) -> Tensor:
        """Return (B, 1) the number of nodes of each graph, at least 1."""
        if self.start is None:
            ones = torch.ones_like(self.batch)
            count: Tensor = scatter(ones, self.batch, 0, num_graphs, "sum")
        else:
            end = self.start.new_full((1,), self.x.shape[0])
            count = torch.diff(self.start, append=end)
        return count.clamp(min=1)[:, None]

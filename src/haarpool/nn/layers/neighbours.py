"""`Neighbours`: the edges of a batch as lists in both directions; `DenseNeighbours`: as matrices.

A convolution sums over the neighbours of each node, and its gradient sums over the same edges the
other way round. With both lists at hand each is a sum in a fixed order: the same bits each time,
without the slow deterministic scatter of torch. After a soft assignment nearly every pair of
clusters is an edge, and a product of matrices is faster than a sum over edges.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from haarpool.haar.chain_tensors import ChainTensors, Tree
from haarpool.haar.operators import Rows, gather_sum
from haarpool.nn.inputs import Tensors

# Keys of `haarpool.training.minibatches`, whose edges are sorted by their target.
STARTS = "neighbour_starts"  # (2, N) first edge of each node among edges by target and by source
BY_SOURCE = "neighbour_order"  # (E,) the edges sorted by their source


class Neighbours(NamedTuple):
    """Lists of neighbours.

    Messages are in the order of the incoming edges, list by list.

    Attributes:
        incoming: For each node the sources of its incoming edges.
        outgoing: For each node the targets of its outgoing edges, the transpose.
        by_source: (E,) the edges sorted by their source, or `None` if it is not known.
        target_row: The row of `edge_index` with the node to whose list of incoming edges an edge
            belongs. It is 0 for coarse graphs: they are symmetric and sorted by their first row.
    """

    incoming: Rows
    outgoing: Rows
    by_source: Tensor | None = None
    target_row: int = 1

    def unweighted(self) -> Neighbours:
        """Return the lists without weights."""
        incoming, outgoing = (rows._replace(weight=None) for rows in self[:2])
        return self._replace(incoming=incoming, outgoing=outgoing)

    def scaled(self, factor: Tensor, target: Tensor) -> Neighbours:
        """Return the lists with weights multiplied by a factor (N,) of the target of each edge.

        Args:
            factor: (N,) factors.
            target: (E,) target of each incoming edge.
        """

        def scale(rows: Rows, node: Tensor) -> Rows:
            weight = factor.index_select(0, node)
            return rows._replace(weight=weight if rows.weight is None else rows.weight * weight)

        return self._replace(
            incoming=scale(self.incoming, target),
            outgoing=scale(self.outgoing, self.outgoing.row),
        )

    @classmethod
    def of_input(cls, data: Tensors, edge_weight: Tensor | None) -> Neighbours | None:
        """Return the lists of the input graphs, or None if the data does not have them."""
        if STARTS not in data or (edge_weight is not None and edge_weight.requires_grad):
            return None
        (source, target), by_source = data["edge_index"], data[BY_SOURCE]
        incoming_start, outgoing_start = data[STARTS]
        outgoing_weight = None if edge_weight is None else edge_weight.index_select(0, by_source)
        return cls(
            Rows(source, incoming_start, edge_weight),
            Rows(target.index_select(0, by_source), outgoing_start, outgoing_weight),
            by_source,
        )

    @classmethod
    def of_level(cls, chain: ChainTensors, level: int, edges: Tensor, weight: Tensor) -> Neighbours:
        """Return the lists of the coarse graphs of a level >= 1, which are symmetric.

        The incoming edge (q, p) stands in the place of the edge (p, q): so the edges with source q
        are the reversed ones of the list of q.
        """
        rows = Rows(edges[1], chain.trees[level][Tree.EDGE], weight.contiguous())
        return cls(rows, rows, chain.reversed_edges(level), target_row=0)

    def sum(self, x: Tensor) -> Tensor:
        """Return the weighted sum of x over the incoming edges of each node."""
        return gather_sum(x, self.incoming, self.outgoing)

    def at_source(self, x: Tensor) -> Tensor:
        """Return (E, d) the features of the source of each incoming edge."""
        assert self.by_source is not None
        source = Rows(self.incoming.row)
        return gather_sum(x, source, Rows(self.by_source, self.outgoing.start))

    def sum_messages(self, messages: Tensor, target: Tensor) -> Tensor:
        """Return (N, d) the weighted sum of messages (E, d), by the target (E,) of each one."""
        rows = self.incoming
        edges = torch.arange(messages.shape[0], device=messages.device, dtype=rows.row.dtype)
        return gather_sum(messages, rows._replace(row=edges), Rows(target, None, rows.weight))

    def total_weight(self, like: Tensor, *, absolute: bool = False) -> Tensor:
        """Return (N, 1) the sum of the weights of the incoming edges of each node.

        Args:
            like: (N, d) features, for the type of the result.
            absolute: Sum absolute values.
        """
        rows = self.incoming
        if absolute and rows.weight is not None:
            rows = rows._replace(weight=rows.weight.abs())
        with torch.no_grad():  # weights are data
            return gather_sum(like.new_ones(like.shape[0], 1), rows, rows)


class DenseNeighbours(NamedTuple):
    """The adjacency matrices of graphs with the same number of nodes, with learned weights.

    Attributes:
        adjacency: (B, m, m) weight of the edge from each node to each other one; 0 without an edge.
    """

    adjacency: Tensor

    @classmethod
    def of_clusters(
        cls, edges: Tensor, weight: Tensor, num_rows: int, size: int
    ) -> DenseNeighbours:
        """Return the matrices of graphs of m = size nodes, num_rows in all; edges occur once."""
        source, target = edges
        entries = weight.new_zeros(num_rows * size)
        entries = entries.index_put((source * size + target % size,), weight)
        return cls(entries.view(-1, size, size))

    def sum(self, x: Tensor) -> Tensor:
        """Return the weighted sum of x over the incoming edges of each node."""
        rows = x.reshape(*self.adjacency.shape[:2], -1)
        return (self.adjacency.mT.to(x.dtype) @ rows).flatten(0, 1)

    def total_weight(self, like: Tensor, *, absolute: bool = False) -> Tensor:
        """Return (N, 1) the sum of the weights of the incoming edges, see `Neighbours`."""
        weights = self.adjacency.abs() if absolute else self.adjacency
        return weights.sum(1).view(-1, 1).to(like.dtype)

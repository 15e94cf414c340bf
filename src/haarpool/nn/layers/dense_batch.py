"""Minibatches as dense tensors (B, n, d) and back, for poolings with an assignment matrix.

B is the number of graphs and n the number of nodes of the largest one. Smaller graphs have rows of
zeros at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.utils import to_dense_adj, to_dense_batch

from haarpool.errors import HaarPoolError
from haarpool.nn.layers.pooling_output import PoolingOutput


class DensePooling(nn.Module):
    """A pooling with an assignment matrix: a subclass pools dense tensors by `pool`.

    The layer does not compile into one graph (`torch.compile(fullgraph=True)`) and cannot be
    exported, because the shapes of its tensors depend on the largest graph of the batch, on the
    number of clusters and on the number of edges of weight zero. It compiles with graph breaks. The
    host waits for the device to read these shapes.
    """

    in_channels: int

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> PoolingOutput:
        """Pool a minibatch.

        Args:
            x: (N, in_channels) node features.
            edge_index: (2, E) edges.
            edge_weight: (E,) edge weights.
            batch: (N,) graph of each node, sorted.
        """
        width = self.in_channels
        if x.dim() != 2 or x.shape[1] != width:
            raise HaarPoolError(
                f"x of shape (N, {width})",
                f"{tuple(x.shape)}",
                f"pass features with {width} columns",
            )
        return self.pool(*to_dense(x, edge_index, edge_weight, batch))

    def pool(self, x: Tensor, adj: Tensor, mask: Tensor) -> PoolingOutput:
        """Pool a dense batch.

        Args:
            x: (B, n, in_channels) node features.
            adj: (B, n, n) adjacency.
            mask: (B, n) mask of rows that are nodes.
        """
        raise NotImplementedError


def to_dense(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Convert a minibatch to features (B, n, d), adjacency (B, n, n) and a mask (B, n) of nodes.

    Reads the number of nodes of the largest graph, so the host waits for the device.
    """
    batch = edge_index.new_zeros(len(x)) if batch is None else batch
    if not bool((batch[1:] >= batch[:-1]).all()):
        raise HaarPoolError(
            "a sorted batch vector, nodes graph by graph",
            "an unsorted one",
            "sort x, edge_index and batch by batch first",
        )
    weight = x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight.to(x.dtype)
    dense, mask = to_dense_batch(x, batch)
    return dense, to_dense_adj(edge_index, batch, weight), mask


def to_sparse(x: Tensor, adj: Tensor, mask: Tensor | None = None) -> PoolingOutput:
    """Convert dense tensors to a minibatch, without edges of weight zero.

    PyG's dense_to_sparse changes in place a tensor that its backward pass needs (2.8.1).

    Args:
        x: (B, m, d) features of clusters.
        adj: (B, m, m) weights of edges between clusters.
        mask: (B, m) mask of rows that are clusters; `None` for all rows.
    """
    num_clusters = x.shape[1] if mask is None else None
    mask = adj.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
    graph, row, column = adj.nonzero().unbind(1)
    number = mask.flatten().cumsum(0).view_as(mask) - 1
    edge_index = torch.stack([number[graph, row], number[graph, column]])
    weight, batch = adj[graph, row, column], mask.nonzero()[:, 0]
    return PoolingOutput(x[mask], edge_index, weight, batch, num_clusters=num_clusters)


def hop_counts(adj: Tensor, start: Tensor, limit: int | None = None) -> Tensor:
    """Count the edges of the shortest paths from each node to m others.

    The direction of edges is ignored.

    Args:
        adj: (B, n, n) adjacency.
        start: (B, n, m) boolean, one column per target node, one-hot.
        limit: Length of the longest path to look for; `None` for all.

    Returns:
        (B, n, m) path lengths, infinity where there is no path.
    """
    # Float, because boolean matrices have no product.
    step = ((adj != 0) | (adj.mT != 0)).to(adj.dtype)
    hops = torch.zeros_like(start, dtype=adj.dtype).masked_fill(~start, torch.inf)
    reached, count = start, 0
    while limit is None or count < limit:
        count += 1
        new = (step @ reached.to(step.dtype) > 0) & ~reached
        if not new.any():
            break
        hops, reached = hops.masked_fill(new, count), reached | new
    return hops


def safe_divisor(size: Tensor) -> Tensor:
    """Replace zeros by ones, so that zero divided by the result is zero, with finite gradients."""
    return size.masked_fill(size < torch.finfo(size.dtype).eps, 1)

"""DiffPool as PyG computes it, in the shape of our other poolings."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import DenseSAGEConv, dense_diff_pool

from haarpool.nn.output import PoolingOutput
from haarpool.nn.peers.dense_batch import check_at_least, check_width, to_dense, to_sparse


class DiffPool(nn.Module):
    """Soft clusters that a graph network learns to assign.

    Ying, You, Morris, Ren, Hamilton, Leskovec, "Hierarchical Graph Representation Learning with
    Differentiable Pooling", NeurIPS 2018:

        S = softmax(GNN(X, A)),  X' = Sᵀ X,  A' = Sᵀ A S

    with the two losses of the paper as `details`: |A - S Sᵀ| over the number of entries, and the
    mean entropy of the assignments. GNN is two layers of GraphSAGE with means, as in the paper.
    Every graph gets `num_clusters` clusters. As PyG takes them, the losses of a batch count the
    entries that smaller graphs are filled up with.

    Args:
        in_channels: columns of x.
        num_clusters: clusters per graph.

    Shapes:
        x (N, in_channels), edge_index, edge_weight, batch -> `PoolingOutput` with
        x (graphs · num_clusters, in_channels) and details (2,).

    >>> DiffPool(64, num_clusters=8)
    DiffPool(64, num_clusters=8)
    """

    def __init__(self, in_channels: int, num_clusters: int = 16) -> None:
        super().__init__()
        check_at_least(1, in_channels=in_channels, num_clusters=num_clusters)
        self.in_channels, self.num_clusters = in_channels, num_clusters
        self.hidden = DenseSAGEConv(in_channels, in_channels)
        self.assign = DenseSAGEConv(in_channels, num_clusters)

    def reset_parameters(self) -> None:
        """Fresh weights."""
        self.hidden.reset_parameters()
        self.assign.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> PoolingOutput:
        """The clusters, the edges between them and the two losses."""
        check_width(x, self.in_channels)
        dense, adjacency, mask = to_dense(x, edge_index, edge_weight, batch)
        hidden = self.hidden(dense, adjacency, mask).relu()
        scores = self.assign(hidden, adjacency, mask)
        pooled, coarse, link, entropy = dense_diff_pool(dense, adjacency, scores, mask)
        everyone = mask.new_ones(pooled.shape[:2])
        losses = torch.stack([link, entropy])
        return to_sparse(pooled, coarse, everyone)._replace(details=losses)

    def __repr__(self) -> str:
        return f"DiffPool({self.in_channels}, num_clusters={self.num_clusters})"

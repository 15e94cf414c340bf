"""DiffPool: soft clusters, computed by PyG's functions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import DenseSAGEConv, dense_diff_pool

from haarpool._validate import whole_number
from haarpool.nn.layers.dense_batch import check_width, to_dense, to_sparse
from haarpool.nn.layers.pooling_output import PoolingOutput
from haarpool.nn.strings.registry import layer


@layer("DP", kind="pooling", limits={"num_clusters": (1, 1024)})
class DiffPool(nn.Module):
    """Pool nodes into soft clusters that a graph network assigns.

        S = softmax(GNN(X, A)),  X' = Sᵀ X,  A' = Sᵀ A S

    Ying, You, Morris, Ren, Hamilton, Leskovec, "Hierarchical Graph Representation Learning with
    Differentiable Pooling", NeurIPS 2018. `details` of the output holds the two losses of the
    paper: |A - S Sᵀ| divided by the number of entries, and the mean entropy of the assignments. GNN
    has two layers of GraphSAGE with means, as in the paper. Every graph gets `num_clusters`
    clusters. As in PyG, the losses of a batch count the entries that pad smaller graphs.

    The layer does not compile into one graph (`torch.compile(fullgraph=True)`) and cannot be
    exported, because the shapes of its tensors depend on the largest graph of the batch and on the
    number of edges of weight zero. It compiles with graph breaks. The host waits for the device to
    read these shapes.

    Args:
        in_channels: Number of columns of x.
        num_clusters: Clusters per graph.

    Shapes:
        - **input:** x (N, in_channels), edge_index (2, E), edge_weight (E,) *(optional)*,
          batch (N,) *(optional)*
        - **output:** `PoolingOutput` with x (B · num_clusters, in_channels) and details (2,)

    Example:
        >>> DiffPool(64, num_clusters=8)
        DiffPool(64, num_clusters=8)
    """

    def __init__(self, in_channels: int, num_clusters: int = 16) -> None:
        super().__init__()
        self.in_channels = whole_number("in_channels", in_channels)
        self.num_clusters = whole_number("num_clusters", num_clusters)
        self.hidden = DenseSAGEConv(self.in_channels, self.in_channels)
        self.assign = DenseSAGEConv(self.in_channels, self.num_clusters)

    def reset_parameters(self) -> None:
        """Reset the weights."""
        self.hidden.reset_parameters()
        self.assign.reset_parameters()

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
        check_width(x, self.in_channels)
        dense, adjacency, mask = to_dense(x, edge_index, edge_weight, batch)
        hidden = self.hidden(dense, adjacency, mask).relu()
        scores = self.assign(hidden, adjacency, mask)
        pooled, coarse, link, entropy = dense_diff_pool(dense, adjacency, scores, mask)
        return to_sparse(pooled, coarse)._replace(details=torch.stack([link, entropy]))

    def __repr__(self) -> str:
        return f"DiffPool({self.in_channels}, num_clusters={self.num_clusters})"

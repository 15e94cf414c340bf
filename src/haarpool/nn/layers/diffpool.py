"""DiffPool: soft clusters, computed by PyG's functions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import DenseSAGEConv, dense_diff_pool

from haarpool._validate import whole_number
from haarpool.nn.layers.dense_batch import DensePooling, to_sparse
from haarpool.nn.layers.pooling_output import PoolingOutput
from haarpool.nn.strings.registry import layer


@layer("DP", kind="pooling", limits={"num_clusters": (1, 1024)})
class DiffPool(DensePooling):
    """Pool nodes into soft clusters that a graph network assigns.

        S = softmax(GNN(X, A)),  X' = Sᵀ X,  A' = Sᵀ A S

    Ying, You, Morris, Ren, Hamilton, Leskovec, "Hierarchical Graph Representation Learning with
    Differentiable Pooling", NeurIPS 2018. `details` of the output holds the two losses of the
    paper: |A - S Sᵀ| divided by the number of entries, and the mean entropy of the assignments. GNN
    has two layers of GraphSAGE with means, as in the paper. Every graph gets `num_clusters`
    clusters. As in PyG, the losses of a batch count the entries that pad smaller graphs.

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

    def pool(self, x: Tensor, adj: Tensor, mask: Tensor) -> PoolingOutput:
        """Pool a dense batch."""
        hidden = self.hidden(x, adj, mask).relu()
        scores = self.assign(hidden, adj, mask)
        pooled, coarse, link, entropy = dense_diff_pool(x, adj, scores, mask)
        return to_sparse(pooled, coarse)._replace(details=torch.stack([link, entropy]))

    def __repr__(self) -> str:
        return f"DiffPool({self.in_channels}, num_clusters={self.num_clusters})"

"""`PoolingOutput`, the value that every pooling layer returns."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class PoolingOutput(NamedTuple):
    """A minibatch of coarse graphs, the input of the next layer.

    Attributes:
        x: (M, d) features of the clusters, sorted graph by graph.
        edge_index: (2, F) edges between clusters.
        edge_weight: (F,) weights of these edges, in the dtype of x, or `None` for ones.
        batch: (M,) graph of each cluster, sorted.
        details: Haar details of `HaarPooling`; for a pooling without a chain, losses whose sum is
            added in training, such as those of `DiffPool`; otherwise `None`.
        num_clusters: Clusters of each graph, if all graphs have as many and each edge is there at
            most once; otherwise `None`.
        edge_attr: (F, C+1) features of these edges and, as the last column, their number, if the
            data is of `AddHaarChain(edge_attr=...)`; otherwise `None`.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    batch: Tensor
    details: Tensor | None = None
    num_clusters: int | None = None
    edge_attr: Tensor | None = None

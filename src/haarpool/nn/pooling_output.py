"""`PoolingOutput`, the value that every pooling layer returns."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class PoolingOutput(NamedTuple):
    """A minibatch of coarse graphs, the input of the next layer.

    Attributes:
        x: (M, d) features of the clusters, sorted graph by graph.
        edge_index: (2, F) edges between clusters.
        edge_weight: (F,) weights of these edges, in the dtype of x.
        batch: (M,) graph of each cluster, sorted.
        details: Further output of the method: Haar details of `HaarPooling`, the losses of
            `DiffPool`, otherwise `None`.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    details: Tensor | None = None

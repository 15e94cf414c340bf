"""What every pooling layer returns."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class PoolingOutput(NamedTuple):
    """A coarser minibatch, ready for the next layer.

    Attributes:
        x: (M, d) features of the clusters, graph by graph.
        edge_index: (2, F) edges between clusters.
        edge_weight: (F,) their weights.
        batch: (M,) graph of each cluster, sorted.
        details: what the method leaves besides, for example Haar details.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    batch: Tensor
    details: Tensor | None = None

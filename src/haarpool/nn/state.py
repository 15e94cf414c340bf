"""What flows through a network."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class LayerState(NamedTuple):
    """Features and the graphs that they stand on; a stage takes one and gives the next.

    Attributes:
        x: (N, d) features, graph by graph.
        edge_index, edge_weight, batch: the graphs.
        auxiliary: losses of poolings that bring some, summed.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    batch: Tensor
    auxiliary: Tensor | None = None

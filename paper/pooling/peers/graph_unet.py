"""`graphunet`: the Graph U-Net of Gao and Ji (2019), as PyG has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch_geometric.nn
from torch import Tensor

from haarpool.nn.layers.state import LayerState
from paper.pooling.peers.architecture import LevelsArchitecture
from paper.pooling.peers.edges import augmented
from paper.pooling.peers.of_graphs import OfGraphs
from paper.pooling.peers.peer import Peer
from paper.pooling.peers.registering import peer, variant


@peer("graphunet")
@dataclass(frozen=True)
class GraphUNetArchitecture(LevelsArchitecture):
    """The sizes of a `GraphUNet`.

    Attributes:
        normalized: Whether A² is made of weights over degrees, see `augmented`; with `False` as in
            PyG, whose outputs are not finite from six levels on.
    """

    normalized: bool = True
    network: ClassVar[str] = "GraphUNet"
    home: ClassVar[str] = __name__


class GraphUNet(Peer):
    """PyG's `GraphUNet` between the embedding and the output of `HaarUNet`.

    A GCN convolution on each level down and up, TopK selection of half of the nodes, A², sums with
    the skips, ReLU. Edges have no weights, see `edges`.
    """

    architecture = GraphUNetArchitecture

    def __init__(
        self,
        *arguments: Any,
        levels: int | None = None,
        normalized: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, levels=levels, normalized=normalized, **settings)
        width = self.embedding.out_features
        kind = NormalizedGraphUNet if normalized else torch_geometric.nn.GraphUNet
        self.unet = kind(width, width, width, levels, pool_ratios=0.5, act="relu")

    def layers(self, x: Tensor, graphs: LayerState, edge_attr: Tensor | None) -> Tensor:
        """Return (N, 1, width) the output of PyG's network."""
        weight = x.new_ones(graphs.edge_index.shape[1])
        result: Tensor = self.unet(x[:, 0], graphs.edge_index, graphs.batch, weight)
        return result[:, None]


@variant("graphunetgraph", of_nodes=False)
class GraphUNetGraph(OfGraphs, GraphUNet):
    """`GraphUNet` with an output per graph, see `OfGraphs`."""


class NormalizedGraphUNet(torch_geometric.nn.GraphUNet):  # type: ignore[misc]
    """PyG's `GraphUNet` with finite weights on all levels."""

    def augment_adj(
        self, edge_index: Tensor, edge_weight: Tensor, num_nodes: int
    ) -> tuple[Tensor, Tensor]:
        """Return the edges of A², see `augmented`."""
        return augmented(edge_index, edge_weight, num_nodes)

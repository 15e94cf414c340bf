"""U-Nets of mean convolutions on levels of selected nodes: `topkunet`, `sagunet`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import LayerNorm, Linear, ModuleList, Parameter
from torch_geometric.nn import GCNConv
from torch_geometric.nn.pool.connect.filter_edges import filter_adj
from torch_geometric.nn.pool.select.topk import topk

from haarpool.nn.layers.mean_convolution import MeanConvolution, MeanEdges
from haarpool.nn.layers.state import LayerState
from paper.pooling.peers.architecture import LevelsArchitecture
from paper.pooling.peers.edges import augmented
from paper.pooling.peers.peer import Peer
from paper.pooling.peers.registering import variant

RATIO = 0.5


class Selection(NamedTuple):
    """The nodes of a level that the next one has.

    Attributes:
        nodes: (n,) the nodes.
        graphs: The graphs of these nodes.
        gate: (n, 1, 1) factor of their features, or `None`.
    """

    nodes: Tensor
    graphs: LayerState
    gate: Tensor | None = None


@dataclass(frozen=True)
class SelectionArchitecture(LevelsArchitecture):
    """The sizes of a `SelectionUNet`.

    Attributes:
        depth: Number of convolutions on each level on the way down, and as many on the way up.
    """

    depth: int = 1
    home: ClassVar[str] = __name__
    limits: ClassVar[dict[str, tuple[int, int]]] = {"levels": (0, 64), "depth": (1, 64)}


class SelectionUNet(Peer):
    """`HaarUNet` with nodes that are selected, instead of clusters.

        down    depth convolutions on level j, then x_{j+1} = gate * x_j[nodes]
        up      x_j + (W x_{j+1} at the selected nodes, 0 at the others), then depth convolutions

    Convolutions, skips and output are those of `HaarUNet`. Convolutions read edge features on the
    input graph; edges of coarse graphs have weights alone.
    """

    architecture = SelectionArchitecture

    embeds_edges = False

    def __init__(
        self, *arguments: Any, depth: int = 1, levels: int | None = None, **settings: Any
    ) -> None:
        super().__init__(*arguments, depth=depth, levels=levels, **settings)
        assert levels is not None
        width = self.embedding.out_features
        channels = [self.edge_channels] + [0] * levels  # of edges, on each level
        self.down, self.up = (
            ModuleList(
                ModuleList(MeanConvolution(width, channels[j]) for _ in range(depth))
                for j in range(number)
            )
            for number in (levels + 1, levels)
        )
        self.corrections = ModuleList(Linear(width, width) for _ in self.up)

    def layers(self, x: Tensor, graphs: LayerState, edge_attr: Tensor | None) -> Tensor:
        """Return (N, S, width) the last convolution on the input graphs."""
        plan = self.plan(graphs)
        edges, selected = [MeanEdges(graphs, edge_attr)], list[Tensor]()
        signals = [_convolve(self.down[0], x, edges[0])]
        for j in range(len(self.up)):
            nodes, graphs, gate = self.select(j, signals[j], graphs, plan)
            x = signals[j].index_select(0, nodes)
            edges.append(MeanEdges(graphs))
            selected.append(nodes)
            x = x if gate is None else gate * x
            signals.append(_convolve(self.down[j + 1], x, edges[-1]))
        x = signals.pop()
        for j in reversed(range(len(self.up))):
            x = signals[j].index_add(0, selected[j], self.corrections[j](x))
            x = _convolve(self.up[j], x, edges[j])
        return x

    def plan(self, graphs: LayerState) -> Any:
        """Return what `select` needs on all levels."""
        return None

    @abstractmethod
    def select(self, level: int, x: Tensor, graphs: LayerState, plan: Any) -> Selection:
        """Return the next level of x (N_j, S, width)."""


def _convolve(convolutions: Any, x: Tensor, edges: MeanEdges) -> Tensor:
    for convolution in convolutions:
        x = convolution(x, edges)
    return x


# ---------------------------------------------------------------------- learned scores


@dataclass(frozen=True)
class ScoreArchitecture(SelectionArchitecture):
    """The sizes of a `ScoreUNet`.

    Attributes:
        squared: Whether a level has the edges of A² between selected nodes, or those of A.
    """

    squared: bool = True


class ScoreUNet(SelectionUNet):
    """A U-Net of the half of the nodes with the highest scores, in each graph and signal.

        nodes = top half of tanh(score(norm(x_j))), which is their gate

    The score sees normalised features: else tanh is 1 at many nodes after a few levels, and the
    selection arbitrary. Edges are those of A² as in Graph U-Nets: of A, most nodes lose all their
    neighbours in a few levels.
    """

    architecture = ScoreArchitecture

    def __init__(self, *arguments: Any, squared: bool = True, **settings: Any) -> None:
        super().__init__(*arguments, squared=squared, **settings)
        self.squared = squared
        width = self.embedding.out_features
        self.score_norms = ModuleList(LayerNorm(width) for _ in self.up)
        self.scores = ModuleList(self.make_score(width) for _ in self.up)

    @abstractmethod
    def make_score(self, width: int) -> torch.nn.Module:
        """Return a module: (N,) or (N, 1) = score(x (N, width), edge_index)."""

    def select(self, level: int, x: Tensor, graphs: LayerState, plan: None) -> Selection:
        """Return the next level of x (N_j, 1, width)."""
        edges, num_nodes = graphs.edge_index, len(x)
        weight = graphs.edges().weights(x)
        h = self.score_norms[level](x[:, 0])
        score = self.scores[level](h, edges).view(-1).tanh()  # without weights, see `edges`
        nodes = topk(score, RATIO, graphs.batch)
        if self.squared:
            edges, weight = augmented(edges, weight, num_nodes)
        edges, weight = filter_adj(edges, weight, nodes, num_nodes=num_nodes)
        coarse = LayerState(graphs.x[nodes], edges, weight, graphs.batch[nodes])
        return Selection(nodes, coarse, score[nodes].view(-1, 1, 1))


@variant("topkunet")
class TopKUNet(ScoreUNet):
    """The U-Net with TopK selection (Gao and Ji, 2019): score(x) = x · p / |p|."""

    def make_score(self, width: int) -> torch.nn.Module:
        """Return the projection."""
        return Projection(width)


@variant("sagunet")
class SAGUNet(ScoreUNet):
    """The U-Net with SAG selection (Lee et al., 2019): a graph convolution gives the score.

    The paper has no U-Net and the edges of A between selected nodes: `squared=false`. A² keeps
    levels connected, and TopK has it.
    """

    def make_score(self, width: int) -> torch.nn.Module:
        """Return the convolution of the paper."""
        convolution: torch.nn.Module = GCNConv(width, 1)
        return convolution


class Projection(torch.nn.Module):
    """Project on a vector p: x · p / |p|."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.direction = Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw p anew."""
        torch.nn.init.uniform_(self.direction, -1, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return (N,) the projections."""
        result: Tensor = x @ (self.direction / self.direction.norm())
        return result

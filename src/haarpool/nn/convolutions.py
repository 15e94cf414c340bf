"""The convolutions of architecture strings: those of PyG, each with edge weights.

With lists or matrices of neighbours all but CHEB and GAT sum over these (`haarpool.nn.neighbours`),
which is faster and gives the same bits each time; otherwise PyG scatters.

The weights of a coarse graph count the edges between clusters, and after a soft assignment nearly
every pair of clusters is an edge. A convolution without weights would ignore the coarse graph. If
`edge_weight` is `None`, each class equals that of PyG.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import MLP, ChebConv, GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.utils import scatter

from haarpool.nn.masked import batch_norm
from haarpool.nn.neighbours import DenseNeighbours, Neighbours
from haarpool.nn.peers.dense_batch import safe_divisor


class Graph(NamedTuple):
    """The edges of a batch.

    Attributes:
        edge_index: (2, E) edges, from the first to the second.
        edge_weight: (E,) weights of the edges, or `None`.
        neighbours: The same as lists or matrices, or `None`.
        num_real: Number of rows that count in a batch norm, a tensor without dimensions; `None` if
            all do. A padded batch has more rows.
    """

    edge_index: Tensor
    edge_weight: Tensor | None = None
    neighbours: Neighbours | DenseNeighbours | None = None
    num_real: Tensor | None = None

    def weights(self, x: Tensor) -> Tensor:
        """Return the weights, ones if there are none."""
        if self.edge_weight is None:
            return x.new_ones(self.edge_index.shape[1])
        return self.edge_weight


class WeightedGCN(GCNConv):  # type: ignore[misc]  # PyG has no types
    """GCNConv with A + I as in the paper (equation 1).

    PyG looks for existing self-loops, so the host waits for the device. Without self-loops, as in
    all graphs of a chain above level 0, both give the same. PyG keeps existing self-loops, such as
    the diagonal of a Coulomb matrix; this class adds 1 to each.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, add_self_loops=False)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        if graph.neighbours is not None:
            scale = (1 + graph.neighbours.total_weight(x)).pow(-0.5)
            scale = scale.masked_fill(scale.isinf(), 0)
            x = scale * self.lin(x)
            convolved: Tensor = scale * (graph.neighbours.sum(x) + x) + self.bias
            return convolved
        loops = torch.arange(x.shape[0], device=x.device).expand(2, -1)
        weight = torch.cat([graph.weights(x), x.new_ones(x.shape[0])])
        result: Tensor = super().forward(x, torch.cat([graph.edge_index, loops], 1), weight)
        return result


class MeanGCN(WeightedGCN):
    """The convolution of DGCNN: D⁻¹(A + I) x W, the weighted mean over a node and its neighbours.

    Zhang, Cui, Neumann, Chen, "An End-to-End Deep Learning Architecture for Graph Classification",
    AAAI 2018, equation 1. A tanh follows instead of a ReLU.
    """

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        x = self.lin(x)
        if graph.neighbours is not None:
            total, mass = graph.neighbours.sum(x), graph.neighbours.total_weight(x, absolute=True)
        else:
            weight, (source, target) = graph.weights(x), graph.edge_index
            total = scatter(weight[:, None] * x[source], target, 0, x.shape[0], "sum")
            mass = scatter(weight.abs(), target, 0, x.shape[0], "sum")[:, None]
        mean: Tensor = (total + x) / (1 + mass) + self.bias
        return mean


class WeightedGIN(GINConv):  # type: ignore[misc]
    """GINConv with the weighted sum Σ_j w_ij x_j over neighbours, then an MLP of two layers.

    Args:
        in_channels: Number of input columns.
        out_channels: Number of output columns.
        plain_last: Leave out batch norm and ReLU behind the second layer of the MLP.
    """

    def __init__(self, in_channels: int, out_channels: int, plain_last: bool = True) -> None:
        # A batch may be one graph of one node, which has no variance.
        norm = {"allow_single_element": True}
        widths = [in_channels, out_channels, out_channels]
        mlp = MLP(widths, norm="batch_norm", norm_kwargs=norm, plain_last=plain_last)
        super().__init__(mlp)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        if graph.neighbours is not None:
            total = graph.neighbours.sum(x)
        else:
            # propagate_type: (x: OptPairTensor, weight: Tensor)
            total = self.propagate(graph.edge_index, x=(x, x), weight=graph.weights(x))
        total = total + (1 + self.eps) * x
        if graph.num_real is None:
            result: Tensor = self.nn(total)
            return result
        for layer, norm in zip_longest(self.nn.lins, self.nn.norms):
            total = layer(total)
            if norm is not None:
                total = batch_norm(norm.module, total, graph.num_real).relu()
        return total

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """Return the weighted features of neighbours."""
        return weight[:, None] * x_j


class NormalizedGIN(WeightedGIN):
    """WeightedGIN with batch norm and ReLU behind both layers, as in the code of its authors."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, plain_last=False)


class WeightedSAGE(SAGEConv):  # type: ignore[misc]
    """SAGEConv with the weighted mean Σ_j w_ij x_j / Σ_j |w_ij| over neighbours."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, aggr="sum")

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        # Absolute values, because a sum of negative and positive weights may be zero.
        if graph.neighbours is not None:
            total = graph.neighbours.total_weight(x, absolute=True)
            mean = graph.neighbours.sum(x) / safe_divisor(total)
        else:
            weight, target = graph.weights(x), graph.edge_index[1]
            total = scatter(weight.abs(), target, dim_size=x.shape[0], reduce="sum")
            share = weight / safe_divisor(total)[target]
            # propagate_type: (x: OptPairTensor, weight: Tensor)
            mean = self.propagate(graph.edge_index, x=(x, x), weight=share)
        result: Tensor = self.lin_l(mean) + self.lin_r(x)
        return result

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """Return the weighted features of neighbours."""
        return weight[:, None] * x_j


class WeightedGAT(GATConv):  # type: ignore[misc]
    """GATConv with the edge weight as edge feature."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, edge_dim=1)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        result: Tensor = super().forward(x, graph.edge_index, graph.weights(x)[:, None])
        return result


class WeightedCheb(ChebConv):  # type: ignore[misc]
    """ChebConv with polynomials of degree 2."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, K=3)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        result: Tensor = super().forward(x, graph.edge_index, graph.edge_weight)
        return result


_CLASSES: dict[str, Any] = {
    "GC": WeightedGCN,
    "DGC": MeanGCN,
    "GIN": WeightedGIN,
    "GINB": NormalizedGIN,
    "SAGE": WeightedSAGE,
    "GAT": WeightedGAT,
    "CHEB": WeightedCheb,
}


def make_convolution(token: str, in_channels: int, out_channels: int) -> torch.nn.Module:
    """Make the convolution of a token.

    Args:
        token: One of `CONVOLUTIONS` in `haarpool.nn.architecture`.
        in_channels: Number of input columns.
        out_channels: Number of output columns.
    """
    result: torch.nn.Module = _CLASSES[token](in_channels, out_channels)
    return result

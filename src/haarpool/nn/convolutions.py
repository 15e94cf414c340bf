"""The convolutions of architecture strings: those of PyG, each with edge weights.

The weights of a coarse graph count the edges between clusters, and after a soft assignment nearly
every pair of clusters is an edge. A convolution without weights would ignore the coarse graph. If
`edge_weight` is `None`, each class equals that of PyG.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MLP, ChebConv, GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.utils import scatter

from haarpool.nn.peers.dense_batch import safe_divisor


class WeightedGCN(GCNConv):  # type: ignore[misc]  # PyG has no types
    """GCNConv with A + I as in the paper (equation 1).

    PyG looks for existing self-loops, so the host waits for the device. Without self-loops, as in
    all graphs of a chain above level 0, both give the same. PyG keeps existing self-loops, such as
    the diagonal of a Coulomb matrix; this class adds 1 to each.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, add_self_loops=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        loops = torch.arange(x.shape[0], device=x.device).expand(2, -1)
        weight = torch.cat([_weights_or_ones(x, edge_index, edge_weight), x.new_ones(x.shape[0])])
        result: Tensor = super().forward(x, torch.cat([edge_index, loops], 1), weight)
        return result


class WeightedGIN(GINConv):  # type: ignore[misc]
    """GINConv with the weighted sum Σ_j w_ij x_j over neighbours, then an MLP of two layers."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        # A batch may be one graph of one node, which has no variance.
        norm = {"allow_single_element": True}
        widths = [in_channels, out_channels, out_channels]
        super().__init__(MLP(widths, norm="batch_norm", norm_kwargs=norm))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        # propagate_type: (x: OptPairTensor, weight: Tensor)
        total = self.propagate(
            edge_index, x=(x, x), weight=_weights_or_ones(x, edge_index, edge_weight)
        )
        result: Tensor = self.nn(total + (1 + self.eps) * x)
        return result

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """Return the weighted features of neighbours."""
        return weight[:, None] * x_j


class WeightedSAGE(SAGEConv):  # type: ignore[misc]
    """SAGEConv with the weighted mean Σ_j w_ij x_j / Σ_j |w_ij| over neighbours."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, aggr="sum")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        weight = _weights_or_ones(x, edge_index, edge_weight)
        # Absolute values, because a sum of negative and positive weights may be zero.
        total = scatter(weight.abs(), edge_index[1], dim_size=x.shape[0], reduce="sum")
        share = weight / safe_divisor(total)[edge_index[1]]
        # propagate_type: (x: OptPairTensor, weight: Tensor)
        mean = self.propagate(edge_index, x=(x, x), weight=share)
        result: Tensor = self.lin_l(mean) + self.lin_r(x)
        return result

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """Return the weighted features of neighbours."""
        return weight[:, None] * x_j


class WeightedGAT(GATConv):  # type: ignore[misc]
    """GATConv with the edge weight as edge feature."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, edge_dim=1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        weight = _weights_or_ones(x, edge_index, edge_weight)
        result: Tensor = super().forward(x, edge_index, weight[:, None])
        return result


class WeightedCheb(ChebConv):  # type: ignore[misc]
    """ChebConv with polynomials of degree 2."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, K=3)


def _weights_or_ones(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    return x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight


_CLASSES: dict[str, Any] = {
    "GC": WeightedGCN,
    "GIN": WeightedGIN,
    "SAGE": WeightedSAGE,
    "GAT": WeightedGAT,
    "CHEB": WeightedCheb,
}


def make_convolution(token: str, in_channels: int, out_channels: int) -> torch.nn.Module:
    """Make the convolution of a token.

    Args:
        token: `"GC"`, `"GIN"`, `"SAGE"`, `"GAT"` or `"CHEB"`.
        in_channels: Number of input columns.
        out_channels: Number of output columns.
    """
    result: torch.nn.Module = _CLASSES[token](in_channels, out_channels)
    return result

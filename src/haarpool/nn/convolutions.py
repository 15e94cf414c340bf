"""The convolutions of architecture strings: PyG's, all of them with edge weights.

The graph of clusters says by its weights how many edges two clusters share, and behind a soft
assignment nearly every pair of clusters is an edge: a convolution that does not look at weights
would throw the coarse graph away. Without weights each is exactly PyG's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MLP, ChebConv, GATConv, GCNConv, GINConv, SAGEConv
from torch_geometric.utils import scatter

from haarpool.nn.operators import Tensors
from haarpool.nn.peers.dense_batch import nonzero
from haarpool.nn.state import LayerState


class WeightedGCN(GCNConv):  # type: ignore[misc]  # PyG has no types
    """GCNConv with A + I as in the paper (equation 1).

    PyG looks for self-loops that are there already, which makes the host wait for the device and
    breaks the graph of a compiler. With none there, as in all graphs of a chain above level 0, the
    two are the same; where there are some, as on the diagonal of a Coulomb matrix, PyG keeps them
    and this adds one to each.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, add_self_loops=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """The convolved features."""
        loops = torch.arange(x.shape[0], device=x.device).expand(2, -1)
        weight = torch.cat([_ones(x, edge_index, edge_weight), x.new_ones(x.shape[0])])
        result: Tensor = super().forward(x, torch.cat([edge_index, loops], 1), weight)
        return result


class WeightedGIN(GINConv):  # type: ignore[misc]
    """GINConv with Σ_j w_ij x_j for its sum over neighbours; two layers and batch norm inside."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        # One row alone, a batch of one graph pooled to one node, has no variance to divide by.
        norm = {"allow_single_element": True}
        widths = [in_channels, out_channels, out_channels]
        super().__init__(MLP(widths, norm="batch_norm", norm_kwargs=norm))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """The convolved features."""
        # propagate_type: (x: OptPairTensor, weight: Tensor)
        total = self.propagate(edge_index, x=(x, x), weight=_ones(x, edge_index, edge_weight))
        result: Tensor = self.nn(total + (1 + self.eps) * x)
        return result

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """What a neighbour contributes."""
        return weight[:, None] * x_j


class WeightedSAGE(SAGEConv):  # type: ignore[misc]
    """SAGEConv with the weighted mean Σ_j w_ij x_j / Σ_j |w_ij| over neighbours."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, aggr="sum")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """The convolved features."""
        weight = _ones(x, edge_index, edge_weight)
        # By magnitudes, so that negative weights cannot make a sum vanish.
        total = scatter(weight.abs(), edge_index[1], dim_size=x.shape[0], reduce="sum")
        share = weight / nonzero(total)[edge_index[1]]
        # propagate_type: (x: OptPairTensor, weight: Tensor)
        mean = self.propagate(edge_index, x=(x, x), weight=share)
        result: Tensor = self.lin_l(mean) + self.lin_r(x)
        return result

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        """What a neighbour contributes."""
        return weight[:, None] * x_j


class WeightedGAT(GATConv):  # type: ignore[misc]
    """GATConv with the weight of an edge as its one feature, which attention looks at."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, edge_dim=1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """The convolved features."""
        weight = _ones(x, edge_index, edge_weight)
        result: Tensor = super().forward(x, edge_index, weight[:, None])
        return result


class WeightedCheb(ChebConv):  # type: ignore[misc]
    """ChebConv with polynomials of degree two."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, K=3)


def _ones(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
    return x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight


_KINDS: dict[str, Any] = {
    "GC": WeightedGCN,
    "GIN": WeightedGIN,
    "SAGE": WeightedSAGE,
    "GAT": WeightedGAT,
    "CHEB": WeightedCheb,
}


class Convolution(torch.nn.Module):
    """The stage of a convolution: it, and a ReLU."""

    def __init__(self, token: str, in_channels: int, width: int) -> None:
        super().__init__()
        self.signature = (token, in_channels, width)
        self.conv = _KINDS[token](in_channels, width)

    def reset_parameters(self) -> None:
        """Fresh weights."""
        self.conv.reset_parameters()

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """The next features on the same graphs."""
        weight = state.edge_weight
        if weight is not None:
            weight = weight.to(state.x.dtype)
        return state._replace(x=self.conv(state.x, state.edge_index, weight).relu())

"""The convolutions of architecture strings: those of PyG, each with edge weights.

With lists or matrices of neighbours all but CHEB and GAT sum over these, see `Neighbours`, which is
faster and gives the same bits each time; otherwise PyG scatters.

The weights of a coarse graph count the edges between clusters, and after a soft assignment nearly
every pair of clusters is an edge. A convolution without weights would ignore the coarse graph. If
`edge_weight` is `None`, each class equals that of PyG.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.nn import MLP, ChebConv, GATConv, GCNConv, GINConv, SAGEConv

from haarpool.nn.layers.dense_batch import safe_divisor
from haarpool.nn.layers.masked import masked_norm
from haarpool.nn.layers.state import Edges
from haarpool.nn.strings.registry import layer


@layer("GC", kind="convolution", static=True)
class WeightedGCN(GCNConv):  # type: ignore[misc]  # PyG has no types
    """Graph convolution (GCN) with A + I as in the paper (equation 1).

    PyG looks for existing self-loops, so the host waits for the device. Without self-loops, as in
    all graphs of a chain above level 0, both give the same. PyG keeps existing self-loops, such as
    the diagonal of a Coulomb matrix; this class adds 1 to each.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, add_self_loops=False)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        if edges.neighbours is not None:
            scale = (1 + edges.total_weight(x)).pow(-0.5)
            scale = scale.masked_fill(scale.isinf(), 0)
            x = scale * self.lin(x)
            convolved: Tensor = scale * (edges.sum(x) + x) + self.bias
            return convolved
        loops = torch.arange(x.shape[0], device=x.device).expand(2, -1)
        weight = torch.cat([edges.weights(x), x.new_ones(x.shape[0])])
        result: Tensor = super().forward(x, torch.cat([edges.edge_index, loops], 1), weight)
        return result


@layer("DGC", kind="convolution", static=True)
class MeanGCN(WeightedGCN):
    """The convolution of DGCNN: D⁻¹(A + I) x W, the weighted mean over a node and its neighbours.

    Zhang, Cui, Neumann, Chen, "An End-to-End Deep Learning Architecture for Graph Classification",
    AAAI 2018, equation 1. A tanh follows instead of a ReLU.
    """

    activation = staticmethod(torch.tanh)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        x = self.lin(x)
        total, mass = edges.sum(x), edges.total_weight(x, absolute=True)
        mean: Tensor = (total + x) / (1 + mass) + self.bias
        return mean


@layer("GIN", kind="convolution", static=True)
class WeightedGIN(GINConv):  # type: ignore[misc]
    """Graph isomorphism network (GIN) with the weighted sum Σ_j w_ij x_j over neighbours.

    Attributes:
        plain_last: Leave out batch norm and ReLU behind the second layer of the MLP.
    """

    plain_last: ClassVar[bool] = True

    def __init__(self, in_channels: int, out_channels: int) -> None:
        # A batch may be one graph of one node, which has no variance.
        norm = {"allow_single_element": True}
        widths = [in_channels, out_channels, out_channels]
        mlp = MLP(widths, norm="batch_norm", norm_kwargs=norm, plain_last=self.plain_last)
        super().__init__(mlp)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        hidden: Tensor = edges.sum(x) + (1 + self.eps) * x
        for linear, norm in zip_longest(self.nn.lins, self.nn.norms):
            hidden = linear(hidden)
            if norm is not None:
                hidden = masked_norm(norm, hidden, edges.num_real).relu()
        return hidden


@layer("GINB", kind="convolution", static=True)
class NormalizedGIN(WeightedGIN):
    """GIN with batch norm and ReLU behind both layers of its MLP, as in the authors' code."""

    plain_last = False


@layer("SAGE", kind="convolution", static=True)
class WeightedSAGE(SAGEConv):  # type: ignore[misc]
    """GraphSAGE with the weighted mean over neighbours.

    The mean is Σ_j w_ij x_j / Σ_j |w_ij|.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, aggr="sum")

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        # Absolute values, because a sum of negative and positive weights may be zero.
        total = safe_divisor(edges.total_weight(x, absolute=True))
        if edges.neighbours is not None:
            mean = edges.sum(x) / total
        else:
            share = edges.weights(x) / total[edges.edge_index[1], 0]
            mean = edges._replace(edge_weight=share).sum(x)
        result: Tensor = self.lin_l(mean) + self.lin_r(x)
        return result


@layer("GAT", kind="convolution", compiles=True, exports=True)
class WeightedGAT(GATConv):  # type: ignore[misc]
    """Graph attention (GAT) with the edge weight as edge feature."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, edge_dim=1)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        result: Tensor = super().forward(x, edges.edge_index, edges.weights(x)[:, None])
        return result


@layer("CHEB", kind="convolution", compiles=True, exports=True)
class WeightedCheb(ChebConv):  # type: ignore[misc]
    """Chebyshev convolution with polynomials of degree 2."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, K=3)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Convolve features x (N, in_channels) to (N, out_channels)."""
        result: Tensor = super().forward(x, edges.edge_index, edges.edge_weight)
        return result

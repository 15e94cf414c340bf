"""`ResidualConvolution`, the layer of `HaarNet`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Linear
from torch_geometric.nn import BatchNorm

from haarpool.nn.layers.masked import masked_norm
from haarpool.nn.layers.state import Edges

# Where all nodes are alike, a norm multiplies gradients by 1/sqrt(EPSILON), and there are dozens of
# norms: without a bound gradients overflow.
EPSILON = 1e-3


class ResidualConvolution(torch.nn.Module):
    r"""A graph isomorphism layer with edge features, two batch norms and a residual connection.

        m_v = Σ_{u→v} w_uv relu(x_u + W e_uv)        with edge features e
        m_v = Σ_{u→v} w_uv x_u                       without
        x'_v = x_v + relu(norm(MLP((1 + ε) x_v + m_v)))

    On coarse graphs, whose weights count edges between clusters, w_uv / sqrt(deg u · deg v) takes
    the place of w_uv.

    Args:
        width: Number of columns of input and output.
        edge_channels: Number of edge features; 0 for none.
        normalize: Divide weights by degrees.
    """

    def __init__(self, width: int, edge_channels: int = 0, *, normalize: bool = False) -> None:
        super().__init__()
        self.normalize = normalize
        self.edge = Linear(edge_channels, width) if edge_channels else None
        self.eps = torch.nn.Parameter(torch.zeros(()))
        # A norm follows, which removes any bias.
        self.first, self.second = (Linear(width, width, bias=False) for _ in range(2))
        # A batch may be one graph of one node, which has no variance.
        self.inner_norm = BatchNorm(width, EPSILON, allow_single_element=True)
        self.outer_norm = BatchNorm(width, EPSILON, allow_single_element=True)

    def reset_parameters(self) -> None:
        """Reset the weights."""
        torch.nn.init.zeros_(self.eps)
        for layer in (self.edge, self.first, self.second, self.inner_norm, self.outer_norm):
            if layer is not None:
                layer.reset_parameters()

    def forward(self, x: Tensor, edges: Edges, edge_attr: Tensor | None = None) -> Tensor:
        """Convolve features x (N, width), with edge_attr (E, edge_channels) or `None`."""
        if x.requires_grad and x.dtype != torch.float16:  # whose largest number is 65,504
            x.register_hook(_bound)  # type: ignore[no-untyped-call]
        total = (1 + self.eps) * x + self._messages(x, edges, edge_attr)
        hidden = masked_norm(self.inner_norm, self.first(total), edges.num_real).relu()
        hidden = masked_norm(self.outer_norm, self.second(hidden), edges.num_real).relu()
        return x + hidden

    def _messages(self, x: Tensor, edges: Edges, edge_attr: Tensor | None) -> Tensor:
        if self.edge is not None:
            messages = (edges.at_source(x) + self.edge(edge_attr)).relu()
            return edges.sum_messages(messages, x.shape[0])
        return normalized_sum(x, edges) if self.normalize else edges.sum(x)


def _bound(gradient: Tensor) -> Tensor:
    """Return a gradient whose entries are at most a million, far above those of any training."""
    return gradient.clamp(-1e6, 1e6)  # literals: hooks with globals do not compile


def normalized_sum(x: Tensor, edges: Edges) -> Tensor:
    """Return the sum over incoming edges with weights w_uv / sqrt(deg u · deg v)."""
    degree = edges.sum(x.new_ones(x.shape[0], 1))
    scale = torch.where(degree > 0, degree, 1).rsqrt()
    return scale * edges.sum(scale * x)

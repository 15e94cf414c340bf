"""`MeanConvolution`, the layer of `HaarUNet`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import LayerNorm, Linear
from torch.nn.functional import linear

from haarpool.nn.layers.state import LayerState


class MeanEdges:
    """The means over neighbours on one level, for all convolutions of that level.

    The weights of a mean are those of the edges divided by their sum. It is computed once, for
    edges instead of signals.

    Args:
        state: The graphs of the level.
        edge_attr: (E, edge_channels) features of the edges, or `None`; on a coarse level those of
            the incoming edges, see `Neighbours`.
    """

    def __init__(self, state: LayerState, edge_attr: Tensor | None = None) -> None:
        edges = state.edges()
        self.edge_attr = edge_attr
        self.plain = edges.unweighted().averaging(state.x)
        self.weighted = None if edges.edge_weight is None else edges.averaging(state.x)

    def add_means(self, total: Tensor, x: Tensor, weighted: Tensor, plain: Tensor) -> Tensor:
        """Return total + W_w m_w + W_p m_p, with the means m over neighbours by weight and plain.

        Args:
            total: (N * S, width) rows.
            x: (N, S, width) S signals.
            weighted: (width, width) W_w.
            plain: (width, width) W_p.
        """
        rows = x.flatten(1)
        if self.weighted is None:  # all weights are equal
            plain = weighted + plain
        else:
            total = torch.addmm(total, self.weighted.sum(rows).view(total.shape), weighted.T)
        return torch.addmm(total, self.plain.sum(rows).view(total.shape), plain.T)

    def mean_messages(self, x: Tensor, edge: Linear) -> Tensor:
        """Return the mean of relu(x_u + W e_uv) over the neighbours u of each node v."""
        assert self.edge_attr is not None
        at_source = self.plain.at_source(x.flatten(1)).view(-1, *x.shape[1:])
        messages = (at_source + edge(self.edge_attr)[:, None]).relu()
        return self.plain.sum_messages(messages.flatten(1), len(x)).view_as(x)


class MeanConvolution(torch.nn.Module):
    r"""A residual convolution with the means over neighbours, and layer norm.

        h   = norm(x)
        m_v = Σ_u w_uv h_u / Σ_u w_uv,  the same with w = 1
        e_v = mean over u of relu(h_u + W e_uv)               with edge features e
        x'  = x + W₂ relu(W₁ [h, m, e])

    Means do not grow with degrees, and the norm sees one node at a time: so nothing depends on the
    size of a graph, nor on what else is in a minibatch.

    Args:
        width: Number of columns of input and output.
        edge_channels: Number of edge features; 0 for none.
    """

    def __init__(self, width: int, edge_channels: int = 0) -> None:
        super().__init__()
        self.norm = LayerNorm(width)
        self.edge = Linear(edge_channels, width) if edge_channels else None
        parts = 3 + (self.edge is not None)
        self.first, self.second = Linear(parts * width, width), Linear(width, width)

    def forward(self, x: Tensor, edges: MeanEdges) -> Tensor:
        """Convolve S signals x (N, S, width)."""
        h, width = self.norm(x), x.shape[-1]
        # One product after the other: rows side by side would take three times the memory.
        own, weighted, plain, *of_edges = torch.split(self.first.weight, width, 1)
        total = linear(h.flatten(0, 1), own, self.first.bias)
        total = edges.add_means(total, h, weighted, plain)
        if self.edge is not None:
            messages = edges.mean_messages(h, self.edge)
            total = torch.addmm(total, messages.view(total.shape), of_edges[0].T)
        result: Tensor = x + self.second(total.relu()).view(x.shape)
        return result


class VirtualNode(torch.nn.Module):
    """Every node gets a function of the mean over all nodes of its graph.

    Args:
        width: Number of columns of input and output.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = LayerNorm(width)
        self.first, self.second = Linear(width, width), Linear(width, width)

    def forward(self, x: Tensor, state: LayerState, num_graphs: int) -> Tensor:
        """Add it to S signals x (N, S, width)."""
        mean = state.sum_nodes(x.flatten(1), num_graphs) / state.count_nodes(num_graphs)
        mean = self.norm(mean.to(x.dtype).view(-1, *x.shape[1:]))
        change = self.second(self.first(mean).relu())
        return x + state.at_nodes(change.flatten(1)).view_as(x)

"""SAGPool, gPool and TopKPooling: keep the nodes with the highest scores."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, SAGPooling, TopKPooling

from haarpool.nn.strings.registry import layer


@layer("SP", kind="pooling", compiles=True, limits={"ratio": (0, 1)})
class SAGPool(SAGPooling):  # type: ignore[misc]  # PyG has no types
    """SAGPool: PyG's class with scores that keep their order and see edge weights.

        y = tanh(± GCN(x, A)),  i = the nodes with the largest y,  x' = x_i * y_i

    Lee, Lee and Kang, "Self-Attention Graph Pooling", ICML 2019. PyG multiplies the scores by
    w / |w|, the sign of one more weight w. Its gradient is zero, but weight decay and rounding
    errors take it through zero again and again in a training, and each time the layer keeps the
    nodes with the *lowest* scores instead. Here w stays as it is drawn, so that its sign, which is
    not in the paper, changes nothing.

    PyG computes scores without edge weights. In a complete graph, such as a molecule of QM7 with
    its Coulomb matrix, they would all be equal.

    Args:
        in_channels: Number of columns of x.
        ratio: Share of the nodes in (0, 1) to keep.
        **options: Other arguments of `SAGPooling`; the default of `GNN` is a GCN, as in the paper.
    """

    def __init__(self, in_channels: int, ratio: float = 0.5, **options: Any) -> None:
        super().__init__(in_channels, ratio, **{"GNN": GCNConv, **options})
        self.select.weight.requires_grad_(False)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        """Return features, edges, weights and graphs of the nodes, their numbers and scores."""
        if batch is None:
            batch = edge_index.new_zeros(x.shape[0])
        chosen = self.select(self.gnn(x, edge_index, edge_weight), batch)
        nodes, scores = chosen.node_index, chosen.weight
        graph = self.connect(chosen, edge_index, edge_weight, batch)
        pooled = x[nodes] * scores[:, None]
        return pooled, graph.edge_index, graph.edge_attr, graph.batch, nodes, scores


@layer("GP", kind="pooling", compiles=True, limits={"ratio": (0, 1)})
class GPool(SAGPool):
    """gPool of Graph U-Nets as in the code of its authors.

        y = sigmoid(± (x p + b)),  i = the nodes with the largest y,  x' = x_i * y_i

    Gao and Ji, "Graph U-Nets", ICML 2019. `TopKPooling` of PyG differs in two ways. It divides p by
    its norm, as the paper does, and weight decay takes the norm to zero. It has a tanh instead of
    the sigmoid, so that features vanish where scores do.

    Args:
        in_channels: Number of columns of x.
        ratio: Share of the nodes in (0, 1) to keep.
    """

    def __init__(self, in_channels: int, ratio: float = 0.5) -> None:
        super().__init__(in_channels, ratio, GNN=_Projection, nonlinearity="sigmoid")


class _Projection(torch.nn.Module):
    """A linear map in the place of a convolution."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_channels, out_channels)

    def reset_parameters(self) -> None:
        """Reset the weights."""
        self.linear.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        """Return (N, 1) scores; the edges do not count."""
        scores: Tensor = self.linear(x)
        return scores


@layer("TP", kind="pooling", compiles=True, limits={"ratio": (0, 1)})
class TopK(TopKPooling):  # type: ignore[misc]
    """TopKPooling of PyG.

    Args:
        in_channels: Number of columns of x.
        ratio: Share of the nodes in (0, 1) to keep.
    """

    def __init__(self, in_channels: int, ratio: float = 0.5) -> None:
        super().__init__(in_channels, ratio)

"""`HaarSumNet`, for values that add up over the nodes of a graph, such as energies of molecules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor
from torch.nn import Linear, ModuleList, Sequential, SiLU
from torch.nn.functional import silu

from haarpool.errors import HaarPoolError
from haarpool.nn.inputs import Tensors, num_graphs, tensors_of, widened
from haarpool.nn.layers.residual import normalized_sum
from haarpool.nn.layers.state import Edges, LayerState
from haarpool.nn.networks.haar_architecture import HaarSumArchitecture
from haarpool.nn.networks.haar_net import LevelNetwork
from haarpool.nn.networks.linear_fit import LinearFit
from haarpool.nn.networks.network import NetworkSettings
from haarpool.nn.networks.stages import convolve
from haarpool.nn.strings.architecture import DEFAULT_WIDTH


class HaarSumNet(LevelNetwork):
    """A linear fit on sums of node features, plus a sum over the nodes of every level of a chain.

        level 0   depth filter convolutions, see `FilterConvolution`
        level j   HaarPooling, then coarse_depth filter convolutions on the coarse graph
        node      a small network maps all layers of a node to its contribution
        output    linear fit + Σ contributions of the nodes of all levels

    There is no batch norm, no mean and no dropout, so that the network can follow a value that
    grows with the graph. For regression `fit_baseline` fits the linear part by least squares before
    training; the rest learns what the fit leaves. With `levels=0` it is the same network without
    pooling.

    Args:
        in_channels: Number of columns of `data.x`.
        out_channels: Number of values to predict, or of classes.
        width: Width of all layers.
        depth: Number of convolutions on the input graph.
        levels: Number of poolings.
        coarse_depth: Number of convolutions on each coarse graph.
        **settings: `edge_channels`, `domain` (by default "vertex"), `task` (by default
            "regression") and what is standardised, see `Network`. Features of edges are for
            example Gaussians of distances; without them `data.edge_weight` weights messages.

    Shapes:
        - **input:** a `ChainData`, a batch of them, or a dict of their tensors
        - **output:** (B, out_channels), values or scores of classes, for B graphs; in float32 if
          the input has half precision, since the fit needs more digits

    Example:
        >>> model = HaarSumNet(in_channels=5, out_channels=1, edge_channels=16, levels=1)
        >>> model.transform()
        AddHaarChain(num_levels=1, top=None)
    """

    architecture: ClassVar[type[HaarSumArchitecture]] = HaarSumArchitecture

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        width: int = DEFAULT_WIDTH,
        depth: int = HaarSumArchitecture.depth,
        levels: int = HaarSumArchitecture.levels,
        coarse_depth: int = HaarSumArchitecture.coarse_depth,
        **settings: Unpack[NetworkSettings],
    ) -> None:
        settings = NetworkSettings(task="regression") | settings
        arch = self.architecture(width, depth, levels, coarse_depth)
        super().__init__(arch, in_channels, out_channels, **settings)
        depths = [depth, *[coarse_depth] * levels]  # number of convolutions of each level
        self.convolutions = ModuleList(
            ModuleList(FilterConvolution(width, 0 if j else self.edge_channels) for _ in range(n))
            for j, n in enumerate(depths)
        )
        self.contributions = ModuleList(
            Sequential(Linear((n + 1) * width, width), SiLU(), Linear(width, self.out_channels))
            for n in depths
        )
        self.baseline = LinearFit(self.in_channels + 1, self.out_channels)

    def fit_baseline(self, batches: Iterable[tuple[Any, Tensor]]) -> None:
        """Fit the linear part: targets from sums of node features and the number of nodes.

        Args:
            batches: Minibatches of the training data, each with its (B, out_channels) targets, or
                (B,) for one target.
        """
        if not self.task.is_linear:
            return
        sums, targets = [], []
        for data, target in batches:
            sums.append(self._sums(tensors_of(data)))
            targets.append(target.reshape(len(target), -1))
            shape = (len(sums[-1]), self.out_channels)
            if tuple(targets[-1].shape) != shape:
                raise HaarPoolError(
                    f"targets of shape {shape}",
                    f"{tuple(target.shape)}",
                    "pass (batch, batch.y), one row per graph",
                )
        if not sums:
            raise HaarPoolError("minibatches of the training data", "none", "pass one or more")
        self.baseline.fit(torch.cat(sums), torch.cat(targets))
        self.baseline.spread /= torch.cat(sums)[:, -1].mean().sqrt()  # contributions of all nodes

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute values or scores, (B, out_channels).

        Args:
            data: A `ChainData`, a batch of them, or a dict of their tensors.
            padded: The last graph only fills up the batch, see `Minibatches.take_padded`; it has no
                row in the result.
        """
        data, x, edge_attr = self._embed(data)
        size = num_graphs(data)
        state = LayerState.of_input(x, _input_graph(data, edge_attr), padded=padded)
        sums = []  # of the contributions on each level
        for level, convolutions in enumerate(self.convolutions):
            if level:
                state, edge_attr = self.poolings[level - 1](state, data), None
            state, layers = convolve(convolutions, state, edge_attr)
            sums.append(state.sum_nodes(widened(self.contributions[level](layers)), size))
        total = sum(sums[1:], start=sums[0])
        output: Tensor = self.baseline(self._sums(data, padded=padded), total)
        return output[:-1] if padded else output

    def _sums(self, data: Tensors, *, padded: bool = False) -> Tensor:
        """Return (B, in_channels + 1) sums of node features, and the number of nodes."""
        x = widened(data["x"])
        state = LayerState.of_input(x, data, padded=padded)
        sums = state.sum_nodes(x, num_graphs(data))
        return torch.cat([sums, state.count_nodes(num_graphs(data)).to(sums.dtype)], 1)


class FilterConvolution(torch.nn.Module):
    r"""A convolution whose filter is a function of edge features, with a residual connection.

        m_v = Σ_{u→v} (W x_u) ⊙ f(e_uv)                        with edge features e
        m_v = W Σ_{u→v} w_uv x_u / sqrt(deg u · deg v)          without
        x'_v = x_v + MLP(x_v + m_v)

    f is a small network: the continuous filter of SchNet (Schütt et al., 2017).
    """

    def __init__(self, width: int, edge_channels: int = 0) -> None:
        super().__init__()
        self.filter: Sequential | None = None
        if edge_channels:
            self.filter = Sequential(Linear(edge_channels, width), SiLU(), Linear(width, width))
        self.source = Linear(width, width, bias=False)
        self.first, self.second = (Linear(width, width) for _ in range(2))

    def forward(self, x: Tensor, edges: Edges, edge_attr: Tensor | None = None) -> Tensor:
        """Convolve features x (N, width), with edge_attr (E, edge_channels) or `None`."""
        total = x + self._messages(x, edges, edge_attr)
        result: Tensor = x + self.second(silu(self.first(total)))
        return result

    def _messages(self, x: Tensor, edges: Edges, edge_attr: Tensor | None) -> Tensor:
        sources: Tensor = self.source(x)
        if self.filter is None:
            return normalized_sum(sources, edges)
        messages = edges.at_source(sources) * self.filter(edge_attr)
        return edges.sum_messages(messages, x.shape[0])


def _input_graph(data: Tensors, edge_attr: Tensor | None) -> Tensors:
    """Return the data without weights of edges, if a filter reads their features instead."""
    if edge_attr is None:
        return data
    return {key: data[key] for key in data.keys() if key != "edge_weight"}  # noqa: SIM118 (PyG)

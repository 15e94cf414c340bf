"""`HaarNet`, the network that we recommend."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor
from torch.nn import Linear, ModuleList
from torch.nn.functional import dropout
from torch_geometric.nn import BatchNorm

from haarpool._validate import real_number
from haarpool.nn.inputs import Tensors, chains_of, num_graphs, tensors_of, widened
from haarpool.nn.layers.pooling import HaarPooling, detail_part
from haarpool.nn.layers.residual import EPSILON, ResidualConvolution
from haarpool.nn.layers.state import LayerState
from haarpool.nn.networks.haar_architecture import HaarNetArchitecture
from haarpool.nn.networks.network import Network, NetworkSettings
from haarpool.nn.networks.stages import ChainPooling, convolve
from haarpool.nn.strings.architecture import DEFAULT_WIDTH


class LevelNetwork(Network):
    """What `HaarNet` and `HaarSumNet` share: an embedding, and poolings from level to level."""

    reads_edges = has_static_shapes = ignores_numbering = True

    def __init__(
        self,
        arch: HaarNetArchitecture,
        in_channels: int,
        out_channels: int,
        **settings: Unpack[NetworkSettings],
    ) -> None:
        super().__init__(arch, in_channels, out_channels, **settings)
        self.embedding = Linear(self.in_channels, arch.max_width)
        pools = (HaarPooling(j, self.domain) for j in range(arch.levels))
        self.poolings = ModuleList(map(ChainPooling, pools))

    def _embed(self, data: Any) -> tuple[Tensors, Tensor, Tensor | None]:
        """Return the tensors of data, checked, embedded nodes, and features of edges."""
        data = tensors_of(data)
        self.check(data)
        x = self.embedding(self.standardize(data["x"]))
        return data, x, self._edge_features(data, x)


class HaarNet(LevelNetwork):
    """Residual convolutions on every level of a chain, with statistics of all of them.

        level 0   depth residual convolutions whose messages see edge features
        level j   HaarPooling, then coarse_depth residual convolutions on the coarse graph
        readout   Σx/√n, mean and standard deviation over the nodes of each graph, of every layer
                  and level; the root of the detail energy of every pooling
        then      batch norm, dropout, a linear layer, ReLU, dropout, a linear layer

    With `levels=0` it is the same network without pooling.

    Args:
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        width: Width of all layers.
        depth: Number of convolutions on the input graph.
        levels: Number of poolings.
        coarse_depth: Number of convolutions on each coarse graph.
        dropout: Dropout probability in [0, 1) before both linear layers.
        **settings: `edge_channels`, `domain` (by default "vertex"), `task` and what is
            standardised, see `Network`.

    Shapes:
        - **input:** a `ChainData`, a batch of them, or a dict of their tensors
        - **output:** (B, out_channels), scores of classes or values, for B graphs

    Example:
        >>> model = HaarNet(in_channels=3, out_channels=2, edge_channels=4, levels=3)
        >>> model.transform()
        AddHaarChain(num_levels=3, top=None)
    """

    normalizes_graphs = True
    architecture: ClassVar[type[HaarNetArchitecture]] = HaarNetArchitecture

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        width: int = DEFAULT_WIDTH,
        depth: int = HaarNetArchitecture.depth,
        levels: int = HaarNetArchitecture.levels,
        coarse_depth: int = HaarNetArchitecture.coarse_depth,
        dropout: float = 0.5,
        **settings: Unpack[NetworkSettings],
    ) -> None:
        arch = self.architecture(width, depth, levels, coarse_depth)
        super().__init__(arch, in_channels, out_channels, **settings)
        self.dropout = real_number("dropout", dropout, 0, 1, remedy="pass {dropout}", dropout=0.5)
        self.convolutions = ModuleList(
            ResidualConvolution(width, self.edge_channels) for _ in range(depth)
        )
        self.coarse_convolutions = ModuleList(
            ModuleList(ResidualConvolution(width, normalize=True) for _ in range(coarse_depth))
            for _ in range(levels)
        )
        columns = arch.num_statistics * width
        self.readout_norm = BatchNorm(columns, EPSILON, allow_single_element=True)
        self.hidden = Linear(columns, width)
        self.output = Linear(width, self.out_channels)

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute scores or values, (B, out_channels).

        Args:
            data: A `ChainData`, a batch of them, or a dict of their tensors.
            padded: The last graph only fills up the batch, see `Minibatches.take_padded`; it has no
                row in the result.
        """
        data, x, edge_attr = self._embed(data)
        size = num_graphs(data)
        state = LayerState.of_input(x, data, padded=padded)
        state, layers = convolve(self.convolutions, state, edge_attr)
        rows = [_statistics(layers, state, size)]
        for level, convolutions in enumerate(self.coarse_convolutions):
            rest = detail_part(state.x, chains_of(data, level + 1), level)[1]
            energy = state.sum_nodes(widened(rest).square(), size)
            rows.append(_root(energy / state.count_nodes(size)).to(rest.dtype))
            state, layers = convolve(convolutions, self.poolings[level](state, data))
            rows.append(_statistics(layers, state, size))
        row = torch.cat(rows, 1)
        row = self.readout_norm(row[:-1] if padded else row)
        row = dropout(row, self.dropout, self.training)
        row = dropout(self.hidden(row).relu(), self.dropout, self.training)
        result: Tensor = self.output(row)
        return result


def _statistics(x: Tensor, state: LayerState, num_graphs: int) -> Tensor:
    """Return Σx/√n, mean and standard deviation of x (N, d) over the n nodes of each graph."""
    wide = widened(x)
    n = state.count_nodes(num_graphs).to(wide.dtype)
    total = state.sum_nodes(wide, num_graphs)
    mean = total / n
    # Not by Σx²/n - mean², which loses digits where the mean is large.
    centred = wide - state.at_nodes(mean)
    variance = state.sum_nodes(centred.square(), num_graphs) / n
    return torch.cat([total / n.sqrt(), mean, _root(variance)], 1).to(x.dtype)


def _root(square: Tensor) -> Tensor:
    """Compute the square root, with a bounded gradient at zero."""
    return (square + 1e-6).sqrt()

"""`HaarUNet`, the network for a value or a class at every node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import LayerNorm, Linear, ModuleList
from torch.nn.functional import dropout
from torch_geometric.transforms import BaseTransform

from haarpool._types import Domain
from haarpool._validate import real_number
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.operators import analysis, synthesis
from haarpool.nn.inputs import Tensors, chains_of, num_graphs, tensors_of
from haarpool.nn.layers.mean_convolution import MeanConvolution, MeanEdges, VirtualNode
from haarpool.nn.layers.state import LayerState
from haarpool.nn.networks.network import Network
from haarpool.nn.networks.stages import coarse_state
from haarpool.nn.networks.unet_architecture import HaarUNetArchitecture
from haarpool.nn.strings.architecture import DEFAULT_WIDTH


class HaarUNet(Network):
    """Convolutions down a chain and up again: an output for every node that sees the whole graph.

        down    depth convolutions on level j, then x_{j+1} = P_jᵀ x_j
        up      x_j + P_j W x_{j+1}, then depth convolutions on level j
        output  layer norm, dropout, a linear layer for every node

    A convolution reaches one hop; on level j a hop spans about 2^j of the input graph. So two
    convolutions per level reach every node, at the cost of about four on the input graph. A flat
    network needs as many as the graph is wide.

    Args:
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict, at each node.
        edge_channels: Number of columns of `data.edge_attr`; 0 ignores it.
        width: Width of all layers.
        depth: Number of convolutions on each level on the way down, and as many on the way up.
        levels: Number of poolings; 0 is the same network without pooling. `None` takes those of the
            chain of the data; then `shared` is needed.
        shared: Whether all coarse levels have the same weights.
        virtual_node: Whether an exchange with the mean of all nodes follows each convolution.
        coarse_edges: Whether convolutions on coarse graphs read the features of coarse edges, see
            `AddHaarChain(edge_attr=...)`; without `edge_channels` there are none.
        domain: `None` or "vertex": a convolution needs rows that are nodes.
        dropout: Dropout probability in [0, 1) before the output, for tasks with classes.
        task: Name of a task of nodes, as in `haarpool.tasks.task_names()`; it selects `loss`.
        standardize: Columns of `data.x` that are standardised, see `Network.fit_inputs`.
        standardize_edges: The same for `data.edge_attr`.

    Shapes:
        - **input:** a `ChainData`, a batch of them, or a dict of their tensors. `x` is
          (N, columns), or (S, N, columns): S signals on the same graphs.
        - **output:** (N, out_channels), or (S, N, out_channels)

    Example:
        >>> model = HaarUNet(in_channels=3, out_channels=1, levels=6)
        >>> model.transform()
        AddHaarChain(num_levels=6, top=None, method='matching', measure='mass')
        >>> HaarUNet(in_channels=3, out_channels=1, edge_channels=2, levels=6).transform(ratio=0.4)
        AddHaarChain(num_levels=6, ratio=0.4, top=None, method='matching', measure='mass',
                     edge_attr='mean')
    """

    reads_edges = has_static_shapes = ignores_numbering = True
    architecture: ClassVar[type[HaarUNetArchitecture]] = HaarUNetArchitecture

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        edge_channels: int = 0,
        width: int = DEFAULT_WIDTH,
        depth: int = HaarUNetArchitecture.depth,
        levels: int | None = None,
        shared: bool = False,
        virtual_node: bool = False,
        coarse_edges: bool = True,
        domain: Domain | None = None,
        dropout: float = 0.0,
        task: str = "node_regression",
        standardize: Sequence[int] = (),
        standardize_edges: Sequence[int] = (),
    ) -> None:
        super().__init__(
            self.architecture(width, depth, levels, shared, virtual_node, coarse_edges),
            in_channels,
            out_channels,
            edge_channels=edge_channels,
            domain=domain,
            task=task,
            standardize=standardize,
            standardize_edges=standardize_edges,
        )
        if self.domain != "vertex":
            raise HaarPoolError('"vertex"', f"{self.domain!r}", "leave it out", parameter="domain")
        if levels is None and not shared:
            remedy = "pass for example {levels}, or {shared}"
            raise HaarPoolError(
                "as a number, if each level has its own weights", "None", remedy,
                parameter="levels", levels=8, shared=True,
            )  # fmt: skip
        self.dropout = real_number("dropout", dropout, 0, 1, remedy="pass {dropout}", dropout=0.5)
        self.dropout *= self.task.reads_classes
        self.embedding = Linear(self.in_channels, width)
        # Levels 0, ..., K on the way down and 0, ..., K-1 on the way up; the last weights are those
        # of all further levels.
        num_up = 2 if levels is None else levels
        num_down = num_up + 1
        if shared:
            num_down, num_up = min(num_down, 2), min(num_up, 2)
        self.reads_coarse_edges = bool(coarse_edges and self.edge_channels and num_up)
        coarse_channels = (self.edge_channels + 1) * self.reads_coarse_edges
        channels = [self.edge_channels] + [coarse_channels] * num_down  # of edges, on each level
        self.down, self.up = (
            ModuleList(
                ModuleList(MeanConvolution(width, channels[j]) for _ in range(depth))
                for j in range(number)
            )
            for number in (num_down, num_up)
        )
        self.corrections = ModuleList(Linear(width, width) for _ in self.up)
        self.virtual = VirtualNode(width) if virtual_node else None
        self.norm = LayerNorm(width)
        self.output = Linear(width, self.out_channels)

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute scores or values, (N, out_channels) or (S, N, out_channels).

        Args:
            data: A `ChainData`, a batch of them, or a dict of their tensors.
            padded: The last graph only fills up the batch, see `Minibatches.take_padded`; its nodes
                have rows in the result, which mean nothing.
        """
        data = tensors_of(data)
        self.check(data)
        x = self.standardize(data["x"])
        has_signals = x.ndim == 3
        # Nodes first: then one pass over the edges serves all signals.
        x = self.embedding(x.movedim(0, 1) if has_signals else x[:, None])
        graphs = LayerState.of_input(_without_columns(x), data, padded=padded)
        levels = [_Level(graphs, MeanEdges(graphs, self._edge_features(data, x)))]
        signals = [self._convolve(self.down, 0, x, levels[0], data)]
        chain = chains_of(data, self.arch.num_levels) if self.up else None
        for j in range(self._num_levels(chain)):
            assert chain is not None
            rows = self._pool(chain, signals[j].flatten(1), j)
            graphs = coarse_state(graphs, chain, j + 1, _without_columns(rows))
            features = self._coarse_edge_features(chain, j + 1, x)
            levels.append(_Level(graphs, MeanEdges(graphs, features)))
            x = rows.view(-1, *x.shape[1:])
            signals.append(self._convolve(self.down, j + 1, x, levels[-1], data))
        x = signals.pop()
        while signals:
            assert chain is not None
            j = len(signals) - 1
            correction = _of_level(self.corrections, j)(x)
            skip = signals.pop()
            x = self._unpool(chain, correction.flatten(1), skip.flatten(1), j).view_as(skip)
            x = self._convolve(self.up, j, x, levels[j], data)
        result = self._read_out(self.norm(x), levels[0].graphs, data)
        return result.movedim(1, 0) if has_signals else result[:, 0]

    def _pool(self, chain: ChainTensors, x: Tensor, level: int) -> Tensor:
        """Return (N_{j+1}, columns) the signal x (N_j, columns) of level j on the next level."""
        return analysis(chain, x, level, skip=True, single=True)

    def _unpool(self, chain: ChainTensors, y: Tensor, skip: Tensor, level: int) -> Tensor:
        """Return (N_j, columns) the signal `skip` of level j with y of the next level added."""
        return skip + synthesis(chain, y, level, skip=True, single=True)

    def _read_out(self, x: Tensor, graphs: LayerState, data: Tensors) -> Tensor:
        """Return the outputs for S signals x (N, S, width) on the input graphs."""
        result: Tensor = self.output(dropout(x, self.dropout, self.training))
        return result

    def check(self, data: Any) -> None:
        """Raise an error unless the data has all tensors that this network reads."""
        super().check(data)
        for j in range(1, self.arch.num_levels + 1) if self.reads_coarse_edges else ():
            key = f"haar_attr_{j}"
            rows = len(data[key]) if key in data else 0
            if rows != self.edge_channels + 1:
                raise HaarPoolError(
                    f"coarse edges with {self.edge_channels} features and their number",
                    f"{rows} rows {key}" if rows else f"data without {key}",
                    f"{self._remedy()}, or pass coarse_edges=False to the network",
                )

    def _add_chain(self, **parameters: Any) -> BaseTransform:
        if self.reads_coarse_edges:
            parameters = {"edge_attr": "mean", **parameters}
        return super()._add_chain(**parameters)

    def _coarse_edge_features(self, chain: ChainTensors, level: int, like: Tensor) -> Tensor | None:
        """Return (E_j, edge_channels + 1) features of the incoming edges of a level, or `None`.

        They are standardised as those of the input graph. Edges without edges of the input graph
        keep the features 0.
        """
        if not self.reads_coarse_edges:
            return None
        wide = torch.promote_types(like.dtype, torch.float32)  # numbers could overflow
        both, reverse = chain.coarse_features(level, wide), chain.reversed_edges(level)
        assert both is not None
        assert reverse is not None
        features, number = both.index_select(0, reverse).tensor_split([-1], dim=1)
        features = self.standardize_edges(features.to(like.dtype))
        features = torch.where(number > 0, features, 0)
        return torch.cat([features, number.log1p().to(like.dtype)], 1)

    def _num_levels(self, chain: ChainTensors | None) -> int:
        """Return the number of poolings: that of the chain, if it is not given."""
        if chain is None:
            return 0
        is_given = self.arch.levels_of(1) is None
        return self.arch.num_levels if is_given else chain.num_levels

    def _convolve(
        self, weights: ModuleList, j: int, x: Tensor, level: _Level, data: Tensors
    ) -> Tensor:
        for convolution in _of_level(weights, j):
            x = convolution(x, level.edges)
            if self.virtual is not None:
                x = self.virtual(x, level.graphs, num_graphs(data))
        return x


class _Level(NamedTuple):
    """The graphs of a level, and the means over neighbours on them."""

    graphs: LayerState
    edges: MeanEdges


def _without_columns(x: Tensor) -> Tensor:
    """Return what says the number of nodes and the type of x, and takes no memory."""
    return x.new_empty(len(x), 0)


def _of_level(weights: ModuleList, level: int) -> Any:
    """Return the weights of a level; the last ones are those of all further levels."""
    return weights[min(level, len(weights) - 1)]

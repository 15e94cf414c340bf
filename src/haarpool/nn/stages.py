"""The stages of a network: each one maps a `LayerState` to the next.

Poolings and readouts are PyG's classes where PyG has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import TopKPooling
from torch_geometric.nn.aggr import Set2Set, SortAggregation
from torch_geometric.utils import scatter

from haarpool._types import Domain
from haarpool.errors import HaarPoolError
from haarpool.haar.operators import Rows, gather_sum
from haarpool.nn.convolutions import Graph, make_convolution
from haarpool.nn.inputs import Tensors, chains_of
from haarpool.nn.neighbours import DenseNeighbours, Neighbours
from haarpool.nn.peers.dgcnn import SortConvolution
from haarpool.nn.peers.diffpool import DiffPool
from haarpool.nn.peers.edgepool import FastEdgePooling
from haarpool.nn.peers.eigenpool import EigenPooling
from haarpool.nn.peers.lapool import LaPool
from haarpool.nn.peers.selection import GPool, SAGPool
from haarpool.nn.peers.structpool import StructPool
from haarpool.nn.pooling import HaarPooling


class LayerState(NamedTuple):
    """The graphs of a minibatch between two stages.

    Attributes:
        x: (N, d) node features, sorted graph by graph.
        edge_index: (2, E) edges.
        edge_weight: (E,) edge weights, or `None`.
        batch: (N,) graph of each node.
        auxiliary: Sum of the losses of poolings so far, or `None`.
        neighbours: The edges as lists or matrices, or `None`.
        start: (B,) first node of each graph, or `None` if it is not known.
        padded: True if the last graph only fills up the minibatch.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    batch: Tensor
    auxiliary: Tensor | None = None
    neighbours: Neighbours | DenseNeighbours | None = None
    start: Tensor | None = None
    padded: bool = False

    @classmethod
    def of_input(cls, x: Tensor, data: Tensors, *, padded: bool = False) -> LayerState:
        """Return the input graphs.

        Args:
            x: (N, d) features that take the place of `data["x"]`.
            data: The tensors of a batch.
            padded: True if the last graph only fills up the minibatch.
        """
        edges = data["edge_index"]
        weight = data["edge_weight"].to(x.dtype) if "edge_weight" in data else None
        return cls(
            x,
            edges,
            weight,
            data["batch"] if "batch" in data else edges.new_zeros(x.shape[0]),
            neighbours=Neighbours.of_input(data, weight),
            start=data["ptr"][:-1] if "ptr" in data else None,
            padded=padded,
        )

    def graph(self) -> Graph:
        """Return the edges, as convolutions read them."""
        weight = self.edge_weight
        if weight is not None:
            weight = weight.to(self.x.dtype)
        num_real = self.start[-1] if self.padded and self.start is not None else None
        return Graph(self.edge_index, weight, self.neighbours, num_real)

    def sum_nodes(self, x: Tensor, num_graphs: int) -> Tensor:
        """Return (B, d) the sums of x (N, d) over each graph, in a fixed order if it is known."""
        if self.start is None:
            scattered: Tensor = scatter(x, self.batch, 0, num_graphs, "sum")
            return scattered
        nodes = torch.arange(x.shape[0], device=x.device, dtype=self.batch.dtype)
        return gather_sum(x, Rows(nodes, self.start), Rows(self.batch))

    def at_nodes(self, rows: Tensor) -> Tensor:
        """Return (N, d) for each node the row of its graph, the transpose of `sum_nodes`."""
        if self.start is None:
            return rows[self.batch]
        nodes = torch.arange(self.batch.shape[0], device=rows.device, dtype=self.batch.dtype)
        return gather_sum(rows, Rows(self.batch), Rows(nodes, self.start))

    def count_nodes(self, num_graphs: int) -> Tensor:
        """Return (B, 1) the number of nodes of each graph, at least 1."""
        if self.start is None:
            ones = torch.ones_like(self.batch)
            count: Tensor = scatter(ones, self.batch, 0, num_graphs, "sum")
        else:
            end = self.start.new_full((1,), self.x.shape[0])
            count = torch.diff(self.start, append=end)
        return count.clamp(min=1)[:, None]

    def pooled(self, x: Tensor, edges: Tensor, weight: Tensor | None, batch: Tensor) -> LayerState:
        """Return the state after a pooling whose clusters come from no chain."""
        return LayerState(x, edges, weight, batch, self.auxiliary)


class Convolution(torch.nn.Module):
    """A convolution and a ReLU, behind DGC a tanh; the graphs stay the same.

    Args:
        token: Token of the convolution.
        in_channels: Number of input columns.
        out_channels: Number of output columns.
    """

    def __init__(self, token: str, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.signature = (token, in_channels, out_channels)
        self.conv: Any = make_convolution(token, in_channels, out_channels)

    def reset_parameters(self) -> None:
        """Reset the weights."""
        self.conv.reset_parameters()

    def check_signature(self, token: str, in_channels: int, out_channels: int) -> None:
        """Raise an error unless these are the token and the widths of this convolution."""
        if self.signature != (token, in_channels, out_channels):
            raise HaarPoolError(
                f"tied convolutions of the same kind and widths, {self.signature}",
                f"{(token, in_channels, out_channels)}",
                "tie only convolutions with equal input and output widths",
            )

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Convolve the features."""
        x = self.conv(state.x, state.graph())
        return state._replace(x=x.tanh() if self.signature[0] == "DGC" else x.relu())


class JumpingKnowledge(torch.nn.Module):
    """Convolutions whose outputs are joined, as in jumping knowledge networks.

    Args:
        convolutions: The convolutions, each of which reads the output of the one before.
    """

    def __init__(self, convolutions: Iterable[Convolution]) -> None:
        super().__init__()
        self.convolutions: Any = torch.nn.ModuleList(convolutions)

    def reset_parameters(self) -> None:
        """Reset the weights."""
        for convolution in self.convolutions:
            convolution.reset_parameters()

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return all outputs side by side."""
        outputs = []
        for convolution in self.convolutions:
            state = convolution(state, data)
            outputs.append(state.x)
        return state._replace(x=torch.cat(outputs, -1))


class PoolingStage(torch.nn.Module):
    """A pooling layer as a stage of a network.

    Args:
        pool: The pooling layer.
    """

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.pool = pool

    def reset_parameters(self) -> None:
        """Reset the weights."""
        self.pool.reset_parameters()


class Selection(PoolingStage):
    """SAGPool, gPool or TopKPooling: keep the nodes with the highest scores."""

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return the selected nodes and the edges between them."""
        graph = state.graph()
        x, edges, weight, batch, *_ = self.pool(
            state.x, graph.edge_index, graph.edge_weight, state.batch
        )
        return state.pooled(x, edges, weight, batch)


class Contraction(PoolingStage):
    """EdgePooling: contract edges with high scores; the output has no edge weights.

    PyG contracts edges by descending score. The order of equal scores is undefined, and they are
    common: a node with one neighbour always has the highest score. So the result for a graph may
    depend on its batch.
    """

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return the contracted graphs."""
        x, edges, batch, _ = self.pool(state.x, state.edge_index, state.batch)
        # PyG sorts nodes by score; the other stages expect them graph by graph.
        order = batch.argsort(stable=True)
        edges = order.argsort()[edges]
        return state.pooled(x[order], edges, None, batch[order])


class Assignment(PoolingStage):
    """DiffPool, StructPool or LaPool: clusters by a learned assignment matrix."""

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return the graphs of clusters."""
        out = self.pool(state.x, state.edge_index, state.edge_weight, state.batch)
        auxiliary = state.auxiliary
        if out.details is not None:
            auxiliary = out.details.sum() + (0 if auxiliary is None else auxiliary)
        edges, weight, neighbours = out.edge_index, out.edge_weight, None
        if isinstance(self.pool, DiffPool | StructPool):  # all graphs have as many clusters
            size = (len(out.x), self.pool.num_clusters)
            neighbours = DenseNeighbours.of_clusters(edges, weight, *size)
        return LayerState(out.x, edges, weight, out.batch, auxiliary, neighbours)


class ChainPooling(PoolingStage):
    """HaarPooling or EigenPooling: the clusters of the chain."""

    def missing_key(self, data: Tensors) -> str | None:
        """Return the first key that the pooling reads and the data does not have, or `None`."""
        level, num_modes = self.pool.level, getattr(self.pool, "num_modes", 0)
        if num_modes:
            key = f"haar_modes_{level}"
            has_modes = key in data and data[key].shape[0] >= num_modes
            return None if has_modes else f"{num_modes} rows {key}"
        return None

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return the next level of the chain."""
        out = self.pool(state.x, data)
        level = self.pool.level + 1
        chain = chains_of(data, level)
        weight = chain.coarse_weights(level, out.x.dtype)  # those of `out` may be rounded
        neighbours = Neighbours.of_level(chain, level, out.edge_index, weight)
        return state._replace(
            x=out.x,
            edge_index=out.edge_index,
            edge_weight=weight,
            batch=out.batch,
            neighbours=neighbours,
            start=chain.start[level],
        )


@dataclass(frozen=True)
class PoolingOptions:
    """Options of poolings, see `build_model`."""

    domain: Domain
    ratio: float
    num_clusters: int
    cluster_ratio: float
    num_modes: int
    relaxed: bool = False


def make_pooling(token: str, in_channels: int, level: int, options: PoolingOptions) -> PoolingStage:
    """Make the stage of a pooling.

    Args:
        token: Token of the pooling.
        in_channels: Number of columns of its input.
        level: Number of HP and EIG before it.
        options: Its options.
    """
    builders: dict[str, Callable[[], PoolingStage]] = {
        "HP": lambda: ChainPooling(HaarPooling(level, options.domain)),
        "EIG": lambda: ChainPooling(EigenPooling(level, options.num_modes)),
        "SP": lambda: Selection(SAGPool(in_channels, options.ratio)),
        "GP": lambda: Selection(GPool(in_channels, options.ratio)),
        "TP": lambda: Selection(TopKPooling(in_channels, options.ratio)),
        "EP": lambda: Contraction(FastEdgePooling(in_channels)),
        "DP": lambda: Assignment(DiffPool(in_channels, options.num_clusters)),
        "STRUCT": lambda: Assignment(StructPool(in_channels, options.num_clusters)),
        "LAP": lambda: Assignment(LaPool(in_channels, relaxed=options.relaxed)),
    }
    return builders[token]()


class SumReadout(torch.nn.Module):
    """The sum or the mean over the nodes of each graph, in a fixed order where it is known.

    Args:
        mean: Divide by the number of nodes.
    """

    def __init__(self, mean: bool) -> None:
        super().__init__()
        self.mean = mean

    def reset_parameters(self) -> None:
        """Do nothing: there are no weights."""

    def forward(self, state: LayerState, num_graphs: int) -> Tensor:
        """Return one row per graph."""
        total = state.sum_nodes(state.x, num_graphs)
        return total / state.count_nodes(num_graphs).to(total.dtype) if self.mean else total


class MaxReadout(torch.nn.Module):
    """The maximum over the nodes of each graph.

    The same as `MaxAggregation` of PyG, which in training on a GPU warns again and again that
    another package would be faster.
    """

    def reset_parameters(self) -> None:
        """Do nothing: there are no weights."""

    def forward(self, x: Tensor, batch: Tensor, dim_size: int) -> Tensor:
        """Return one row per graph; of a graph without nodes it is zero."""
        rows, index = x.new_zeros(dim_size, x.shape[1]), batch[:, None].expand_as(x)
        return rows.scatter_reduce_(0, index, x, "amax", include_self=False)


class Readout(torch.nn.Module):
    """A global readout: one row per graph, which the linear layers read.

    Args:
        aggregation: A `SumReadout`, or a module that is called like an aggregation of PyG.
    """

    def __init__(self, aggregation: Any) -> None:
        super().__init__()
        self.aggregation = aggregation

    def reset_parameters(self) -> None:
        """Reset the weights."""
        self.aggregation.reset_parameters()

    def forward(self, state: LayerState, num_graphs: int) -> Tensor:
        """Return one row per graph."""
        if isinstance(self.aggregation, SumReadout):
            summed: Tensor = self.aggregation(state, num_graphs)
            return summed
        result: Tensor = self.aggregation(state.x, state.batch, dim_size=num_graphs)
        return result


def make_readout(token: str, in_channels: int, sorted_nodes: int) -> tuple[torch.nn.Module, int]:
    """Make the aggregation of a global readout.

    Args:
        token: Token of the readout.
        in_channels: Number of columns of its input.
        sorted_nodes: Nodes of each graph that SORT and DGCNN keep.

    Returns:
        The aggregation and the number of columns of its output.
    """
    if token in ("SUM", "AP"):
        return SumReadout(mean=token == "AP"), in_channels
    if token == "S2S":
        return Set2Set(in_channels, processing_steps=3), 2 * in_channels
    if token == "SORT":
        return SortAggregation(sorted_nodes), sorted_nodes * in_channels
    if token == "DGCNN":
        convolution = SortConvolution(in_channels, sorted_nodes)
        return convolution, convolution.out_channels
    return MaxReadout(), in_channels

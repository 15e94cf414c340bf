"""`HaarUNet`, the network for a value or a class at every node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.nn import LayerNorm, Linear, ModuleList
from torch.nn.functional import dropout

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
    """

    reads_edges = has_static_shapes = ignores_numbering = True

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
        domain: Domain | None = None,
        dropout: float = 0.0,
        task: str = "node_regression",
        standardize: Sequence[int] = (),
        standardize_edges: Sequence[int] = (),
    ) -> None:
        super().__init__(
            HaarUNetArchitecture(width, depth, levels, shared, virtual_node),
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
        channels = [self.edge_channels] + [0] * num_down  # of edges, on each level
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
        # Nodes first: so one pass over the edges serves all signals.
        x = self.embedding(x.movedim(0, 1) if has_signals else x[:, None])
        state = LayerState.of_input(x.flatten(1), data, padded=padded)
        levels = [MeanEdges(state, self._edge_features(data, x))]
        chain = chains_of(data, self.arch.num_levels) if self.up else None
        num_levels = 0 if chain is None else self._num_levels(chain)
        states, signals = [state], [self._convolve(self.down, 0, x, levels[0], state, data)]
        for j in range(num_levels):
            assert chain is not None
            x = signals[-1]
            rows = analysis(chain, x.flatten(1), j, skip=True, single=True)
            state = coarse_state(states[-1], chain, j + 1, rows)
            edges = MeanEdges(state)
            x = rows.view(-1, *x.shape[1:])
            states.append(state)
            levels.append(edges)
            signals.append(self._convolve(self.down, j + 1, x, edges, state, data))
        x = signals.pop()
        for j in reversed(range(num_levels)):
            assert chain is not None
            correction = _of_level(self.corrections, j)(x).flatten(1)
            correction = synthesis(chain, correction, j, skip=True, single=True)
            x = signals.pop()
            x = x + correction.view_as(x)
            x = self._convolve(self.up, j, x, levels[j], states[j], data)
        result: Tensor = self.output(dropout(self.norm(x), self.dropout, self.training))
        return result.movedim(1, 0) if has_signals else result[:, 0]

    def _num_levels(self, chain: ChainTensors) -> int:
        given = self.arch.levels_of(1) is None
        return self.arch.num_levels if given else chain.num_levels

    def _convolve(
        self, weights: ModuleList, level: int, x: Tensor, edges: MeanEdges,
        state: LayerState, data: Tensors,
    ) -> Tensor:  # fmt: skip
        for convolution in _of_level(weights, level):
            x = convolution(x, edges)
            if self.virtual is not None:
                x = self.virtual(x, state, num_graphs(data))
        return x


def _of_level(weights: ModuleList, level: int) -> Any:
    """Return the weights of a level; the last ones are those of all further levels."""
    return weights[min(level, len(weights) - 1)]

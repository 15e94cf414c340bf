"""The stages of a network: each maps a `LayerState` to the next."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.nn.inputs import Tensors, chains_of
from haarpool.nn.layers.neighbours import DenseNeighbours, Neighbours
from haarpool.nn.layers.state import LayerState
from haarpool.nn.strings.registry import Layer


class Convolution(torch.nn.Module):
    """A convolution and its activation, by default a ReLU; the graphs stay the same."""

    def __init__(self, layer: Layer, in_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__()
        self.signature = (layer.token, in_channels, out_channels)
        self.conv: Any = layer.load()(in_channels, out_channels, **options)
        self.activation = getattr(self.conv, "activation", torch.relu)

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Convolve the features."""
        return state._replace(x=self.activation(self.conv(state.x, state.edges())))


def convolve(
    convolutions: Any, state: LayerState, edge_attr: Tensor | None = None
) -> tuple[LayerState, Tensor]:
    """Return the state behind convolutions, and their input and all outputs side by side."""
    edges, layers = state.edges(), [state.x]
    for convolution in convolutions:
        layers.append(convolution(layers[-1], edges, edge_attr))
    return state._replace(x=layers[-1]), torch.cat(layers, 1)


class Pooling(torch.nn.Module):
    """A pooling that makes its own clusters; `haarpool.nn.layer` says how it is called.

    Args:
        pool: The layer.
        name: Its name in messages; by default that of its class.
    """

    def __init__(self, pool: Any, name: str = "") -> None:
        super().__init__()
        self.pool, self.name = pool, name or type(pool).__name__

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return the coarse graphs."""
        out = self.pool(state.x, state.edge_index, state.edges().edge_weight, state.batch)
        self._check(out)
        x, edges, weight, batch, *_ = out
        losses, num_clusters = (getattr(out, key, None) for key in ("details", "num_clusters"))
        auxiliary, neighbours = state.auxiliary, None
        if losses is not None:
            auxiliary = losses.sum() + (0 if auxiliary is None else auxiliary)
        if num_clusters is not None:
            neighbours = DenseNeighbours.of_clusters(edges, weight, len(x), num_clusters)
        return LayerState(x, edges, weight, batch, auxiliary, neighbours)

    def _check(self, out: Any) -> None:
        """Raise an error unless the output of the layer has its form."""
        if torch.compiler.is_compiling():  # the compiler does not know how many clusters there are
            return
        got = type(out).__name__
        if isinstance(out, tuple):
            shapes = [tuple(one.shape) if isinstance(one, Tensor) else None for one in out[:4]]
            match shapes:
                case (m, _), (2, f), None | (_,) as weight, (n,):
                    if m == n and weight in (None, (f,)):
                        return
            got = f"shapes {', '.join(map(str, shapes))}"
        raise HaarPoolError(
            f"a PoolingOutput of {self.name}: x (M, d), edge_index (2, F), edge_weight (F,) or "
            "None, batch (M,)",
            got,
            "return PoolingOutput(x, edge_index, edge_weight, batch)",
        )


class ChainPooling(Pooling):
    """A pooling into the clusters of the chain."""

    def forward(self, state: LayerState, data: Tensors) -> LayerState:
        """Return the next level of the chain."""
        out = self.pool(state.x, data)
        self._check(out)
        level = self.pool.level + 1
        return coarse_state(state, chains_of(data, level), level, out[0])


def coarse_state(state: LayerState, chain: ChainTensors, level: int, x: Tensor) -> LayerState:
    """Return level j of the chain, with features x (N_j, d), behind the level before."""
    edges, _, batch = chain.coarse_graph(level, x.dtype)
    weight = chain.coarse_weights(level, x.dtype)  # not rounded to the type of x
    return state._replace(
        x=x,
        edge_index=edges,
        edge_weight=weight,
        batch=batch,
        neighbours=Neighbours.of_level(chain, level, edges, weight),
        start=chain.start[level],
    )

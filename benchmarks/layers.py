"""The minibatches and pooling layers of the parts `timing` and `memory`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    ASAPooling,
    EdgePooling,
    SAGPooling,
    SortAggregation,
    TopKPooling,
)

from benchmarks.measure import Action, BenchOptions, free_memory
from haarpool.nn import EigenPooling, HaarPooling
from haarpool.nn.layers.diffpool import DiffPool
from haarpool.nn.layers.eigenpool import AddEigenModes

COLUMNS, DENSITY = 64, 0.1
MODES = ("forward", "forward + backward")
OWN = ("HaarPooling, haar", "HaarPooling, vertex")
NAMES = (
    *OWN, "EigenPooling", "SortAggregation", "TopKPooling", "SAGPooling", "ASAPooling", "DiffPool",
    "EdgePooling",
)  # fmt: skip
SLOW = ("EdgePooling",)  # a Python loop over all edges
# Memory of forward and backward per pair of nodes in a graph, measured on a processor; without an
# entry it is small.
BYTES_PER_PAIR = {"ASAPooling": 400, "DiffPool": 60}


def num_graphs(options: BenchOptions) -> int:
    """Return the number of graphs of a minibatch."""
    return 4 if options.quick else 50


def node_counts(options: BenchOptions) -> tuple[int, ...]:
    """Return the numbers of nodes per graph."""
    return (20,) if options.quick else (200, 500, 800, 1100)


def random_graph(num_nodes: int, rng: np.random.Generator) -> Data:
    """Make a graph in which each pair of nodes has an edge with probability 0.1."""
    pairs = np.stack(np.nonzero(np.triu(rng.random((num_nodes, num_nodes)) < DENSITY, 1)))
    edges = np.concatenate([pairs, pairs[::-1]], axis=1)
    edges = edges[:, np.lexsort(edges[::-1])]
    x = rng.standard_normal((num_nodes, COLUMNS), np.float32)
    return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(edges))


def random_minibatch(num_nodes: int, options: BenchOptions) -> Any:
    """Make a minibatch of random graphs with chains that halve the nodes down to one."""
    rng = np.random.default_rng(num_nodes)
    levels = math.ceil(math.log2(num_nodes))
    transform = AddEigenModes(num_modes=2, num_levels=levels, method="matching")
    graphs = (random_graph(num_nodes, rng) for _ in range(num_graphs(options)))
    batch = Batch.from_data_list([transform(graph) for graph in graphs]).to(options.device)
    batch.x.requires_grad_()  # as after a convolution
    return batch


def lacks_memory(name: str, num_nodes: int, options: BenchOptions) -> str:
    """Return why a layer is left out if there is too little memory for it, else ""."""
    needed = BYTES_PER_PAIR.get(name, 0) * num_graphs(options) * num_nodes**2
    enough = needed < 0.7 * free_memory(options)
    return "" if enough else f"left out: needs about {needed / 1e9:.0f} GB"


class TimedLayer(NamedTuple):
    """A pooling layer with its input.

    Attributes:
        forward: Returns the pooled features.
        inputs: What the backward pass differentiates by: features and weights.
    """

    forward: Callable[[], Tensor]
    inputs: list[Tensor]

    def action(self, mode: str) -> Action:
        """Return a call of the layer in one of `MODES`."""
        return self.forward if mode == MODES[0] else self.with_backward()

    def with_backward(self) -> Action:
        """Return forward and backward as an action."""
        gradient = torch.zeros(0, 0)

        def action() -> None:
            nonlocal gradient
            out = self.forward()
            if gradient.shape != out.shape:
                gradient = torch.ones_like(out)
            torch.autograd.grad(out, self.inputs, gradient, allow_unused=True)

        return action


def layers(batch: Any, names: Collection[str] = NAMES) -> dict[str, TimedLayer]:
    """Make the poolings of a minibatch; each keeps half of the nodes.

    Args:
        batch: What `random_minibatch` returned.
        names: Names of the layers.
    """
    torch.manual_seed(0)
    x, edges, graph = batch.x, batch.edge_index, batch.batch
    num_clusters = max(len(x) // batch.num_graphs // 2, 1)
    # Each with its arguments behind x.
    poolings: dict[str, tuple[torch.nn.Module, Sequence[Any]]] = {
        OWN[0]: (HaarPooling(0), [batch]),
        OWN[1]: (HaarPooling(0, "vertex"), [batch]),
        "EigenPooling": (EigenPooling(0), [batch]),
        "SortAggregation": (SortAggregation(num_clusters), [graph]),
        "TopKPooling": (TopKPooling(COLUMNS), [edges, None, graph]),
        "SAGPooling": (SAGPooling(COLUMNS), [edges, None, graph]),
        "ASAPooling": (ASAPooling(COLUMNS), [edges, None, graph]),
        "DiffPool": (DiffPool(COLUMNS, num_clusters), [edges, None, graph]),
        "EdgePooling": (EdgePooling(COLUMNS), [edges, graph]),
    }
    return {
        name: _layer(pool.to(x.device), x, args)
        for name, (pool, args) in poolings.items()
        if name in names
    }


def _layer(pool: torch.nn.Module, x: Tensor, arguments: Sequence[Any]) -> TimedLayer:
    def forward() -> Tensor:
        result = pool(x, *arguments)
        pooled: Tensor = result.view(-1, COLUMNS) if isinstance(result, Tensor) else result[0]
        return pooled

    return TimedLayer(forward, [x, *pool.parameters()])

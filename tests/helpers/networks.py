"""Weighted graphs for tests of networks, and a look at what passes through a module."""

from typing import Any

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import (
    erdos_renyi_graph,
    to_undirected,
)

from haarpool.nn import parse_architecture
from haarpool.nn.strings.registry import registered_layers

FEATURES = 3
SIZES = (12, 1, 5, 30, 2, 8)


def weighted_graph(nodes: int, seed: int = 0, density: float = 0.3) -> Data:
    """A random graph without self-loops, symmetric weights; two nodes or fewer have no edges."""
    torch.manual_seed(seed)
    index = erdos_renyi_graph(nodes, density if nodes > 2 else 0)
    index, weight = to_undirected(index, 0.5 + torch.rand(index.shape[1]), nodes, reduce="mean")
    x, y = torch.randn(nodes, FEATURES), torch.tensor([nodes % 2])
    return Data(x=x, edge_index=index, edge_weight=weight, y=y)


def weighted_graphs(sizes=SIZES) -> list[Data]:
    return [weighted_graph(n, seed=i) for i, n in enumerate(sizes)]


def batch_for(model, sizes=SIZES, more=(), **parameters) -> Batch:
    transform = model.transform(**parameters) or (lambda data: data)
    return Batch.from_data_list([transform(data) for data in (*weighted_graphs(sizes), *more)])


def without_neighbours(data: Data, *nodes: int) -> Data:
    kept = ~torch.isin(data.edge_index, torch.tensor(nodes)).any(0)
    data.edge_index, data.edge_weight = data.edge_index[:, kept], data.edge_weight[kept]
    return data


def inputs_of(module: torch.nn.Module) -> list[tuple]:
    """A list that gets the arguments of each call of the module from now on."""
    calls: list[tuple] = []
    module.register_forward_pre_hook(lambda _, inputs: calls.append(inputs))
    return calls


def outputs_of(module: torch.nn.Module) -> list:
    calls: list = []
    module.register_forward_hook(lambda _, __, output: calls.append(output))
    return calls


# One graph in double precision, with two isolated nodes, the last one among them.
GRAPH = without_neighbours(weighted_graph(15), 4, 14)
GRAPH.x, GRAPH.edge_weight = GRAPH.x.double(), GRAPH.edge_weight.double()
ONES = torch.ones_like(GRAPH.edge_weight)


NETWORK = {"arch": "GC8-HP-GC8-HP-FC8", "in_channels": FEATURES, "out_channels": 2}


def tokens(*kinds: str) -> list[str]:
    """The tokens of all registered layers of some kinds."""
    return [token for token, layer in registered_layers().items() if layer.kind in kinds]


def taken(text: str, **options: Any) -> dict[str, Any]:
    """Those options that the layers of an architecture take."""
    known = parse_architecture(text).options()
    return {name: value for name, value in options.items() if name in known}

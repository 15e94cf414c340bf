"""Graphs for tests of dense poolings, and their dense forms."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj, to_undirected

from haarpool.nn.layers.dense_batch import to_dense
from haarpool.nn.layers.pooling_output import PoolingOutput

WIDTH = 5


def random_data(nodes: int, edges: int, seed: int = 0) -> Data:
    """A random graph with isolated nodes here and there, weighted, features of both signs."""
    rng = torch.Generator().manual_seed(seed)
    row, column = torch.randint(nodes, (2, edges), generator=rng)
    weight = 0.5 + torch.rand(edges, generator=rng, dtype=torch.double)
    kept = row != column
    index, weight = to_undirected(torch.stack([row, column])[:, kept], weight[kept], nodes)
    x = torch.randn(nodes, WIDTH, generator=rng, dtype=torch.double)
    return Data(x=x, edge_index=index, edge_weight=weight, num_nodes=nodes)


def pool_data(pool: nn.Module, data: Data) -> PoolingOutput:
    return pool(data.x, data.edge_index, data.edge_weight, data.batch)


def dense_data(data: Data) -> tuple[Tensor, Tensor, Tensor]:
    return to_dense(data.x, data.edge_index, data.edge_weight, data.batch)


def dense_adjacency(out: PoolingOutput) -> Tensor:
    return to_dense_adj(out.edge_index, None, out.edge_weight, len(out.x))[0]


def relabelled(data: Data, order: Tensor) -> Data:
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
    return Data(x=data.x[order], edge_index=place[data.edge_index], edge_weight=data.edge_weight)


MIXED = [
    random_data(6, 9, 1),
    random_data(40, 90, 2),
    random_data(1, 0, 3),
    random_data(3, 0, 4),
    random_data(9, 5, 5),
]

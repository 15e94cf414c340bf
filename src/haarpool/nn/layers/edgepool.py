"""EdgePool: contract edges with high scores, by a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import EdgePooling
from torch_geometric.nn.pool.edge_pool import UnpoolInfo
from torch_geometric.utils import coalesce, scatter

from haarpool._types import Ints
from haarpool.nn.layers.pooling_output import PoolingOutput
from haarpool.nn.strings.registry import layer


@layer("EP", kind="pooling")
class FastEdgePooling(EdgePooling):  # type: ignore[misc]  # PyG has no types
    """EdgePool: contract edges with high scores; the output has no edge weights.

        s_e = softmax over the edges e into a node (w · [x_u, x_v] + b) + 1/2
        contract edges by descending s_e, unless one of the two nodes is already contracted
        x' = s_e (x_u + x_v) for a contracted edge,  x' = x_u for a node without one

    Diehl, "Edge Contraction Pooling for Graph Neural Networks", arXiv 1905.10990, 2019. PyG visits
    the edges in a Python loop over tensors; here the loop is compiled, with the same clusters and
    weights. The order of equal scores is undefined, and they are common: a node with one neighbour
    always has the highest score. So the result for a graph may depend on its batch.

    Args:
        in_channels: Number of columns of x.
    """

    depends_on_batch = True

    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor
    ) -> PoolingOutput:
        """Pool a minibatch; edge weights are ignored."""
        x, edges, batch, _ = super().forward(x, edge_index, batch)
        # PyG sorts nodes by score; other layers expect them graph by graph.
        order = batch.argsort(stable=True)
        return PoolingOutput(x[order], order.argsort()[edges], None, batch[order])

    def _merge_edges(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_score: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, UnpoolInfo]:
        """Return the coarse graphs, and what `unpool` needs; PyG's forward pass calls this."""
        # The same sort as PyG's, on the CPU: a GPU takes equal scores in another order.
        order = torch.argsort(edge_score.detach().cpu(), descending=True)
        source, target = edge_index.cpu()[:, order].numpy()
        clusters, contracted = _compiled()(source, target, len(x))
        cluster = torch.from_numpy(clusters).to(x.device)
        num_clusters = int(clusters.max(initial=-1)) + 1
        chosen = order[torch.from_numpy(contracted)].to(x.device)
        score = torch.cat([edge_score[chosen], x.new_ones(num_clusters - len(chosen))])
        pooled = scatter(x, cluster, dim=0, dim_size=num_clusters, reduce="sum") * score[:, None]
        edges = coalesce(cluster[edge_index], num_nodes=num_clusters)
        graphs = batch.new_empty(num_clusters).scatter_(0, cluster, batch)
        return pooled, edges, graphs, UnpoolInfo(edge_index, cluster, batch, score)


def contract(source: Ints, target: Ints, num_nodes: int) -> tuple[Ints, Ints]:
    """Contract edges in their order, unless one of their nodes is already contracted.

    Returns:
        (N,) cluster of each node: contracted edges come first, then the other nodes; and the
        positions of the contracted edges.

    Example:
        >>> contract(np.array([1, 0, 2]), np.array([2, 1, 3]), 5)
        (array([1, 0, 0, 2, 3]), array([0]))
    """
    cluster = np.full(num_nodes, -1, np.int64)
    contracted = np.empty(num_nodes, np.int64)
    count = 0
    for i in range(len(source)):
        if cluster[source[i]] < 0 and cluster[target[i]] < 0:
            cluster[source[i]] = cluster[target[i]] = count
            contracted[count] = i
            count += 1
    total = count
    for node in range(num_nodes):
        if cluster[node] < 0:
            cluster[node] = total
            total += 1
    return cluster, contracted[:count]


@cache
def _compiled() -> Callable[[Ints, Ints, int], tuple[Ints, Ints]]:
    """Return the compiled `contract`; without numba the function itself, which is slow."""
    try:
        import numba
    except ImportError:
        return contract
    compiled: Callable[[Ints, Ints, int], tuple[Ints, Ints]] = numba.njit(nogil=True)(contract)
    return compiled

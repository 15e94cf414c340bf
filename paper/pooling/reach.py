"""How far a network looks: the mean distance, in hops, of what an output depends on.

    R = mean over nodes v of  Σ_u |∂y_v / ∂x_u| d(u, v) / Σ_u |∂y_v / ∂x_u|

with hops d and the sum of absolute entries |.|: the influence-weighted receptive field of Liang et
al. (2025), `total_influence` of PyG. That one cuts the neighbourhood of v out of the graph, which
would change the chain, so here the whole graph stays.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from haarpool.nn import Network

NODES = 16  # sampled ones


def reach(network: Network, batch: Mapping[str, Tensor], number: int = NODES) -> float:
    """Return the mean distance in hops of what the outputs of some nodes depend on.

    Args:
        network: A network with an output per node.
        batch: One graph, or one signal on it.
        number: Number of nodes, chosen at random but the same for all networks.
    """
    was_training = network.training
    x = batch["x"].detach().clone().requires_grad_()
    network.eval()
    outputs = network({**batch, "x": x})
    network.train(was_training)
    size = x.shape[-2]
    outputs = outputs.view(size, -1)
    nodes = np.sort(np.random.default_rng(0).permutation(size)[:number])
    edges = batch["edge_index"].cpu().numpy()
    graph = sparse.csr_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(size, size))
    hops = dijkstra(graph, unweighted=True, indices=nodes)
    means = []
    for node, distance in zip(nodes.tolist(), hops, strict=True):
        influence = np.zeros(size)
        for output in outputs[node]:
            (gradient,) = torch.autograd.grad(output, x, retain_graph=True)
            influence += gradient.view(size, -1).abs().sum(1).double().cpu().numpy()
        near = np.isfinite(distance)  # in the same component
        if influence[near].any():
            means.append(float(np.average(distance[near], weights=influence[near])))
    return float(np.mean(means)) if means else 0.0

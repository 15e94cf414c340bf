"""Small graphs for tests."""

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

EDGE = torch.tensor([[0, 1], [1, 0]])


def random_graphs(count, size=20, seed=0):
    pick = np.random.default_rng(seed).integers(0, 2**31, count).tolist()
    return [nx.gnm_random_graph(size + s % 7, 2 * size, seed=s) for s in pick]


def two_nodes(nodes: int = 2, **attributes) -> Data:
    """A graph with one edge."""
    return Data(edge_index=EDGE, num_nodes=nodes, **attributes)


def rings_and_paths(count=60, seed=0):
    """Rings and paths of random sizes, and their sizes."""
    rng = np.random.default_rng(seed)
    graphs, ring, size = [], [], []
    for i in range(count):
        n = int(rng.integers(4, 12))
        first = torch.arange(n if i % 2 else n - 1)
        edges = torch.stack([first, (first + 1) % n])
        edges = torch.cat([edges, edges.flip(0)], 1)
        degree = torch.bincount(edges[0], minlength=n)
        x = torch.nn.functional.one_hot(degree, 3).float()
        graphs.append(Data(x=x, edge_index=edges))
        ring.append(i % 2)
        size.append(float(n))
    return graphs, np.array(ring), np.array(size)

"""`kmis`, a clustering: k-MIS pooling of Bacciu et al. (2023). `HaarUNet` on it is its U-Net.

haarpool train plate.npz --arch haarunet --method kmis
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse

from haarpool._types import Ints
from paper.pooling.peers.tgp import import_tgp


def kmis(adjacency: sparse.csr_array, num_clusters: int, *, seed: int, hops: int = 1) -> Ints:
    """Maximal independent sets with their neighbours; chooses the number of clusters.

    A node of the set is more than k hops from all others of the set, and each other node is within
    k hops of one. Nodes with few neighbours come first into the set, which is the greedy rule of
    the paper with constant scores; learned scores would change the chain in each step.

    Args:
        adjacency: The graph.
        num_clusters: Ignored.
        seed: Ignored; nothing is random.
        hops: k.
    """
    select = import_tgp("select").KMISSelect(order_k=hops, scorer="constant")
    pairs = adjacency.tocoo()
    edges = np.stack([pairs.row, pairs.col]).astype(np.int64)
    edges = edges[:, edges[0] != edges[1]]
    made = select(edge_index=torch.from_numpy(edges), num_nodes=adjacency.shape[0])
    clusters: Ints = made.cluster_index.numpy()
    return clusters

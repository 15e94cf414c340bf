"""Random clusters, a control: what a chain is worth without any knowledge of the graph."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from haarpool._types import Ints
from haarpool.chains.clustering.registry import register


@register("random", version="1")
def random(adjacency: sparse.csr_array, num_clusters: int, *, seed: int) -> Ints:
    """Random clusters of nearly equal sizes, a control without regard to edges.

    Every method should do better than this one.
    """
    nodes = np.random.default_rng([seed, adjacency.shape[0]]).permutation(adjacency.shape[0])
    cluster = np.empty(len(nodes), np.int64)
    cluster[nodes] = np.arange(len(nodes)) % num_clusters
    return cluster

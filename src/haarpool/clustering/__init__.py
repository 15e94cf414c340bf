"""Clusterings: (adjacency, number of clusters, seed) -> cluster ids. One file per family.

`registry.py` says what a clustering is and lists them; `cluster` runs one over a batch of graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.clustering.communities import leiden, louvain, paris
from haarpool.clustering.matching import matching
from haarpool.clustering.metis import metis
from haarpool.clustering.points import dbscan, hdbscan, kmeans, optics, spectral_kmeans
from haarpool.clustering.registry import (
    Clustering,
    Method,
    checked_ids,
    clusterings,
    find_method,
    numbered,
    register,
)
from haarpool.clustering.spectral import spectral, spectral_batch
from haarpool.graph import Batch

__all__ = ["Clustering", "Method", "cluster", "clusterings", "find_method", "register"]

register("spectral", version="2", batched=spectral_batch)(spectral)
register("spectral-kmeans", version="1")(spectral_kmeans)
for function in (dbscan, hdbscan, kmeans, leiden, louvain, matching, metis, optics, paris):
    register(function.__name__, version="1")(function)


def cluster(
    batch: Batch,
    num_clusters: NDArray[np.int64],
    method: Method,
    seed: int,
    features: NDArray[np.float64] | None,
    options: dict[str, Any],
) -> NDArray[np.int64]:
    """Clusters of all graphs of a batch, numbered through it by their first members.

    A method that chooses the number of clusters itself may give any. If it merges nothing at
    all, `matching` does this step, so that every step of a chain makes a graph smaller.
    """
    sizes = batch.sizes
    ids = np.arange(batch.start[-1])
    whole = num_clusters <= 1
    ids = np.where(np.repeat(whole, sizes), np.repeat(batch.start[:-1], sizes), ids)
    todo = np.flatnonzero(~whole & (num_clusters < sizes))
    if method.batched and len(todo) > 1:
        part, nodes = batch.take(todo)
        shift = np.repeat(batch.start[todo] - part.start[:-1], part.sizes)
        found = method.batched(part, num_clusters[todo], seed=seed, **options)
        ids[nodes] = found + shift
        return numbered(ids)
    for g in todo.tolist():
        own = slice(batch.start[g], batch.start[g + 1])
        if method.takes_features:
            options = {**options, "features": None if features is None else features[own]}
        adjacency, number = batch[g].copy(), int(num_clusters[g])  # theirs to change
        found = method.function(adjacency, number, seed=seed, **options)
        found = checked_ids(found, sizes[g], method)
        if found.max() + 1 == sizes[g]:
            found = matching(adjacency, number, seed=seed)
        ids[own] = batch.start[g] + found
    return numbered(ids)

"""Clusterings: (adjacency, number of clusters, seed) -> cluster ids. One file per family.

`registry.py` says what a clustering is and lists them; `cluster` runs one over a batch of graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from haarpool.chains.clustering.communities import leiden, louvain, paris
from haarpool.chains.clustering.matching import matching
from haarpool.chains.clustering.metis import metis
from haarpool.chains.clustering.points import dbscan, hdbscan, kmeans, optics, spectral_kmeans
from haarpool.chains.clustering.registry import (
    Clustering,
    Method,
    add_method,
    checked_ids,
    clusterings,
    find_method,
    numbered,
    register,
)
from haarpool.chains.clustering.spectral import spectral, spectral_batch
from haarpool.chains.graph_batch import GraphBatch
from haarpool.errors import HaarPoolError

__all__ = ["Clustering", "Method", "cluster", "clusterings", "find_method", "register"]

add_method(Method("spectral", spectral, "2", spectral_batch))
register("spectral-kmeans", version="1")(spectral_kmeans)
for function in (dbscan, hdbscan, kmeans, leiden, louvain, matching, metis, optics, paris):
    register(function.__name__, version="1")(function)


def cluster(
    batch: GraphBatch,
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
    if method.batched and ((num_clusters > 1) & (num_clusters < sizes)).all():
        return numbered(method.batched(batch, num_clusters, seed=seed, **options))
    ids = np.arange(batch.start[-1])
    for g in np.flatnonzero(num_clusters <= 1).tolist():
        ids[batch.start[g] : batch.start[g + 1]] = batch.start[g]
    todo = np.flatnonzero((num_clusters > 1) & (num_clusters < sizes))
    if method.batched and len(todo):
        part, nodes = batch.take(todo)
        shift = np.repeat(batch.start[todo] - part.start[:-1], part.sizes)
        ids[nodes] = shift + method.batched(part, num_clusters[todo], seed=seed, **options)
        return numbered(ids)
    for g in todo.tolist():
        own = slice(batch.start[g], batch.start[g + 1])
        if method.takes_features:
            options = {**options, "features": None if features is None else features[own]}
        adjacency, number = batch[g], int(num_clusters[g])
        ids[own] = batch.start[g] + _one(adjacency, number, method, seed, options)
    return numbered(ids)


def _one(
    adjacency: sparse.csr_array, number: int, method: Method, seed: int, options: dict[str, Any]
) -> NDArray[np.int64]:
    mine = adjacency.copy()  # a method may do with it what it likes
    size = adjacency.shape[0]
    try:
        result = method.function(mine, number, seed=seed, **options)
    except (TypeError, ValueError) as error:
        usual = method.keywords
        chosen = {k: v for k, v in options.items() if repr(v) != repr(usual.get(k))}
        if isinstance(error, HaarPoolError) or not chosen.keys() - {"features"}:
            raise
        reason = str(error).strip().partition("\n")[0]
        raise HaarPoolError(
            f"options that method {method.name!r} takes", f"{chosen} ({reason})", "see its help"
        ) from error
    ids = checked_ids(result, size, method)
    return matching(adjacency, number, seed=seed) if ids.max() + 1 == size else ids

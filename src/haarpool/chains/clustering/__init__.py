"""Clusterings: (adjacency, number of clusters, seed) -> cluster ids. One file per family.

`registry.py` defines a clustering and lists all of them; `cluster` runs one on a batch of graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from haarpool._types import Floats, Ints
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

add_method(Method("spectral", spectral, "3", spectral_batch))
register("spectral-kmeans", version="1")(spectral_kmeans)
for function in (dbscan, hdbscan, kmeans, leiden, louvain, matching, metis, optics, paris):
    register(function.__name__, version="1")(function)


def cluster(
    batch: GraphBatch,
    num_clusters: Ints,
    method: Method,
    seed: int,
    features: Floats | None,
    options: dict[str, Any],
) -> Ints:
    """Cluster all graphs of a batch.

    A method that chooses the number of clusters itself may return any number. If it merges no nodes
    of a graph, `matching` clusters this graph, so that every step of a chain makes graphs smaller.

    Args:
        batch: The graphs, with N nodes together.
        num_clusters: (number of graphs,) requested number of clusters of each graph.
        method: The clustering.
        seed: Seed of random numbers.
        features: (N, d) node features, or `None`.
        options: Options of the method.

    Returns:
        (N,) cluster ids, numbered through all graphs by their first members.
    """
    needs_method = (num_clusters > 1) & (num_clusters < batch.sizes)
    if method.batched and needs_method.all():
        return numbered(method.batched(batch, num_clusters, seed=seed, **options))
    ids = np.arange(batch.start[-1])
    for g in np.flatnonzero(num_clusters <= 1).tolist():
        ids[batch.start[g] : batch.start[g + 1]] = batch.start[g]
    graphs = np.flatnonzero(needs_method)
    if method.batched and len(graphs):
        selected, nodes = batch.take(graphs)
        shift = np.repeat(batch.start[graphs] - selected.start[:-1], selected.sizes)
        ids[nodes] = shift + method.batched(selected, num_clusters[graphs], seed=seed, **options)
        return numbered(ids)
    for g in graphs.tolist():
        rows = slice(batch.start[g], batch.start[g + 1])
        if method.takes_features:
            options = {**options, "features": None if features is None else features[rows]}
        graph_ids = _cluster_graph(batch[g], int(num_clusters[g]), method, seed, options)
        ids[rows] = batch.start[g] + graph_ids
    return numbered(ids)


def _cluster_graph(
    adjacency: sparse.csr_array,
    num_clusters: int,
    method: Method,
    seed: int,
    options: dict[str, Any],
) -> Ints:
    """Run a method on one graph; return (N,) ids in order of first members."""
    try:
        # A copy, because a method may change its argument.
        result = method.function(adjacency.copy(), num_clusters, seed=seed, **options)
    except (TypeError, ValueError) as error:
        defaults = method.keywords
        given = {k: v for k, v in options.items() if k != "features"}
        changed = {k: v for k, v in given.items() if repr(v) != repr(defaults.get(k))}
        if isinstance(error, HaarPoolError) or not changed:
            raise
        reason = str(error).strip().partition("\n")[0]
        raise HaarPoolError(
            f"valid options of method {method.name!r}",
            f"{changed} ({reason})",
            "check the values",
        ) from error
    ids = checked_ids(result, adjacency.shape[0], method)
    if ids.max() + 1 == len(ids):
        return matching(adjacency, num_clusters, seed=seed)
    return ids

"""Run a clustering method on all graphs of a batch and check its results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import as_array
from haarpool.chains.clustering.matching import matching
from haarpool.chains.clustering.packing import numbered
from haarpool.chains.clustering.registry import ClusteringMethod
from haarpool.chains.graph_batch import GraphBatch
from haarpool.errors import HaarPoolError


def cluster(
    batch: GraphBatch,
    num_clusters: Ints,
    method: ClusteringMethod,
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
    ids = np.arange(batch.start[-1])
    for g in np.flatnonzero(num_clusters <= 1).tolist():
        ids[batch.start[g] : batch.start[g + 1]] = batch.start[g]
    graphs = np.flatnonzero((num_clusters > 1) & (num_clusters < batch.sizes))
    if (batched := method.batched) and len(graphs):
        number = num_clusters[graphs]
        with _naming(method, options):
            batch.fill(
                ids, graphs, lambda selected: batched(selected, number, seed=seed, **options)
            )
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
    method: ClusteringMethod,
    seed: int,
    options: dict[str, Any],
) -> Ints:
    """Run a method on one graph; return (N,) ids in order of first members."""
    with _naming(method, options):
        # A copy, because a method may change its argument.
        result = method.function(adjacency.copy(), num_clusters, seed=seed, **options)
    ids = checked_ids(result, adjacency.shape[0], method)
    if ids.max() + 1 == len(ids):
        return matching(adjacency, num_clusters, seed=seed)
    return ids


@contextmanager
def _naming(method: ClusteringMethod, options: dict[str, Any]) -> Iterator[None]:
    """Name the method in errors inside, and options that may be their cause."""
    try:
        yield
    except HaarPoolError:
        raise
    except Exception as error:
        known = method.options
        changed = {k: v for k, v in options.items() if k in known and repr(v) != repr(known[k])}
        if changed and isinstance(error, TypeError | ValueError):
            reason = str(error).strip().partition("\n")[0]
            raise HaarPoolError(
                f"valid for method {method.name!r}",
                f"{changed} ({reason})",
                "check the values",
                parameter="options",
            ) from error
        error.add_note(f"This is an error of the clustering method {method.name!r}.")
        raise


def checked_ids(result: Any, size: int, method: ClusteringMethod) -> Ints:
    """Check what a method returned for a graph of `size` nodes.

    Return (N,) cluster ids 0, 1, ... in order of first members; noise nodes are singletons.
    """
    got, ids = "", np.zeros(0, np.int64)
    try:
        ids = as_array(result, "cluster ids")
        if ids.shape != (size,):
            got = f"shape {ids.shape}"
        elif ids.dtype.kind not in "biuf":
            got = f"dtype {ids.dtype}"
        elif ids.dtype.kind == "f" and not ((np.abs(ids) < 2**53) & (ids == np.trunc(ids))).all():
            got = "ids that are not whole numbers"
    except HaarPoolError:
        got = f"{type(result).__name__}"
    if got:
        raise HaarPoolError(
            f"{size} cluster ids, one whole number per node, from method {method.name!r}",
            got,
            "return a vector such as np.zeros(adjacency.shape[0], int)",
        )
    noise = ids == -1
    distinct = np.where(noise, -1 - np.arange(size), ids.astype(np.int64))
    return numbered(np.unique(distinct, return_inverse=True)[1])

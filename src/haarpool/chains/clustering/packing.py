"""Distribution of clusters to items without edges between them, such as components, by size."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints


def packed(sizes: Ints, num_clusters: int) -> Ints:
    """Assign each item, largest first, to the cluster that is smallest so far.

    Items of equal size are taken in their order; of clusters of equal size the first is taken.

    Args:
        sizes: (n,) size of each item.
        num_clusters: Number of clusters.

    Returns:
        (n,) cluster of each item.

    Example:
        >>> packed(np.array([1, 3, 2, 2]), 2)
        array([0, 0, 1, 1])
    """
    order = np.argsort(-sizes, kind="stable")
    label = np.empty(len(sizes), np.int64)
    label[order] = np.arange(len(sizes)) % num_clusters
    first, rest = order[:num_clusters], order[num_clusters:]
    if len(rest) == 0 or sizes[order[0]] == sizes[order[-1]]:
        return label  # the same result as below, without a loop over a million items
    # One whole number per cluster, size * num_clusters + index, sorts by size, then by index.
    heap = (sizes[first] * num_clusters + np.arange(num_clusters)).tolist()
    heapq.heapify(heap)
    label[rest] = [
        heapq.heapreplace(heap, heap[0] + added) % num_clusters
        for added in (sizes[rest] * num_clusters).tolist()
    ]
    return label


def is_crowded(sizes: Ints, graph: Ints, num_clusters: Ints) -> NDArray[np.bool_]:
    """Find graphs whose small components would take the clusters of the large ones.

    By size, a component of s out of N nodes is due floor(k · s / N) of k clusters. A graph is
    crowded if one cluster for each component leaves less than half of them to those components
    that are due two or more.

    Args:
        sizes: (C,) number of nodes of each component.
        graph: (C,) graph of each component.
        num_clusters: (G,) number of clusters k of each graph.

    Returns:
        (G,) True for crowded graphs.

    Example:
        >>> sizes = np.array([30] + [1] * 28)  # one cluster each would leave one to the 30 nodes
        >>> is_crowded(sizes, np.zeros(29, int), np.array([29]))
        array([ True])
    """
    number = len(num_clusters)
    spare = num_clusters - np.bincount(graph, minlength=number)
    nodes = np.bincount(graph, sizes, minlength=number).astype(np.int64)
    due = num_clusters[graph] * sizes // nodes[graph]
    starved = np.bincount(graph, np.maximum(due - 2, 0), minlength=number)
    return np.asarray(starved > 2 * np.maximum(spare, 0))


def divided(sizes: Ints, num_clusters: int) -> tuple[Ints, Ints]:
    """Divide clusters among components by size, with largest remainders.

    Components that are due less than one cluster share some, see `packed`.

    Args:
        sizes: (C,) number of nodes of each component.
        num_clusters: Number of clusters; there are more nodes.

    Returns:
        (C,) the first cluster of each component, and (C,) the number of its clusters.

    Example:
        >>> divided(np.array([1, 6, 1, 1, 1]), 5)
        (array([3, 0, 4, 3, 4]), array([1, 3, 1, 1, 1]))
    """
    due, nodes = num_clusters * sizes, int(sizes.sum())  # in units of 1 / nodes
    large, small = np.flatnonzero(due >= nodes), np.flatnonzero(due < nodes)
    parts = np.append(due[large], due[small].sum())[: len(large) + bool(len(small))]
    shares = np.maximum(parts // nodes, 1)  # small components have one even if they are due less
    remainder = np.where(parts < nodes, 0, parts % nodes)
    order = np.lexsort((-parts, -remainder))
    shares[order[: num_clusters - shares.sum()]] += 1
    share, first = np.ones_like(sizes), np.empty_like(sizes)
    share[large] = shares[: len(large)]
    first[large] = np.cumsum(share[large]) - share[large]
    first[small] = share[large].sum() + packed(sizes[small], int(shares[-1]))
    return first, share


def numbered(ids: Ints) -> Ints:
    """Renumber cluster ids as 0, 1, ... in order of first members.

    Args:
        ids: (N,) ids in 0..N-1, possibly with gaps.
    """
    size = len(ids)
    if size < 200:  # a dictionary is faster than arrays
        numbers: dict[int, int] = {}
        return np.array([numbers.setdefault(i, len(numbers)) for i in ids.tolist()])
    first = np.full(size, size)
    first[ids[::-1]] = np.arange(size)[::-1]  # the last assignment is the first member
    is_first = np.zeros(size + 1, np.int64)
    is_first[first] = 1
    number = np.cumsum(is_first[:-1]) - 1
    return np.asarray(number[first[ids]])

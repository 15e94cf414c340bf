"""Distribution of items without edges between them to clusters of similar size."""

from __future__ import annotations

import heapq

import numpy as np

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

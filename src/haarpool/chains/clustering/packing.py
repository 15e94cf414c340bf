"""Putting things that no edge joins into clusters of even size."""

from __future__ import annotations

import heapq

import numpy as np

from haarpool._types import Ints


def packed(sizes: Ints, num_clusters: int) -> Ints:
    """The cluster of each item: largest first, each into the cluster that is smallest so far.

    Items of equal size go in their own order; of equally small clusters the first is taken.

    >>> packed(np.array([1, 3, 2, 2]), 2)
    array([0, 0, 1, 1])
    """
    order = np.argsort(-sizes, kind="stable")
    label = np.empty(len(sizes), np.int64)
    label[order] = np.arange(len(sizes)) % num_clusters
    first, rest = order[:num_clusters], order[num_clusters:]
    if len(rest) == 0 or sizes[order[0]] == sizes[order[-1]]:
        return label  # taking turns is all there is to it, and a million items need no loop
    # One whole number per cluster that sorts by its size, then by its place.
    heap = (sizes[first] * num_clusters + np.arange(num_clusters)).tolist()
    heapq.heapify(heap)
    label[rest] = [
        heapq.heapreplace(heap, heap[0] + added) % num_clusters
        for added in (sizes[rest] * num_clusters).tolist()
    ]
    return label

"""Heavy-edge matching: clusters of two along the heaviest edges, in linear time.

An edge heavier than all other edges at its two ends is taken, and its ends are done; what is left
goes another round. These are the pairs that one pass over all edges by falling weight would take,
but a round is a few operations on whole arrays, and few rounds are needed: equal weights, the
common case, are ordered by a random number per edge, so there are no long queues of nodes that
wait for each other.

The weight of an edge counts relative to the degrees of its ends, w / sqrt(d_u d_v), as in the
normalised cut. So nodes with few neighbours choose first, which leaves fewer of them alone, and
clusters of former steps, whose inner weight adds to their degree, grow evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import coarse_graph, from_edges
from haarpool.chains.clustering.packing import packed

Keys = NDArray[np.uint64]
Nodes = NDArray[Any]  # of 32 or 64 bits, as the graph has them

Edges = tuple[Nodes, Nodes, Keys]  # u, v, and by what they are sorted

BLOCK = 2**20  # entries of the graph that are worked on at a time, so that they stay in the cache
ROUNDS_BY_WEIGHT = 16  # weights that rise along a path would need one round per edge


def matching(adjacency: sparse.csr_array, num_clusters: int, *, seed: int) -> Ints:
    """Heavy-edge matching in linear time, for graphs of any size

    Gives exactly `num_clusters`; `seed` orders equal weights.

    A step merges pairs, heaviest first, until there are few enough clusters. If the pairs do not
    suffice, nodes that are left join the pair they are tied to most, one per pair; then those left
    around the same cluster are merged with each other, and nodes without edges likewise. If even
    that does not suffice, the graph of clusters goes through the next step. Clusters without any
    edge between them are put together evenly by size.
    """
    graph = adjacency
    if graph.nnz:  # sums of weights must not overflow
        weights = graph.data / graph.data.max()
        graph = sparse.csr_array((weights, graph.indices, graph.indptr), shape=graph.shape)
    labels = np.arange(graph.shape[0])
    sizes = np.ones(len(labels), np.int64)
    while True:
        parent = _step(graph, sizes, len(sizes) - num_clusters, seed)
        labels = parent[labels]
        sizes = np.bincount(parent, sizes).astype(np.int64)
        if len(sizes) == num_clusters:
            return labels
        graph = coarse_graph(graph, parent)
        seed += 1


def _step(graph: sparse.csr_array, sizes: Ints, surplus: int, seed: int) -> Ints:
    """The cluster of each node, 0..M-1, after at most `surplus` merges."""
    size = len(sizes)
    degree = graph @ np.ones(size)
    tie = _random_numbers(size, seed)
    head = np.arange(size)  # the node that stands for the cluster of a node

    edges = [(u, v, _keys(u, v, weight, degree, tie)) for u, v, weight in _edges(graph)]
    if not edges:
        return packed(sizes, size - surplus)
    first, second = _matched(edges, size, surplus)
    head[second] = first
    surplus -= len(first)
    if surplus:
        alone = np.ones(size, bool)
        alone[first] = alone[second] = False
        lone, pair, total = _ties_to_pairs(graph, alone, head)
        key = _keys(lone, pair, total, np.bincount(head, degree, size).astype(np.float64), tie)
        first, second = _matched([(lone, pair, key)], size, surplus)
        head[first] = second
        alone[first] = False
        surplus -= len(first)
    if surplus:
        around = np.full(size, size)  # the cluster a node is tied to most; last, nodes without any
        rising = np.argsort(key, kind="stable")
        around[lone[rising]] = pair[rising]
        first, second = _paired(np.flatnonzero(alone), around, sizes)
        head[second[:surplus]] = first[:surplus]
    number = np.cumsum(head == np.arange(size)) - 1
    return number[head]


def _edges(graph: sparse.csr_array) -> Iterator[tuple[Nodes, Nodes, Floats]]:
    """Edges (u, v, weight), u < v, some rows at a time: so no array is as large as the graph."""
    pointer, index = graph.indptr, graph.indices
    first = 0
    while first < graph.shape[0]:
        last = int(np.searchsorted(pointer, pointer[first] + BLOCK, side="right")) - 1
        last = max(last, first + 1)
        entries = slice(pointer[first], pointer[last])
        nodes = np.arange(first, last, dtype=index.dtype)
        row, column = np.repeat(nodes, np.diff(pointer[first : last + 1])), index[entries]
        once = np.flatnonzero(row < column)
        if len(once):
            yield row[once], column[once], graph.data[entries][once]
        first = last


def _ties_to_pairs(
    graph: sparse.csr_array, alone: NDArray[np.bool_], head: Ints
) -> tuple[Nodes, Nodes, Floats]:
    """(lone node, pair, weight between them): edges to both nodes of a pair add up."""
    parts = []
    for u, v, weight in _edges(graph):
        between = np.flatnonzero(alone[u] != alone[v])
        u, v = u[between], v[between]
        parts.append((np.where(alone[u], u, v), np.where(alone[u], v, u), weight[between]))
    lone, inside, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    ties = from_edges(lone, head[inside], weight, len(head)).tocoo()
    return ties.row, ties.col, ties.data


def _paired(nodes: Ints, around: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Two and two nodes around the same cluster, the small ones first."""
    nodes = nodes[np.lexsort((sizes[nodes], around[nodes]))]
    group = around[nodes]
    place = np.arange(len(nodes)) - np.searchsorted(group, group)
    first = np.flatnonzero((place[:-1] % 2 == 0) & (group[:-1] == group[1:]))
    return nodes[first], nodes[first + 1]


def _random_numbers(count: int, seed: int) -> NDArray[np.uint32]:
    """Odd numbers of 32 bits, one per node, by SplitMix64: the same everywhere."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(int(seed) * 0xD1342543DE82EF95 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


def _keys(u: Nodes, v: Nodes, weight: Floats, degree: Floats, tie: NDArray[np.uint32]) -> Keys:
    """One number per edge that sorts by relative weight, then at random.

    Weights are rounded to float32, as sums of the same numbers in another order must be equal.
    The bits of positive floats sort as the floats do.
    """
    scale = 1 / np.sqrt(np.maximum(degree, 1e-300))
    relative = (scale[u] * scale[v] * weight).astype(np.float32)
    key = relative.view(np.uint32).astype(np.uint64) << np.uint64(32)
    key |= tie[u] * tie[v]  # modulo 2**32
    return key


def _matched(edges: list[Edges], size: int, most: int) -> tuple[Nodes, Nodes]:
    """The ends of edges without a common node: all to which none could be added, or the `most`
    heaviest of these.
    """
    taken = []
    free = np.ones(size, bool)
    best = np.zeros(size, np.uint64)
    partner = np.empty(size, edges[0][0].dtype)
    for rounds in count(1):
        if rounds == ROUNDS_BY_WEIGHT:
            edges = [(u, v, key & np.uint64(2**32 - 1)) for u, v, key in edges]
        best[:] = 0
        for u, v, key in edges:
            np.maximum.at(best, u, key)
            np.maximum.at(best, v, key)
        u, v, key = _joined([_heaviest(*block, best) for block in edges])
        # Should two of these edges meet, with equal keys, only the last one counts.
        partner[u], partner[v] = v, u
        kept = np.flatnonzero((partner[u] == v) & (partner[v] == u))
        if len(kept) == 0:
            break
        u, v, key = u[kept], v[kept], key[kept]
        taken.append((u, v, key))
        free[u] = free[v] = False
        edges = [_left(*block, free) for block in edges]
    first, second, keys = _joined(taken) if taken else (u, v, key)
    if len(first) > most:
        heaviest = np.lexsort((first, ~keys))[:most]
        first, second = first[heaviest], second[heaviest]
    return first, second


def _heaviest(u: Nodes, v: Nodes, key: Keys, best: Keys) -> Edges:
    top = np.flatnonzero(key == best[u])
    top = top[key[top] == best[v[top]]]
    return u[top], v[top], key[top]


def _left(u: Nodes, v: Nodes, key: Keys, free: NDArray[np.bool_]) -> Edges:
    left = np.flatnonzero(free[u])
    left = left[free[v[left]]]
    return u[left], v[left], key[left]


def _joined(blocks: list[Edges]) -> Edges:
    u, v, key = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return u, v, key

"""Heavy-edge matching: clusters of two nodes along the heaviest edges, in linear time.

In each round, an edge that is heavier than all other edges at its two ends is matched, and its ends
leave the graph. The pairs are those of one pass over all edges by descending weight, but a round is
a few operations on arrays, and few rounds are needed: equal weights, the common case, are sorted by
a random number per edge, so that there are no long chains of nodes that wait for each other.

Weights are relative to the degrees of the ends, w / sqrt(d_u d_v), as in the normalised cut. So
nodes with few neighbours are matched first, which leaves fewer of them single, and clusters of
previous steps, whose inner weight adds to their degree, grow evenly.
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
from haarpool.chains.clustering.registry import register

Keys = NDArray[np.uint64]
Nodes = NDArray[Any]  # of 32 or 64 bits, like the indices of the graph
Edges = tuple[Nodes, Nodes, Keys]  # u, v, and the key by which they are sorted

BLOCK_ENTRIES = 2**19  # entries of the graph per block; the cache also has to hold nodes
ROUNDS_BY_WEIGHT = 16  # ascending weights along a path would need one round per edge


@register("matching", version="1")
def matching(adjacency: sparse.csr_array, num_clusters: int, *, seed: int) -> Ints:
    """Heavy-edge matching in linear time, for graphs of any size.

    Returns exactly `num_clusters`; `seed` decides the order of equal weights.

    A step merges pairs, heaviest first, until there are `num_clusters`. If there are not enough
    pairs, single nodes join the pair with the heaviest edges to them, one per pair. Then single
    nodes around the same cluster are merged in pairs, and nodes without edges, too. If there are
    still too many clusters, the graph of clusters goes through another step. Clusters without edges
    between them are joined to clusters of similar size.
    """
    graph = adjacency
    if graph.nnz:  # so that sums of weights do not overflow
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
    """Merge nodes at most `surplus` times; return (N,) cluster ids 0, 1, ... without gaps."""
    size = len(sizes)
    columns = np.zeros_like(graph.indices)  # one column, so that no cache misses slow down the sum
    degree = sparse.csr_array((graph.data, columns, graph.indptr), shape=(size, 1)) @ np.ones(1)
    random = _random_numbers(size, seed)
    head = np.arange(size)  # for each node, the first node of its cluster

    ends = _ends(degree, random)
    edges = [(u, v, _keys(u, v, weight, ends)) for u, v, weight in _edge_blocks(graph)]
    if not edges:
        return packed(sizes, size - surplus)
    first, second = _matched(edges, size, surplus)
    head[second] = first
    surplus -= len(first)
    if surplus:
        is_single = np.ones(size, bool)
        is_single[first] = is_single[second] = False
        single, pair, weight = _edges_to_pairs(graph, is_single, head)
        pair_degree = np.bincount(head, degree, size).astype(np.float64)
        key = _keys(single, pair, weight, _ends(pair_degree, random))
        first, second = _matched([(single, pair, key)], size, surplus)
        head[first] = second
        is_single[first] = False
        surplus -= len(first)
    if surplus:
        nearest = np.full(size, size)  # cluster with the heaviest edge to a node; `size` if none
        ascending = np.argsort(key, kind="stable")
        nearest[single[ascending]] = pair[ascending]
        first, second = _paired(np.flatnonzero(is_single), nearest, sizes)
        head[second[:surplus]] = first[:surplus]
    number = np.cumsum(head == np.arange(size)) - 1
    return number[head]


def _edge_blocks(graph: sparse.csr_array) -> Iterator[tuple[Nodes, Nodes, Floats]]:
    """Yield edges (u, v, weight), u < v, in blocks: no array is as large as the graph."""
    pointer, index = graph.indptr, graph.indices
    first = 0
    while first < graph.shape[0]:
        last = int(np.searchsorted(pointer, pointer[first] + BLOCK_ENTRIES, side="right")) - 1
        last = max(last, first + 1)
        entries = slice(pointer[first], pointer[last])
        nodes = np.arange(first, last, dtype=index.dtype)
        row, column = np.repeat(nodes, np.diff(pointer[first : last + 1])), index[entries]
        upper = np.flatnonzero(row < column)
        if len(upper):
            yield row[upper], column[upper], graph.data[entries][upper]
        first = last


def _edges_to_pairs(
    graph: sparse.csr_array, is_single: NDArray[np.bool_], head: Ints
) -> tuple[Nodes, Nodes, Floats]:
    """Return (single node, pair, weight) of edges; weights to both nodes of a pair add up."""
    blocks = []
    for u, v, weight in _edge_blocks(graph):
        between = np.flatnonzero(is_single[u] != is_single[v])
        u, v = u[between], v[between]
        single, paired = np.where(is_single[u], u, v), np.where(is_single[u], v, u)
        blocks.append((single, paired, weight[between]))
    single, paired, weight = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    edges = from_edges(single, head[paired], weight, len(head)).tocoo()
    return edges.row, edges.col, edges.data


def _paired(nodes: Ints, nearest: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Return pairs of nodes with the same nearest cluster, small nodes first."""
    nodes = nodes[np.lexsort((sizes[nodes], nearest[nodes]))]
    group = nearest[nodes]
    position = np.arange(len(nodes)) - np.searchsorted(group, group)
    first = np.flatnonzero((position[:-1] % 2 == 0) & (group[:-1] == group[1:]))
    return nodes[first], nodes[first + 1]


def _random_numbers(count: int, seed: int) -> NDArray[np.uint32]:
    """Return odd numbers of 32 bits by SplitMix64, which are the same on every machine."""
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z += np.uint64(int(seed) * 0xD1342543DE82EF95 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32) | np.uint32(1)


def _ends(degree: Floats, random: NDArray[np.uint32]) -> NDArray[np.void]:
    """Return what a key needs from each node side by side, because every read is a cache miss."""
    ends = np.empty(len(degree), np.dtype([("scale", "f8"), ("random", "u4")], align=True))
    ends["scale"] = 1 / np.sqrt(np.maximum(degree, 1e-300))
    ends["random"] = random
    return ends


def _keys(u: Nodes, v: Nodes, weight: Floats, ends: NDArray[np.void]) -> Keys:
    """Return one number per edge that sorts by relative weight, then at random.

    Weights are rounded to float32, so that sums of the same numbers in another order are equal.
    Positive floats are sorted like their bits.
    """
    at_u, at_v = ends[u], ends[v]
    relative = (at_u["scale"] * at_v["scale"] * weight).astype(np.float32)
    key: Keys = relative.view(np.uint32).astype(np.uint64) << np.uint64(32)
    key |= at_u["random"] * at_v["random"]  # modulo 2**32
    return key


def _matched(edges: list[Edges], size: int, most: int) -> tuple[Nodes, Nodes]:
    """Return the ends of a maximal set of edges without common nodes, or of the `most` heaviest."""
    matched = []
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
        # If two of these edges, with equal keys, have a common node, only the last one counts.
        partner[u], partner[v] = v, u
        kept = np.flatnonzero((partner[u] == v) & (partner[v] == u))
        if len(kept) == 0:
            break
        u, v, key = u[kept], v[kept], key[kept]
        matched.append((u, v, key))
        free[u] = free[v] = False
        edges = [_between_free(*block, free) for block in edges]
    first, second, keys = _joined(matched) if matched else (u, v, key)
    if len(first) > most:
        heaviest = np.lexsort((first, ~keys))[:most]
        first, second = first[heaviest], second[heaviest]
    return first, second


def _heaviest(u: Nodes, v: Nodes, key: Keys, best: Keys) -> Edges:
    """Select the edges that are the heaviest at both ends."""
    selected = np.flatnonzero(key == best[u])
    selected = selected[key[selected] == best[v[selected]]]
    return u[selected], v[selected], key[selected]


def _between_free(u: Nodes, v: Nodes, key: Keys, free: NDArray[np.bool_]) -> Edges:
    """Select the edges between free nodes."""
    selected = np.flatnonzero(free[u])
    selected = selected[free[v[selected]]]
    return u[selected], v[selected], key[selected]


def _joined(blocks: list[Edges]) -> Edges:
    u, v, key = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return u, v, key

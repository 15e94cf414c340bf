"""Spectral clustering by normalised cut, without chance.

The leading eigenvectors of D^-1/2 A D^-1/2 (Shi and Malik, 2000) are turned into clusters by a QR
factorisation with column pivoting (Damle, Minden and Ying, 2019), which needs no random start.

Equal eigenvalues are common in molecules, and then "the first k eigenvectors" are a matter of
chance. The rule here: a tiny potential is added to the diagonal, first by the place of a node in
the graph (degrees, degrees of neighbours, and so on, which renumbering does not change), then,
a hundred times smaller, by its index, which decides only between nodes that look the same.

So rounding, which differs between processors, does not decide either, up to 1,024 nodes. Larger
graphs are divided by Lanczos vectors, which take rounding as it comes.

The eigenvectors of a disconnected graph live on its components. So does the work: the components
of all graphs of a batch are solved together, those of equal size in one stack of dense matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse import csgraph

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import entry_rows, from_edges
from haarpool.chains.clustering.lanczos import BY_PLACE, check_range, leading, potential
from haarpool.chains.clustering.packing import packed
from haarpool.chains.graph_batch import GraphBatch

MAX_DENSE = 1024  # nodes of one graph; a larger one is divided
MAX_LANCZOS = 32  # eigenvectors; more come from dividing
WAYS = 8  # in which a large graph is divided


def spectral(adjacency: sparse.csr_array, num_clusters: int, *, seed: int) -> Ints:
    """Normalised cut: eigenvectors, pivoted QR; exact ties broken by the graph

    Each component receives as many clusters as it has eigenvalues among the leading ones, at least
    one. With fewer clusters than components whole components are put together, evenly by size.
    Graphs above 1,024 nodes are first divided by Lanczos vectors. `seed` is not needed.
    """
    return spectral_batch(GraphBatch.of(adjacency), np.array([num_clusters]), seed=seed)


def spectral_batch(batch: GraphBatch, num_clusters: Ints, *, seed: int) -> Ints:
    """`spectral` on each graph of a batch; cluster ids of a graph count from its first node."""
    if batch.dense is not None and _is_tame(batch.dense.sum(axis=1)):
        values, vectors = _eigen(batch.dense[None])
        # Every component has an eigenvalue of one, up to the potential. A small graph with only
        # one is done, without the detours of a batch; the numbers are the same.
        if values[0, 1] < 1 - 10 * BY_PLACE:
            return np.asarray(_assign(vectors[:, :, : num_clusters[0]])[0])
    if batch.sizes.max() <= MAX_DENSE:
        return _solve(batch, num_clusters)
    labels = np.empty(batch.start[-1], np.int64)
    small = np.flatnonzero(batch.sizes <= MAX_DENSE)
    if small.size:
        part, nodes = batch.take(small)
        shift = np.repeat(batch.start[small] - part.start[:-1], part.sizes)
        labels[nodes] = _solve(part, num_clusters[small]) + shift
    for g in np.flatnonzero(batch.sizes > MAX_DENSE).tolist():
        own = slice(batch.start[g], batch.start[g + 1])
        labels[own] = batch.start[g] + _divide(batch[g], int(num_clusters[g]))
    return labels


def embedding(adjacency: sparse.csr_array, dimension: int) -> Floats:
    """(N, dimension) leading eigenvectors of a graph, ties broken; fewer where N is large."""
    if adjacency.shape[0] > MAX_DENSE:
        number = min(dimension, MAX_LANCZOS)
        while (vectors := leading(adjacency, number)) is None and number > 1:
            number //= 2  # the first ones are known better than all of them
        return np.ones((adjacency.shape[0], 1)) if vectors is None else vectors
    dense = adjacency.toarray()
    np.fill_diagonal(dense, dense.diagonal() + (dense.sum(axis=1) == 0))  # an eigenvalue of one
    return _eigen(dense[None])[1][0, :, :dimension]


# ---------------------------------------------------------------------- large graphs


def _divide(adjacency: sparse.csr_array, num_clusters: int) -> Ints:
    """Cut a large graph into a few parts, each with clusters in proportion to its nodes.

    A part is a component; in a connected graph it is one of a few spectral clusters or, where
    these are hard to find or too uneven to get on, one half of a breadth-first walk.
    """
    size = adjacency.shape[0]
    count, part = csgraph.connected_components(adjacency, directed=False)
    if count >= num_clusters:
        together: Ints = packed(np.bincount(part), num_clusters)[part]
        return together
    if count == 1:
        number = num_clusters if num_clusters <= MAX_LANCZOS else WAYS
        vectors = leading(adjacency, number)
        if vectors is not None:
            part = _assign(vectors[None])[0]
            if number == num_clusters:
                return np.asarray(part)
        if vectors is None or np.bincount(part).max() > 0.9 * size:
            end = csgraph.breadth_first_order(adjacency, 0, return_predecessors=False)[-1]
            walk = csgraph.breadth_first_order(adjacency, end, return_predecessors=False)
            part = np.zeros(size, np.int64)
            part[walk[size // 2 :]] = 1
    sizes = np.bincount(part)
    keep, part = sizes > 0, np.cumsum(sizes > 0)[part] - 1
    sizes = sizes[keep]
    shares = _proportional(sizes, num_clusters)
    nodes = np.argsort(part, kind="stable")
    entries = adjacency.tocoo()
    inside = part[entries.row] == part[entries.col]
    place = np.argsort(nodes)
    row, column = place[entries.row[inside]], place[entries.col[inside]]
    parts = from_edges(row, column, entries.data[inside], size)
    labels = np.empty(size, np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)])
    labels[nodes] = spectral_batch(GraphBatch(parts, start), shares, seed=0)
    return labels


def _proportional(sizes: Ints, total: int) -> Ints:
    """`total` clusters for parts of these sizes: one each, the rest by size, rounded fairly."""
    rest = (total - len(sizes)) * (sizes - 1) / max(1, (sizes - 1).sum())
    shares = 1 + rest.astype(np.int64)
    missing = total - shares.sum()
    shares[np.argsort(-(rest % 1), kind="stable")[:missing]] += 1
    return np.asarray(shares)


# ---------------------------------------------------------------------- a batch of small graphs


def _solve(batch: GraphBatch, num_clusters: Ints) -> Ints:
    component = csgraph.connected_components(batch.adjacency, directed=False)[1]
    nodes = np.argsort(component, kind="stable")  # component by component; these stand in order
    size = np.bincount(component)
    first = np.cumsum(size) - size
    graph = np.searchsorted(batch.start, nodes[first], side="right") - 1
    quota = num_clusters - np.bincount(graph, minlength=len(num_clusters))  # beyond one each
    label = batch.start[graph]
    for g in np.flatnonzero(quota < 0):
        label[graph == g] += packed(size[graph == g], int(num_clusters[g]))
    todo = np.flatnonzero((quota > 0)[graph] & (size > 1))
    todo = todo[np.argsort(size[todo], kind="stable")]
    stacks = _stacks(batch.adjacency, component, nodes, first, todo, size)
    values, vectors = zip(*map(_eigen, stacks), strict=True) if stacks else ((), ())
    share = _shares(values, todo, size, graph, quota)
    before = np.cumsum(share) - share
    label += np.where(quota[graph] >= 0, before - before[np.searchsorted(graph, graph)], 0)
    labels: Ints = label[component]
    for stack in vectors:
        own, todo = todo[: len(stack)], todo[len(stack) :]
        for k in set(share[own].tolist()):
            same = share[own] == k
            members = nodes[first[own[same], None] + np.arange(stack.shape[1])]
            labels[members] += _assign(stack[same, :, :k])
    return labels


def _stacks(
    adjacency: sparse.csr_array, component: Ints, nodes: Ints, first: Ints, todo: Ints, size: Ints
) -> list[Floats]:
    """The components `todo`, which stand in order of size, as dense matrices, a stack per size."""
    place = np.empty_like(nodes)  # of a node in its component
    place[nodes] = np.arange(len(nodes)) - np.repeat(first, size)
    area = size[todo] ** 2
    begin = np.full(len(size), -1)
    begin[todo] = np.cumsum(area) - area
    row, column = entry_rows(adjacency), adjacency.indices
    owner = component[row]
    target = begin[owner] + place[row] * size[owner] + place[column]
    used = begin[owner] >= 0
    flat = np.zeros(int(area.sum()))
    flat[target[used]] = adjacency.data[used]
    stacks = []
    for n, same in groupby(size[todo].tolist()):
        shape = (len(list(same)), n, n)
        stacks.append(flat[: np.prod(shape)].reshape(shape))
        flat = flat[np.prod(shape) :]
    return stacks


def _is_tame(degree: Floats) -> bool:
    """Whether there are no isolated nodes, and nothing to overflow or vanish."""
    return bool(degree.min() > 1e-100 and degree.max() < 1e100)


def _tame(dense: Floats) -> Floats:
    """(b, n, n) weights divided by the largest of a graph, lest sums overflow or vanish."""
    largest = dense.max(axis=(1, 2), keepdims=True)
    least = dense.min(axis=(1, 2), where=dense > 0, initial=np.inf, keepdims=True)
    widest = int((least / largest).argmin())
    check_range(least.flat[widest], largest.flat[widest])
    return np.asarray(dense / largest)


def _eigen(stack: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (b, n), falling, and eigenvectors (b, n, n) of connected graphs, ties broken."""
    n = stack.shape[1]
    degree = stack.sum(axis=2, keepdims=True)
    if not _is_tame(degree):
        stack = _tame(stack)
        degree = stack.sum(axis=2, keepdims=True)
    walk = stack / degree
    scale = 1 / np.sqrt(degree)
    matrix = scale * stack * scale.transpose(0, 2, 1)
    # Scaling all weights changes nothing: degrees count relative to their mean.
    tie = potential(walk.__matmul__, degree * (n / degree.sum(axis=1, keepdims=True)))
    matrix.reshape(-1, n * n)[:, :: n + 1] += tie[:, :, 0]  # the diagonals
    values, vectors = np.linalg.eigh(matrix)
    return values[:, ::-1], vectors[:, :, ::-1]


def _shares(values: Sequence[Floats], todo: Ints, size: Ints, graph: Ints, quota: Ints) -> Ints:
    """How many clusters each component gets: one, and one for each leading eigenvalue it has."""
    others = np.concatenate([np.zeros(0), *(v[:, 1:].ravel() for v in values)])
    owner = np.repeat(todo, size[todo] - 1)
    order = np.lexsort((owner, -others, graph[owner]))
    owner = owner[order]
    rank = np.arange(len(owner)) - np.searchsorted(graph[owner], graph[owner])
    return 1 + np.bincount(owner[rank < quota[graph[owner]]], minlength=len(graph))


def _assign(vectors: Floats) -> Ints:
    """Rows of k orthonormal eigenvectors, (b, n, k), -> one of k clusters each, (b, n).

    Column pivoting finds the k rows that are most unlike each other; the rotation that turns
    them best into the unit vectors (polar decomposition) turns every row towards its cluster.
    """
    b, _, k = vectors.shape
    if k == 1:
        return np.zeros(vectors.shape[:2], np.int64)
    # The routine itself, since what scipy wraps around it takes longer than a small QR.
    pivots = [lapack.dgeqp3(v.T)[1][:k] - 1 for v in vectors]
    corner = vectors[np.arange(b)[:, None], pivots]
    # C = Q Λ^1/2 ..., so Cᵀ (C Cᵀ)^-1/2 is the rotation; the pivots keep C far from singular.
    values, basis = np.linalg.eigh(corner @ corner.transpose(0, 2, 1))
    root = basis / np.sqrt(np.maximum(values, 1e-12))[:, None]
    rotation = corner.transpose(0, 2, 1) @ (root @ basis.transpose(0, 2, 1))
    labels: Ints = np.abs(vectors @ rotation).argmax(axis=2)
    return labels

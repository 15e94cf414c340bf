"""Spectral clustering by normalised cut, without random numbers.

The leading eigenvectors of D^-1/2 A D^-1/2 (Shi and Malik, 2000) are converted to clusters by a QR
factorisation with column pivoting (Damle, Minden and Ying, 2019), which needs no random start.

Equal eigenvalues are common in molecules. Then the first k eigenvectors are not unique, so a tiny
potential is added to the diagonal: first by the neighbourhood of a node (degrees, degrees of
neighbours, and so on), which does not depend on the numbering of nodes; then, a hundred times
smaller, by the index of a node, which decides only between nodes with equal neighbourhoods.

So rounding, which differs between processors, does not decide, up to 1,024 nodes. Larger graphs are
divided by Lanczos vectors, where rounding may decide.

Each eigenvector of a disconnected graph belongs to one component. So the components of all graphs
of a batch are solved together, those of equal size in one stack of dense matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse import csgraph

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import from_edges
from haarpool.chains.clustering.lanczos import (
    BY_STRUCTURE,
    check_range,
    leading_eigenvectors,
    potential,
)
from haarpool.chains.clustering.packing import divided, is_crowded, numbered, packed
from haarpool.chains.clustering.registry import register
from haarpool.chains.graph_batch import GraphBatch, dense_blocks

MAX_DENSE = 1024  # nodes; larger graphs are divided
MAX_LANCZOS = 32  # eigenvectors; for more clusters the graph is divided
NUM_PARTS = 8  # into which a large graph is divided


def spectral_batch(
    batch: GraphBatch, num_clusters: Ints, *, seed: int, by_size: bool = True
) -> Ints:
    """Run `spectral` on all graphs of a batch; ids of a graph count from its first node."""
    if batch.dense is not None:  # faster than in a batch and with the same result
        return _solve_one(batch.dense, int(num_clusters[0]), by_size)
    labels = np.empty(batch.start[-1], np.int64)
    small = np.flatnonzero(batch.sizes <= MAX_DENSE)
    if small.size:
        batch.fill(labels, small, lambda graphs: _solve(graphs, num_clusters[small], by_size))
    for g in np.flatnonzero(batch.sizes > MAX_DENSE).tolist():
        graph_labels = _divide(batch[g], int(num_clusters[g]), by_size)
        labels[batch.start[g] : batch.start[g + 1]] = batch.start[g] + graph_labels
    return labels


@register("spectral", version="3", batched=spectral_batch)
def spectral(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, by_size: bool = True
) -> Ints:
    """Normalised cut: eigenvectors, pivoted QR; ties broken by the graph.

    Each component gets as many clusters as it has eigenvalues among the leading ones, at least one.
    If there are more components than clusters, components are joined to clusters of similar size.
    If many small components would take more than half of the clusters that large ones are due,
    clusters are divided by size instead, and small components share some; `by_size=False` leaves
    this out. Graphs above 1,024 nodes are first divided by Lanczos vectors. `seed` is not used.
    """
    batch, number = GraphBatch.of(adjacency), np.array([num_clusters])
    return spectral_batch(batch, number, seed=seed, by_size=by_size)


def embedding(adjacency: sparse.csr_array, dimension: int) -> Floats:
    """Return leading eigenvectors of a graph, with ties broken.

    Args:
        adjacency: (N, N) the graph.
        dimension: Number of eigenvectors; there may be fewer if N > 1,024.

    Returns:
        (N, dimension) eigenvectors.
    """
    if adjacency.shape[0] > MAX_DENSE:
        number = min(dimension, MAX_LANCZOS)
        while (vectors := leading_eigenvectors(adjacency, number)) is None and number > 1:
            number //= 2  # fewer eigenvectors converge faster
        return np.ones((adjacency.shape[0], 1)) if vectors is None else vectors
    dense = adjacency.toarray()
    np.fill_diagonal(dense, dense.diagonal() + (dense.sum(axis=1) == 0))  # isolated nodes
    return _eigen(dense[None])[1][0, :, :dimension]


# ---------------------------------------------------------------------- large graphs


def _divide(adjacency: sparse.csr_array, num_clusters: int, by_size: bool) -> Ints:
    """Divide a large graph into a few parts, each with a number of clusters by its nodes.

    A part is a component, or several small ones. A connected graph is divided into a few spectral
    clusters or, if Lanczos does not converge or one cluster is too large, into the two halves of a
    breadth-first search.
    """
    size = adjacency.shape[0]
    count, part = csgraph.connected_components(adjacency, directed=False)
    fixed = _fixed_shares(np.bincount(part), num_clusters, by_size)
    if fixed is not None:
        first, share = fixed
        part = first[part]
        if (share == 1).all():
            return np.asarray(part)
    elif count == 1:
        number = num_clusters if num_clusters <= MAX_LANCZOS else NUM_PARTS
        vectors = leading_eigenvectors(adjacency, number)
        if vectors is not None:
            part = _assign(vectors[None])[0]
            if number == num_clusters:
                return np.asarray(part)
        if vectors is None or np.bincount(part).max() > 0.9 * size:
            end = csgraph.breadth_first_order(adjacency, 0, return_predecessors=False)[-1]
            order = csgraph.breadth_first_order(adjacency, end, return_predecessors=False)
            part = np.zeros(size, np.int64)
            part[order[size // 2 :]] = 1
    sizes = np.bincount(part)
    keep, part = sizes > 0, np.cumsum(sizes > 0)[part] - 1
    sizes = sizes[keep]
    if fixed is None:
        shares = _proportional(sizes, num_clusters)
    else:
        shares = np.zeros(len(keep), np.int64)
        shares[first] = share
        shares = shares[keep]
    nodes = np.argsort(part, kind="stable")
    entries = adjacency.tocoo()
    inside = part[entries.row] == part[entries.col]
    position = np.argsort(nodes)
    row, column = position[entries.row[inside]], position[entries.col[inside]]
    parts = from_edges(row, column, entries.data[inside], size)
    labels = np.empty(size, np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)])
    labels[nodes] = spectral_batch(GraphBatch(parts, start), shares, seed=0, by_size=by_size)
    return labels


def _proportional(sizes: Ints, total: int) -> Ints:
    """Distribute `total` clusters to parts by size, at least one each, with largest remainders."""
    rest = (total - len(sizes)) * (sizes - 1) / max(1, int((sizes - 1).sum()))
    shares = 1 + rest.astype(np.int64)
    missing = total - shares.sum()
    shares[np.argsort(-(rest % 1), kind="stable")[:missing]] += 1
    return np.asarray(shares)


def _fixed_shares(sizes: Ints, num_clusters: int, by_size: bool) -> tuple[Ints, Ints] | None:
    """Return first cluster and number of clusters of each component; None if eigenvalues decide."""
    graph, number = np.zeros_like(sizes), np.array([num_clusters])
    if by_size and is_crowded(sizes, graph, number)[0]:
        return divided(sizes, num_clusters)
    if len(sizes) >= num_clusters:
        return packed(sizes, num_clusters), np.ones_like(sizes)
    return None


# ---------------------------------------------------------------------- small graphs


def _solve_one(dense: Floats, num_clusters: int, by_size: bool) -> Ints:
    """Cluster a single small graph, given as a dense matrix."""
    if _is_in_range(degree := _degree(dense[None])):
        values, vectors = _eigen_in_range(dense[None], degree)
        # Every component has an eigenvalue of one, up to the potential.
        if values[0, 1] < 1 - 10 * BY_STRUCTURE:
            return np.asarray(_assign(vectors[:, :, :num_clusters])[0])
    component = _components(dense)
    size = np.bincount(component)
    fixed = _fixed_shares(size, num_clusters, by_size)
    solved = {}
    for c in np.flatnonzero(size > 1 if fixed is None else fixed[1] > 1).tolist():
        nodes = np.flatnonzero(component == c)
        solved[c] = nodes, *_eigen(dense[None, nodes[:, None], nodes])
    if fixed is None:  # one cluster per component, and one more for each leading eigenvalue
        others = [(-value, c) for c in solved for value in solved[c][1][0, 1:].tolist()]
        share = np.ones_like(size)
        for _, c in sorted(others)[: num_clusters - len(size)]:
            share[c] += 1
        first = np.cumsum(share) - share
    else:
        first, share = fixed
    labels: Ints = first[component]
    for c, (nodes, _, vectors) in solved.items():
        labels[nodes] += _assign(vectors[[0], :, : share[c]])[0]
    return labels


def _components(dense: Floats) -> Ints:
    """Return the component of each node of a small graph; much faster than scipy."""
    is_edge, first = dense > 0, np.arange(len(dense))
    while True:  # `first` is the first known node of the component
        known = np.minimum(first, np.where(is_edge, first, len(first)).min(axis=1))
        known = known[known]
        if (known == first).all():
            return numbered(first)
        first = known


def _solve(batch: GraphBatch, num_clusters: Ints, by_size: bool) -> Ints:
    """Cluster small graphs; ids of a graph count from its first node."""
    component = csgraph.connected_components(batch.adjacency, directed=False)[1]
    nodes = np.argsort(component, kind="stable")  # component by component, graph by graph
    size = np.bincount(component)
    graph = np.searchsorted(batch.start, nodes[np.cumsum(size) - size], side="right") - 1
    # In addition to one per component.
    quota = num_clusters - np.bincount(graph, minlength=len(num_clusters))
    if by_size:
        quota[is_crowded(size, graph, num_clusters)] = -1
    label, fixed = batch.start[graph], np.ones_like(size)
    for g in np.flatnonzero(quota < 0):
        of_graph = graph == g
        shares = _fixed_shares(size[of_graph], int(num_clusters[g]), by_size)
        assert shares is not None  # eigenvalues decide only where there is a quota
        label[of_graph] += shares[0]
        fixed[of_graph] = shares[1]
    todo = np.flatnonzero(((quota > 0)[graph] & (size > 1)) | (fixed > 1))
    blocks = dense_blocks(batch.adjacency, nodes, size, todo)
    solved = [(components, members, *_eigen(stack)) for components, members, stack in blocks]
    share = _shares([(block[0], block[2][:, 1:]) for block in solved], graph, quota)
    before = np.cumsum(share) - share
    by_eigenvalues = quota[graph] >= 0
    label += np.where(by_eigenvalues, before - before[np.searchsorted(graph, graph)], 0)
    share = np.where(by_eigenvalues, share, fixed)
    labels: Ints = label[component]
    for components, members, _, vectors in solved:
        for k in set(share[components].tolist()):
            same_k = share[components] == k
            labels[members[same_k]] += _assign(vectors[same_k, :, :k])
    return labels


def _degree(stack: Floats) -> Floats:
    """Return the degrees (b, n, 1) of graphs (b, n, n)."""
    return np.add.reduce(stack, axis=2, keepdims=True)


def _is_in_range(degree: Floats) -> bool:
    """Whether there are no isolated nodes, and no overflow or underflow of products."""
    return bool(degree.min() > 1e-100 and degree.max() < 1e100)


def _scaled(dense: Floats) -> Floats:
    """Divide weights (b, n, n) by the largest of each graph, so that sums do not overflow."""
    largest = dense.max(axis=(1, 2), keepdims=True)
    smallest = dense.min(axis=(1, 2), where=dense > 0, initial=np.inf, keepdims=True)
    widest = int((smallest / largest).argmin())
    check_range(smallest.flat[widest], largest.flat[widest])
    return np.asarray(dense / largest)


def _eigen(stack: Floats) -> tuple[Floats, Floats]:
    """Return descending eigenvalues (b, n) and eigenvectors (b, n, n) of connected graphs."""
    if not _is_in_range(degree := _degree(stack)):
        stack = _scaled(stack)
        degree = _degree(stack)
    return _eigen_in_range(stack, degree)


def _eigen_in_range(stack: Floats, degree: Floats) -> tuple[Floats, Floats]:
    """Do the same if the weights need no scaling; `degree` has the shape (b, n, 1)."""
    n = stack.shape[1]
    walk = stack / degree
    scale = 1 / np.sqrt(degree)
    matrix = scale * stack * scale.transpose(0, 2, 1)
    # Degrees are relative to their mean, so that scaling all weights does not change the result.
    tie = potential(walk.__matmul__, degree * (n / degree.sum(axis=1, keepdims=True)))
    matrix.reshape(-1, n * n)[:, :: n + 1] += tie[:, :, 0]  # the diagonals
    values, vectors = np.linalg.eigh(matrix)
    return values[:, ::-1], vectors[:, :, ::-1]


def _shares(solved: Sequence[tuple[Ints, Floats]], graph: Ints, quota: Ints) -> Ints:
    """Return the clusters of each component: one, and one more for each leading eigenvalue."""
    others = np.concatenate([np.zeros(0), *(values.ravel() for _, values in solved)])
    owners = [np.repeat(components, values.shape[1]) for components, values in solved]
    owner = np.concatenate([np.zeros(0, np.int64), *owners])
    order = np.lexsort((owner, -others, graph[owner]))
    owner = owner[order]
    rank = np.arange(len(owner)) - np.searchsorted(graph[owner], graph[owner])
    return 1 + np.bincount(owner[rank < quota[graph[owner]]], minlength=len(graph))


def _assign(vectors: Floats) -> Ints:
    """Assign each row of k orthonormal eigenvectors to a cluster: (b, n, k) -> (b, n).

    Column pivoting finds the k rows that differ most. The rotation that maps them best to the unit
    vectors (polar decomposition) rotates every row towards its cluster.
    """
    b, _, k = vectors.shape
    if k == 1:
        return np.zeros(vectors.shape[:2], np.int64)
    # The LAPACK routine, because scipy's function around it takes longer than a small QR.
    pivots = [lapack.dgeqp3(v.T)[1][:k] - 1 for v in vectors]
    corner = vectors[np.arange(b)[:, None], pivots]
    # The rotation is Cᵀ (C Cᵀ)^-1/2 with C = corner; after pivoting, C is far from singular.
    values, basis = np.linalg.eigh(corner @ corner.transpose(0, 2, 1))
    root = basis / np.sqrt(np.maximum(values, 1e-12))[:, None]
    rotation = corner.transpose(0, 2, 1) @ (root @ basis.transpose(0, 2, 1))
    return np.asarray(np.abs(vectors @ rotation).argmax(axis=2))

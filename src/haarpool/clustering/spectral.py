"""Spectral clustering by normalised cut, the same result on every machine.

The leading eigenvectors of D^-1/2 A D^-1/2 (Shi and Malik, 2000) are turned into clusters by a QR
factorisation with column pivoting (Damle, Minden and Ying, 2019), which needs no random start.

Equal eigenvalues are common in molecules, and then "the first k eigenvectors" are a matter of
chance. The rule here: a tiny potential is added to the diagonal, first by the place of a node in
the graph (degrees, degrees of neighbours, and so on, which renumbering does not change), then,
a hundred times smaller, by its index, which decides only between nodes that look the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph

from haarpool.errors import HaarPoolError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Rounding by δ turns eigenvectors that are split by ε as far as δ/ε, which must itself stay below
# what is split: ε is far above sqrt(1e-16). And it is far below the gaps that matter.
BY_PLACE, BY_INDEX = 1e-4, 1e-6
ROUNDS = 8  # how far a node looks around itself
MAX_DENSE = 4096  # nodes of one component; its matrix is dense


def spectral(adjacency: sparse.csr_array, num_clusters: int, *, seed: int) -> Ints:
    """Cluster ids by normalised cut; `seed` is not needed.

    The eigenvectors of a disconnected graph live on its components, so each component is solved
    by itself and receives as many clusters as it has eigenvalues among the leading ones, at least
    one. With fewer clusters than components whole components are put together, evenly by size.
    """
    adjacency = _scaled(adjacency)
    count, component = csgraph.connected_components(adjacency, directed=False)
    if count >= num_clusters:
        packed: Ints = _packed(np.bincount(component), num_clusters)[component]
        return packed
    parts = [np.flatnonzero(component == c) for c in range(count)]
    solved = [_eigen(adjacency[part][:, part]) for part in parts]
    shares = _shares([values for values, _ in solved], num_clusters)
    labels = np.empty(adjacency.shape[0], np.int64)
    for part, (_, vectors), share, first in zip(
        parts, solved, shares, np.cumsum(shares) - shares, strict=True
    ):
        labels[part] = first + _assign(vectors[:, :share])
    return labels


def _scaled(adjacency: sparse.csr_array) -> sparse.csr_array:
    """The graph with a mean degree of one: scaling all weights changes nothing."""
    if adjacency.nnz == 0:
        return adjacency
    largest = adjacency.data.max()
    if adjacency.data.min() / largest < 1e-100:
        raise HaarPoolError(
            "edge weights within 100 orders of magnitude for method 'spectral'",
            f"weights from {adjacency.data.min():g} to {largest:g}",
            "take their logarithm, or drop the small ones",
        )
    scaled = adjacency.copy()
    scaled.data = scaled.data / largest
    scaled.data /= scaled.data.sum() / scaled.shape[0]
    return scaled


def _eigen(adjacency: sparse.csr_array) -> tuple[Floats, Floats]:
    """All eigenvalues, falling, and eigenvectors of one component, ties broken (see above)."""
    size = adjacency.shape[0]
    if size > MAX_DENSE:
        raise HaarPoolError(
            f"at most {MAX_DENSE} nodes in one component for method 'spectral'",
            f"{size}",
            "cluster the graph with a tool of your choice and pass Chain.from_parents the result",
        )
    if size == 1:
        return np.ones(1), np.ones((1, 1))
    dense = adjacency.toarray()
    degree = dense.sum(axis=1)
    scale = 1 / np.sqrt(degree)
    matrix = scale[:, None] * dense * scale
    index = np.modf(np.arange(1, size + 1) * np.sqrt(5) / 2)[0]
    np.fill_diagonal(
        matrix, matrix.diagonal() + BY_PLACE * _place(dense, degree) + BY_INDEX * index
    )
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def _place(dense: Floats, degree: Floats) -> Floats:
    """A number in (-1, 1) per node that tells apart what its surroundings tell apart.

    Degrees are averaged over neighbours again and again; a sine in between, which is steep enough
    not to smooth differences away and smooth enough not to blow up rounding, makes the sum over
    rounds different for different surroundings.
    """
    walk = dense / degree[:, None]
    place: Floats = np.sin(1 + 2 * np.log(degree))
    total = place
    for _ in range(ROUNDS):
        place = np.sin(1 + 3 * (walk @ place))
        total = total + place
    return total / (ROUNDS + 1)


def _shares(values: list[Floats], num_clusters: int) -> Ints:
    """How many clusters each component gets: one, and one for each leading eigenvalue."""
    owner = np.repeat(np.arange(len(values)), [len(v) - 1 for v in values])
    others = np.concatenate([v[1:] for v in values])
    chosen = owner[np.argsort(-others, kind="stable")[: num_clusters - len(values)]]
    return 1 + np.bincount(chosen, minlength=len(values))


def _assign(vectors: Floats) -> Ints:
    """Rows of k orthonormal eigenvectors (n, k) -> one of k clusters each.

    Column pivoting finds the k rows that are most unlike each other; the rotation that turns
    them best into the unit vectors (polar decomposition) turns every row towards its cluster.
    """
    k = vectors.shape[1]
    if k == 1:
        return np.zeros(len(vectors), np.int64)
    pivots = linalg.qr(vectors.T, mode="r", pivoting=True)[1][:k]
    left, _, right = np.linalg.svd(vectors[pivots].T)
    labels: Ints = np.abs(vectors @ (left @ right)).argmax(axis=1)
    return labels


def _packed(sizes: Ints, num_clusters: int) -> Ints:
    """Put components into clusters: largest first, each into the cluster that is smallest."""
    filled = np.zeros(num_clusters, np.int64)
    label = np.empty(len(sizes), np.int64)
    for c in np.argsort(-sizes, kind="stable"):
        label[c] = filled.argmin()
        filled[label[c]] += sizes[c]
    return label

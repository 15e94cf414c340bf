"""Leading eigenvectors of a large graph, with ties broken as in a small one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from haarpool._types import Floats
from haarpool.errors import HaarPoolError

# Rounding errors of size δ rotate eigenvectors whose eigenvalues differ by ε by about δ/ε, which
# must be less than ε: so ε is far above sqrt(1e-16). It is also far below gaps that matter.
BY_STRUCTURE, BY_INDEX = 1e-4, 1e-6
ROUNDS = 8  # number of averages over neighbours
RESTARTS = 30  # of Lanczos; long thin graphs would need thousands
PRECISION = 1e-8  # of Lanczos, so that rounding does not decide


def check_range(least: float, largest: float) -> None:
    """Raise an error if weights differ so much that products of them would be zero."""
    if least / largest < 1e-100:
        raise HaarPoolError(
            "edge weights within 100 orders of magnitude for method 'spectral'",
            f"weights from {least:g} to {largest:g}",
            "use their logarithm, or remove the small weights",
        )


def potential(average: Callable[[Floats], Floats], degree: Floats) -> Floats:
    """Return what is added to the diagonal of a graph so that no eigenvalues are equal.

    The first term depends on the neighbourhood of a node only: degrees are averaged over neighbours
    repeatedly. A sine after each average keeps differences, without amplifying rounding, so that
    the sum over rounds differs for different neighbourhoods. The second term, a hundred times
    smaller, depends on the index of a node.

    Args:
        average: Averages a function (..., N, 1) on nodes over their neighbours.
        degree: (..., N, 1) degree of each node, relative to the mean.

    Returns:
        (..., N, 1) potential.
    """
    code: Floats = np.sin(1 + 2 * np.log(degree))
    total = code.copy()
    for _ in range(ROUNDS):
        code = average(code)
        code *= 3
        code += 1
        total += np.sin(code, out=code)
    total *= BY_STRUCTURE / (ROUNDS + 1)
    total += _by_index(degree.shape[-2])
    return total


@lru_cache(256)
def _by_index(size: int) -> Floats:
    index: Floats = np.modf(np.arange(1, size + 1) * np.sqrt(5) / 2)[0]
    return BY_INDEX * index[:, None]


def leading_eigenvectors(adjacency: sparse.csr_array, number: int) -> Floats | None:
    """Compute leading eigenvectors of D^-1/2 A D^-1/2 by the Lanczos method.

    Args:
        adjacency: (N, N) the graph.
        number: Number of eigenvectors.

    Returns:
        (N, number) eigenvectors, or `None` if the method does not converge fast enough. This is the
        case for long graphs, whose leading eigenvalues are close to each other.
    """
    check_range(adjacency.data.min(initial=1), adjacency.data.max(initial=1))
    graph = adjacency + sparse.diags_array((adjacency.sum(axis=1) == 0).astype(np.float64))
    graph = sparse.csr_array(graph / graph.data.max())
    graph = graph * (graph.shape[0] / graph.sum())
    degree = graph.sum(axis=1)
    root = np.sqrt(degree)
    walk = sparse.diags_array(1 / degree) @ graph
    normalised = sparse.diags_array(1 / root) @ graph @ sparse.diags_array(1 / root)
    matrix = normalised + sparse.diags_array(potential(walk.__matmul__, degree[:, None])[:, 0])
    start = root * (1 + 0.5 * np.cos(np.arange(len(root))))  # not random
    try:
        values, vectors = eigsh(
            matrix,
            number,
            which="LA",
            v0=start,
            tol=PRECISION,
            maxiter=RESTARTS,
            ncv=2 * number + 20,
        )
    except ArpackNoConvergence:
        return None
    return np.asarray(vectors[:, np.argsort(-values)])

"""Leading eigenvectors of a large graph, ties broken as in a small one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from haarpool._types import Floats
from haarpool.errors import HaarPoolError

# Rounding by δ turns eigenvectors that are split by ε as far as δ/ε, which must itself stay below
# what is split: ε is far above sqrt(1e-16). And it is far below the gaps that matter.
BY_PLACE, BY_INDEX = 1e-4, 1e-6
ROUNDS = 8  # how far a node looks around itself
RESTARTS = 30  # of Lanczos; long thin graphs would need thousands
PRECISION = 1e-8  # so that rounding does not decide


def check_range(least: float, largest: float) -> None:
    """Raise if weights differ so much that their products vanish."""
    if least / largest < 1e-100:
        raise HaarPoolError(
            "edge weights within 100 orders of magnitude for method 'spectral'",
            f"weights from {least:g} to {largest:g}",
            "take their logarithm, or drop the small ones",
        )


def potential(average: Callable[[Floats], Floats], degree: Floats) -> Floats:
    """What is added to the diagonal of a graph, (..., N, 1), so that no eigenvalues are equal.

    First a number that tells apart what the surroundings of nodes tell apart: degrees are averaged
    over neighbours again and again; a sine in between, which is steep enough not to smooth
    differences away and smooth enough not to blow up rounding, makes the sum over rounds
    different for different surroundings. Then, much smaller, one by index.
    """
    place: Floats = np.sin(1 + 2 * np.log(degree))
    total = place.copy()
    for _ in range(ROUNDS):
        place = average(place)
        place *= 3
        place += 1
        total += np.sin(place, out=place)
    total *= BY_PLACE / (ROUNDS + 1)
    total += _by_index(degree.shape[-2])
    return total


@lru_cache(256)
def _by_index(size: int) -> Floats:
    index: Floats = np.modf(np.arange(1, size + 1) * np.sqrt(5) / 2)[0]
    return BY_INDEX * index[:, None]


def leading(adjacency: sparse.csr_array, number: int) -> Floats | None:
    """(N, number) leading eigenvectors of D^-1/2 A D^-1/2 by Lanczos, or None if it takes too long.

    That happens in long graphs, whose leading eigenvalues lie close together.
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
    start = root * (1 + 0.5 * np.cos(np.arange(len(root))))  # the same in every run
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
    largest_first: Floats = vectors[:, np.argsort(-values)]
    return largest_first

"""The lowest eigenvectors of each cluster of a chain: what EigenPool (`haarpool.nn`) sums with."""

from __future__ import annotations

import numpy as np

from haarpool._types import Floats
from haarpool.chains.adjacency import entry_rows
from haarpool.chains.chain import Chain
from haarpool.errors import HaarPoolError

MAX_ENTRIES = 50_000_000  # of all Laplacians of a level together: 400 MB
_EQUAL = 1e-10  # eigenvalues nearer than this part of the largest degree are one
_VANISHES = 1e-3  # an eigenspace of n nodes reaches 1/sqrt(n) somewhere, and n stays below 10^4
_EVEN = 1e-6  # a sum of cubes below this part of the sum of their sizes has no sign


def cluster_modes(chain: Chain, level: int, num_modes: int) -> Floats:
    """The first eigenvectors of the Laplacian D - A of every cluster, without edges to the others.

    Row l holds at node v the entry of the l-th eigenvector, by rising eigenvalue, of the cluster of
    v; zero where the cluster has fewer nodes. All entries of a cluster together are orthonormal.
    Eigenvectors are not unique, so the choice is a convention:

    - The first is 1/sqrt(k) on a cluster of k nodes, connected or not. Others with eigenvalue zero,
      one for each further component, are orthogonal to it.
    - Of equal eigenvalues, the first vector is the one largest at the first member at which any is
      not zero, the others vanish there; and so on. So they do not depend on the linear algebra
      library, and on clusters without edges, or with all of them alike, they are Haar wavelets.
    - The sum of cubes is positive; where it is zero, the first entry that is not.

    An entry below 0.001 counts as zero here, and "first" is by the order of the chain: what it
    decides depends on the numbering of nodes, unless the order is "degree" and no two degrees are
    equal.

    Args:
        chain: a chain that knows its graph.
        level: j in 0..K-1.
        num_modes: H >= 1.

    Returns:
        (H, N_j) float64.

    >>> path = [[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 1], [0, 0, 1, 0]]
    >>> chain = Chain.from_parents([[0, 0, 0, 1]], adjacency=path)
    >>> cluster_modes(chain, 0, 3).round(3)
    array([[ 0.577,  0.577,  0.577,  1.   ],
           [ 0.789, -0.211, -0.577,  0.   ],
           [-0.211,  0.789, -0.577,  0.   ]])
    """
    level = chain.check_level(level, highest=chain.num_levels - 1)
    checked_modes(num_modes)
    graph = chain.adjacency(level)
    nodes, start, _ = chain.members(level)
    sizes = np.diff(start)
    if (sizes**2).sum() > MAX_ENTRIES:
        raise HaarPoolError(
            f"Laplacians of clusters of at most {MAX_ENTRIES:,} entries together",
            f"{(sizes**2).sum():,} at level {level} of {chain!r}, whose clusters are large",
            "build the chain with more levels, so that clusters stay small",
        )
    by_size, square = np.argsort(sizes, kind="stable"), sizes**2
    begin = np.empty_like(sizes)  # of the Laplacian of each cluster, which stand by size
    begin[by_size] = np.cumsum(square[by_size]) - square[by_size]
    cluster, place = np.empty_like(nodes), np.empty_like(nodes)
    cluster[nodes] = np.repeat(np.arange(len(sizes)), sizes)
    place[nodes] = np.arange(len(nodes)) - start[cluster[nodes]]
    row, column = entry_rows(graph), graph.indices
    inside = cluster[row] == cluster[column]
    row, column, own = row[inside], column[inside], cluster[row[inside]]
    entries = np.zeros(square.sum())
    entries[begin[own] + sizes[own] * place[row] + place[column]] = -graph.data[inside]
    modes = np.zeros((num_modes, len(nodes)))
    for group in np.split(by_size, np.flatnonzero(np.diff(sizes[by_size])) + 1):
        k, first = sizes[group[0]], begin[group[0]]
        stack = entries[first : first + len(group) * k * k].reshape(-1, k, k)
        members = nodes[start[group, None] + np.arange(k)]
        modes[:k, members] = _lowest(stack, min(k, num_modes)).swapaxes(0, 1)
    return modes


def _lowest(stack: Floats, count: int) -> Floats:
    """(n, count, k) eigenvectors of n Laplacians (n, k, k) that lack their diagonals as yet."""
    k = stack.shape[-1]
    degree = -stack.sum(-1)
    stack[:, np.arange(k), np.arange(k)] = degree
    largest = degree.max(-1)
    stack /= np.where(largest > 0, largest, 1)[:, None, None]
    # The constant has eigenvalue zero; less one it stands alone, before all others, which stay.
    values, vectors = np.linalg.eigh(stack - 1 / k)
    matrix, first = np.nonzero(np.diff(values, prepend=-np.inf) > _EQUAL)
    equal = np.diff(matrix * k + first, append=values.size)  # how many share this eigenvalue
    modes = np.empty((len(stack), count, k))
    for m in np.unique(equal[first < count]):
        some = (equal == m) & (first < count)
        own, begin = matrix[some, None], first[some, None]
        fixed = _fixed(vectors[own, :, begin + np.arange(m)], min(m, count - begin.min()))
        number = begin + np.arange(fixed.shape[1])
        kept = number < count
        modes[np.broadcast_to(own, kept.shape)[kept], number[kept]] = fixed[kept]
    modes[:, 0] = 1 / np.sqrt(k)
    return modes


def _fixed(space: Floats, count: int) -> Floats:
    """(g, count, k) the first vectors of our basis of g spaces, given by any basis (g, m, k)."""
    basis = np.empty((len(space), count, space.shape[-1]))
    rows = np.arange(len(space))
    for i in range(count):
        size = np.linalg.norm(space, axis=1)
        member = (size > _VANISHES).argmax(-1)
        turn = space[rows, :, member] / size[rows, member, None]
        basis[:, i] = np.einsum("gm,gmk->gk", turn, space)
        space = space - turn[:, :, None] * basis[:, None, i]
    cubes = basis**3
    negative = cubes.sum(-1) < -_EVEN * np.abs(cubes).sum(-1)
    result: Floats = np.where(negative[..., None], -basis, basis)
    return result


def checked_modes(num_modes: int) -> int:
    """`num_modes` itself if it is a whole number >= 1, else an error."""
    if not isinstance(num_modes, int) or isinstance(num_modes, bool) or num_modes < 1:
        raise HaarPoolError("num_modes 1, 2, 3, ...", f"{num_modes!r}", "pass for example 2")
    return num_modes

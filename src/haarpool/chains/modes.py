"""The first eigenvectors of each cluster of a chain, which EigenPool (`haarpool.nn`) uses."""

from __future__ import annotations

import numpy as np

from haarpool._types import Floats
from haarpool._validate import whole_number
from haarpool.chains.chain import Chain, check_chain
from haarpool.chains.graph_batch import dense_blocks
from haarpool.errors import HaarPoolError

MAX_ENTRIES = 50_000_000  # of all Laplacians of a level together: 400 MB
_EQUAL = 1e-10  # eigenvalues count as equal if they differ by less, relative to the largest degree
_ZERO = 1e-3  # entries below count as zero; one of n nodes has at least 1/sqrt(n), and n < 10^4
_EVEN = 1e-6  # a sum of cubes counts as zero below this part of the sum of their absolute values


def cluster_modes(chain: Chain, level: int, num_modes: int) -> Floats:
    """Compute the first eigenvectors of the Laplacian D - A of every cluster.

    Edges between clusters are left out. Row l has at node v the entry of eigenvector l, by
    ascending eigenvalue, of the cluster of v; it is zero if the cluster has fewer nodes. The
    eigenvectors of a cluster are orthonormal. They are not unique, so this is the convention:

    - The first is 1/sqrt(k) on a cluster of k nodes, connected or not. Other vectors with
      eigenvalue zero, one for each further component, are orthogonal to it.
    - If eigenvalues are equal, consider the first member at which one of their vectors is not zero.
      The first vector is the one that is largest there; the others are zero there and chosen in the
      same way. So they do not depend on the linear algebra library, and on clusters without edges,
      or with all edges of equal weight, they are Haar wavelets.
    - The sum of cubes is positive; if it is zero, the first entry that is not zero is positive.

    Entries below 0.001 count as zero here, and "first" refers to the order of the chain: the choice
    depends on the numbering of nodes, unless the order is "degree" and no two degrees are equal.

    Args:
        chain: A chain that knows its graph.
        level: j in 0..K-1.
        num_modes: H >= 1.

    Returns:
        (H, N_j) float64.

    Example:
        >>> path = [[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 1], [0, 0, 1, 0]]
        >>> chain = Chain.from_parents([[0, 0, 0, 1]], adjacency=path)
        >>> cluster_modes(chain, 0, 3).round(3)
        array([[ 0.577,  0.577,  0.577,  1.   ],
               [ 0.789, -0.211, -0.577,  0.   ],
               [-0.211,  0.789, -0.577,  0.   ]])
    """
    check_chain(chain)
    level = chain.check_level(level, highest=chain.num_levels - 1)
    num_modes = checked_modes(num_modes)
    graph = chain.adjacency(level)
    nodes, start, _ = chain.members(level)
    sizes = np.diff(start)
    if (sizes**2).sum() > MAX_ENTRIES:
        raise HaarPoolError(
            f"Laplacians of clusters with at most {MAX_ENTRIES:,} entries in total",
            f"{(sizes**2).sum():,} at level {level} of {chain!r}, whose clusters are large",
            "build the chain with more levels, so that clusters are smaller",
        )
    modes = np.zeros((num_modes, len(nodes)))
    for _, members, stack in dense_blocks(graph, nodes, sizes, np.arange(len(sizes))):
        k = members.shape[1]
        modes[:k, members] = _first_eigenvectors(stack, min(k, num_modes)).swapaxes(0, 1)
    return modes


def _first_eigenvectors(stack: Floats, count: int) -> Floats:
    """Return (n, count, k) Laplacian eigenvectors of n graphs (n, k, k) without self-loops."""
    k = stack.shape[-1]
    degree = stack.sum(-1)
    laplacian = -stack
    laplacian[:, np.arange(k), np.arange(k)] = degree
    largest = degree.max(-1)
    laplacian /= np.where(largest > 0, largest, 1)[:, None, None]
    # Subtracting 1/k moves the eigenvalue of the constant vector from 0 to -1, before all others,
    # which do not change.
    values, vectors = np.linalg.eigh(laplacian - 1 / k)
    matrix, first = np.nonzero(np.diff(values, prepend=-np.inf) > _EQUAL)
    multiplicity = np.diff(matrix * k + first, append=values.size)
    modes = np.empty((len(stack), count, k))
    for m in np.unique(multiplicity[first < count]):
        selected = (multiplicity == m) & (first < count)
        owner, begin = matrix[selected, None], first[selected, None]
        space = vectors[owner, :, begin + np.arange(m)]
        basis = _unique_basis(space, min(m, count - begin.min()))
        number = begin + np.arange(basis.shape[1])
        kept = number < count
        modes[np.broadcast_to(owner, kept.shape)[kept], number[kept]] = basis[kept]
    modes[:, 0] = 1 / np.sqrt(k)
    return modes


def _unique_basis(space: Floats, count: int) -> Floats:
    """Return (g, count, k) the first vectors of the basis that `cluster_modes` describes.

    `space` is (g, m, k), any orthonormal basis of each of g eigenspaces.
    """
    basis = np.empty((len(space), count, space.shape[-1]))
    rows = np.arange(len(space))
    for i in range(count):
        norm = np.linalg.norm(space, axis=1)
        member = (norm > _ZERO).argmax(-1)
        direction = space[rows, :, member] / norm[rows, member, None]
        basis[:, i] = np.einsum("gm,gmk->gk", direction, space)
        space = space - direction[:, :, None] * basis[:, None, i]
    cubes = basis**3
    negative = cubes.sum(-1) < -_EVEN * np.abs(cubes).sum(-1)
    return np.where(negative[..., None], -basis, basis)


def checked_modes(num_modes: int) -> int:
    """Check the number of eigenvectors per cluster."""
    return whole_number("num_modes", num_modes, remedy="pass for example {num_modes}", num_modes=2)

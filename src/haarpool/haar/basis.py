"""THE REFERENCE: Haar and compressive Haar bases as sparse matrices, from the paper's equations.

Let a cluster have the members v_0, ..., v_{k-1}, in their order, with measures m_t, and let M_t be
the sum of m_t, ..., m_{k-1}. With χ_t = 1 on v_t and 0 elsewhere, the cluster has k orthonormal
vectors:

    coarse:  Σ_t sqrt(m_t / M_0) χ_t
    detail:  sqrt(m_t M_{t+1} / M_t) (χ_t / sqrt(m_t) - Σ_{i>t} sqrt(m_i) χ_i / M_{t+1}),  t < k-1

With all m_t = 1 (`measure="children"`) they are equations 2 and 3 of the paper. The columns of P_j,
(N_j, N_{j+1}), are the coarse vectors of the clusters of level j; those of D_j,
(N_j, N_j - N_{j+1}), are their detail vectors. Then

    U_j = [P_j U_{j+1}, D_j]      the Haar basis of level j, coarse to fine
    Φ_j =  P_j U_{j+1}            the compressive Haar basis, the first N_{j+1} columns of U_j

and U_K, on the top level, is the basis of one cluster. `haar/transform.py` computes products with
these matrices without forming them, and is tested against this module.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import from_edges, ranges
from haarpool.chains.chain import Chain, check_chain
from haarpool.errors import HaarPoolError

MAX_NONZEROS = 100_000_000  # 1.2 GB as CSR


def haar_basis(
    chain: Chain, level: int = 0, *, max_nonzeros: int = MAX_NONZEROS
) -> sparse.csr_array:
    """Return the Haar basis U_j of level j: an orthonormal (N_j, N_j) matrix.

    Columns are sorted from coarse to fine: N_K of the top level, then the details of levels
    K-1, ..., j, cluster by cluster.

    Args:
        chain: The chain.
        level: j in 0..K.
        max_nonzeros: Raise an error if the basis has more non-zeros. Large clusters make it dense:
            a cluster of k members has about k²/2 non-zeros.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> haar_basis(chain).toarray().round(3).tolist()
        [[0.5, 0.5, 0.707], [0.5, 0.5, -0.707], [0.707, -0.707, 0.0]]
    """
    check_chain(chain)
    level = chain.check_level(level)
    _check_nonzeros(chain, int(row_nonzeros(chain, level).sum()), max_nonzeros)
    U = sparse.csr_array(np.ones((1, 1)))
    for j in range(chain.num_levels, level - 1, -1):
        U = sparse.hstack([_coarse_vectors(chain, j) @ U, _detail_vectors(chain, j)], format="csr")
    return U


def compressive_basis(
    chain: Chain, level: int = 0, *, max_nonzeros: int = MAX_NONZEROS
) -> sparse.csr_array:
    """Return the compressive Haar basis Φ_j = P_j U_{j+1} of level j: an (N_j, N_{j+1}) matrix.

    Args:
        chain: The chain.
        level: j in 0..K-1.
        max_nonzeros: Raise an error if the basis has more non-zeros.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> compressive_basis(chain).toarray().round(3).tolist()
        [[0.5, 0.5], [0.5, 0.5], [0.707, -0.707]]
    """
    check_chain(chain)
    level = chain.check_level(level, highest=chain.num_levels - 1)
    counts = row_nonzeros(chain, level + 1)[chain.parents[level]]
    _check_nonzeros(chain, int(counts.sum()), max_nonzeros)
    return _coarse_vectors(chain, level) @ haar_basis(chain, level + 1, max_nonzeros=max_nonzeros)


def _coarse_vectors(chain: Chain, level: int) -> sparse.csr_array:
    """Return P_j; the nodes of level K form one cluster."""
    nodes, start, clusters = chain.members(level)
    cluster = np.repeat(np.arange(len(clusters)), np.diff(start))
    m, M = _measures(chain, level)
    values = np.sqrt(m / M[start[cluster]])
    return from_edges(nodes, clusters[cluster], values, len(nodes), len(clusters))


def _detail_vectors(chain: Chain, level: int) -> sparse.csr_array:
    """Return D_j, its columns cluster by cluster."""
    nodes, start, _ = chain.members(level)
    end = np.repeat(start[1:], np.diff(start))
    m, M = _measures(chain, level)
    # Positions t of all details, and for each t the positions i > t in the same cluster.
    t = np.delete(np.arange(len(nodes)), start[1:] - 1)
    num_later = end[t] - 1 - t
    column = np.arange(len(t))
    T, i = np.repeat(t, num_later), ranges(t + 1, num_later)
    at_t = np.sqrt(M[t + 1] / M[t])
    at_i = -np.sqrt(m[T] * m[i] / (M[T] * M[T + 1]))
    rows = np.concatenate([nodes[t], nodes[i]])
    columns = np.concatenate([column, np.repeat(column, num_later)])
    values = np.concatenate([at_t, at_i])
    return from_edges(rows, columns, values, len(nodes), len(t))


def _measures(chain: Chain, level: int) -> tuple[Floats, Floats]:
    """Return m_t and M_t of all members, cluster by cluster, each of shape (N_j,)."""
    nodes, start, _ = chain.members(level)
    m = chain.measures(level)[nodes]
    # Sums of whole numbers below 2^53, so differences of them are exact.
    before = np.concatenate([[0.0], np.cumsum(m)])
    return m, np.repeat(before[start[1:]], np.diff(start)) - before[:-1]


def row_nonzeros(chain: Chain, level: int) -> Ints:
    """Return the number of non-zeros in each row of U_j, shape (N_j,), without forming U_j.

    Member t of a cluster of k members is in the support of the details 0..min(t, k-2) of its
    cluster, and of all vectors that its parent is in.
    """
    counts = np.ones(1, np.int64)
    for j in range(chain.num_levels, level - 1, -1):
        nodes, start, clusters = chain.members(j)
        sizes = np.diff(start)
        t_plus_1 = ranges(np.ones_like(sizes), sizes)
        num_details = np.minimum(t_plus_1, np.repeat(sizes, sizes) - 1)
        parent_counts = np.repeat(counts[clusters], sizes)
        counts = np.empty(len(nodes), np.int64)
        counts[nodes] = parent_counts + num_details
    return counts


def _check_nonzeros(chain: Chain, nonzeros: int, max_nonzeros: int) -> None:
    if nonzeros > max_nonzeros:
        raise HaarPoolError(
            f"a basis of at most {max_nonzeros:,} non-zeros",
            f"{nonzeros:,} ({nonzeros * 12 / 1e9:.1f} GB) for {chain!r}, whose clusters are large",
            "use adjoint, compress and the other transforms, which do not form it; "
            "build a chain with more levels; or increase {max_nonzeros}",
            max_nonzeros=...,
        )

"""THE REFERENCE: Haar and compressive Haar bases as sparse matrices, from the paper's equations.

A cluster with members v_0, ..., v_{k-1} in their order, counting m_t each, with M_t the sum of
m_t, ..., m_{k-1}, carries k orthonormal vectors (χ_t is 1 on v_t and 0 elsewhere):

    coarse:  Σ_t sqrt(m_t / M_0) χ_t
    detail:  sqrt(m_t M_{t+1} / M_t) (χ_t / sqrt(m_t) - Σ_{i>t} sqrt(m_i) χ_i / M_{t+1}),  t < k-1

With all m_t = 1 (`measure="children"`) the two are equations 2 and 3 of the paper. Let P_j hold the
coarse vectors of the clusters of level j as columns, N_j x N_{j+1}, and D_j their detail vectors,
N_j x (N_j - N_{j+1}). Then

    U_j = [P_j U_{j+1}, D_j]      the Haar basis of level j, coarse to fine
    Φ_j =  P_j U_{j+1}            the compressive Haar basis, its first N_{j+1} columns

and U_K, on the top level, is the basis of one cluster. `haar/transform.py` computes products with
these matrices without forming them; this module is what it is tested against.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import ranges
from haarpool.chains.chain import Chain
from haarpool.errors import HaarPoolError

MAX_NONZEROS = 100_000_000  # 1.2 GB as CSR


def haar_basis(
    chain: Chain, level: int = 0, *, max_nonzeros: int = MAX_NONZEROS
) -> sparse.csr_array:
    """The Haar basis U_j of a level: an orthonormal (N_j, N_j) matrix, a column per vector.

    Columns go from coarse to fine: N_K of the top level, then the details of level K-1, ..., j,
    cluster by cluster.

    Args:
        chain: the chain.
        level: j in 0..K.
        max_nonzeros: refuse a basis with more entries than this. Large clusters make it dense: one
            of k members has about k²/2 non-zeros.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> haar_basis(chain).toarray().round(3).tolist()
    [[0.5, 0.5, 0.707], [0.5, 0.5, -0.707], [0.707, -0.707, 0.0]]
    """
    chain.check_level(level)
    _refuse_dense(chain, int(_row_counts(chain, level).sum()), max_nonzeros)
    basis = sparse.csr_array(np.ones((1, 1)))
    for j in range(chain.num_levels, level - 1, -1):
        basis = sparse.hstack([_coarse(chain, j) @ basis, _details(chain, j)], format="csr")
    return basis


def compressive_basis(
    chain: Chain, level: int = 0, *, max_nonzeros: int = MAX_NONZEROS
) -> sparse.csr_array:
    """The compressive Haar basis Φ_j = P_j U_{j+1} of a level j < K, an (N_j, N_{j+1}) matrix.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> compressive_basis(chain).toarray().round(3).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.707, -0.707]]
    """
    chain.check_level(level, highest=chain.num_levels - 1)
    counts = _row_counts(chain, level + 1)[chain.parents[level]]
    _refuse_dense(chain, int(counts.sum()), max_nonzeros)
    return _coarse(chain, level) @ haar_basis(chain, level + 1, max_nonzeros=max_nonzeros)


def _coarse(chain: Chain, level: int) -> sparse.csr_array:
    """P_j, the coarse vectors of one step; level K is one cluster."""
    nodes, start, clusters = chain.members(level)
    cluster = np.repeat(np.arange(len(clusters)), np.diff(start))
    m, M = _measures(chain, level)
    values = np.sqrt(m / M[start[cluster]])
    return _sparse(values, nodes, clusters[cluster], (len(nodes), len(clusters)))


def _details(chain: Chain, level: int) -> sparse.csr_array:
    """D_j, the detail vectors of one step, cluster by cluster."""
    rows, columns, values = detail_entries(chain, level)
    size = chain.sizes[level]
    coarse = chain.sizes[level + 1] if level < chain.num_levels else 1
    return _sparse(values, rows, columns, (size, size - coarse))


def detail_entries(chain: Chain, level: int) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and values of the entries of D_j."""
    nodes, start, _ = chain.members(level)
    end = np.repeat(start[1:], np.diff(start))
    m, M = _measures(chain, level)
    # Positions t of all details, and for each of them the positions i > t of the same cluster.
    t = np.delete(np.arange(len(nodes)), start[1:] - 1)
    after = end[t] - 1 - t
    column = np.arange(len(t))
    T, i = np.repeat(t, after), ranges(t + 1, after)
    own = np.sqrt(M[t + 1] / M[t])
    others = -np.sqrt(m[T] * m[i] / (M[T] * M[T + 1]))
    rows = np.concatenate([nodes[t], nodes[i]])
    columns = np.concatenate([column, np.repeat(column, after)])
    return rows, columns, np.concatenate([own, others])


def _measures(chain: Chain, level: int) -> tuple[Floats, Floats]:
    """m_t and M_t of all members, cluster by cluster."""
    nodes, start, _ = chain.members(level)
    m = chain.measures(level)[nodes]
    # Sums of whole numbers below 2^53, so the difference of two of them is exact.
    before = np.concatenate([[0.0], np.cumsum(m)])
    return m, np.repeat(before[start[1:]], np.diff(start)) - before[:-1]


def _sparse(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> sparse.csr_array:
    index = np.int32 if max(*shape, len(values)) < 2**31 else np.int64
    return sparse.csr_array((values, (rows.astype(index), columns.astype(index))), shape=shape)


# ---------------------------------------------------------------------- Algorithm 1


def algorithm1(chain: Chain, x: ArrayLike, level: int = 0) -> Floats:
    """Φ_jᵀ x by Algorithm 1 of the paper, its errata fixed; slow, kept as a second reference.

    Step 1 takes weighted sums up the chain (equation 9), from S_j = x:

        S_{i+1}(p) = Σ_{v in p} w_i(v) S_i(v),   w_j = 1,  w_i(v) = 1/sqrt(#children of v), i > j

    Step 2 evaluates coefficient ℓ at the highest level i that has an ℓ-th vector φ_ℓ, that is
    N_{i+1} < ℓ <= N_i with N_{K+1} = 0 (equation 10):

        (Φ_jᵀ x)_ℓ = Σ_v w_i(v) S_i(v) φ_ℓ(v)

    Errata: the weights on the base level j are 1 (printed: those of the whole chain, wrong for
    j > 0), and N_{K+1} = 0 (printed: N_K = 0). With `measure="mass"` the terms are the same with
    w_i(v) = 1/sqrt(m(v)), times sqrt(m(v)) inside the sum.

    Args:
        chain: the chain.
        x: (N_j,) or (N_j, d).
        level: j in 0..K-1.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> algorithm1(chain, np.array([1.0, 3.0, 2.0])).round(3).tolist()
    [3.414, 0.586]
    """
    chain.check_level(level, highest=chain.num_levels - 1)
    N = (*chain.sizes, 0)
    x = np.asarray(x)
    if x.ndim not in (1, 2) or len(x) != N[level] or x.dtype.kind not in "biuf":
        raise HaarPoolError(
            f"a real signal ({N[level]},) or ({N[level]}, d), a row per node of level {level}",
            f"shape {x.shape}, dtype {x.dtype}",
            "check level= and that chain and signal belong to the same graph",
        )
    S, w = x.astype(np.float64).reshape(N[level], math.prod(x.shape[1:])), np.ones(N[level])
    result = np.empty((N[level + 1], S.shape[1]))
    for i in range(level + 1, chain.num_levels + 1):
        parent, m = chain.parents[i - 1], chain.measures(i - 1)
        sums = sparse.csr_array((np.sqrt(m) * w, (parent, np.arange(N[i - 1]))))
        S = sums @ S
        w = 1 / np.sqrt(np.bincount(parent, weights=m))
        phi = haar_basis(chain, i)[:, N[i + 1] :]
        result[N[i + 1] : N[i]] = phi.T @ (w[:, None] * S)
    return result.reshape(N[level + 1], *x.shape[1:])


# ---------------------------------------------------------------------- what the paper says of U


class Locality(NamedTuple):
    """Distinct values in the columns of U_j: of each, and the most in coarse and detail columns."""

    distinct: Ints
    coarse: int
    details: int


def locality(chain: Chain, level: int = 0) -> Locality:
    """How many different values, zero included, the Haar vectors of a level take.

    The paper bounds this number by a constant for every filtration. That does not hold: a detail
    vector of level j has at most 3 values, a coarse column up to N_{j+1}, since all members of a
    cluster share one. (For `measure="children"`; with masses members of a cluster differ on levels
    j > 0.) Values closer than 1e-10 count as the same.

    >>> locality(Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]]))
    Locality(distinct=array([2, 3, 3, 3, 3, 3, 3, 3]), coarse=3, details=3)
    """
    basis = haar_basis(chain, level).tocoo()
    column = np.concatenate([basis.col, np.arange(basis.shape[1])])
    value = np.concatenate([basis.data, np.full(basis.shape[1], np.nan)])
    # A column with a zero somewhere has fewer entries than rows; its marker becomes that zero.
    has_zero = np.bincount(basis.col, minlength=basis.shape[1]) < basis.shape[0]
    keep = np.concatenate([np.ones(basis.nnz, bool), has_zero])
    column, value = column[keep], np.nan_to_num(value[keep])
    place = np.lexsort((value, column))
    column, value = column[place], value[place]
    first = np.ones(len(column), bool)
    first[1:] = (np.diff(column) > 0) | (np.diff(value) > 1e-10)
    distinct = np.bincount(column[first], minlength=basis.shape[1])
    num_coarse = chain.sizes[level + 1] if level < chain.num_levels else 1
    details = distinct[num_coarse:]
    return Locality(distinct, int(distinct[:num_coarse].max()), int(details.max(initial=0)))


class Sparsity(NamedTuple):
    """Non-zeros of U_j and Φ_j, and their share ε of all entries (the paper's sparsity)."""

    nonzeros: int
    share: float
    compressive_nonzeros: int
    compressive_share: float


def sparsity(chain: Chain, level: int = 0) -> Sparsity:
    """How sparse the bases of a level j < K are, counted in O(N_j) without forming them.

    >>> sparsity(Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]]))
    Sparsity(nonzeros=33, share=0.515625, compressive_nonzeros=21, compressive_share=0.875)
    """
    chain.check_level(level, highest=chain.num_levels - 1)
    fine, coarse = chain.sizes[level : level + 2]
    full = int(_row_counts(chain, level).sum())
    compressive = int(_row_counts(chain, level + 1)[chain.parents[level]].sum())
    return Sparsity(full, full / fine**2, compressive, compressive / (fine * coarse))


def _row_counts(chain: Chain, level: int) -> Ints:
    """(N_level,) non-zeros in each row of U_level.

    The t-th of k members lies in the support of the details 0..t of its cluster, of which there
    are k-1, and in everything that its parent lies in.
    """
    counts = np.ones(1, np.int64)
    for j in range(chain.num_levels, level - 1, -1):
        nodes, start, clusters = chain.members(j)
        sizes = np.diff(start)
        place = ranges(np.ones_like(sizes), sizes)  # t + 1
        inside = np.minimum(place, np.repeat(sizes, sizes) - 1)
        above = np.repeat(counts[clusters], sizes)
        counts = np.empty(len(nodes), np.int64)
        counts[nodes] = above + inside
    return counts


def _refuse_dense(chain: Chain, nonzeros: int, max_nonzeros: int) -> None:
    if nonzeros > max_nonzeros:
        raise HaarPoolError(
            f"a basis of at most {max_nonzeros:,} non-zeros",
            f"{nonzeros:,} ({nonzeros * 12 / 1e9:.1f} GB) for {chain!r}, whose clusters are large",
            "use adjoint, compress and the other transforms, which never form it; "
            "a chain with more levels; or max_nonzeros=",
        )

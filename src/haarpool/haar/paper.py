"""Algorithm 1 of the paper, and the two properties it states about the Haar basis."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from haarpool._types import Floats, Ints
from haarpool.chains.chain import Chain, check_chain
from haarpool.errors import HaarPoolError
from haarpool.haar.basis import haar_basis, row_nonzeros


def algorithm1(chain: Chain, x: ArrayLike, level: int = 0) -> Floats:
    """Compute Φ_jᵀ x by Algorithm 1 of the paper, with its errata corrected; slow, a reference.

    Step 1 computes weighted sums up the chain (equation 9), starting with S_j = x:

        S_{i+1}(p) = Σ_{v in p} w_i(v) S_i(v),   w_j = 1,  w_i(v) = 1/sqrt(#children of v), i > j

    Step 2 computes coefficient ℓ on the highest level i that has an ℓ-th vector φ_ℓ, that is
    N_{i+1} < ℓ <= N_i with N_{K+1} = 0 (equation 10):

        (Φ_jᵀ x)_ℓ = Σ_v w_i(v) S_i(v) φ_ℓ(v)

    Errata: the weights on the base level j are 1 (the paper prints the weights of the chain from
    level 0, which are wrong for j > 0), and N_{K+1} = 0 (the paper prints N_K = 0). With
    `measure="mass"`, w_i(v) = 1/sqrt(m(v)), and the terms of step 1 have the factor sqrt(m(v)).

    Args:
        chain: The chain.
        x: (N_j,) or (N_j, d) real signal.
        level: j in 0..K-1.

    Returns:
        (N_{j+1},) or (N_{j+1}, d) coefficients.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> algorithm1(chain, np.array([1.0, 3.0, 2.0])).round(3).tolist()
        [3.414, 0.586]
    """
    check_chain(chain)
    level = chain.check_level(level, highest=chain.num_levels - 1)
    N = (*chain.sizes, 0)
    x = np.asarray(x)
    if x.ndim not in (1, 2) or len(x) != N[level] or x.dtype.kind not in "biuf":
        raise HaarPoolError(
            f"a real signal ({N[level]},) or ({N[level]}, d), one row per node of level {level}",
            f"shape {x.shape}, dtype {x.dtype}",
            "check {level} and that chain and signal belong to the same graph",
            level=...,
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


class Locality(NamedTuple):
    """Numbers of distinct values in the columns of U_j.

    Attributes:
        distinct: (N_j,) number for each column.
        coarse: Largest number of a coarse column.
        details: Largest number of a detail column, or 0 if there are no details.
    """

    distinct: Ints
    coarse: int
    details: int


def locality(chain: Chain, level: int = 0) -> Locality:
    """Count the different values, including zero, of each Haar vector of a level.

    The paper bounds this number by a constant for every filtration. That is not true: a detail
    vector of level j has at most 3 values, but a coarse column has up to N_{j+1}, because all
    members of a cluster have the same value. (For `measure="children"`; with `measure="mass"` the
    members of a cluster have different values on levels j > 0.) Values that differ by less than
    1e-10 count as equal.

    Args:
        chain: The chain.
        level: j in 0..K.

    Example:
        >>> locality(Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]]))
        Locality(distinct=array([2, 3, 3, 3, 3, 3, 3, 3]), coarse=3, details=3)
    """
    check_chain(chain)
    level = chain.check_level(level)
    U = haar_basis(chain, level).tocoo()
    # A column with fewer entries than rows has a zero, too: add one entry for it.
    (with_zero,) = np.nonzero(np.bincount(U.col, minlength=U.shape[1]) < U.shape[0])
    column = np.concatenate([U.col, with_zero])
    value = np.concatenate([U.data, np.zeros(len(with_zero))])
    order = np.lexsort((value, column))
    column, value = column[order], value[order]
    is_new = np.ones(len(column), bool)
    is_new[1:] = (np.diff(column) > 0) | (np.diff(value) > 1e-10)
    distinct = np.bincount(column[is_new], minlength=U.shape[1])
    num_coarse = chain.sizes[level + 1] if level < chain.num_levels else 1
    details = distinct[num_coarse:]
    return Locality(distinct, int(distinct[:num_coarse].max()), int(details.max(initial=0)))


class Sparsity(NamedTuple):
    """Non-zeros of U_j and Φ_j, and their share of all entries (ε in the paper).

    Attributes:
        nonzeros: Number of non-zeros of U_j.
        share: Their share of the N_j² entries.
        compressive_nonzeros: Number of non-zeros of Φ_j.
        compressive_share: Their share of the N_j N_{j+1} entries.
    """

    nonzeros: int
    share: float
    compressive_nonzeros: int
    compressive_share: float


def sparsity(chain: Chain, level: int = 0) -> Sparsity:
    """Count the non-zeros of the bases of a level in O(N_j), without forming them.

    Args:
        chain: The chain.
        level: j in 0..K-1.

    Example:
        >>> sparsity(Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]]))
        Sparsity(nonzeros=33, share=0.515625, compressive_nonzeros=21, compressive_share=0.875)
    """
    check_chain(chain)
    level = chain.check_level(level, highest=chain.num_levels - 1)
    size, coarse_size = chain.sizes[level : level + 2]
    full = int(row_nonzeros(chain, level).sum())
    compressive = int(row_nonzeros(chain, level + 1)[chain.parents[level]].sum())
    return Sparsity(full, full / size**2, compressive, compressive / (size * coarse_size))

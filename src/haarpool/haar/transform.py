"""Fast transforms: products with the Haar bases in O(N·d) time and memory, without forming them.

`adjoint` and `forward_transform` are transposes of each other, `compress` and `expand` too. They
check their arguments here; `haarpool.haar.operators` computes them and their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from haarpool.chains.chain import Chain
from haarpool.chains.chain_checks import checked_level
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.operators import analysis, synthesis
from haarpool.haar.signals import Signal, as_rows, checked_rows


def adjoint(chain: Chain | ChainTensors, x: Signal, level: int = 0) -> Signal:
    """Compute the adjoint Haar transform U_jᵀ x (equation 4): signal -> coefficients.

    Args:
        chain: A chain, or a plan of many chains.
        x: (N_j,), (N_j, d) or (..., N_j, d) signal, a tensor or a numpy array, real or complex
            floating point. Types of 16 bits are computed in float32 and rounded once.
        level: j in 0..K.

    Returns:
        Coefficients of the same shape and type as `x`, rows from coarse to fine (see `split`); for
        a plan, graph by graph.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> adjoint(chain, np.array([1.0, 3.0, 2.0])).round(3).tolist()
        [3.414, 0.586, -1.414]
    """
    return _transform(analysis, chain, x, level, False)


def forward_transform(chain: Chain | ChainTensors, c: Signal, level: int = 0) -> Signal:
    """Compute the forward Haar transform U_j c (equation 5), the inverse of `adjoint`.

    Args:
        chain: A chain, or a plan of many chains.
        c: (N_j,), (N_j, d) or (..., N_j, d) coefficients.
        level: j in 0..K.

    Returns:
        Signal of the same shape and type as `c`.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> forward_transform(chain, np.array([3.414, 0.586, -1.414])).round(3).tolist()
        [1.0, 3.0, 2.0]
    """
    return _transform(synthesis, chain, c, level, False)


def compress(chain: Chain | ChainTensors, x: Signal, level: int = 0) -> Signal:
    """Compute the compressive Haar transform Φ_jᵀ x (Definition 1, HaarPooling).

    Args:
        chain: A chain, or a plan of many chains.
        x: (N_j,), (N_j, d) or (..., N_j, d) signal.
        level: j in 0..K-1.

    Returns:
        (N_{j+1},), (N_{j+1}, d) or (..., N_{j+1}, d): the first N_{j+1} coefficients of `adjoint`.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> compress(chain, np.array([1.0, 3.0, 2.0])).round(3).tolist()
        [3.414, 0.586]
    """
    return _transform(analysis, chain, x, level, True)


def expand(chain: Chain | ChainTensors, z: Signal, level: int = 0) -> Signal:
    """Compute Φ_j z, the transpose of `compress`.

    With `measure="children"`, `expand(chain, compress(chain, x))` is the signal nearest to x that
    is constant on clusters.

    Args:
        chain: A chain, or a plan of many chains.
        z: (N_{j+1},), (N_{j+1}, d) or (..., N_{j+1}, d) coefficients.
        level: j in 0..K-1.

    Returns:
        (N_j,), (N_j, d) or (..., N_j, d) signal.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> expand(chain, compress(chain, np.array([1.0, 3.0, 2.0]))).round(3).tolist()
        [2.0, 2.0, 2.0]
    """
    return _transform(synthesis, chain, z, level, True)


def _transform(
    operator: Callable[..., Tensor], chain: Chain | ChainTensors, x: Signal, level: int, skip: bool
) -> Signal:
    tensors, rows, back = as_rows(chain, x)
    if skip:
        checked_level(level, tensors.num_levels - 1, repr(tensors))
    above = int(skip and operator is synthesis)  # coefficients of the level above
    level = checked_rows(tensors, rows, level, above)
    return back(operator(tensors, rows, level, skip=skip))

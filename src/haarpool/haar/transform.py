"""Fast transforms: products with the Haar bases in O(N·d) time and memory, without forming them.

All four operators are linear, and the transpose of each is another one. So one autograd Function is
enough: its backward is the transpose, which can be differentiated again, to any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from haarpool.chains.chain import Chain
from haarpool.chains.chain_checks import checked_level
from haarpool.haar.kernels.portable import analysis, synthesis
from haarpool.haar.plan import TransformPlan
from haarpool.haar.signals import Signal, as_rows, checked_rows


def adjoint(chain: Chain | TransformPlan, x: Signal, level: int = 0) -> Signal:
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
    return _transform("adjoint", chain, x, level)


def forward_transform(chain: Chain | TransformPlan, c: Signal, level: int = 0) -> Signal:
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
    return _transform("forward", chain, c, level)


def compress(chain: Chain | TransformPlan, x: Signal, level: int = 0) -> Signal:
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
    return _transform("compress", chain, x, level)


def expand(chain: Chain | TransformPlan, z: Signal, level: int = 0) -> Signal:
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
    return _transform("expand", chain, z, level)


def _transform(name: str, chain: Chain | TransformPlan, x: Signal, level: int) -> Signal:
    plan, rows, back = as_rows(chain, x)
    if name in ("compress", "expand"):
        checked_level(level, plan.num_levels - 1, repr(plan))
    level = checked_rows(plan, rows, level, up=int(name == "expand"))
    return back(_apply(rows, plan, level, name))


class _Transform(torch.autograd.Function):
    """One of the four linear operators, with backward and forward mode derivatives and vmap."""

    @staticmethod
    def forward(x: Tensor, plan: TransformPlan, level: int, name: str) -> Tensor:
        operator, skip, _ = _OPERATORS[name]
        return operator(plan, x, level, skip)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.plan, ctx.level, ctx.name = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        transpose = _OPERATORS[ctx.name][2]
        return _apply(grad, ctx.plan, ctx.level, transpose), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return _apply(tangent, ctx.plan, ctx.level, ctx.name)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int, ...], x: Tensor, plan: TransformPlan, level: int, name: str
    ) -> tuple[Tensor, int]:
        return _apply(x.movedim(in_dims[0], 0), plan, level, name), 0


# name: (function, whether it skips the details of the level, name of its transpose)
_OPERATORS: dict[str, tuple[Callable[[TransformPlan, Tensor, int, bool], Tensor], bool, str]] = {
    "adjoint": (analysis, False, "forward"),
    "forward": (synthesis, False, "adjoint"),
    "compress": (analysis, True, "expand"),
    "expand": (synthesis, True, "compress"),
}

_apply: Callable[[Tensor, TransformPlan, int, str], Tensor] = _Transform.apply

"""THE FAST ONE: products with the Haar bases without forming them, in O(N·d) time and memory.

All four operators are linear, and each is another's transpose. So one autograd Function serves
them all: its backward is the transpose, which can be differentiated again, to any order.
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
    """The adjoint Haar transform U_jᵀ x (equation 4): signal -> coefficients.

    Args:
        chain: a chain, or a plan for many chains in one call.
        x: (N_j,), (N_j, d) or (..., N_j, d), floating point or complex; bfloat16 and float16 are
            computed in float32 and rounded once. A numpy array gives a numpy array.
        level: j in 0..K.

    Returns:
        Coefficients of the shape of `x`, rows from coarse to fine (see `split`); in a plan, graph
        by graph.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> adjoint(chain, np.array([1.0, 3.0, 2.0])).round(3).tolist()
    [3.414, 0.586, -1.414]
    """
    return _transform("adjoint", chain, x, level)


def forward_transform(chain: Chain | TransformPlan, c: Signal, level: int = 0) -> Signal:
    """The forward Haar transform U_j c (equation 5): coefficients -> signal; inverts `adjoint`.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> forward_transform(chain, np.array([3.414, 0.586, -1.414])).round(3).tolist()
    [1.0, 3.0, 2.0]
    """
    return _transform("forward", chain, c, level)


def compress(chain: Chain | TransformPlan, x: Signal, level: int = 0) -> Signal:
    """The compressive Haar transform Φ_jᵀ x (Definition 1, HaarPooling) of a level j < K.

    These are the first N_{j+1} coefficients of `adjoint`; (N_j, d) -> (N_{j+1}, d).

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> compress(chain, np.array([1.0, 3.0, 2.0])).round(3).tolist()
    [3.414, 0.586]
    """
    return _transform("compress", chain, x, level)


def expand(chain: Chain | TransformPlan, z: Signal, level: int = 0) -> Signal:
    """The transpose Φ_j z of `compress`, for j < K: (N_{j+1}, d) -> (N_j, d).

    `expand(compress(x))` is the signal nearest to x that is constant on clusters (for
    `measure="children"`).

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> expand(chain, compress(chain, np.array([1.0, 3.0, 2.0]))).round(3).tolist()
    [2.0, 2.0, 2.0]
    """
    return _transform("expand", chain, z, level)


def _transform(name: str, chain: Chain | TransformPlan, x: Signal, level: int) -> Signal:
    plan, rows, back = as_rows(chain, x)
    if name in ("compress", "expand"):
        checked_level(level, plan.num_levels - 1, f"{plan!r} to compress")
    level = checked_rows(plan, rows, level, up=int(name == "expand"))
    return back(_apply(rows, plan, level, name))


class _Transform(torch.autograd.Function):
    """One of the four linear operators; forward and backward mode, any order, and vmap."""

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


# name: (function, whether it skips the details of the level, name of the transpose)
_OPERATORS: dict[str, tuple[Callable[[TransformPlan, Tensor, int, bool], Tensor], bool, str]] = {
    "adjoint": (analysis, False, "forward"),
    "forward": (synthesis, False, "adjoint"),
    "compress": (analysis, True, "expand"),
    "expand": (synthesis, True, "compress"),
}

_apply: Callable[[Tensor, TransformPlan, int, str], Tensor] = _Transform.apply

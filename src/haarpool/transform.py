"""THE FAST ONE: products with the Haar bases without forming them, in O(N·d) time and memory.

One step up the chain sorts the rows of a signal cluster by cluster and takes, of each cluster, its
weighted sum (what goes on to the next level) and its details; a transform is one pass over the
levels. See `haarpool.basis` for the formulas and `haarpool.plan` for the tensors.

All four operators are linear, and each is another's transpose, so one autograd Function serves
them all: its backward is the transpose, itself differentiable to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool.chain import Chain, checked_level
from haarpool.errors import HaarPoolError
from haarpool.plan import Pairing, TransformPlan

Signal = TypeVar("Signal", Tensor, NDArray[Any])

__all__ = [
    "TransformPlan",
    "adjoint",
    "compress",
    "expand",
    "forward_transform",
    "join",
    "split",
    "threshold",
]


# ---------------------------------------------------------------------- the public face


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


def split(chain: Chain | TransformPlan, c: Signal, level: int = 0) -> list[Signal]:
    """Cut coefficients of a level j into [coarse, details of K-1, ..., details of j].

    The coarse part are the N_K coefficients of the top level; the details of level i are
    N_i - N_{i+1} rows. `join` puts them together again.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> [part.tolist() for part in split(chain, np.array([1.0, 2.0, 3.0]))]
    [[1.0], [2.0], [3.0]]
    """
    plan, rows, back = _entry(chain, c)
    level = _checked_rows(plan, rows, level, up=0)
    if plan.num_graphs > 1:
        rows = rows.index_select(-2, plan.layout(level, top=True)[0])
    return [back(part) for part in rows.split(plan.part_sizes(level, top=True), -2)]


def join(chain: Chain | TransformPlan, parts: Sequence[Signal], level: int = 0) -> Signal:
    """Put the parts that `split` gives together again.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> join(chain, split(chain, np.array([1.0, 2.0, 3.0]))).tolist()
    [1.0, 2.0, 3.0]
    """
    entries = [_entry(chain, part) for part in parts]
    if not entries:
        raise HaarPoolError("the parts that split gives", "none", "pass its whole list")
    plan, _, back = entries[0]
    level = checked_level(level, plan.num_levels, repr(plan))
    got, expected = [rows.shape[-2] for _, rows, _ in entries], plan.part_sizes(level, top=True)
    if got != expected:
        raise HaarPoolError(
            f"parts with {expected} rows for level {level}",
            f"{got} rows",
            "pass the list that split gave, for the same chain and level",
        )
    c = torch.cat([rows for _, rows, _ in entries], -2)
    if plan.num_graphs > 1:
        c = c.index_select(-2, plan.layout(level, top=True)[1])
    return back(c)


def threshold(
    chain: Chain | TransformPlan,
    c: Signal,
    keep: float | None = None,
    *,
    value: float | None = None,
    mode: Literal["hard", "soft"] = "hard",
    level: int = 0,
) -> Signal:
    """Set small coefficients to zero, for compression (`keep`) or denoising (`value`).

    Since the basis is orthonormal, keeping the largest gives the best approximation of the signal
    by that many Haar vectors, and the squared error is the sum of the squares that were dropped.

    Args:
        chain, c, level: as in `forward_transform`; every column of every graph by itself.
        keep: how many coefficients to keep: an int, or a share of N_j in (0, 1], rounded up. Of
            equal magnitudes the coarser is kept.
        value: instead of `keep`, zero all below this magnitude.
        mode: "hard" leaves the others as they are, "soft" moves them towards zero by the largest
            magnitude that was dropped (`keep`) or by `value`.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> threshold(chain, np.array([5.0, -1.0, 2.0]), keep=2).tolist()
    [5.0, 0.0, 2.0]
    >>> threshold(chain, np.array([5.0, -1.0, 2.0]), value=1.5, mode="soft").tolist()
    [3.5, 0.0, 0.5]
    """
    plan, rows, back = _entry(chain, c)
    level = _checked_rows(plan, rows, level, up=0)
    if mode not in ("hard", "soft"):
        raise HaarPoolError('mode "hard" or "soft"', f"{mode!r}", "choose one of the two")
    if (keep is None) == (value is None):
        raise HaarPoolError(
            "either keep= or value=", "both or none", "pass a number to keep, or a magnitude"
        )
    magnitude = rows.detach().abs()
    if value is not None:
        if not value >= 0:
            raise HaarPoolError("value >= 0", f"{value!r}", "pass the magnitude to cut at")
        kept, cut = magnitude >= value, torch.full_like(magnitude, value)
    else:
        kept, cut = _largest(plan, magnitude, level, keep)
    if mode == "soft":
        rows = rows * (1 - cut / magnitude.clamp_min(torch.finfo(magnitude.dtype).tiny))
    return back(torch.where(kept, rows, torch.zeros_like(rows)))


def _largest(
    plan: TransformPlan, magnitude: Tensor, level: int, keep: float | None
) -> tuple[Tensor, Tensor]:
    """Which coefficients to keep, and for each the largest magnitude that its column drops."""
    sizes = plan.graph_sizes[:, level]
    whole = isinstance(keep, int | np.integer) and not isinstance(keep, bool)
    if keep is None or not (keep >= 0 if whole else 0 < keep <= 1):
        raise HaarPoolError(
            "keep as a whole number >= 0, or as a share in (0, 1]",
            f"{keep!r}",
            "pass for example keep=10 or keep=0.1",
        )
    number = np.minimum(sizes, keep if whole else np.ceil(keep * sizes - 1e-9)).astype(np.int64)
    begin = np.cumsum(sizes) - sizes

    def rows(per_graph: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.repeat(per_graph, sizes)).to(magnitude.device)[:, None]

    # Row numbers graph by graph, in each by falling magnitude: sort by magnitude, then by graph.
    order = magnitude.argsort(-2, descending=True, stable=True)
    if plan.num_graphs > 1:
        graph = rows(np.arange(len(sizes)))[:, 0]
        order = order.gather(-2, graph[order].argsort(-2, stable=True))
    place = torch.empty_like(order).scatter_(-2, order, _row_numbers(order))
    dropped = np.where(number < sizes, begin + number, -1)
    falling = torch.nn.functional.pad(magnitude.gather(-2, order), (0, 0, 0, 1))  # row -1 is zero
    cut = falling.index_select(-2, rows(dropped % (sizes.sum() + 1))[:, 0])
    return place < rows(begin + number), cut


def _row_numbers(like: Tensor) -> Tensor:
    return torch.arange(like.shape[-2], device=like.device)[:, None].expand_as(like)


# ---------------------------------------------------------------------- what goes in


_plans: WeakKeyDictionary[Chain, dict[torch.device, TransformPlan]] = WeakKeyDictionary()


def _plan(chain: Chain | TransformPlan, device: torch.device) -> TransformPlan:
    """The plan to use on `device`; that of a chain is made once and lives as long as the chain."""
    if isinstance(chain, TransformPlan):
        if chain.device != device:
            raise HaarPoolError(
                f"a signal on {chain.device}, where the plan is",
                f"a signal on {device}",
                f"move one of them, for example plan.to({str(device)!r})",
            )
        return chain
    if not isinstance(chain, Chain):
        raise HaarPoolError(
            "a Chain or a TransformPlan",
            f"{type(chain).__name__}",
            "build one with build_chain, Chain.from_parents or TransformPlan.from_chains",
        )
    plans = _plans.setdefault(chain, {})
    if device not in plans:
        plans[device] = TransformPlan.from_chains([chain], device)
    return plans[device]


def _entry(
    chain: Chain | TransformPlan, x: Signal
) -> tuple[TransformPlan, Tensor, Callable[[Tensor], Any]]:
    """The plan, the signal as a tensor (..., rows, columns), and the way back to its kind."""
    if not isinstance(x, Tensor | np.ndarray):
        raise HaarPoolError(
            "a torch tensor or a numpy array", f"{type(x).__name__}", "convert with np.asarray"
        )
    numeric = (
        x.dtype.kind in "fc"
        if isinstance(x, np.ndarray)
        else x.dtype.is_floating_point or x.is_complex()
    )
    if not numeric:
        raise HaarPoolError(
            "floating point or complex values",
            f"dtype {x.dtype}",
            "convert, for example to float32",
        )
    if x.ndim == 0:
        raise HaarPoolError(
            "a signal (N,), (N, d) or (..., N, d)", "a scalar", "pass a row per node"
        )
    tensor = x if isinstance(x, Tensor) else torch.from_numpy(np.array(x))
    flat = tensor.ndim == 1

    def back(result: Tensor) -> Any:
        result = result.squeeze(-1) if flat else result
        return result if isinstance(x, Tensor) else result.numpy()

    return _plan(chain, tensor.device), tensor.unsqueeze(-1) if flat else tensor, back


def _checked_rows(plan: TransformPlan, rows: Tensor, level: int, up: int) -> int:
    """The level, if the signal has the rows of level + `up`."""
    level = checked_level(level, plan.num_levels, repr(plan))
    expected = plan.sizes[level + up]
    if rows.shape[-2] != expected:
        raise HaarPoolError(
            f"{expected} rows, one per node of level {level + up} of {plan!r}",
            f"{rows.shape[-2]}",
            "check level= and that chain and signal belong to the same graph",
        )
    return level


def _transform(name: str, chain: Chain | TransformPlan, x: Signal, level: int) -> Signal:
    plan, rows, back = _entry(chain, x)
    if name in ("compress", "expand"):
        checked_level(level, plan.num_levels - 1, f"{plan!r} to compress")
    level = _checked_rows(plan, rows, level, up=int(name == "expand"))
    result: Signal = back(_Transform.apply(rows, plan, level, name))
    return result


class _Transform(torch.autograd.Function):
    """One of the four linear operators; forward and backward mode, any order, and vmap."""

    @staticmethod
    def forward(x: Tensor, plan: TransformPlan, level: int, name: str) -> Tensor:
        operator, skip, _ = _OPERATORS[name]
        # Sums of many bfloat16 are taken in float32; the plan's float64 weights follow the signal.
        half = x.dtype in (torch.bfloat16, torch.float16)
        return operator(plan, x.float() if half else x, level, skip).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.plan, ctx.level, ctx.name = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:  # type: ignore[override]
        transpose = _OPERATORS[ctx.name][2]
        return _Transform.apply(grad, ctx.plan, ctx.level, transpose), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:  # type: ignore[override]
        result: Tensor = _Transform.apply(tangent, ctx.plan, ctx.level, ctx.name)
        return result

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int, ...], x: Tensor, plan: TransformPlan, level: int, name: str
    ) -> tuple[Tensor, int]:
        return _Transform.apply(x.movedim(in_dims[0], 0), plan, level, name), 0


# ---------------------------------------------------------------------- what happens inside


def _analysis(plan: TransformPlan, x: Tensor, level: int, skip: bool) -> Tensor:
    """U_jᵀ x, or with `skip`, which leaves the details of level j out, Φ_jᵀ x."""
    K = plan.num_levels
    c = _empty(x, plan.sizes[level + skip])
    first, *details = c.split(plan.part_sizes(level + skip), -2)
    for j in range(level, K + 1):
        coarse = first if j == K else _empty(x, plan.sizes[j + 1])
        for block in plan.steps[j]:
            h = x.index_select(-2, block.nodes if j == level else block.ranks)
            h *= block.r.to(h.dtype)
            rounds = _rounds(h, block.pairings)
            coarse[..., block.coarse_rows, :] = rounds[-1] * block.norm.to(h.dtype)
            if not (skip and j == level):
                later = _exclusive(rounds, block.pairings, later=True)
                h *= block.own.to(h.dtype)
                h -= later.mul_(block.others.to(h.dtype))
                details[K - j][..., block.detail_rows, :] = h.index_select(-2, block.details)
        x = coarse
    return c if plan.num_graphs == 1 else c.index_select(-2, plan.layout(level + skip)[1])


def _synthesis(plan: TransformPlan, c: Tensor, level: int, skip: bool) -> Tensor:
    """U_j c, or with `skip`, where the details of level j are zero, Φ_j c."""
    K = plan.num_levels
    c = c if plan.num_graphs == 1 else c.index_select(-2, plan.layout(level + skip)[0])
    coarse, *details = c.split(plan.part_sizes(level + skip), -2)
    for j in range(K, level - 1, -1):
        x = _empty(c, plan.sizes[j])
        for block in plan.steps[j]:
            h = coarse[..., block.coarse_rows, :] * block.norm.to(c.dtype)
            h = h.index_select(-2, block.cluster)
            if not (skip and j == level):
                d = details[K - j][..., block.detail_rows, :]
                d = torch.zeros_like(h).index_copy_(-2, block.details, d)
                h.addcmul_(d, block.own.to(h.dtype))
                d *= block.others.to(h.dtype)
                h -= _exclusive(_rounds(d, block.pairings), block.pairings, later=False)
            h *= block.r.to(h.dtype)
            x.index_copy_(-2, block.nodes if j == level else block.ranks, h)
        coarse = x
    return coarse


def _empty(like: Tensor, rows: int) -> Tensor:
    return like.new_empty((*like.shape[:-2], rows, like.shape[-1]))


def _rounds(x: Tensor, pairings: Sequence[Pairing]) -> list[Tensor]:
    """x, its sums over pairs, over pairs of pairs, ...; the last are those of whole segments."""
    rounds = [x]
    for pairing in pairings:
        pairs = rounds[-1].index_select(-2, pairing.first)
        pairs.index_add_(-2, pairing.full, rounds[-1].index_select(-2, pairing.right))
        rounds.append(pairs)
    return rounds


def _exclusive(rounds: list[Tensor], pairings: Sequence[Pairing], *, later: bool) -> Tensor:
    """For each row the sum over the later (else the earlier) rows of its segment.

    Inside a pair this is the other row or nothing; outside it, what the pair itself has to add.
    Consumes `rounds`, so that memory is free as soon as it can be.
    """
    sums = torch.zeros_like(rounds.pop())
    for pairing in reversed(pairings):
        x = rounds.pop()
        here, there = (pairing.left, pairing.right) if later else (pairing.right, pairing.left)
        sums = sums.index_select(-2, pairing.pair)
        sums.index_add_(-2, here, x.index_select(-2, there))
    return sums


# name: (function, whether it skips the details of the level, name of the transpose)
_OPERATORS: dict[str, tuple[Callable[[TransformPlan, Tensor, int, bool], Tensor], bool, str]] = {
    "adjoint": (_analysis, False, "forward"),
    "forward": (_synthesis, False, "adjoint"),
    "compress": (_analysis, True, "expand"),
    "expand": (_synthesis, True, "compress"),
}

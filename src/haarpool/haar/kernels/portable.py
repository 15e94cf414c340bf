"""One pass over the levels in plain torch operations, on any device, in O(N·d) time and memory.

One step up the chain sorts the rows of a signal cluster by cluster and computes for each cluster
its weighted sum, the signal of the next level, and its details; `ClusterBlock` has the formulas.
Sums inside a cluster are computed over pairs, pairs of pairs and so on, never as the difference of
two long sums, so that no digits are lost by cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from haarpool.haar.plan import Pairing, TransformPlan


def analysis(plan: TransformPlan, x: Tensor, level: int, skip: bool) -> Tensor:
    """Compute U_jᵀ x, or with `skip` Φ_jᵀ x, without the details of level j.

    Args:
        plan: The plan of the chains.
        x: (..., N_j, d) signal.
        level: j in 0..K.
        skip: Leave out the details of level j.

    Returns:
        (..., N_j, d) coefficients, or (..., N_{j+1}, d) with `skip`.
    """
    K, work = plan.num_levels, _work_dtype(x)
    c = _empty(x, plan.sizes[level + skip], x.dtype)
    first, *details = torch.split(c, plan.part_sizes(level + skip), -2)
    for j in range(level, K + 1):
        coarse = first if j == K else _empty(x, plan.sizes[j + 1], work)
        for block in plan.steps[j]:
            h = x.index_select(-2, block.nodes if j == level else block.ranks).to(work)
            h *= block.r.to(h.dtype)
            rounds = _rounds(h, block.pairings)
            coarse[..., block.coarse_rows, :] = rounds[-1] * block.norm.to(h.dtype)
            if not (skip and j == level):
                later = _exclusive(rounds, block.pairings, later=True)
                h *= block.a.to(h.dtype)
                h -= later.mul_(block.b.to(h.dtype))
                del later  # as large as h; free it before the next allocation
                details[K - j][..., block.detail_rows, :] = h.index_select(-2, block.details)
        x = coarse
    return plan.paste(c, level + skip)


def synthesis(plan: TransformPlan, c: Tensor, level: int, skip: bool) -> Tensor:
    """Compute U_j c, or with `skip` Φ_j c, where the details of level j are zero.

    Args:
        plan: The plan of the chains.
        c: (..., N_j, d) coefficients, or (..., N_{j+1}, d) with `skip`.
        level: j in 0..K.
        skip: The details of level j are zero and left out of `c`.

    Returns:
        (..., N_j, d) signal.
    """
    K, work = plan.num_levels, _work_dtype(c)
    coarse, *details = plan.cut(c, level + skip)
    for j in range(K, level - 1, -1):
        x = _empty(c, plan.sizes[j], c.dtype if j == level else work)
        for block in plan.steps[j]:
            h = coarse[..., block.coarse_rows, :].to(work) * block.norm.to(work)
            h = h.index_select(-2, block.cluster)
            if not (skip and j == level):
                d = details[K - j][..., block.detail_rows, :].to(work)
                d = torch.zeros_like(h).index_copy_(-2, block.details, d)
                h.addcmul_(d, block.a.to(h.dtype))
                d *= block.b.to(h.dtype)
                h -= _exclusive(_rounds(d, block.pairings), block.pairings, later=False)
            h *= block.r.to(h.dtype)
            x.index_copy_(-2, block.nodes if j == level else block.ranks, h.to(x.dtype))
        coarse = x
    return coarse


def _work_dtype(x: Tensor) -> torch.dtype:
    """Return the dtype of the computation: float32 for signals of 16 bits, rounded at the end."""
    return torch.float32 if x.dtype in (torch.bfloat16, torch.float16) else x.dtype


def _empty(like: Tensor, rows: int, dtype: torch.dtype) -> Tensor:
    return like.new_empty((*like.shape[:-2], rows, like.shape[-1]), dtype=dtype)


def _rounds(x: Tensor, pairings: Sequence[Pairing]) -> list[Tensor]:
    """Return x, its sums over pairs, over pairs of pairs, ..., and over complete segments."""
    rounds = [x]
    for pairing in pairings:
        pairs = rounds[-1].index_select(-2, pairing.first)
        pairs.index_add_(-2, pairing.full, rounds[-1].index_select(-2, pairing.right))
        rounds.append(pairs)
    return rounds


def _exclusive(rounds: list[Tensor], pairings: Sequence[Pairing], *, later: bool) -> Tensor:
    """Return for each row the sum over the later (else the earlier) rows of its segment.

    This is the sum for the pair of the row, plus the other row of the pair if it is later
    (earlier). Removes the elements of `rounds`, so that their memory is freed early.
    """
    sums = torch.zeros_like(rounds.pop())
    for pairing in reversed(pairings):
        x = rounds.pop()
        target, other = (pairing.left, pairing.right) if later else (pairing.right, pairing.left)
        sums = sums.index_select(-2, pairing.pair)
        sums.index_add_(-2, target, x.index_select(-2, other))
    return sums

"""One pass over the levels in plain torch operations, on any device, in O(N·d) time and memory.

One step up the chain puts the rows of a signal cluster by cluster and takes of each cluster its
weighted sum, which goes on to the next level, and its details; see `ClusterBlock` for the formulas.
Sums inside a cluster are taken over pairs, pairs of pairs and so on, never as the difference of two
long sums, so nothing cancels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from haarpool.haar.plan import Pairing, TransformPlan


def analysis(plan: TransformPlan, x: Tensor, level: int, skip: bool) -> Tensor:
    """U_jᵀ x, or with `skip`, which leaves the details of level j out, Φ_jᵀ x."""
    K, work = plan.num_levels, _work(x)
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
                h *= block.own.to(h.dtype)
                h -= later.mul_(block.others.to(h.dtype))
                del later  # as large as h: a cluster of all nodes would feel it
                details[K - j][..., block.detail_rows, :] = h.index_select(-2, block.details)
        x = coarse
    return plan.paste(c, level + skip)


def synthesis(plan: TransformPlan, c: Tensor, level: int, skip: bool) -> Tensor:
    """U_j c, or with `skip`, where the details of level j are zero, Φ_j c."""
    K, work = plan.num_levels, _work(c)
    coarse, *details = plan.cut(c, level + skip)
    for j in range(K, level - 1, -1):
        x = _empty(c, plan.sizes[j], c.dtype if j == level else work)
        for block in plan.steps[j]:
            h = coarse[..., block.coarse_rows, :].to(work) * block.norm.to(work)
            h = h.index_select(-2, block.cluster)
            if not (skip and j == level):
                d = details[K - j][..., block.detail_rows, :].to(work)
                d = torch.zeros_like(h).index_copy_(-2, block.details, d)
                h.addcmul_(d, block.own.to(h.dtype))
                d *= block.others.to(h.dtype)
                h -= _exclusive(_rounds(d, block.pairings), block.pairings, later=False)
            h *= block.r.to(h.dtype)
            x.index_copy_(-2, block.nodes if j == level else block.ranks, h.to(x.dtype))
        coarse = x
    return coarse


def _work(x: Tensor) -> torch.dtype:
    """What is computed in: sums of many bfloat16 are taken in float32 and rounded once."""
    return torch.float32 if x.dtype in (torch.bfloat16, torch.float16) else x.dtype


def _empty(like: Tensor, rows: int, dtype: torch.dtype) -> Tensor:
    return like.new_empty((*like.shape[:-2], rows, like.shape[-1]), dtype=dtype)


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

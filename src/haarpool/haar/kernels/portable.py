"""The kernels in plain torch operations, for any device; `cpu` and `cuda` do the same faster.

With m, M as in `haarpool.haar.basis`, r = sqrt(m), h = r · f, and sums over the same cluster:

    coarse      s   = Σ_t h_t / sqrt(M_0)
    detail      d_t = a_t · h_t - b_t · Σ_{i>t} h_i        a_t = sqrt(M_{t+1} / (M_t m_t))
    transposed  f_i = r_i · (s / sqrt(M_0) + a_i · d_i     b_t = sqrt(m_t / (M_t M_{t+1}))
                             - Σ_{t<i} b_t · d_t)

Sums inside a cluster are computed over pairs, pairs of pairs and so on, never as the difference of
two long sums, so that no digits are lost by cancellation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from haarpool.haar.chain_tensors import Steps, Tree
from haarpool.haar.kernels.layout import detail_base, first_members, level_size

HALF = False  # types of 16 bits are computed in float32
CAPTURABLE = False  # the host reads the size of the largest cluster
_BLOCK = 16  # rows that are added one after the other


def analysis(x: Tensor, steps: Steps) -> Tensor:
    """Climb the chain, see `haarpool.haar.operators.analysis`."""
    start, trees, skip, single, _ = steps
    # Members without a detail write to a last row, which is dropped.
    out = x.new_empty(level_size(start, trees, int(skip)) + 1, x.shape[1])
    base = detail_base(start, trees, skip, single)
    for step, tree in enumerate(trees[:1] if single else trees):
        first = first_members(start, trees, step)
        if skip and step == 0:
            x = _sum_clusters(x, tree, first)
            continue
        members = _Members.of(tree, first, base, len(out) - 1, x.dtype)
        h = members.r * x.index_select(0, tree[Tree.MEMBER])
        sums = _running_sums(h, members.num_later, later=True)
        later = _shift(sums, members.num_later, 1, later=True)
        out.index_copy_(0, members.row, members.a * h - members.b * later)
        x = sums.index_select(0, first) * members.norm.index_select(0, first)
    if single:
        out[: len(x)] = x
    else:
        out[base.long()] = x  # the first coefficient of each graph
    return out[:-1]


def synthesis(c: Tensor, steps: Steps) -> Tensor:
    """Descend the chain, see `haarpool.haar.operators.synthesis`."""
    start, trees, skip, single, _ = steps
    base = detail_base(start, trees, skip, single)
    chosen = trees[:1] if single else trees
    x = c[: level_size(start, trees, 1)] if single else c[base.long()]
    for step in range(len(chosen) - 1, -1, -1):
        tree = chosen[step]
        if skip and step == 0:
            weight = tree[Tree.MASS].to(x.dtype) / tree[Tree.TOTAL]
            x = gather_sum(x, tree[Tree.PARENT], None, weight.sqrt())
            continue
        members = _Members.of(tree, first_members(start, trees, step), base, 0, x.dtype)
        d = torch.where(members.a > 0, c.index_select(0, members.row), 0)
        sums = _running_sums(members.b * d, members.num_earlier, later=False)
        earlier = _shift(sums, members.num_earlier, 1, later=False)
        coarse = x.index_select(0, tree[Tree.PARENT].index_select(0, tree[Tree.MEMBER]))
        h = members.r * (coarse * members.norm + members.a * d - earlier)
        x = torch.empty_like(h).index_copy_(0, tree[Tree.MEMBER].long(), h)
    return x


def gather_sum(x: Tensor, index: Tensor, start: Tensor | None, weight: Tensor | None) -> Tensor:
    """Sum rows of a signal, see `haarpool.haar.operators.gather_sum`."""
    weight = None if weight is None else weight.to(x.dtype)
    if start is None:
        rows = x.index_select(0, index)
        return rows if weight is None else rows * weight[:, None]
    if index.shape[0] == 0:
        return x.new_zeros(start.shape[0], x.shape[1])
    start = start.to(index.dtype)
    longest = int(torch.diff(start, append=start.new_full((1,), index.shape[0])).max())
    while longest > _BLOCK:  # sum pieces of lists, then the lists of pieces
        cuts = torch.arange(0, index.shape[0], _BLOCK, device=index.device, dtype=index.dtype)
        pieces = torch.cat([start, cuts]).sort().values
        x = embedding_bag(index, x, pieces, mode="sum", per_sample_weights=weight)
        start = torch.searchsorted(pieces, start).to(index.dtype)
        index = torch.arange(len(pieces), device=index.device, dtype=index.dtype)
        weight, longest = None, longest // _BLOCK + 2
    return embedding_bag(index, x, start, mode="sum", per_sample_weights=weight)


def _sum_clusters(x: Tensor, tree: Tensor, first: Tensor) -> Tensor:
    weight = (tree[Tree.MASS].to(x.dtype) / tree[Tree.TOTAL]).sqrt()
    return gather_sum(x, tree[Tree.MEMBER], first, weight.index_select(0, tree[Tree.MEMBER]))


class _Members(NamedTuple):
    """The nodes of a level, cluster by cluster: numbers of the formulas above, each (N, 1)."""

    r: Tensor
    a: Tensor  # zero at the last member of a cluster
    b: Tensor  # zero at the last member of a cluster
    norm: Tensor
    row: Tensor  # (N,) row of the detail
    num_later: Tensor
    num_earlier: Tensor

    @classmethod
    def of(
        cls, tree: Tensor, first: Tensor, base: Tensor, no_row: int, dtype: torch.dtype
    ) -> _Members:
        """Read them from a tree; `no_row` is the row for members without detail."""
        size = tree.shape[1]
        tree = tree.index_select(1, tree[Tree.MEMBER])
        m, later, total = (tree[row].to(dtype) for row in (Tree.MASS, Tree.LATER, Tree.TOTAL))
        has_detail = tree[Tree.LATER] > 0
        b = torch.where(has_detail, m / ((m + later) * later), 0)
        row = base.index_select(0, tree[Tree.GRAPH]) + tree[Tree.DETAIL]
        position = torch.arange(size, device=tree.device)
        begin = first.index_select(0, tree[Tree.PARENT])
        end = torch.cat([first[1:], first.new_full((1,), size)]).index_select(0, tree[Tree.PARENT])
        return cls(
            r=m.sqrt()[:, None],
            a=(later / ((m + later) * m)).sqrt()[:, None],
            b=b.sqrt()[:, None],
            norm=total.rsqrt()[:, None],
            row=torch.where(has_detail, row, no_row).long(),
            num_later=(end - 1 - position)[:, None],
            num_earlier=(position - begin)[:, None],
        )


def _running_sums(h: Tensor, num_others: Tensor, *, later: bool) -> Tensor:
    """Return for each row its sum with all later (else earlier) rows of its cluster.

    In each round a sum over 2^i rows becomes one over 2^(i+1) rows.
    """
    shift, longest = 1, int(num_others.max()) if len(num_others) else 0
    while shift <= longest:
        h = h + _shift(h, num_others, shift, later=later)
        shift *= 2
    return h


def _shift(h: Tensor, num_others: Tensor, shift: int, *, later: bool) -> Tensor:
    """Return for each row the row `shift` later (else earlier), or zero outside its cluster."""
    moved = pad(h[shift:], (0, 0, 0, shift)) if later else pad(h[:-shift], (0, 0, shift, 0))
    return torch.where(num_others >= shift, moved, 0)

"""Tiles of short clusters x columns in Triton: a lane walks along the members of its cluster.

Formulas as in `triton_tiles`. All weights follow from the masses on the way.
"""

# mypy: ignore-errors
# ruff: noqa: RET505, RUF005

import triton
import triton.language as tl

from haarpool.haar.kernels.triton_tiles import (
    DETAIL,
    MASS,
    MEMBER,
    TOTAL,
    load_rows,
    store_rows,
    tree_row,
)


@triton.jit
def cluster_range(first, cluster, end_cluster, end):
    """Return the position of the first member and the number of members of some clusters.

    Args:
        first: Position of the first member of each cluster.
        cluster: Clusters; those from `end_cluster` on have no members.
        end_cluster: Where the clusters end.
        end: Where the positions of their members end.
    """
    begin = tl.load(first + cluster, cluster < end_cluster, other=0)
    behind = tl.load(first + cluster + 1, cluster + 1 < end_cluster, other=end)
    return begin, tl.where(cluster < end_cluster, behind - begin, 0)


@triton.jit
def _mass(tree, size, member, inside, UNIT: tl.constexpr):
    if UNIT:
        return inside.to(tl.int32)
    else:
        return tl.load(tree_row(tree, size, MASS) + member, inside, other=0)


@triton.jit
def climb_lanes(
    x, coarse, out, tree, size, base, cluster, begin, count, columns, column,
    DETAILS: tl.constexpr, UNIT: tl.constexpr, UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Walk along each cluster from the last member to the first.

    Args:
        x: Signal on the level of `tree`.
        coarse: Signal on the level above, to be written.
        out: Coefficients, to be written.
        tree: The tree of the level.
        size: Number of nodes of the level.
        base: What DETAIL is added to, a number or one per cluster.
        cluster: Clusters.
        begin: Position of the first member of each cluster.
        count: Number of members of each cluster; those with 0 are left out.
        columns: Number of columns of the signal.
        column: Columns of the tile.
        DETAILS: Whether details are written.
        UNIT: Whether all masses are known to be 1.
        UNROLL: Members to load at once.
        ACC: Data type of the sums.
    """
    if DETAILS:  # the details of a cluster are consecutive rows
        lead = tl.load(tree_row(tree, size, MEMBER) + begin, count > 1, other=0)
        row = base + tl.load(tree_row(tree, size, DETAIL) + lead, count > 1, other=0)
    later = tl.zeros(count.shape, tl.int32)
    after = tl.zeros([count.shape[0], column.shape[0]], ACC)
    for walked in range(0, tl.max(count), UNROLL):
        masses, signals = (), ()
        for u in tl.static_range(UNROLL):  # all loads before the first store, so that they overlap
            inside = walked + u < count
            position = begin + (count - 1 - walked - u)
            member = tl.load(tree_row(tree, size, MEMBER) + position, inside, other=0)
            masses = masses + (_mass(tree, size, member, inside, UNIT),)
            signals = signals + (load_rows(x, member, inside, columns, column, ACC),)
        for u in tl.static_range(UNROLL):
            m, rest, f = masses[u].to(ACC), later.to(ACC), signals[u]
            if DETAILS:
                q = tl.rsqrt(tl.maximum((m + rest) * rest, 1))
                detail = (rest * q)[:, None] * f - (tl.sqrt(m) * q)[:, None] * after
                has_detail = (walked + u < count) & (later > 0)
                at = row + (count - 1 - walked - u)
                store_rows(out, at, detail, has_detail, columns, column)
            after += tl.sqrt(m)[:, None] * f
            later += masses[u]
    norm = tl.rsqrt(tl.maximum(later, 1).to(ACC))  # later is the mass of the cluster now
    store_rows(coarse, cluster, after * norm[:, None], count > 0, columns, column)


@triton.jit
def descend_lanes(
    coarse, y, c, tree, size, base, cluster, begin, count, columns, column,
    DETAILS: tl.constexpr, UNIT: tl.constexpr, UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Walk from the first member to the last: the transpose of `climb_lanes`, same arguments.

    coarse is the signal on the level above, y that on the level of `tree`, to be written, c are the
    coefficients.
    """
    lead = tl.load(tree_row(tree, size, MEMBER) + begin, count > 0, other=0)
    later = tl.load(tree_row(tree, size, TOTAL) + lead, count > 0, other=1)
    s = load_rows(coarse, cluster, count > 0, columns, column, ACC)
    s *= tl.rsqrt(later.to(ACC))[:, None]
    if DETAILS:
        row = base + tl.load(tree_row(tree, size, DETAIL) + lead, count > 1, other=0)
    for walked in range(0, tl.max(count), UNROLL):
        members, masses, details = (), (), ()
        for u in tl.static_range(UNROLL):
            inside = walked + u < count
            position = begin + walked + u
            member = tl.load(tree_row(tree, size, MEMBER) + position, inside, other=0)
            members = members + (member,)
            masses = masses + (_mass(tree, size, member, inside, UNIT),)
            if DETAILS:
                has_detail = walked + u + 1 < count
                d = load_rows(c, row + walked + u, has_detail, columns, column, ACC)
                details = details + (d,)
        for u in tl.static_range(UNROLL):
            r = tl.sqrt(masses[u].to(ACC))
            f = r[:, None] * s
            if DETAILS:
                mass_from_here = later.to(ACC)
                later -= masses[u]
                rest = later.to(ACC)
                q = tl.rsqrt(tl.maximum(mass_from_here * rest, 1))
                f += (rest * q)[:, None] * details[u]
                s -= (r * q)[:, None] * details[u]
            store_rows(y, members[u], f, walked + u < count, columns, column)

"""Tiles of members x columns in Triton, for long clusters.

A tile has consecutive positions of MEMBER, so the members of a cluster are neighbours. Sums over
other members of a cluster are segmented scans: `carry` brings what is outside of the tile.
With m, M, M' = MASS, MASS + LATER, LATER, f = x and sums over later or earlier members:

    h_t = sqrt(m) · f_t        s   = Σ h / sqrt(TOTAL)
    q   = 1 / sqrt(M · M')     d_t = M' q · f_t - sqrt(m) q · Σ_{i>t} h_i
    e_t = sqrt(m) q · d_t      f_t = M' q · d_t + sqrt(m) · (s / sqrt(TOTAL) - Σ_{i<t} e_i)

The last member of a cluster, M' = 0, has no detail.
"""

# mypy: ignore-errors
# ruff: noqa: RET505

import triton
import triton.language as tl

from haarpool.haar.chain_tensors import Tree

PARENT = tl.constexpr(int(Tree.PARENT))
MEMBER = tl.constexpr(int(Tree.MEMBER))
GRAPH = tl.constexpr(int(Tree.GRAPH))
MASS = tl.constexpr(int(Tree.MASS))
LATER = tl.constexpr(int(Tree.LATER))
TOTAL = tl.constexpr(int(Tree.TOTAL))
CHILD = tl.constexpr(int(Tree.CHILD))
DETAIL = tl.constexpr(int(Tree.DETAIL))


@triton.jit
def tree_row(tree, size, ROW: tl.constexpr):
    """Return the address of a row of a tree."""
    return tree + ROW * size.to(tl.int64)


@triton.jit
def load_rows(x, row, mask, columns, column, ACC: tl.constexpr):
    """Load a tile of x, zero where the mask is false."""
    address = x + row.to(tl.int64)[:, None] * columns + column[None, :]
    mask = mask[:, None] & (column < columns)[None, :]
    # A row is read once: it need not stay in the cache.
    return tl.load(address, mask, other=0, eviction_policy="evict_first").to(ACC)


@triton.jit
def store_rows(x, row, value, mask, columns, column):
    """Store a tile."""
    address = x + row.to(tl.int64)[:, None] * columns + column[None, :]
    mask = mask[:, None] & (column < columns)[None, :]
    tl.store(address, value, mask, eviction_policy="evict_first")


@triton.jit
def detail_base(
    start, stride, graph, num_graphs, num_coarse, SKIP: tl.constexpr, SINGLE: tl.constexpr
):
    """Return what DETAIL is added to, see `layout.detail_base`."""
    if SINGLE:
        graphs_after = graph + 1 < num_graphs
        end = tl.load(start + stride + graph + 1, graphs_after, other=num_coarse)
        return tl.load(start + graph) + num_coarse - end
    else:
        return tl.load(start + SKIP * stride + graph)


@triton.jit
def analysis_terms(x, tree, size, position, mask, columns, column, ACC: tl.constexpr):
    """Return h of some positions."""
    member = tl.load(tree_row(tree, size, MEMBER) + position, mask, other=0)
    mass = tl.load(tree_row(tree, size, MASS) + member, mask, other=1)
    return tl.sqrt(mass.to(ACC))[:, None] * load_rows(x, member, mask, columns, column, ACC)


@triton.jit
def synthesis_terms(c, tree, size, base, position, mask, columns, column, ACC: tl.constexpr):
    """Return e of some positions."""
    member = tl.load(tree_row(tree, size, MEMBER) + position, mask, other=0)
    mass = tl.load(tree_row(tree, size, MASS) + member, mask, other=1).to(ACC)
    later = tl.load(tree_row(tree, size, LATER) + member, mask, other=0).to(ACC)
    row = base + tl.load(tree_row(tree, size, DETAIL) + member, mask, other=0)
    weight = tl.sqrt(mass) * tl.rsqrt((mass + later) * tl.maximum(later, 1))
    return weight[:, None] * load_rows(c, row, mask & (later > 0), columns, column, ACC)


@triton.jit
def _add(sum_before, any_end_before, term, is_end):
    return tl.where(is_end != 0, term, sum_before + term), any_end_before | is_end


@triton.jit
def _running_sums(term, is_end, carry, REVERSE: tl.constexpr):
    """Sum the rows of a cluster up to each row; the sum begins anew where `is_end`."""
    ends = tl.broadcast_to(is_end.to(tl.int32)[:, None], term.shape)
    sums, any_end = tl.associative_scan((term, ends), 0, _add, reverse=REVERSE)
    return tl.where(any_end != 0, sums, sums + carry[None, :])  # selects: NaN stays in its cluster


@triton.jit
def climb_tile(
    x, coarse, out, tree, size, base, position, end, carry, columns, column,
    DETAILS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Compute the details of a tile of positions, and the coarse rows of clusters that begin in it.

    Args:
        x: Signal on the level of `tree`.
        coarse: Signal on the level above, to be written.
        out: Coefficients, to be written.
        tree: The tree of the level.
        size: Number of nodes of the level.
        base: What DETAIL is added to, a number or one per position.
        position: Consecutive positions, from `end` on without meaning.
        end: Where the positions end.
        carry: Sum of h over the members behind the tile of the cluster at its end.
        columns: Number of columns of the signal.
        column: Columns of the tile.
        DETAILS: Whether details are written.
        ACC: Data type of the sums.

    Returns:
        The carry for the tile before.
    """
    inside = position < end
    index = tl.arange(0, position.shape[0])
    member = tl.load(tree_row(tree, size, MEMBER) + position, inside, other=0)
    mass = tl.load(tree_row(tree, size, MASS) + member, inside, other=1)
    later = tl.load(tree_row(tree, size, LATER) + member, inside, other=0)
    total = tl.load(tree_row(tree, size, TOTAL) + member, inside, other=1)
    parent = tl.load(tree_row(tree, size, PARENT) + member, inside, other=0)
    f = load_rows(x, member, inside, columns, column, ACC)
    m, rest = mass.to(ACC), later.to(ACC)
    r = tl.sqrt(m)
    if DETAILS:
        # The sum from t on less the term of t may lose all digits. So the scan adds up the terms of
        # the next members, which are loaded a second time.
        has_next = inside & (later > 0) & (index + 1 < position.shape[0])
        next_term = analysis_terms(x, tree, size, position + 1, has_next, columns, column, ACC)
        after = _running_sums(next_term, later == 0, carry, True)
        row = base + tl.load(tree_row(tree, size, DETAIL) + member, inside, other=0)
        q = tl.rsqrt((m + rest) * tl.maximum(rest, 1))
        detail = (rest * q)[:, None] * f - (r * q)[:, None] * after
        store_rows(out, row, detail, inside & (later > 0), columns, column)
        sums = r[:, None] * f + after
    else:
        sums = _running_sums(r[:, None] * f, later == 0, carry, True)
    is_first = inside & (later + mass == total)
    norm = tl.rsqrt(total.to(ACC))
    store_rows(coarse, parent, sums * norm[:, None], is_first, columns, column)
    return tl.sum(tl.where((index == 0)[:, None], sums, 0), axis=0)


@triton.jit
def descend_tile(
    coarse, y, c, tree, size, base, position, end, carry, columns, column,
    DETAILS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Compute the signal at a tile of positions: the transpose of `climb_tile`.

    Args:
        coarse: Signal on the level above.
        y: Signal on the level of `tree`, to be written.
        c: Coefficients.
        tree: The tree of the level.
        size: Number of nodes of the level.
        base: What DETAIL is added to, a number or one per position.
        position: Consecutive positions, from `end` on without meaning.
        end: Where the positions end.
        carry: Sum of e over the members before the tile of the cluster at its begin.
        columns: Number of columns of the signal.
        column: Columns of the tile.
        DETAILS: Whether there are details; else they are zero.
        ACC: Data type of the sums.

    Returns:
        The carry for the next tile.
    """
    inside = position < end
    index = tl.arange(0, position.shape[0])
    member = tl.load(tree_row(tree, size, MEMBER) + position, inside, other=0)
    mass = tl.load(tree_row(tree, size, MASS) + member, inside, other=1)
    total = tl.load(tree_row(tree, size, TOTAL) + member, inside, other=1)
    parent = tl.load(tree_row(tree, size, PARENT) + member, inside, other=0)
    m = mass.to(ACC)
    r = tl.sqrt(m)
    f = load_rows(coarse, parent, inside, columns, column, ACC)
    f *= (r * tl.rsqrt(total.to(ACC)))[:, None]
    if DETAILS:
        later = tl.load(tree_row(tree, size, LATER) + member, inside, other=0)
        row = base + tl.load(tree_row(tree, size, DETAIL) + member, inside, other=0)
        d = load_rows(c, row, inside & (later > 0), columns, column, ACC)
        is_first = later + mass == total
        has_previous = inside & ~is_first & (index > 0)
        previous_term = synthesis_terms(
            c, tree, size, base, position - 1, has_previous, columns, column, ACC
        )
        before = _running_sums(previous_term, is_first, carry, False)
        rest = later.to(ACC)
        q = tl.rsqrt((m + rest) * tl.maximum(rest, 1))
        f += (rest * q)[:, None] * d - r[:, None] * before
        until = before + (r * q)[:, None] * d
        carry = tl.sum(tl.where((index + 1 == position.shape[0])[:, None], until, 0), axis=0)
    store_rows(y, member, f, inside, columns, column)
    return carry

"""Triton kernels for large levels: each launch computes one step, with programs over its clusters.

Three launches make a step:

    *_chunk_sums   where a cluster spans two or more chunks of positions: its sum in each of them
    *_clusters     clusters of at most LONG members: one lane each, which walks along the members
    *_chunks       chunks with a longer cluster, tile by tile (`triton_tiles`)

The first and the last read next to nothing if all clusters are short, so nobody needs to know.
"""

# mypy: ignore-errors
# ruff: noqa: RET505

import triton
import triton.language as tl

from haarpool.haar.kernels.triton_lanes import climb_lanes, cluster_range, descend_lanes
from haarpool.haar.kernels.triton_tiles import (
    GRAPH,
    MEMBER,
    PARENT,
    analysis_terms,
    climb_tile,
    descend_tile,
    detail_base,
    load_rows,
    synthesis_terms,
    tree_row,
)

_VARYING = ["stride", "num_graphs", "half", "size", "num_clusters"]


@triton.jit
def _cluster_at(tree, size, position, mask):
    member = tl.load(tree_row(tree, size, MEMBER) + position, mask, other=0)
    return tl.load(tree_row(tree, size, PARENT) + member, mask, other=0)


@triton.jit
def _behind(first, cluster, num_clusters, size):
    """Return the position behind the last member of a cluster."""
    return tl.load(first + cluster + 1, cluster + 1 < num_clusters, other=size)


@triton.jit
def _base_at(
    tree, size, position, mask, start, stride, num_graphs, half,
    SKIP: tl.constexpr, SINGLE: tl.constexpr, ONE_GRAPH: tl.constexpr,
):  # fmt: skip
    if ONE_GRAPH:
        return 0
    else:
        member = tl.load(tree_row(tree, size, MEMBER) + position, mask, other=0)
        graph = tl.load(tree_row(tree, size, GRAPH) + member, mask, other=0)
        return detail_base(start, stride, graph, num_graphs, half, SKIP, SINGLE)


# ---------------------------------------------------------------------- short clusters


@triton.jit(do_not_specialize=_VARYING)
def climb_clusters(
    x, coarse, out, tree, first, start, size, num_clusters, stride, num_graphs, half, columns,
    SKIP: tl.constexpr, SINGLE: tl.constexpr, ONE_GRAPH: tl.constexpr, DETAILS: tl.constexpr,
    UNIT: tl.constexpr, LONG: tl.constexpr, LANES: tl.constexpr, COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Walk along each short cluster from the last member to the first.

    Args:
        x: Signal on the level of `tree`.
        coarse: Signal on the level above, to be written.
        out: Coefficients, to be written.
        tree: The tree of the level.
        first: Position of the first member of each cluster.
        start: `start` of the chains, from the level of the input on.
        size: Number of nodes of the level.
        num_clusters: Number of nodes of the level above.
        stride: Stride of the rows of `start`.
        num_graphs: Number of graphs.
        half: Number of nodes behind the first step of all.
        columns: Number of columns.
        SKIP: Whether the first step of all has no details.
        SINGLE: Whether there is one step only.
        ONE_GRAPH: Whether num_graphs is 1.
        DETAILS: Whether this step has details.
        UNIT: Whether all masses are known to be 1.
        LONG: Clusters with more members are left to `climb_chunks`.
        LANES: Clusters of a tile.
        COLUMNS: Columns of a tile.
        UNROLL: Members to load at once.
        ACC: Data type of the sums.
    """
    cluster = tl.program_id(0) * LANES + tl.arange(0, LANES)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin, count = cluster_range(first, cluster, num_clusters, size)
    count = tl.where(count > LONG, 0, count)
    base = _base_at(
        tree, size, begin, count > 1, start, stride, num_graphs, half, SKIP, SINGLE, ONE_GRAPH
    )
    climb_lanes(
        x, coarse, out, tree, size, base, cluster, begin, count, columns, column,
        DETAILS, UNIT, UNROLL, ACC,
    )  # fmt: skip


@triton.jit(do_not_specialize=_VARYING)
def descend_clusters(
    coarse, y, c, tree, first, start, size, num_clusters, stride, num_graphs, half, columns,
    SKIP: tl.constexpr, SINGLE: tl.constexpr, ONE_GRAPH: tl.constexpr, DETAILS: tl.constexpr,
    UNIT: tl.constexpr, LONG: tl.constexpr, LANES: tl.constexpr, COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Walk along each short cluster from the first member to the last.

    It computes the signal y on the level of `tree` from that on the level above and from the
    coefficients c; other arguments as in `climb_clusters`.
    """
    cluster = tl.program_id(0) * LANES + tl.arange(0, LANES)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin, count = cluster_range(first, cluster, num_clusters, size)
    count = tl.where(count > LONG, 0, count)
    base = _base_at(
        tree, size, begin, count > 1, start, stride, num_graphs, half, SKIP, SINGLE, ONE_GRAPH
    )
    descend_lanes(
        coarse, y, c, tree, size, base, cluster, begin, count, columns, column,
        DETAILS, UNIT, UNROLL, ACC,
    )  # fmt: skip


# ---------------------------------------------------------------------- long clusters


@triton.jit(do_not_specialize=_VARYING)
def climb_chunk_sums(
    x, sums, tree, first, start, size, num_clusters, stride, num_graphs, half, columns,
    SKIP: tl.constexpr, SINGLE: tl.constexpr, ONE_GRAPH: tl.constexpr,
    CHUNK: tl.constexpr, LONG: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Sum h over the positions of a chunk whose cluster begins before the chunk.

    `sums` has one row per chunk of CHUNK positions; other arguments as in `climb_clusters`.
    """
    chunk = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin = chunk * CHUNK
    cluster = _cluster_at(tree, size, begin, True)
    if tl.load(first + cluster) < begin:
        end = tl.minimum(_behind(first, cluster, num_clusters, size), begin + CHUNK)
        total = tl.zeros([LONG, COLUMNS], ACC)
        for at in range(begin, end, LONG):
            position = at + tl.arange(0, LONG)
            total += analysis_terms(x, tree, size, position, position < end, columns, column, ACC)
        at = sums + chunk.to(tl.int64) * columns + column
        tl.store(at, tl.sum(total, axis=0), column < columns)


@triton.jit(do_not_specialize=_VARYING)
def descend_chunk_sums(
    c, sums, tree, first, start, size, num_clusters, stride, num_graphs, half, columns,
    SKIP: tl.constexpr, SINGLE: tl.constexpr, ONE_GRAPH: tl.constexpr,
    CHUNK: tl.constexpr, LONG: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Sum e over the positions of a chunk whose cluster ends behind the chunk.

    `sums` has one row per chunk of CHUNK positions; other arguments as in `descend_clusters`.
    """
    chunk = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    end = tl.minimum(chunk * CHUNK + CHUNK, size)
    cluster = _cluster_at(tree, size, end - 1, True)
    if _behind(first, cluster, num_clusters, size) > end:
        begin = tl.maximum(tl.load(first + cluster), chunk * CHUNK)
        base = _base_at(
            tree, size, begin, True, start, stride, num_graphs, half, SKIP, SINGLE, ONE_GRAPH
        )
        total = tl.zeros([LONG, COLUMNS], ACC)
        for at in range(begin, end, LONG):
            position = at + tl.arange(0, LONG)
            total += synthesis_terms(
                c, tree, size, base, position, position < end, columns, column, ACC
            )
        at = sums + chunk.to(tl.int64) * columns + column
        tl.store(at, tl.sum(total, axis=0), column < columns)


@triton.jit
def _has_long(
    tree, size, first, num_clusters, begin,
    LONG: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Whether a chunk has a member of a long cluster, which is also at the edge of a tile."""
    edge = begin + tl.arange(0, 2 * CHUNK // LONG) * LONG
    inside = (edge <= begin + CHUNK) & (edge < size)
    cluster = _cluster_at(tree, size, edge, inside)
    count = _behind(first, cluster, num_clusters, size) - tl.load(first + cluster)
    return tl.max(tl.where(inside, count, 0)) > LONG


@triton.jit
def _sum_rows(sums, begin, end, columns, column, LONG: tl.constexpr, ACC: tl.constexpr):
    total = tl.zeros([LONG, column.shape[0]], ACC)
    for at in range(begin, end, LONG):
        row = at + tl.arange(0, LONG)
        total += load_rows(sums, row, row < end, columns, column, ACC)
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=_VARYING)
def climb_chunks(
    x, coarse, out, sums, tree, first, start, size, num_clusters, stride, num_graphs, half, columns,
    SKIP: tl.constexpr, SINGLE: tl.constexpr, ONE_GRAPH: tl.constexpr, DETAILS: tl.constexpr,
    LONG: tl.constexpr, CHUNK: tl.constexpr, COLUMNS: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Climb from the positions of a chunk with a long cluster, its other clusters once more.

    `sums` are those of `climb_chunk_sums`; other arguments as in `climb_clusters`.
    """
    chunk = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin = chunk * CHUNK
    if _has_long(tree, size, first, num_clusters, begin, LONG, CHUNK):
        end = tl.minimum(begin + CHUNK, size)
        cluster = _cluster_at(tree, size, end - 1, True)
        chunks = tl.cdiv(_behind(first, cluster, num_clusters, size), CHUNK)
        carry = _sum_rows(sums, chunk + 1, chunks, columns, column, LONG, ACC)
        num_tiles = tl.cdiv(end - begin, LONG)
        for i in range(num_tiles):
            position = begin + (num_tiles - 1 - i) * LONG + tl.arange(0, LONG)
            base = _base_at(
                tree, size, position, position < end, start, stride, num_graphs, half,
                SKIP, SINGLE, ONE_GRAPH,
            )  # fmt: skip
            carry = climb_tile(
                x, coarse, out, tree, size, base, position, end, carry, columns, column,
                DETAILS, ACC,
            )  # fmt: skip


@triton.jit(do_not_specialize=_VARYING)
def descend_chunks(
    coarse, y, c, sums, tree, first, start, size, num_clusters, stride, num_graphs, half, columns,
    SKIP: tl.constexpr, SINGLE: tl.constexpr, ONE_GRAPH: tl.constexpr, DETAILS: tl.constexpr,
    LONG: tl.constexpr, CHUNK: tl.constexpr, COLUMNS: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Descend to the positions of a chunk with a long cluster, its other clusters once more.

    `sums` are those of `descend_chunk_sums`; other arguments as in `descend_clusters`.
    """
    chunk = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin = chunk * CHUNK
    if _has_long(tree, size, first, num_clusters, begin, LONG, CHUNK):
        end = tl.minimum(begin + CHUNK, size)
        cluster = _cluster_at(tree, size, begin, True)
        first_chunk = tl.load(first + cluster) // CHUNK
        carry = tl.zeros([COLUMNS], ACC)
        if DETAILS:
            carry = _sum_rows(sums, first_chunk, chunk, columns, column, LONG, ACC)
        for at in range(begin, end, LONG):
            position = at + tl.arange(0, LONG)
            base = _base_at(
                tree, size, position, position < end, start, stride, num_graphs, half,
                SKIP, SINGLE, ONE_GRAPH,
            )  # fmt: skip
            carry = descend_tile(
                coarse, y, c, tree, size, base, position, end, carry, columns, column,
                DETAILS, ACC,
            )  # fmt: skip

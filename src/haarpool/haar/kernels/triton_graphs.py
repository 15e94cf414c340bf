"""Triton kernels for minibatches: one program computes all levels of a graph, for some columns.

Signals between the levels are in `scratch`: level j in one half of it, level j+1 in the other.
Programs do not read what others write, so a barrier between two levels is enough.
"""

# mypy: ignore-errors

import triton
import triton.language as tl

from haarpool.haar.kernels.triton_lanes import climb_lanes, cluster_range, descend_lanes
from haarpool.haar.kernels.triton_tiles import (
    CHILD,
    climb_tile,
    descend_tile,
    detail_base,
    tree_row,
)

# Triton compiles a kernel anew where an argument is 1 or a multiple of 16, except for these.
_VARYING = ["stride", "num_graphs", "half", "first_level"]


@triton.jit
def _select(trees, sizes, step):
    """Return the tree of a step and its size; `sizes` are doubled, see `cuda._launch_graphs`."""
    tree, size = trees[0], sizes[0]
    for i in tl.static_range(1, len(trees)):
        tree = tl.where(step == i, trees[i], tree)
        size = tl.where(step == i, sizes[i], size)
    return tree, size // 2


@triton.jit
def _graph_range(start, stride, level, graph, num_graphs, size):
    row = start + level * stride + graph
    return tl.load(row), tl.load(row + 1, graph + 1 < num_graphs, other=size)


@triton.jit
def _step(trees, sizes, start, stride, i, first_level, graph, num_graphs):
    """Return what a step of a graph needs to know.

    Returns:
        tree, its size, positions of the first members (the pointer), range of the positions, range
        of the clusters.
    """
    tree, size = _select(trees, sizes, i)
    tree_above, size_above = _select(trees, sizes, i + 1)
    level = first_level + i
    has_above = i + 1 < len(trees)
    first = tl.where(has_above, tree_row(tree_above, size_above, CHILD), start + level * stride)
    num_clusters = tl.where(has_above, size_above, num_graphs)
    begin, end = _graph_range(start, stride, level, graph, num_graphs, size)
    cluster, end_cluster = _graph_range(start, stride, level + 1, graph, num_graphs, num_clusters)
    return tree, size, first, begin, end, cluster, end_cluster


@triton.jit
def _signal(scratch, start, stride, level, first_level, graph, half, columns):
    """Return where row 0 of the signal on a level would be.

    Levels share a half, so the rows of a graph are moved to where its rows of the lowest level in
    this half are: programs of other graphs may be on any level.
    """
    lowest = tl.maximum(first_level, 1)
    lowest += (level - lowest) % 2
    moved = tl.load(start + lowest * stride + graph) - tl.load(start + level * stride + graph)
    return scratch + (((level - 1) % 2) * half.to(tl.int64) + moved) * columns


@triton.jit
def _climb_short(
    x, coarse, out, tree, size, first, end, cluster, end_cluster, base, columns, column,
    DETAILS: tl.constexpr, LONG: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Climb one step with the short clusters of a graph; return the size of its largest cluster."""
    longest = 0
    for at in range(cluster, end_cluster, LANES):
        lane_cluster = at + tl.arange(0, LANES)
        begin, count = cluster_range(first, lane_cluster, end_cluster, end)
        longest = tl.maximum(longest, tl.max(count))
        climb_lanes(
            x, coarse, out, tree, size, base, lane_cluster, begin,
            tl.where(count > LONG, 0, count), columns, column, DETAILS, False, UNROLL, ACC,
        )  # fmt: skip
    return longest


@triton.jit
def _climb_level(
    x, coarse, out, tree, size, first, begin, end, cluster, end_cluster, base, columns, column,
    DETAILS: tl.constexpr, LONG: tl.constexpr, LANES: tl.constexpr, FEW: tl.constexpr,
    UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Climb one step with one graph."""
    if end_cluster - cluster > FEW:
        longest = _climb_short(
            x, coarse, out, tree, size, first, end, cluster, end_cluster, base, columns, column,
            DETAILS, LONG, LANES, UNROLL, ACC,
        )  # fmt: skip
    else:  # a small tile takes half the time
        longest = _climb_short(
            x, coarse, out, tree, size, first, end, cluster, end_cluster, base, columns, column,
            DETAILS, LONG, FEW, UNROLL, ACC,
        )  # fmt: skip
    if longest > LONG:
        tl.debug_barrier()  # short clusters are written twice
        carry = tl.zeros(column.shape, ACC)
        num_tiles = tl.cdiv(end - begin, LONG)
        for i in range(num_tiles):
            position = begin + (num_tiles - 1 - i) * LONG + tl.arange(0, LONG)
            carry = climb_tile(
                x, coarse, out, tree, size, base, position, end, carry, columns, column,
                DETAILS, ACC,
            )  # fmt: skip


@triton.jit
def _descend_short(
    coarse, y, c, tree, size, first, end, cluster, end_cluster, base, columns, column,
    DETAILS: tl.constexpr, LONG: tl.constexpr, LANES: tl.constexpr, UNROLL: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """Descend one step with the short clusters of a graph; return its largest cluster's size."""
    longest = 0
    for at in range(cluster, end_cluster, LANES):
        lane_cluster = at + tl.arange(0, LANES)
        begin, count = cluster_range(first, lane_cluster, end_cluster, end)
        longest = tl.maximum(longest, tl.max(count))
        descend_lanes(
            coarse, y, c, tree, size, base, lane_cluster, begin,
            tl.where(count > LONG, 0, count), columns, column, DETAILS, False, UNROLL, ACC,
        )  # fmt: skip
    return longest


@triton.jit
def _descend_level(
    coarse, y, c, tree, size, first, begin, end, cluster, end_cluster, base, columns, column,
    DETAILS: tl.constexpr, LONG: tl.constexpr, LANES: tl.constexpr, FEW: tl.constexpr,
    UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Descend one step with one graph."""
    if end_cluster - cluster > FEW:
        longest = _descend_short(
            coarse, y, c, tree, size, first, end, cluster, end_cluster, base, columns, column,
            DETAILS, LONG, LANES, UNROLL, ACC,
        )  # fmt: skip
    else:
        longest = _descend_short(
            coarse, y, c, tree, size, first, end, cluster, end_cluster, base, columns, column,
            DETAILS, LONG, FEW, UNROLL, ACC,
        )  # fmt: skip
    if longest > LONG:
        tl.debug_barrier()
        carry = tl.zeros(column.shape, ACC)
        for at in range(begin, end, LONG):
            position = at + tl.arange(0, LONG)
            carry = descend_tile(
                coarse, y, c, tree, size, base, position, end, carry, columns, column,
                DETAILS, ACC,
            )  # fmt: skip


@triton.jit(do_not_specialize=_VARYING)
def climb_graphs(
    x, out, scratch, start, trees, sizes, stride, num_graphs, half, first_level, columns,
    STEPS: tl.constexpr, SKIP: tl.constexpr, SINGLE: tl.constexpr, DETAILS: tl.constexpr,
    LONG: tl.constexpr, LANES: tl.constexpr, FEW: tl.constexpr, UNROLL: tl.constexpr,
    COLUMNS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Climb some steps, up to the last one; without steps write the coarsest coefficients only.

    Args:
        x: Signal before the first of these steps.
        out: Coefficients, to be written.
        scratch: Two halves for the signals on coarser levels.
        start: `start` of the chains, from the level of the input on.
        trees: Trees of these steps; if there is only one, perhaps also the next.
        sizes: Two times the number of nodes, plus one, of each tree.
        stride: Stride of the rows of `start`.
        num_graphs: Number of graphs.
        half: Number of nodes behind the first step of all, where the second half begins.
        first_level: Number of steps before these.
        columns: Number of columns.
        STEPS: Number of these steps.
        SKIP: Whether the first step of all has no details.
        SINGLE: Whether there is one step only.
        DETAILS: Whether the first of these steps has details.
        LONG: The most members of a short cluster; members of a tile of long ones.
        LANES: Short clusters of a tile.
        FEW: The same, where a graph has no more clusters.
        UNROLL: Members of short clusters to load at once.
        COLUMNS: Columns of a tile.
        ACC: Data type of the sums.
    """
    graph = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    base = detail_base(start, stride, graph, num_graphs, half, SKIP, SINGLE)
    if STEPS > 0:
        tree, size, first, begin, end, cluster, end_cluster = _step(
            trees, sizes, start, stride, 0, first_level, graph, num_graphs
        )
        coarse = out
        if not SINGLE:
            coarse = _signal(
                scratch, start, stride, first_level + 1, first_level, graph, half, columns
            )
        _climb_level(
            x, coarse, out, tree, size, first, begin, end, cluster, end_cluster, base,
            columns, column, DETAILS, LONG, LANES, FEW, UNROLL, ACC,
        )  # fmt: skip
    for i in range(1, STEPS):
        tree, size, first, begin, end, cluster, end_cluster = _step(
            trees, sizes, start, stride, i, first_level, graph, num_graphs
        )
        level = first_level + i
        fine = _signal(scratch, start, stride, level, first_level, graph, half, columns)
        coarse = _signal(scratch, start, stride, level + 1, first_level, graph, half, columns)
        tl.debug_barrier()  # the signal on this level is complete
        _climb_level(
            fine, coarse, out, tree, size, first, begin, end, cluster, end_cluster, base,
            columns, column, True, LONG, LANES, FEW, UNROLL, ACC,
        )  # fmt: skip
    if not SINGLE:
        tl.debug_barrier()
        top = _signal(
            scratch, start, stride, first_level + STEPS, first_level, graph, half, columns
        )
        value = tl.load(top + graph.to(tl.int64) * columns + column, column < columns)
        tl.store(out + base.to(tl.int64) * columns + column, value, column < columns)


@triton.jit(do_not_specialize=_VARYING)
def descend_graphs(
    c, y, scratch, start, trees, sizes, stride, num_graphs, half, first_level, columns,
    STEPS: tl.constexpr, SKIP: tl.constexpr, SINGLE: tl.constexpr, DETAILS: tl.constexpr,
    LONG: tl.constexpr, LANES: tl.constexpr, FEW: tl.constexpr, UNROLL: tl.constexpr,
    COLUMNS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Descend all these steps: the transpose of `climb_graphs`, with the same arguments.

    c are the coefficients, y is the signal before the first of these steps, to be written.
    """
    graph = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    base = detail_base(start, stride, graph, num_graphs, half, SKIP, SINGLE)
    if not SINGLE:
        top = _signal(
            scratch, start, stride, first_level + STEPS, first_level, graph, half, columns
        )
        value = tl.load(c + base.to(tl.int64) * columns + column, column < columns)
        tl.store(top + graph.to(tl.int64) * columns + column, value, column < columns)
    for down in range(1, STEPS):
        i = STEPS - down
        tree, size, first, begin, end, cluster, end_cluster = _step(
            trees, sizes, start, stride, i, first_level, graph, num_graphs
        )
        level = first_level + i
        fine = _signal(scratch, start, stride, level, first_level, graph, half, columns)
        coarse = _signal(scratch, start, stride, level + 1, first_level, graph, half, columns)
        tl.debug_barrier()  # the signal on the level above is complete
        _descend_level(
            coarse, fine, c, tree, size, first, begin, end, cluster, end_cluster, base,
            columns, column, True, LONG, LANES, FEW, UNROLL, ACC,
        )  # fmt: skip
    if STEPS > 0:
        tree, size, first, begin, end, cluster, end_cluster = _step(
            trees, sizes, start, stride, 0, first_level, graph, num_graphs
        )
        coarse = c
        if not SINGLE:
            coarse = _signal(
                scratch, start, stride, first_level + 1, first_level, graph, half, columns
            )
        tl.debug_barrier()
        _descend_level(
            coarse, y, c, tree, size, first, begin, end, cluster, end_cluster, base,
            columns, column, DETAILS, LONG, LANES, FEW, UNROLL, ACC,
        )  # fmt: skip

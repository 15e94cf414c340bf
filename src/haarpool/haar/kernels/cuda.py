"""The kernels in Triton, for GPUs of NVIDIA.

Large levels take one to three launches each (`triton_levels`). The other levels, in a minibatch all
of them, take one launch together (`triton_graphs`). The host never waits for the device, and the
kernels can be captured in a CUDA graph. All sums have a fixed order.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from haarpool.haar.chain_tensors import Steps, Tree
from haarpool.haar.kernels import triton_graphs, triton_levels, triton_rows
from haarpool.haar.kernels._torch_internals import version
from haarpool.haar.kernels.launch import Launch
from haarpool.haar.kernels.layout import first_members

HALF = True  # types of 16 bits are computed in float32, and so are the signals between the levels
CAPTURABLE = True  # in a CUDA graph: the host never waits


class Tuning(NamedTuple):
    """Sizes of tiles, all powers of 2, and limits between the kernels."""

    graph_nodes: int = 8192  # graphs with more nodes are large
    last_nodes: int = 2048  # and their levels, if they have more nodes than this
    graph_elements: int = 2048  # tile of short clusters in `triton_graphs`
    graph_columns: int = 16
    graph_warps: int = 4
    few: int = 16  # small tile of short clusters
    lane_elements: int = 1024  # tile of short clusters in `triton_levels`, and of short lists
    lane_columns: int = 64
    lane_warps: int = 4
    unroll: int = 4
    long: int = 64  # clusters and lists with more rows are long; tiles of them have as many rows
    chunk: int = 1024  # at least; there are at most 4,096 chunks
    list_entries: int = 2**14  # with fewer entries one launch sums all lists


TUNING = Tuning()


def analysis(x: Tensor, steps: Steps) -> Tensor:
    """Climb the chain, see `haarpool.haar.operators.analysis`."""
    work = _prepare(x, steps)
    out = x.new_empty(work.sizes[int(work.skip)], work.columns)
    scratch = work.scratch(x)
    for step in range(work.num_large):
        coarse = out if work.single else work.signal(scratch, step)
        _climb_large(work, step, x, coarse, out)
        x = coarse
    if work.small is not None:
        work.small(triton_graphs.climb_graphs, x, out, scratch)
    return out


def synthesis(c: Tensor, steps: Steps) -> Tensor:
    """Descend the chain, see `haarpool.haar.operators.synthesis`."""
    work = _prepare(c, steps)
    out = c.new_empty(work.sizes[0], work.columns)
    scratch = work.scratch(c)
    if work.small is not None:
        y = work.signal(scratch, work.num_large - 1) if work.num_large else out
        work.small(triton_graphs.descend_graphs, c, y, scratch)
    for step in range(work.num_large - 1, -1, -1):
        coarse = c if work.single else work.signal(scratch, step)
        y = work.signal(scratch, step - 1) if step else out
        _descend_large(work, step, coarse, y, c)
    return out


def gather_sum(x: Tensor, index: Tensor, start: Tensor | None, weight: Tensor | None) -> Tensor:
    """Sum rows of a signal, see `haarpool.haar.operators.gather_sum`."""
    num_entries, columns = index.shape[0], x.shape[1]
    num_lists = num_entries if start is None else start.shape[0]
    out = x.new_empty(num_lists, columns)
    if num_lists == 0:
        return out
    index, weight = index.contiguous(), weight if weight is None else weight.contiguous()
    start = start if start is None else start.contiguous()
    acc, tile = _sum_type(x), _Tile.of(columns, num_entries / num_lists)
    chunk, sums = _chunk(num_entries), None
    if start is not None and num_entries > TUNING.list_entries:
        sums = x.new_empty(num_entries // chunk, columns, dtype=acc)
        Launch(
            tile.grid(sums.shape[0] * tile.rows, columns),
            index, start, weight, num_lists, num_entries, columns,
            CHUNK=chunk, LONG=TUNING.long, COLUMNS=tile.columns, ACC=_TYPES[acc],
        )(triton_rows.sum_chunks, x, sums)  # fmt: skip
    Launch(
        tile.grid(num_lists, columns),
        index, start, weight, sums, num_lists, num_entries, columns,
        LONG=TUNING.long, CHUNK=chunk, LANES=tile.rows,
        COLUMNS=tile.columns, UNROLL=tile.unroll, ACC=_TYPES[acc],
        num_warps=TUNING.lane_warps,
    )(triton_rows.sum_lists, x, out)  # fmt: skip
    return out


# ---------------------------------------------------------------------- all launches of a call

_TYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


def _sum_type(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


class _Work(NamedTuple):
    """A chain and what all launches of a call share; only shapes and addresses count for it."""

    start: Tensor
    trees: Sequence[Tensor]
    sizes: list[int]  # number of nodes before each step, and behind the last
    skip: bool
    single: bool
    columns: int
    acc: torch.dtype  # of sums and of signals between the levels
    num_large: int  # number of large levels, which come first
    small: Launch | None  # for the levels that follow, if there are any

    def scratch(self, x: Tensor) -> Tensor:
        """Return memory for signals between the levels, see `triton_graphs`; x if `single`."""
        if self.single:
            return x
        return x.new_empty(sum(self.sizes[1:3]), self.columns, dtype=self.acc)

    def signal(self, scratch: Tensor, step: int) -> Tensor:
        """Return the signal behind a step."""
        return scratch[self.sizes[1] :] if step % 2 else scratch[: self.sizes[1]]

    def has_details(self, step: int) -> bool:
        """Whether a step has details."""
        return not (self.skip and step == 0)


def _prepare(x: Tensor, steps: Steps) -> _Work:
    """Prepare all launches of a call, or take what was prepared for an earlier one."""
    key = x.shape[1], x.dtype
    work: _Work | None = steps.prepared.get(key)
    if work is None:
        work = steps.prepared[key] = _new_work(x, steps)
    return work


def _new_work(x: Tensor, steps: Steps) -> _Work:
    start, trees, skip, single, _ = steps
    if start.stride(1) != 1 and start.shape[1] > 1:
        start = start.contiguous()
    num_steps = 1 if single else len(trees)
    sizes = [tree.shape[1] for tree in trees[: num_steps + 1]]
    sizes += [start.shape[1]] * (num_steps + 1 - len(sizes))  # the graphs
    # A program per graph is fastest for minibatches. Of large graphs it has the last levels.
    is_large = sizes[0] > TUNING.graph_nodes * start.shape[1]
    limit = min(TUNING.last_nodes if is_large else TUNING.graph_nodes, TUNING.graph_nodes)
    limit *= start.shape[1]
    num_large = sum(size > limit for size in sizes[:-1])
    small = None
    if not (single and num_large):
        small = _small_levels(start, trees, sizes, num_large, x, skip=skip, single=single)
    return _Work(start, trees, sizes, skip, single, x.shape[1], _sum_type(x), num_large, small)


# `triton.cdiv` and `triton.next_power_of_2` take microseconds outside of kernels.
def _ceil_divide(a: int, b: int) -> int:
    return -(-a // b)


def _power_of_2(n: int) -> int:
    """Return the next power of 2."""
    return 1 << (n - 1).bit_length()


class _Tile(NamedTuple):
    """Tile of clusters or of lists."""

    rows: int
    columns: int
    unroll: int

    @classmethod
    def of(cls, columns: int, mean_length: float) -> _Tile:
        width = min(_power_of_2(columns), TUNING.lane_columns)
        return cls(min(TUNING.lane_elements // width, 256), width, _unroll(mean_length))

    def grid(self, num_rows: int, columns: int) -> tuple[int, int]:
        return _ceil_divide(num_rows, self.rows), _ceil_divide(columns, self.columns)


def _unroll(mean_length: float) -> int:
    return min(2 if mean_length <= 2 else 4, TUNING.unroll)


def _chunk(num_positions: int) -> int:
    return max(TUNING.chunk, _power_of_2(max(_ceil_divide(num_positions, 4096), 1)))


# ---------------------------------------------------------------------- small levels


def _small_levels(
    start: Tensor,
    trees: Sequence[Tensor],
    sizes: list[int],
    done: int,
    x: Tensor,
    *,
    skip: bool,
    single: bool,
) -> Launch:
    """Prepare the launch of a kernel of `triton_graphs` for the steps that follow `done` others."""
    first, num_graphs, num_columns = min(done, len(trees) - 1), start.shape[1], x.shape[1]
    trees = trees[first:]  # never empty
    # Triton compiles a kernel for each combination of numbers that are multiples of 16, and cannot
    # be told not to in a tuple. Odd numbers are none.
    odd = tuple([2 * size + 1 for size in sizes[first : first + len(trees)]])
    columns = min(_power_of_2(num_columns), TUNING.graph_columns)
    return Launch(
        (num_graphs, _ceil_divide(num_columns, columns)),
        start, tuple(trees), odd, start.stride(0), num_graphs, sizes[1], done, num_columns,
        STEPS=len(sizes) - 1 - done, SKIP=skip, SINGLE=single, DETAILS=not (skip and done == 0),
        LONG=TUNING.long, LANES=min(TUNING.graph_elements // columns, 256), FEW=TUNING.few,
        UNROLL=_unroll(sizes[0] / sizes[1]), COLUMNS=columns, ACC=_TYPES[_sum_type(x)],
        num_warps=TUNING.graph_warps,
    )  # fmt: skip


# ---------------------------------------------------------------------- large levels


def _climb_large(work: _Work, step: int, x: Tensor, coarse: Tensor, out: Tensor) -> None:
    level = _Level.of(work, step)
    sums = None
    if level.may_be_long:
        sums = x.new_empty(level.chunk_grid[0], work.columns, dtype=work.acc)
        level.chunk_sums()(triton_levels.climb_chunk_sums, x, sums)
    level.clusters()(triton_levels.climb_clusters, x, coarse, out)
    if level.may_be_long:
        level.chunks()(triton_levels.climb_chunks, x, coarse, out, sums)


def _descend_large(work: _Work, step: int, coarse: Tensor, y: Tensor, c: Tensor) -> None:
    level = _Level.of(work, step)
    sums = None
    if level.may_be_long:
        sums = c.new_empty(level.chunk_grid[0], work.columns, dtype=work.acc)
        if work.has_details(step):
            level.chunk_sums()(triton_levels.descend_chunk_sums, c, sums)
    level.clusters()(triton_levels.descend_clusters, coarse, y, c)
    if level.may_be_long:
        level.chunks()(triton_levels.descend_chunks, coarse, y, c, sums)


class _Level(NamedTuple):
    """The launches of the kernels of `triton_levels` for one step."""

    shared: tuple[Any, ...]
    details: dict[str, Any]
    grid: tuple[int, int]
    tile: dict[str, Any]
    may_be_long: bool
    chunk_grid: tuple[int, int]
    chunk: dict[str, Any]

    @classmethod
    def of(cls, work: _Work, step: int) -> _Level:
        size, num_clusters = work.sizes[step : step + 2]
        start, tree = work.start, work.trees[step]
        first = first_members(start, work.trees, step)
        facts, num_graphs, columns = _facts(tree, first), start.shape[1], work.columns
        tile, chunk = _Tile.of(columns, size / num_clusters), _chunk(size)
        base: dict[str, Any] = {
            "SKIP": work.skip,
            "SINGLE": work.single,
            "ONE_GRAPH": num_graphs == 1,
        }
        base |= {"LONG": TUNING.long, "COLUMNS": tile.columns, "ACC": _TYPES[work.acc]}
        return cls(
            (tree, first, start, size, num_clusters, start.stride(0), num_graphs, work.sizes[1],
             columns),
            {"DETAILS": work.has_details(step)},
            tile.grid(num_clusters, columns),
            base
            | {"LANES": tile.rows, "UNROLL": tile.unroll, "UNIT": facts.all_unit}
            | {"num_warps": TUNING.lane_warps},
            # All other clusters have at least one member.
            size - num_clusters >= TUNING.long and facts.longest > TUNING.long,
            (_ceil_divide(size, chunk), _ceil_divide(columns, tile.columns)),
            base | {"CHUNK": chunk},
        )  # fmt: skip

    def chunk_sums(self) -> Launch:
        return Launch(self.chunk_grid, *self.shared, **self.chunk)

    def clusters(self) -> Launch:
        return Launch(self.grid, *self.shared, **self.details, **self.tile)

    def chunks(self) -> Launch:
        return Launch(self.chunk_grid, *self.shared, **self.details, **self.chunk)


class _Facts(NamedTuple):
    """What the host knows about the clusters of a level."""

    longest: int
    all_unit: bool  # whether all masses are 1


class _Pending(NamedTuple):
    """Numbers that the device computes for the host."""

    values: Tensor
    ready: torch.cuda.Event | None


# By tree: its version, which counts changes in place, and _Facts or _Pending.
_known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def _facts(tree: Tensor, first: Tensor) -> _Facts:
    """Return facts about a level; as long as they are unknown, the most general ones.

    The first call with a tree starts to compute them, without waiting. They save two of three
    launches and some reading, and change no result.
    """
    unknown = _Facts(tree.shape[1], False)
    if tree.is_cuda and torch.cuda.is_current_stream_capturing():
        return unknown  # other numbers may be copied into the tree before a replay
    now = None if tree.is_inference() else version(tree)
    before, known = _known.get(tree, (None, None))
    if before != now:
        known = None
    if isinstance(known, _Facts):
        return known
    if known is None:
        known = _ask(tree, first)
        _known[tree] = now, known
    if known.ready is not None and not known.ready.query():
        return unknown
    longest, mass = known.values.tolist()
    facts = _Facts(longest, mass == 1)
    _known[tree] = now, facts
    return facts


def _ask(tree: Tensor, first: Tensor) -> _Pending:
    """Let the device compute the facts of a level."""
    with torch.cuda.device_of(tree):
        count = torch.diff(first, append=first.new_full((1,), tree.shape[1]))
        computed = torch.stack([count.max(), tree[Tree.MASS].max()])
        values = torch.empty(2, dtype=tree.dtype, pin_memory=tree.is_cuda)
        values.copy_(computed, non_blocking=True)
        ready = torch.cuda.Event() if tree.is_cuda else None  # none in Triton's interpreter
        if ready is not None:
            ready.record()
    return _Pending(values, ready)

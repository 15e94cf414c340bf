"""Triton kernels for `gather_sum`: weighted sums over lists of rows."""

# mypy: ignore-errors
# ruff: noqa: RUF005

import triton
import triton.language as tl

from haarpool.haar.kernels.triton_tiles import load_rows, store_rows

_VARYING = ["num_lists", "num_entries"]


@triton.jit
def _load_entries(x, index, weight, entry, mask, columns, column, ACC: tl.constexpr):
    """Load weighted rows; `weight` is None or a factor per entry."""
    row = tl.load(index + entry, mask, other=0)
    rows = load_rows(x, row, mask, columns, column, ACC)
    if weight is not None:
        rows *= tl.load(weight + entry, mask, other=0).to(ACC)[:, None]
    return rows


@triton.jit
def _sum_entries(
    x, index, weight, begin, end, columns, column, LONG: tl.constexpr, ACC: tl.constexpr
):
    total = tl.zeros([LONG, column.shape[0]], ACC)
    for at in range(begin, end, LONG):
        entry = at + tl.arange(0, LONG)
        total += _load_entries(x, index, weight, entry, entry < end, columns, column, ACC)
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=_VARYING)
def sum_lists(
    x, out, index, start, weight, sums, num_lists, num_entries, columns,
    LONG: tl.constexpr, CHUNK: tl.constexpr, LANES: tl.constexpr, COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Sum lists: a lane walks along each short one, all lanes together along each long one.

    Args:
        x: Signal.
        out: One row per list, to be written.
        index: Rows of the signal, list by list.
        start: Where each list starts, or None if each has one entry.
        weight: A factor per entry, or None.
        sums: Sums of `sum_chunks`, or None.
        num_lists: Number of lists.
        num_entries: Length of `index`.
        columns: Number of columns.
        LONG: The most entries of a short list; entries of a tile of a long one.
        CHUNK: Entries of a chunk.
        LANES: Lists of a tile.
        COLUMNS: Columns of a tile.
        UNROLL: Entries to load at once.
        ACC: Data type of the sums.
    """
    lane = tl.arange(0, LANES)
    item = tl.program_id(0).to(tl.int64) * LANES + lane
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    if start is None:
        total = _load_entries(x, index, weight, item, item < num_lists, columns, column, ACC)
    else:
        begin = tl.load(start + item, item < num_lists, other=0)
        end = tl.load(start + item + 1, item + 1 < num_lists, other=num_entries)
        count = tl.where(item < num_lists, end - begin, 0)
        total = tl.zeros([LANES, COLUMNS], ACC)
        for walked in range(0, tl.max(tl.where(count > LONG, 0, count)), UNROLL):
            rows = ()
            for u in tl.static_range(UNROLL):
                inside = (walked + u < count) & (count <= LONG)
                rows = rows + (
                    _load_entries(
                        x, index, weight, begin + walked + u, inside, columns, column, ACC
                    ),
                )
            for u in tl.static_range(UNROLL):
                total += rows[u]
        if tl.max(count) > LONG:
            for long in range(LANES):
                long_begin = tl.sum(tl.where(lane == long, begin, 0))
                long_end = long_begin + tl.sum(tl.where(lane == long, count, 0))
                if long_end - long_begin > LONG:
                    if sums is None:
                        long_total = _sum_entries(
                            x, index, weight, long_begin, long_end, columns, column, LONG, ACC
                        )
                    else:  # whole chunks are summed already
                        chunk = tl.cdiv(long_begin, CHUNK)
                        end_chunk = tl.maximum(long_end // CHUNK, chunk)
                        head_end = tl.minimum(chunk * CHUNK, long_end)
                        tail = tl.maximum(end_chunk * CHUNK, head_end)
                        long_total = _sum_entries(
                            x, index, weight, long_begin, head_end, columns, column, LONG, ACC
                        )
                        chunk_total = tl.zeros([LONG, COLUMNS], ACC)
                        for at in range(chunk, end_chunk, LONG):
                            row = at + tl.arange(0, LONG)
                            chunk_total += load_rows(
                                sums, row, row < end_chunk, columns, column, ACC
                            )
                        long_total += tl.sum(chunk_total, axis=0)
                        long_total += _sum_entries(
                            x, index, weight, tail, long_end, columns, column, LONG, ACC
                        )
                    total = tl.where((lane == long)[:, None], long_total[None, :], total)
    store_rows(out, item, total, item < num_lists, columns, column)


@triton.jit(do_not_specialize=_VARYING)
def sum_chunks(
    x, sums, index, start, weight, num_lists, num_entries, columns,
    CHUNK: tl.constexpr, LONG: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Sum each chunk of entries that lies in one list; arguments as in `sum_lists`.

    `sums` has one row per whole chunk of CHUNK entries. Rows of other chunks are not written.
    """
    chunk = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin = chunk.to(tl.int64) * CHUNK
    low = num_lists * 0  # the last list that starts at `begin` or before
    high = num_lists - 1
    while low < high:
        middle = (low + high + 1) // 2
        starts_before = tl.load(start + middle) <= begin
        low = tl.where(starts_before, middle, low)
        high = tl.where(starts_before, high, middle - 1)
    end = tl.load(start + low + 1, low + 1 < num_lists, other=num_entries)
    if end >= begin + CHUNK:
        total = _sum_entries(x, index, weight, begin, begin + CHUNK, columns, column, LONG, ACC)
        at = sums + chunk.to(tl.int64) * columns + column
        tl.store(at, total, column < columns)

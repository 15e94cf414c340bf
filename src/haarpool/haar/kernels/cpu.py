"""The kernels for processors: loops compiled by numba, see `cpu_loops`, in several threads.

A loop takes a range of clusters and a range of columns and runs without the interpreter lock, so
plain threads can share the work. (The threads of numba itself do not survive a fork, which is how
DataLoader makes its workers.) Each number is computed by one thread, in a fixed order of additions,
so the result has the same bits for any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool.haar.chain_tensors import Steps, Tree
from haarpool.haar.kernels import cpu_loops
from haarpool.haar.kernels.layout import detail_base, level_size

HALF = False  # types of 16 bits are computed in float32
CAPTURABLE = False
SMALL = 2**18  # numbers; less work than this takes less time than to wake up other threads
KEEP = 2**27  # bytes of memory that are kept from one call to the next, at most

Array = NDArray[Any]
_NO_TREE = np.empty((len(Tree), 0), np.int32)


def analysis(x: Tensor, steps: Steps) -> Tensor:
    """Climb the chain, see `haarpool.haar.operators.analysis`."""
    start, trees, skip, single, _ = steps
    signal, levels = _array(x), _Levels(start, trees, skip, single)
    out = np.empty((level_size(start, trees, int(skip)), x.shape[1]), signal.dtype)
    above = [*levels.scratch(signal), out]
    for step in range(levels.num_steps):
        coarse = above[step]
        if skip and step == 0:
            levels.sum_clusters(signal, coarse)
        else:
            levels.run(cpu_loops.climb, step, (signal, coarse, out))
        signal = coarse
    levels.release()
    return torch.from_numpy(out)


def synthesis(c: Tensor, steps: Steps) -> Tensor:
    """Descend the chain, see `haarpool.haar.operators.synthesis`."""
    start, trees, skip, single, _ = steps
    coefficients, levels = _array(c), _Levels(start, trees, skip, single)
    out = np.empty((level_size(start, trees, 0), c.shape[1]), coefficients.dtype)
    below = [out, *levels.scratch(coefficients)]
    coarse = coefficients
    for step in reversed(range(levels.num_steps)):
        signal = below[step]
        if skip and step == 0:
            levels.expand_clusters(coarse, signal)
        else:
            levels.run(cpu_loops.descend, step, (coefficients, coarse, signal))
        coarse = signal
    levels.release()
    return torch.from_numpy(out)


def gather_sum(x: Tensor, index: Tensor, start: Tensor | None, weight: Tensor | None) -> Tensor:
    """Sum rows of a signal, see `haarpool.haar.operators.gather_sum`."""
    rows, indices = _array(x), _array(index)
    starts = indices[:0] if start is None else _array(start.to(index.dtype))
    weights = rows[:0, 0] if weight is None else _array(weight.to(x.dtype))
    out = np.empty((len(indices) if start is None else len(starts), x.shape[1]), rows.dtype)
    _sum_lists(rows, indices, starts, weights, _NO_TREE, out)
    return torch.from_numpy(out)


def _array(tensor: Tensor) -> Array:
    # A loop is compiled for contiguous arrays alone, not again for each kind of strides.
    return tensor.detach().resolve_neg().contiguous().numpy()


class _Levels:
    """The steps of a chain as arrays; arguments as in `analysis`."""

    def __init__(self, start: Tensor, trees: Sequence[Tensor], skip: bool, single: bool) -> None:
        self.start, self.trees = _array(start), [tree.numpy() for tree in trees]
        self.memory: Array | None = None
        self.single, self.num_steps = single, 1 if single else len(trees)
        self.base = _array(detail_base(start, trees, skip, single))

    def first(self, step: int) -> Array:
        """Return where clusters begin, as `layout.first_members` does."""
        last: bool = step + 1 == len(self.trees)
        result: Array = self.start[step] if last else self.trees[step + 1][Tree.CHILD]
        return result

    def scratch(self, x: Array) -> list[Array]:
        """Return memory for the signals of all levels between the first and the graphs.

        A step reads one of them and writes the next one, so two pieces of memory are enough.
        """
        if self.num_steps == 1:
            return []
        sizes = [tree.shape[1] for tree in self.trees[1:]]
        shape = sum(sizes[:2]), x.shape[1]
        num_bytes = shape[0] * shape[1] * x.itemsize
        self.memory = _take_memory(num_bytes)
        memory = self.memory[:num_bytes].view(x.dtype).reshape(shape)
        return [memory[sizes[0] * (i % 2) :][:size] for i, size in enumerate(sizes)]

    def release(self) -> None:
        """Keep the memory of `scratch` for the next call."""
        if self.memory is not None and self.memory.nbytes <= KEEP:
            _spare_memory[:] = [self.memory]

    def run(self, loop: Callable[..., None], step: int, arrays: tuple[Array, Array, Array]) -> None:
        """Run `climb` or `descend` over all clusters of a step."""
        tree, first = self.trees[step], self.first(step)
        is_top = step + 1 == self.num_steps and not self.single
        arguments = *arrays, tree, first, self.base, is_top
        _run(loop, arguments, first, tree.shape[1], len(first), arrays[0].shape[1])

    def sum_clusters(self, signal: Array, coarse: Array) -> None:
        """Compute P_jᵀ x of the first step."""
        tree = self.trees[0]
        _sum_lists(signal, tree[Tree.MEMBER], self.first(0), signal[:0, 0], tree, coarse)

    def expand_clusters(self, coarse: Array, signal: Array) -> None:
        """Compute P_j x of the first step."""
        tree = self.trees[0]
        _sum_lists(coarse, tree[Tree.PARENT], tree[0, :0], coarse[:0, 0], tree, signal)


_spare_memory: list[Array] = []  # at most one


def _take_memory(num_bytes: int) -> Array:
    """Return at least this many bytes, those of the last call if possible: new ones take long."""
    try:
        memory = _spare_memory.pop()  # so that no other thread takes it
    except IndexError:
        return np.empty(num_bytes, np.uint8)
    return memory if memory.nbytes >= num_bytes else np.empty(num_bytes, np.uint8)


def _sum_lists(
    x: Array, index: Array, start: Array, weight: Array, tree: Array, out: Array
) -> None:
    arguments = x, index, start, weight, tree, out
    _run(cpu_loops.sum_lists, arguments, start, len(index), *out.shape)


# ---------------------------------------------------------------------- threads

Piece = tuple[int, int, int, int]  # first and last cluster, first and last column (excluded)


def _run(
    loop: Callable[..., None],
    arguments: tuple[Any, ...],
    first: Array,
    num_members: int,
    num_clusters: int,
    num_columns: int,
) -> None:
    """Run a loop over all clusters and columns, in several threads if there is enough work."""
    threads = torch.get_num_threads()
    if threads == 1 or max(num_members, num_clusters) * num_columns < SMALL:
        _call(loop, arguments, (0, num_clusters, 0, num_columns))
        return
    pieces = iter(_pieces(first, num_members, num_clusters, num_columns, threads))

    def take_pieces() -> None:
        for piece in pieces:
            _call(loop, arguments, piece)

    helpers = [_pool(threads - 1).submit(take_pieces) for _ in range(threads - 1)]
    take_pieces()
    for helper in helpers:
        helper.result()


def _call(loop: Callable[..., None], arguments: tuple[Any, ...], piece: Piece) -> None:
    try:
        loop(*arguments, *piece)
    except OSError:  # numba could not save the compiled loop, for example on a full disk
        loop(*arguments, *piece)


def _pieces(
    first: Array, num_members: int, num_clusters: int, num_columns: int, threads: int
) -> list[Piece]:
    """Cut the work into ranges of clusters with about as many members each, or of columns.

    Args:
        first: (num_clusters,) first member of each cluster, or empty if each has one member.
        num_members: Number of members.
        num_clusters: Number of clusters.
        num_columns: Number of columns.
        threads: Number of threads; each gets several pieces, as it may be slower than others.
    """
    cuts = np.linspace(0, num_members, 4 * threads + 1).astype(np.int64)
    if len(first):
        cuts[:-1] = np.searchsorted(first, cuts[:-1])
        cuts[0], cuts[-1] = 0, num_clusters
        largest = int(np.diff(np.append(first, num_members)[cuts]).max())
        # One huge cluster would keep one thread busy alone.
        if largest > num_members // threads and num_columns >= 2 * 16:
            width = -(-num_columns // (16 * threads)) * 16  # whole cache lines
            columns = range(0, num_columns, width)
            return [(0, num_clusters, k, min(k + width, num_columns)) for k in columns]
    bounds: list[int] = cuts.tolist()
    return [(i, j, 0, num_columns) for i, j in pairwise(bounds) if i < j]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "haarpool")


# A child process has none of the threads of its parent, so it makes its own.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)

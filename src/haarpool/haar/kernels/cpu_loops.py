"""The loops of `cpu`, compiled by numba. `portable` has their formulas.

All of them take a range of clusters i0:i1 and of columns k0:k1. They are made for the speed of
memory:

* Up to four members of a cluster are taken in one pass over the columns, so that a running sum
  stays in registers; most clusters need one pass.
* A number is read once into a variable. As far as the compiler knows, writing to one array could
  change another one, so it would read it again.
* Columns are counted by unsigned numbers. Others could be negative, that is count from the end, and
  a loop that allows for it has no vector instructions.

A running sum starts again every `BLOCK` members, and the sum over whole blocks is kept aside in
float64. So a cluster of k members has the rounding errors of at most BLOCK additions, plus those of
k / BLOCK additions in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from haarpool.haar.chain_tensors import Tree

BLOCK = 64  # a multiple of 4

# Plain numbers, which numba compiles into the loops.
MEMBER, GRAPH, DETAIL = int(Tree.MEMBER), int(Tree.GRAPH), int(Tree.DETAIL)
MASS, LATER, TOTAL = int(Tree.MASS), int(Tree.LATER), int(Tree.TOTAL)

Array = NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])


def _part(function: Function) -> Function:
    """Compile a function that only compiled loops call."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy", forceinline=True)(function))


def _loop(function: Function) -> Function:
    """Compile a loop at its first call with each type; later processes read it from a file."""
    try:
        return cast(Function, numba.njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError:  # numba finds no folder where it can write files
        return _part(function)


@_part
def _end(first: Array, i: int, num_members: int) -> int:
    """Return where cluster i ends: where the next one begins."""
    return first[i + 1] if i + 1 < first.shape[0] else num_members


@_part
def _member(tree: Array, base: Array, p: int, T: Any) -> tuple[int, int, Any, Any, Any]:
    """Return node, row of its detail, and r, r·a, b of `portable` for a member but the last one.

    Args:
        tree: The tree of the level.
        base: What DETAIL is added to, by graph.
        p: Position of the member.
        T: Type of the numbers.
    """
    v = tree[MEMBER, p]
    m, later = T(tree[MASS, v]), T(tree[LATER, v])
    q = np.sqrt(T(1) / ((m + later) * later))
    r = np.sqrt(m)
    return v, base[tree[GRAPH, v]] + tree[DETAIL, v], r, later * q, r * q


@_loop
def climb(
    x: Array,
    coarse: Array,
    out: Array,
    tree: Array,
    first: Array,
    base: Array,
    is_top: bool,
    i0: int,
    i1: int,
    k0: int,
    k1: int,
) -> None:
    """Write the coarse signal and the details of clusters, members from the last to the first.

    Args:
        x: (N_j, d) signal.
        coarse: (..., d) here coefficient i is written to row i, on the top level to row base[i].
        out: (..., d) here details are written to.
        tree: (9, N_j) tree.
        first: (N_{j+1},) position of the first member of each cluster.
        base: (G,) what DETAIL is added to.
        is_top: Whether clusters are whole graphs.
        i0: First cluster.
        i1: Last cluster, excluded.
        k0: First column.
        k1: Last column, excluded.
    """
    T = x.dtype.type
    columns = range(np.uint64(k0), np.uint64(k1))
    # For the members so far: sum of the current block, of blocks before, the same in float64.
    s = np.empty(x.shape[1], x.dtype)
    t = np.empty(x.shape[1], x.dtype)
    total = np.empty(x.shape[1])
    for i in range(i0, i1):
        begin, end = first[i], _end(first, i, tree.shape[1])
        p = end - 1
        v0 = tree[MEMBER, p]
        r0 = np.sqrt(T(tree[MASS, v0]))
        num_others = (p - begin) % 4  # in the first pass, so that passes of four remain
        if num_others == 0:
            for k in columns:
                s[k] = r0 * x[v0, k]
        elif num_others == 1:
            v1, row1, r1, a1, b1 = _member(tree, base, p - 1, T)
            for k in columns:
                f1 = x[v1, k]
                sum0 = r0 * x[v0, k]
                out[row1, k] = a1 * f1 - b1 * sum0
                s[k] = sum0 + r1 * f1
        elif num_others == 2:
            v1, row1, r1, a1, b1 = _member(tree, base, p - 1, T)
            v2, row2, r2, a2, b2 = _member(tree, base, p - 2, T)
            for k in columns:
                f1, f2 = x[v1, k], x[v2, k]
                sum0 = r0 * x[v0, k]
                sum1 = sum0 + r1 * f1
                s[k] = sum1 + r2 * f2
                out[row1, k] = a1 * f1 - b1 * sum0
                out[row2, k] = a2 * f2 - b2 * sum1
        else:
            v1, row1, r1, a1, b1 = _member(tree, base, p - 1, T)
            v2, row2, r2, a2, b2 = _member(tree, base, p - 2, T)
            v3, row3, r3, a3, b3 = _member(tree, base, p - 3, T)
            for k in columns:
                f1, f2, f3 = x[v1, k], x[v2, k], x[v3, k]
                sum0 = r0 * x[v0, k]
                sum1 = sum0 + r1 * f1
                sum2 = sum1 + r2 * f2
                s[k] = sum2 + r3 * f3
                out[row1, k] = a1 * f1 - b1 * sum0
                out[row2, k] = a2 * f2 - b2 * sum1
                out[row3, k] = a3 * f3 - b3 * sum2
        p -= num_others
        if p > begin:
            for k in columns:
                t[k] = total[k] = 0
            while p > begin:
                v1, row1, r1, a1, b1 = _member(tree, base, p - 1, T)
                v2, row2, r2, a2, b2 = _member(tree, base, p - 2, T)
                v3, row3, r3, a3, b3 = _member(tree, base, p - 3, T)
                v4, row4, r4, a4, b4 = _member(tree, base, p - 4, T)
                for k in columns:
                    f1, f2, f3, f4 = x[v1, k], x[v2, k], x[v3, k], x[v4, k]
                    sum0, before = s[k], t[k]
                    sum1 = sum0 + r1 * f1
                    sum2 = sum1 + r2 * f2
                    sum3 = sum2 + r3 * f3
                    s[k] = sum3 + r4 * f4
                    out[row1, k] = a1 * f1 - b1 * (before + sum0)
                    out[row2, k] = a2 * f2 - b2 * (before + sum1)
                    out[row3, k] = a3 * f3 - b3 * (before + sum2)
                    out[row4, k] = a4 * f4 - b4 * (before + sum3)
                p -= 4
                if (end - p) % BLOCK < 4:
                    for k in columns:
                        total[k] += s[k]
                        t[k] = total[k]
                        s[k] = 0
            for k in columns:
                s[k] += t[k]
        norm = T(1) / np.sqrt(T(tree[TOTAL, v0]))
        row = base[i] if is_top else i
        for k in columns:
            coarse[row, k] = norm * s[k]


@_loop
def descend(
    c: Array,
    coarse: Array,
    out: Array,
    tree: Array,
    first: Array,
    base: Array,
    is_top: bool,
    i0: int,
    i1: int,
    k0: int,
    k1: int,
) -> None:
    """Write the signal of clusters, members from the first to the last: `climb` transposed.

    Args:
        c: (..., d) coefficients, with the details of the clusters.
        coarse: (..., d) coarse signal, that of cluster i in row i, on the top level in row base[i].
        out: (N_j, d) signal.
        tree: (9, N_j) tree.
        first: (N_{j+1},) position of the first member of each cluster.
        base: (G,) what DETAIL is added to.
        is_top: Whether clusters are whole graphs.
        i0: First cluster.
        i1: Last cluster, excluded.
        k0: First column.
        k1: Last column, excluded.
    """
    T = c.dtype.type
    columns = range(np.uint64(k0), np.uint64(k1))
    # What the members so far leave to the next one: without the current block, the same in float64,
    # and what to subtract for the current block.
    t = np.empty(c.shape[1], c.dtype)
    total = np.empty(c.shape[1])
    s = np.empty(c.shape[1], c.dtype)
    for i in range(i0, i1):
        p, end = first[i], _end(first, i, tree.shape[1])
        row = base[i] if is_top else i
        norm = T(1) / np.sqrt(T(tree[TOTAL, tree[MEMBER, p]]))
        for k in columns:
            t[k] = norm * coarse[row, k]
        if end - p > 4:
            for k in columns:
                total[k] = t[k]
                s[k] = 0
            while end - p > 4:
                v1, row1, r1, a1, b1 = _member(tree, base, p, T)
                v2, row2, r2, a2, b2 = _member(tree, base, p + 1, T)
                v3, row3, r3, a3, b3 = _member(tree, base, p + 2, T)
                v4, row4, r4, a4, b4 = _member(tree, base, p + 3, T)
                for k in columns:
                    d1, d2, d3, d4 = c[row1, k], c[row2, k], c[row3, k], c[row4, k]
                    sum0, before = s[k], t[k]
                    sum1 = sum0 + b1 * d1
                    sum2 = sum1 + b2 * d2
                    sum3 = sum2 + b3 * d3
                    s[k] = sum3 + b4 * d4
                    out[v1, k] = r1 * (before - sum0) + a1 * d1
                    out[v2, k] = r2 * (before - sum1) + a2 * d2
                    out[v3, k] = r3 * (before - sum2) + a3 * d3
                    out[v4, k] = r4 * (before - sum3) + a4 * d4
                p += 4
                if (p - first[i]) % BLOCK == 0:
                    for k in columns:
                        total[k] -= s[k]
                        t[k] = total[k]
                        s[k] = 0
            for k in columns:
                t[k] -= s[k]
        v0 = tree[MEMBER, end - 1]
        r0 = np.sqrt(T(tree[MASS, v0]))
        if end - p == 1:
            for k in columns:
                out[v0, k] = r0 * t[k]
        elif end - p == 2:
            v1, row1, r1, a1, b1 = _member(tree, base, p, T)
            for k in columns:
                d1, t0 = c[row1, k], t[k]
                out[v1, k] = r1 * t0 + a1 * d1
                out[v0, k] = r0 * (t0 - b1 * d1)
        elif end - p == 3:
            v1, row1, r1, a1, b1 = _member(tree, base, p, T)
            v2, row2, r2, a2, b2 = _member(tree, base, p + 1, T)
            for k in columns:
                d1, d2 = c[row1, k], c[row2, k]
                t0 = t[k]
                t1 = t0 - b1 * d1
                t2 = t1 - b2 * d2
                out[v1, k] = r1 * t0 + a1 * d1
                out[v2, k] = r2 * t1 + a2 * d2
                out[v0, k] = r0 * t2
        else:
            v1, row1, r1, a1, b1 = _member(tree, base, p, T)
            v2, row2, r2, a2, b2 = _member(tree, base, p + 1, T)
            v3, row3, r3, a3, b3 = _member(tree, base, p + 2, T)
            for k in columns:
                d1, d2, d3 = c[row1, k], c[row2, k], c[row3, k]
                t0 = t[k]
                t1 = t0 - b1 * d1
                t2 = t1 - b2 * d2
                t3 = t2 - b3 * d3
                out[v1, k] = r1 * t0 + a1 * d1
                out[v2, k] = r2 * t1 + a2 * d2
                out[v3, k] = r3 * t2 + a3 * d3
                out[v0, k] = r0 * t3


@_loop
def sum_lists(
    x: Array,
    index: Array,
    start: Array,
    weight: Array,
    tree: Array,
    out: Array,
    i0: int,
    i1: int,
    k0: int,
    k1: int,
) -> None:
    """Write sums of rows of x. An empty array means that there is none.

    Args:
        x: (N, d) signal.
        index: (E,) rows of x, list by list.
        start: (n,) where each list starts; without it each list has one row.
        weight: (E,) factors.
        tree: (9, ...) tree from which the factors of clusters are computed, sqrt(m / M) of each
            member: of the rows of x if there are lists, otherwise of the rows of the result.
        out: (n, d) result.
        i0: First list.
        i1: Last list, excluded.
        k0: First column.
        k1: Last column, excluded.
    """
    T = x.dtype.type
    columns = range(np.uint64(k0), np.uint64(k1))
    w = np.ones(BLOCK, x.dtype)
    total = np.empty(x.shape[1])
    for i in range(i0, i1):
        begin, end = i, i + 1
        if start.shape[0]:
            begin, end = start[i], _end(start, i, index.shape[0])
        if begin >= end:
            for k in columns:
                out[i, k] = 0
        p = begin
        while p < end:
            q = min(p + BLOCK, end)
            for e in range(p, q):
                if tree.shape[1]:
                    v = index[e] if start.shape[0] else e
                    w[e - p] = np.sqrt(T(tree[MASS, v]) / T(tree[TOTAL, v]))
                elif weight.shape[0]:
                    w[e - p] = weight[e]
            # In pairs, the first of which has one row if their number is odd.
            e = p + (q - p) % 2
            if e > p:
                v1, w1 = index[p], w[0]
                for k in columns:
                    out[i, k] = w1 * x[v1, k]
            while e < q:
                v1, v2, w1, w2 = index[e], index[e + 1], w[e - p], w[e - p + 1]
                if e == p:
                    for k in columns:
                        out[i, k] = w1 * x[v1, k] + w2 * x[v2, k]
                else:
                    for k in columns:
                        out[i, k] += w1 * x[v1, k] + w2 * x[v2, k]
                e += 2
            if end - begin > BLOCK:
                for k in columns:
                    total[k] = out[i, k] + (total[k] if p > begin else 0)
                    out[i, k] = total[k]
            p = q

"""Parts of even size with few edges between them, by METIS (Karypis and Kumar, 1998)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np
from scipy import sparse

from haarpool._types import Ints
from haarpool.chains.adjacency import without_self_loops
from haarpool.chains.clustering.extras import extra

# METIS adds weights up in integers, which in some builds have 32 bits.
LARGEST_SUM = 2**30

_ONE_AT_A_TIME = Lock()  # of several threads: they share the place that METIS prints to


def metis(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, recursive: bool = True
) -> Ints:
    """METIS: parts of even size, by recursive bisection or (recursive=False) k-way

    METIS may leave parts empty, then there are fewer clusters than asked, and some are large.
    Bisection is the default because k-way leaves many parts empty and takes longer. Asked for N/2
    parts (part of them that was found, part of the edges that is cut, time):

        graphs                  bisection               k-way
        NCI1, 100 of them       1.00  0.578  0.7 ms     0.83  0.474  0.8 ms
        PROTEINS, 100 of them   1.00  0.707  0.6 ms     0.61  0.510  1.2 ms
        uniform, N = 10,000     1.00  0.909  0.2 s      0.82  0.898  0.8 s
        uniform, N = 80,000     1.00  0.909  1.8 s      0.83  0.899  7.6 s
        in the plane, 80,000    1.00  0.889  1.5 s      0.21  0.728  6.2 s

    Its smaller cut is that of fewer clusters: bisection into as many cuts 0.477 of the edges in
    NCI1, and 0.457, 0.887, 0.889, 0.402 in the other rows.
    """
    graph = without_self_loops(adjacency)
    if graph.nnz == 0:  # nothing to cut: parts of even size
        return np.arange(graph.shape[0]) % num_clusters
    pymetis = extra("pymetis")
    with _ONE_AT_A_TIME, _no_printing():
        partition = pymetis.part_graph(
            num_clusters,
            pymetis.CSRAdjacency(adj_starts=graph.indptr, adjacent=graph.indices),
            eweights=_whole_weights(graph),
            recursive=recursive,
            # It seeds C's rand(), to which zero is the same as one.
            options=pymetis.Options(seed=1 + int(seed) % (2**31 - 1)),
        )
    return np.asarray(partition.vertex_part, np.int64)


def _whole_weights(graph: sparse.csr_array) -> Ints | None:
    """Weights as whole numbers >= 1, the same in both directions; None where all are equal."""
    relative = graph.data / graph.data.max()
    if relative.min() > 1 - 1e-9:
        return None
    whole = np.maximum(np.rint(relative * (LARGEST_SUM / relative.sum())), 1)
    # Sums over clusters may differ in their last digit from one direction to the other.
    there = sparse.csr_array((whole, graph.indices, graph.indptr), shape=graph.shape)
    both = there.maximum(sparse.csr_array(there.T))
    both.sort_indices()
    weights: Ints = both.data.astype(np.int64)
    return weights


@contextmanager
def _no_printing() -> Iterator[None]:
    """METIS prints a complaint for each part that gets no node; nobody can act on it.

    It prints from C, so for the whole process file descriptor 1 points nowhere for a while.
    """
    try:
        stdout = os.dup(1)
    except OSError:  # closed: nothing can be printed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    _flush()
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(nowhere)


def _flush() -> None:
    """Write out what C code has printed so far, to where it points now."""
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)

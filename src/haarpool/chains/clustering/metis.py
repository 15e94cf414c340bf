"""Parts of similar size with few edges between them, by METIS (Karypis and Kumar, 1998)."""

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
from haarpool.chains.clustering.registry import register
from haarpool.errors import import_extra

# METIS sums weights in integers, which have 32 bits in some builds.
LARGEST_SUM = 2**30

_STDOUT_LOCK = Lock()  # threads share the standard output that is redirected for METIS


@register("metis", version="1")
def metis(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, recursive: bool = True
) -> Ints:
    """METIS: parts of similar size, by recursive bisection or (recursive=False) k-way.

    METIS may leave parts empty: then there are fewer clusters than requested, and some are large.
    Bisection is the default: k-way leaves 17 to 79 % of N/2 parts empty and takes up to four times
    longer. It cuts fewer edges only because it returns fewer clusters.
    """
    graph = without_self_loops(adjacency)
    if graph.nnz == 0:  # nothing to cut
        return np.arange(graph.shape[0]) % num_clusters
    pymetis = import_extra("pymetis", "cluster")
    with _STDOUT_LOCK, _no_printing():
        partition = pymetis.part_graph(
            num_clusters,
            pymetis.CSRAdjacency(adj_starts=graph.indptr, adjacent=graph.indices),
            eweights=_whole_weights(graph),
            recursive=recursive,
            # METIS seeds C's rand(), for which 0 and 1 are the same.
            options=pymetis.Options(seed=1 + int(seed) % (2**31 - 1)),
        )
    return np.asarray(partition.vertex_part, np.int64)


def _whole_weights(graph: sparse.csr_array) -> Ints | None:
    """Return symmetric weights as whole numbers >= 1, or `None` if all are equal."""
    relative = graph.data / graph.data.max()
    if relative.min() > 1 - 1e-9:
        return None
    integers = np.maximum(np.rint(relative * (LARGEST_SUM / relative.sum())), 1)
    # Weights of the two directions of an edge may differ in the last digit.
    matrix = sparse.csr_array((integers, graph.indices, graph.indptr), shape=graph.shape)
    symmetric = matrix.maximum(sparse.csr_array(matrix.T))
    symmetric.sort_indices()
    return np.asarray(symmetric.data, np.int64)


@contextmanager
def _no_printing() -> Iterator[None]:
    """Suppress the warnings that METIS prints for empty parts.

    It prints from C, so file descriptor 1 of the process points to the null device meanwhile.
    """
    try:
        stdout = os.dup(1)
    except OSError:  # the standard output is closed
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    _flush()
    os.dup2(null, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(null)


def _flush() -> None:
    """Flush the output buffers of C."""
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)

"""Several graphs as one, so that one operation serves them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from scipy import sparse

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import (
    EdgeList,
    as_adjacency,
    coarse_graph,
    edge_list,
    entry_rows,
    from_edges,
    is_canonical,
)
from haarpool.errors import HaarPoolError

MAX_TABLE = 1024  # clusters of one graph; more are summed by sorting
SMALL = 128  # nodes, up to which a graph by itself is kept as a dense matrix


class GraphBatch(Sequence[sparse.csr_array]):
    """Graphs as one block-diagonal matrix; graph g owns the nodes start[g] .. start[g + 1] - 1.

    >>> batch = as_graph_batch([[[0, 2], [2, 0]], [[1]]])
    >>> batch.adjacency.toarray()
    array([[0., 2., 0.],
           [2., 0., 0.],
           [0., 0., 1.]])
    >>> len(batch), batch[1].toarray()
    (2, array([[1.]]))
    """

    def __init__(self, adjacency: sparse.csr_array, start: Ints) -> None:
        self.adjacency = adjacency
        self.start = start

    @classmethod
    def of(cls, adjacency: sparse.csr_array) -> GraphBatch:
        """One graph."""
        return cls(adjacency, np.array([0, adjacency.shape[0]]))

    @cached_property
    def sizes(self) -> Ints:
        """(number of graphs,) nodes of each graph."""
        return self.start[1:] - self.start[:-1]

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, g: int) -> sparse.csr_array: ...
    @overload
    def __getitem__(self, g: slice) -> GraphBatch: ...
    def __getitem__(self, g: int | slice) -> sparse.csr_array | GraphBatch:
        """The adjacency matrix of one graph, or a batch of some that follow each other."""
        if isinstance(g, slice):
            first, last, step = g.indices(len(self))
            last = max(first, last)
        else:
            first, step = (g + len(self) if g < 0 else g), 1
            last = first + 1
        if not 0 <= first <= last <= len(self) or step != 1:
            raise IndexError(f"graph {g} of {len(self)}")
        whole, a, b = self.adjacency, self.start[first], self.start[last]
        if b - a < whole.shape[0]:
            entries = slice(whole.indptr[a], whole.indptr[b])
            rows = whole.indptr[a : b + 1] - whole.indptr[a]
            columns = whole.indices[entries] - whole.indices.dtype.type(a)
            whole = sparse.csr_array((whole.data[entries], columns, rows), shape=(b - a, b - a))
        return (
            GraphBatch(whole, self.start[first : last + 1] - a) if isinstance(g, slice) else whole
        )

    def take(self, graphs: Ints) -> tuple[GraphBatch, Ints]:
        """The batch of some of the graphs, and their nodes in this one."""
        if len(graphs) == len(self):
            return self, np.arange(self.start[-1])
        sizes = self.sizes[graphs]
        start = np.concatenate([[0], np.cumsum(sizes)])
        nodes = np.arange(start[-1]) + np.repeat(self.start[graphs] - start[:-1], sizes)
        return GraphBatch(self.adjacency[nodes][:, nodes], start), nodes

    @cached_property
    def dense(self) -> Floats | None:
        """The matrix of a small graph that is alone."""
        if len(self) > 1 or self.start[-1] > SMALL:
            return None
        matrix: Floats = self.adjacency.toarray()
        return matrix


class DenseGraphBatch(GraphBatch):
    """One small graph, for which making a sparse matrix would take longer than clustering it."""

    def __init__(self, dense: Floats) -> None:
        self.dense = dense
        self.start = np.array([0, len(dense)])

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """The same as a sparse matrix, if somebody asks for it."""
        return sparse.csr_array(self.dense)


def as_graph_batch(
    graphs: Sequence[Any], *, symmetrize: bool = False, first: int = 0
) -> GraphBatch:
    """All `graphs`, in the forms that `as_adjacency` takes, checked.

    An error names the graph, counted from `first`.
    """
    try:
        batch = graphs
        if not isinstance(batch, GraphBatch):
            batch = _block_diagonal([edge_list(graph) for graph in graphs])
        if (batch.sizes > 0).all() and is_canonical(batch.adjacency):
            return batch
    except HaarPoolError:
        pass  # whichever graph it was raises it again below
    matrices = []
    for g, graph in enumerate(graphs, start=first):
        try:
            matrices.append(edge_list(as_adjacency(graph, symmetrize=symmetrize)))
        except HaarPoolError as error:
            raise HaarPoolError(error.expected, f"in graph {g} {error.got}", error.remedy) from None
    return _block_diagonal(matrices)


def _block_diagonal(parts: Iterable[EdgeList]) -> GraphBatch:
    rows, columns, weights, sizes, _ = zip(*parts, strict=True)
    start = np.concatenate([[0], np.cumsum(sizes)])
    shift = np.repeat(start[:-1], [len(w) for w in weights])
    row, column = np.concatenate(rows) + shift, np.concatenate(columns) + shift
    return GraphBatch(from_edges(row, column, np.concatenate(weights), int(start[-1])), start)


def coarse_batch(batch: GraphBatch, parent: Ints, start: Ints) -> GraphBatch:
    """`coarse_graph` of every graph of a batch; the clusters of graph g begin at `start[g]`."""
    sizes = start[1:] - start[:-1]
    if sizes.max() > MAX_TABLE:
        return GraphBatch(coarse_graph(batch.adjacency, parent), start)
    # A table of all pairs of clusters of all graphs: no sorting, hardly any overhead. The sums
    # are the same to the last bit, whichever graphs stand together.
    if batch.dense is not None:
        (size,) = sizes
        pairs = (parent * size)[:, None] + parent
        table = np.bincount(pairs.ravel(), batch.dense.ravel(), size**2)
        return DenseGraphBatch(table.reshape(size, size).astype(np.float64, copy=False))
    begin = np.cumsum(sizes**2) - sizes**2
    row, column = parent[entry_rows(batch.adjacency)], parent[batch.adjacency.indices]
    # Where entry (p, q) of the graph of cluster p stands: at base[p] + q.
    base = np.repeat(begin - start[:-1] * (sizes + 1), sizes)
    base += np.arange(start[-1]) * np.repeat(sizes, sizes)
    length = int(begin[-1] + sizes[-1] ** 2)
    table = np.bincount(base[row] + column, batch.adjacency.data, length)
    place = np.flatnonzero(table)
    graph = np.searchsorted(begin, place, side="right") - 1
    rows, columns = np.divmod(place - begin[graph], sizes[graph])
    ends = np.cumsum(np.bincount(rows + start[graph], minlength=start[-1]))
    indptr = np.concatenate([[0], ends]).astype(np.int32)
    matrix = (table[place], (columns + start[graph]).astype(np.int32), indptr)
    return GraphBatch(sparse.csr_array(matrix, shape=(start[-1], start[-1])), start)

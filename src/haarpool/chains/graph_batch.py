"""Several graphs as one block-diagonal matrix, so that one operation handles all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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

MAX_TABLE = 1024  # clusters of one graph; weights of more clusters are summed by sorting
SMALL = 128  # nodes; a single graph up to this size is stored as a dense matrix


class GraphBatch(Sequence[sparse.csr_array]):
    """Graphs as one block-diagonal matrix.

    Args:
        matrix: (N, N) CSR array of all graphs together, or the dense matrix of one small graph.
        start: (number of graphs + 1,) first node of each graph, and the number of all nodes.

    Attributes:
        start: (number of graphs + 1,) graph g has the nodes start[g], ..., start[g + 1] - 1.
        sizes: (number of graphs,) number of nodes of each graph.

    Example:
        >>> batch = as_graph_batch([[[0, 2], [2, 0]], [[1]]])
        >>> batch.adjacency.toarray()
        array([[0., 2., 0.],
               [2., 0., 0.],
               [0., 0., 1.]])
        >>> len(batch), batch[1].toarray()
        (2, array([[1.]]))
    """

    def __init__(self, matrix: sparse.csr_array | Floats, start: Ints) -> None:
        self.start = start
        self.sizes = start[1:] - start[:-1]
        if isinstance(matrix, np.ndarray):
            self.dense = matrix
        else:
            self.adjacency = matrix

    @classmethod
    def of(cls, adjacency: sparse.csr_array) -> GraphBatch:
        """Return a batch of one graph."""
        return cls(adjacency, np.array([0, adjacency.shape[0]]))

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, g: int) -> sparse.csr_array: ...
    @overload
    def __getitem__(self, g: slice) -> GraphBatch: ...
    def __getitem__(self, g: int | slice) -> sparse.csr_array | GraphBatch:
        """Return the adjacency matrix of one graph, or a batch of consecutive graphs."""
        if is_slice := isinstance(g, slice):
            first, last, step = g.indices(len(self))
            last = max(first, last)
        else:
            first, step = (g + len(self) if g < 0 else g), 1
            last = first + 1
        if not 0 <= first <= last <= len(self) or step != 1:
            raise IndexError(f"graph {g} of {len(self)}")
        matrix, a, b = self.adjacency, self.start[first], self.start[last]
        if b - a < matrix.shape[0]:
            entries = slice(matrix.indptr[a], matrix.indptr[b])
            indptr = matrix.indptr[a : b + 1] - matrix.indptr[a]
            columns = matrix.indices[entries] - matrix.indices.dtype.type(a)
            matrix = sparse.csr_array((matrix.data[entries], columns, indptr), shape=(b - a, b - a))
        return GraphBatch(matrix, self.start[first : last + 1] - a) if is_slice else matrix

    def take(self, graphs: Ints) -> tuple[GraphBatch, Ints]:
        """Return the batch of graphs with these numbers, and the ids of its nodes in this batch."""
        if len(graphs) == len(self):
            return self, np.arange(self.start[-1])
        sizes = self.sizes[graphs]
        start = np.concatenate([[0], np.cumsum(sizes)])
        nodes = np.arange(start[-1]) + np.repeat(self.start[graphs] - start[:-1], sizes)
        return GraphBatch(self.adjacency[nodes][:, nodes], start), nodes

    def fill(self, ids: Ints, graphs: Ints, cluster: Callable[[GraphBatch], Ints]) -> None:
        """Write the cluster ids of some graphs; those of a graph count from its first node.

        Args:
            ids: (N,) ids of all nodes, changed in place.
            graphs: (n,) numbers of the graphs.
            cluster: Returns the ids of the batch of these graphs.
        """
        selected, nodes = self.take(graphs)
        shift = np.repeat(self.start[graphs] - selected.start[:-1], selected.sizes)
        ids[nodes] = cluster(selected) + shift

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """(N, N) CSR array of all graphs together; that of a dense graph is built on demand."""
        return sparse.csr_array(self.dense)

    @cached_property
    def dense(self) -> Floats | None:
        """The dense adjacency matrix, if the batch is one small graph."""
        if len(self) > 1 or self.start[-1] > SMALL:
            return None
        return np.asarray(self.adjacency.toarray())


def as_graph_batch(
    graphs: Sequence[Any], *, symmetrize: bool = False, first: int = 0
) -> GraphBatch:
    """Check graphs and join them to a batch.

    Args:
        graphs: Graphs in any form that `as_adjacency` takes.
        symmetrize: See `as_adjacency`.
        first: Number of the first graph in error messages.
    """
    try:
        batch = graphs
        if not isinstance(batch, GraphBatch):
            batch = _block_diagonal([edge_list(graph) for graph in graphs])
        if (batch.sizes > 0).all() and is_canonical(batch.adjacency):
            return batch
    except HaarPoolError:
        pass  # raised again below, with the number of the graph
    matrices = []
    for g, graph in enumerate(graphs, start=first):
        try:
            matrices.append(edge_list(as_adjacency(graph, symmetrize=symmetrize)))
        except HaarPoolError as error:
            raise error.located(f"in graph {g}") from None
    return _block_diagonal(matrices)


def _block_diagonal(graphs: Iterable[EdgeList]) -> GraphBatch:
    rows, columns, weights, sizes = zip(*graphs, strict=True)
    start = np.concatenate([[0], np.cumsum(sizes)])
    shift = np.repeat(start[:-1], [len(w) for w in weights])
    row, column = np.concatenate(rows) + shift, np.concatenate(columns) + shift
    return GraphBatch(from_edges(row, column, np.concatenate(weights), int(start[-1])), start)


def coarse_batch(batch: GraphBatch, parent: Ints, start: Ints) -> GraphBatch:
    """Return the coarse graphs of a batch, as `coarse_graph` does for one graph.

    Args:
        batch: The graphs, with N nodes together.
        parent: (N,) cluster of each node, numbered through all graphs.
        start: (number of graphs + 1,) first cluster of each graph, and the number of all clusters.
    """
    # Sum in a table of all pairs of clusters of each graph, which is faster than sorting. The sums
    # do not depend on which graphs are in the batch, not even in the last bit.
    if batch.dense is not None:
        size = int(start[-1])
        pairs = (parent * size)[:, None] + parent
        table = np.bincount(pairs.ravel(), batch.dense.ravel(), size**2)
        return GraphBatch(table.reshape(size, size).astype(np.float64, copy=False), start)
    sizes = start[1:] - start[:-1]
    if sizes.max() > MAX_TABLE:
        return GraphBatch(coarse_graph(batch.adjacency, parent), start)
    begin = np.cumsum(sizes**2) - sizes**2
    row, column = parent[entry_rows(batch.adjacency)], parent[batch.adjacency.indices]
    # Entry (p, q) is at position base[p] + q of the table.
    base = np.repeat(begin - start[:-1] * (sizes + 1), sizes)
    base += np.arange(start[-1]) * np.repeat(sizes, sizes)
    length = int(begin[-1] + sizes[-1] ** 2)
    table = np.bincount(base[row] + column, batch.adjacency.data, length).astype(np.float64)
    position = np.flatnonzero(table)
    graph = np.searchsorted(begin, position, side="right") - 1
    rows, columns = np.divmod(position - begin[graph], sizes[graph])
    ends = np.cumsum(np.bincount(rows + start[graph], minlength=start[-1]))
    indptr = np.concatenate([[0], ends]).astype(np.int32)
    matrix = (table[position], (columns + start[graph]).astype(np.int32), indptr)
    return GraphBatch(sparse.csr_array(matrix, shape=(start[-1], start[-1])), start)


def dense_blocks(
    adjacency: sparse.csr_array, nodes: Ints, sizes: Ints, chosen: Ints
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield the subgraphs of groups of nodes as dense matrices, groups of equal size together.

    Args:
        adjacency: (N, N) the graph.
        nodes: (N,) nodes, group by group.
        sizes: (number of groups,) number of nodes of each group.
        chosen: The groups whose matrices are needed.

    Yields:
        (b,) groups of n nodes, (b, n) their nodes, (b, n, n) their matrices; by ascending n.
    """
    chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
    first = np.cumsum(sizes) - sizes
    group, position = np.empty_like(nodes), np.empty_like(nodes)
    group[nodes] = np.repeat(np.arange(len(sizes)), sizes)
    position[nodes] = np.arange(len(nodes)) - np.repeat(first, sizes)
    area = sizes[chosen] ** 2
    begin = np.full(len(sizes), -1)  # of the matrix of each group
    begin[chosen] = np.cumsum(area) - area
    row, column = entry_rows(adjacency), adjacency.indices
    owner = group[row]
    used = (begin[owner] >= 0) & (owner == group[column])
    entries = np.zeros(int(area.sum()))
    target = begin[owner] + position[row] * sizes[owner] + position[column]
    entries[target[used]] = adjacency.data[used]
    for same in np.split(chosen, np.flatnonzero(np.diff(sizes[chosen])) + 1):
        if len(same):
            n, start = sizes[same[0]], begin[same[0]]
            stack = entries[start : start + len(same) * n * n].reshape(-1, n, n)
            yield same, nodes[first[same, None] + np.arange(n)], stack

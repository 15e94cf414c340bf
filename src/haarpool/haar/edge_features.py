"""Features of coarse edges, from the edges of the input graph.

The edges u -> v of the input graph with u in cluster p and v in cluster q give the coarse edge
(p, q) their mean, sum, maximum or minimum, and their number. So each direction has its own. Level
by level, edges with the same ends are merged; then a level costs as much as it has edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from haarpool._types import Floats, Ints, Reduction
from haarpool._validate import choice
from haarpool.chains.adjacency import entry_rows
from haarpool.errors import HaarPoolError


class EdgeFeatures(NamedTuple):
    """Edges on one level of chains, with features; no two edges have the same ends.

    On level 0 they are those of the input graph, each with the number 1, and may occur twice.

    Attributes:
        source: (E,) first node of each edge.
        target: (E,) second node of each edge.
        values: (C, E) sums, maxima or minima over edges of the input graph.
        number: (E,) how many these are.
        reduction: "mean" has sums as values, too.
        dtype: Type of the tensors.
    """

    source: Ints
    target: Ints
    values: Floats
    number: Floats
    reduction: Reduction
    dtype: type[np.floating[Any]] = np.float32

    @classmethod
    def of_input(
        cls, edges: NDArray[Any], values: NDArray[Any], reduction: Reduction
    ) -> EdgeFeatures:
        """Return the edges of input graphs.

        Args:
            edges: (2, E) from the first node to the second.
            values: (E, C) or (E,) features.
            reduction: "mean", "sum", "max" or "min".
        """
        number = edges.shape[1]
        if values.ndim not in (1, 2) or len(values) != number or values.dtype.kind not in "biuf":
            raise HaarPoolError(
                f"edge_attr of shape ({number}, columns), real numbers",
                f"shape {values.shape}, dtype {values.dtype}",
                "pass one row per edge",
            )
        dtype = np.float64 if values.dtype == np.float64 else np.float32
        columns = np.ascontiguousarray(np.atleast_2d(values.T), np.float64)
        source, target = edges.astype(np.int64, copy=False)
        return cls(source, target, columns, np.ones(number), reduction, dtype)

    def coarser(self, parent: Ints) -> EdgeFeatures:
        """Return the edges between clusters, sorted by their ends.

        Args:
            parent: (N,) cluster of each node.
        """
        size = int(parent.max()) + 1
        source, target = parent[self.source], parent[self.target]
        between = np.flatnonzero(source != target)
        key = source[between] * size + target[between]
        order = np.argsort(key, kind="stable")
        key, edges = key[order], between[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        reduce = {"max": np.maximum, "min": np.minimum}.get(self.reduction, np.add)
        values, number = self.values[:, edges], self.number[edges]
        if len(first):
            values = reduce.reduceat(values, first, axis=1)
            number = np.add.reduceat(number, first)
        source, target = np.divmod(key[first], size)
        return self._replace(source=source, target=target, values=values, number=number)

    def of_edges(self, graph: sparse.csr_array) -> NDArray[np.floating[Any]]:
        """Return (C + 1, E) the features of the edges of a graph, and their number as a last row.

        An edge without edges of the input graph, such as one that only runs back, has zeros.

        Args:
            graph: (N, N) adjacency matrix, sorted.
        """
        size = graph.shape[0]
        wanted = entry_rows(graph) * size + graph.indices
        position = np.searchsorted(wanted, self.source * size + self.target)
        is_wanted = position < len(wanted)
        is_wanted[is_wanted] = wanted[position[is_wanted]] == (
            self.source[is_wanted] * size + self.target[is_wanted]
        )
        position, number = position[is_wanted], self.number[is_wanted]
        values = self.values[:, is_wanted]
        result = np.zeros((len(values) + 1, len(wanted)), self.dtype)
        result[:-1, position] = values / number if self.reduction == "mean" else values
        result[-1, position] = number
        return result


def checked_reduction(value: Reduction | None) -> Reduction | None:
    """Check the parameter `edge_attr`."""
    return choice("edge_attr", value, (None, *get_args(Reduction)))


def reversed_edges(graph: sparse.csr_array) -> Ints:
    """Return (E,) for each edge (p, q) the number of the edge (q, p).

    Args:
        graph: (N, N) adjacency matrix, sorted, with symmetric entries.

    Example:
        >>> path = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> reversed_edges(path).tolist()
        [1, 0, 3, 2]
    """
    numbers = np.arange(graph.nnz)
    edges = sparse.csr_array((numbers, graph.indices, graph.indptr), shape=graph.shape)
    result: Ints = edges.tocsc().data  # column by column: the edges of the transposed matrix
    return result

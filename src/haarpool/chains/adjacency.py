"""Conversion of graphs in any form to one checked, symmetric, sparse adjacency matrix."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from haarpool._types import Ints
from haarpool.errors import HaarPoolError


def as_adjacency(graph: Any, *, symmetrize: bool = False) -> sparse.csr_array:
    """Return the weighted adjacency matrix of a graph, checked and in canonical form.

    Args:
        graph: A scipy sparse or a dense (N, N) array; a networkx graph (edge attribute `weight`,
            1 where it is missing); or a PyTorch Geometric `Data` (its `edge_weight`, else 1).
            Parallel edges add up. An entry of zero is no edge.
        symmetrize: Make an asymmetric matrix symmetric. An edge in one direction only then counts
            in both; where the two directions differ, the larger weight is taken.

    Returns:
        (N, N) CSR array of float64: symmetric, finite, non-negative, indices sorted.

    Example:
        >>> as_adjacency([[0, 2], [2, 0]]).toarray()
        array([[0., 2.],
               [2., 0.]])
    """
    if type(graph) is sparse.csr_array and _has_valid_format(graph) and is_canonical(graph):
        # These checks are much faster than the general case below, and than graph.copy().
        checked: sparse.csr_array = copy(graph)
        checked.data, checked.indices = graph.data.copy(), graph.indices.copy()
        checked.indptr = graph.indptr.copy()
        return checked
    edges = edge_list(graph)
    adjacency = from_edges(edges.rows, edges.columns, edges.weights, edges.size)
    _check_weights(adjacency)
    dtype = edges.weights.dtype
    precision = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
    return _symmetric(adjacency, precision, symmetrize)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Convert values to a numpy array; `name` is the parameter that has them."""
    try:
        if hasattr(values, "detach"):  # a tensor, on any device, with or without gradient
            values = values.detach().cpu()
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise HaarPoolError(
            "as an array of numbers",
            f"{type(values).__name__} ({error})",
            "pass a numpy array or a list of numbers, all rows of the same length",
            parameter=name,
        ) from error


def from_edges(
    rows: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[Any],
    size: int,
    num_columns: int | None = None,
) -> sparse.csr_array:
    """Build a (size, num_columns) CSR array from edges.

    Weights of equal edges add up. Indices have 32 bits if that is enough.

    Args:
        rows: (number of edges,) row of each edge.
        columns: (number of edges,) column of each edge.
        weights: (number of edges,) weight of each edge.
        size: Number of nodes.
        num_columns: `size` by default.
    """
    shape = (size, size if num_columns is None else num_columns)
    index_type = np.int32 if max(*shape, len(weights)) < 2**31 else np.int64
    positions = (rows.astype(index_type), columns.astype(index_type))
    return sparse.csr_array((weights.astype(np.float64), positions), shape=shape)


def entry_rows(adjacency: sparse.csr_array) -> Ints:
    """Return the row of each entry, shape (number of entries,); `indices` has the columns."""
    return np.arange(adjacency.shape[0]).repeat(adjacency.indptr[1:] - adjacency.indptr[:-1])


def ranges(starts: Ints, lengths: Ints, stride: int = 1) -> Ints:
    """Return start, start + stride, ... for each start, concatenated.

    Args:
        starts: (n,) first number of each range.
        lengths: (n,) how many numbers each range has.
        stride: Difference between two numbers of a range.

    Example:
        >>> ranges(np.array([5, 20]), np.array([3, 2])).tolist()
        [5, 6, 7, 20, 21]
    """
    ends = np.cumsum(lengths)
    steps = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
    return np.asarray(np.repeat(starts, lengths) + stride * steps)


def coarse_graph(adjacency: sparse.csr_array, parent: Ints) -> sparse.csr_array:
    """Return the graph of clusters, with self-loops: weights of all pairs of members add up.

    Args:
        adjacency: (N, N) the graph.
        parent: (N,) cluster of each node.
    """
    row, column = parent[entry_rows(adjacency)], parent[adjacency.indices]
    return from_edges(row, column, adjacency.data, int(parent.max()) + 1)


def without_self_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the same graph with an empty diagonal."""
    row, column = entry_rows(adjacency), adjacency.indices
    off_diagonal = row != column
    weights = adjacency.data[off_diagonal]
    return from_edges(row[off_diagonal], column[off_diagonal], weights, adjacency.shape[0])


def nodes_by_degree(adjacency: sparse.csr_array) -> Ints:
    """Return node ids by descending weighted degree without self-loops, ties by index."""
    row = entry_rows(adjacency)
    off_diagonal = row != adjacency.indices
    weights = adjacency.data[off_diagonal]
    degree = np.bincount(row[off_diagonal], weights, minlength=adjacency.shape[0])
    # Sums in another order may differ in the last bit; these degrees count as equal.
    mantissa, exponent = np.frexp(degree)
    return np.argsort(-np.ldexp(np.round(mantissa, 12), exponent), kind="stable")


class EdgeList(NamedTuple):
    """Entries of an adjacency matrix: real numbers, otherwise unchecked."""

    rows: NDArray[Any]
    columns: NDArray[Any]
    weights: NDArray[Any]
    size: int


def edge_list(graph: Any) -> EdgeList:
    """Return the entries of a graph in any form that `as_adjacency` takes."""
    if hasattr(graph, "edge_index") or hasattr(graph, "edge_types"):
        edges = _from_pyg(graph)
    elif hasattr(graph, "nodes") and hasattr(graph, "is_directed"):
        edges = _from_networkx(graph)
    else:
        edges = _from_array(graph)
    dtype = edges.weights.dtype
    if dtype.kind not in "biuf":
        raise HaarPoolError(
            "real numbers as edge weights", f"dtype {dtype}", "convert the weights to float"
        )
    return edges


def is_canonical(adjacency: sparse.csr_array) -> bool:
    """Whether a matrix is square and symmetric, its indices sorted, its weights finite and > 0."""
    size, weights = adjacency.shape[0], adjacency.data
    position = entry_rows(adjacency) * size + adjacency.indices
    is_sorted = bool((position[1:] > position[:-1]).all())
    if not (is_sorted and weights.min(initial=1) > 0 and weights.max(initial=1) < np.inf):
        return False
    return size == adjacency.shape[1] and _is_symmetric(adjacency)


def _is_symmetric(adjacency: sparse.csr_array) -> bool:
    """Whether A = Aᵀ exactly."""
    if adjacency.shape[0] <= 128:
        dense = adjacency.toarray()
        return bool((dense == dense.T).all())
    transposed = sparse.csr_array(adjacency.T)
    return all(
        np.array_equal(getattr(adjacency, name), getattr(transposed, name))
        for name in ("indptr", "indices", "data")
    )


def _has_valid_format(matrix: sparse.csr_array) -> bool:
    """Whether a matrix has entries in float64 and indices in int32 that `check_format` accepts."""
    pointer, index = matrix.indptr, matrix.indices
    return bool(
        pointer.dtype == index.dtype == np.int32
        and matrix.data.dtype == np.float64
        and matrix.ndim == 2
        and pointer.shape == (matrix.shape[0] + 1,)
        and pointer[0] == 0 < pointer[-1]
        and index.shape == matrix.data.shape == (pointer[-1],)
        and (pointer[1:] >= pointer[:-1]).all()
        and index.min() >= 0
        and index.max() < matrix.shape[1]
    )


def _from_array(graph: Any) -> EdgeList:
    matrix: Any = graph if sparse.issparse(graph) else as_array(graph, "graph")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise HaarPoolError(
            "a square adjacency matrix (N, N)",
            f"shape {tuple(matrix.shape)}",
            "pass one row and one column per node, a networkx graph or a PyG Data",
        )
    try:
        if hasattr(matrix, "check_format"):  # scipy uses the indices unchecked
            matrix.check_format(full_check=True)
        if isinstance(matrix, np.ndarray):
            rows, columns = matrix.nonzero()
            weights = matrix[rows, columns]
        elif matrix.format == "csr":
            rows, columns, weights = entry_rows(matrix), matrix.indices, matrix.data
        else:
            entries = matrix.tocoo()
            rows, columns, weights = entries.row, entries.col, entries.data
    except ValueError as error:
        raise HaarPoolError(
            "a valid sparse matrix", f"invalid indices ({error})", "build the matrix again"
        ) from error
    return EdgeList(rows, columns, weights, matrix.shape[0])


def _from_networkx(graph: Any) -> EdgeList:
    import networkx as nx

    if not len(graph):
        return _from_array(np.zeros((0, 0)))
    try:
        return _from_array(nx.to_scipy_sparse_array(graph, dtype=np.float64, weight="weight"))
    except (ValueError, TypeError) as error:
        raise HaarPoolError(
            "a number as the edge attribute 'weight'",
            f"{error}",
            "convert the weights to float, or remove the attribute",
        ) from error


def _from_pyg(data: Any) -> EdgeList:
    """Read tensors through their methods, so that this module does not import torch."""
    if hasattr(data, "edge_types"):
        raise HaarPoolError(
            "a graph with one type of nodes and edges", "a HeteroData", "pass data.to_homogeneous()"
        )
    if getattr(data, "num_graphs", 1) != 1:
        raise HaarPoolError(
            "one graph",
            f"a batch of {data.num_graphs} graphs",
            "build one chain for each graph of batch.to_data_list()",
        )
    if data.edge_index is None and getattr(data, "adj_t", None) is not None:
        raise HaarPoolError(
            "a Data with edge_index", "a Data with adj_t", "build the chain before ToSparseTensor"
        )
    if data.num_nodes is None:
        raise HaarPoolError(
            "a Data with a number of nodes",
            "num_nodes=None",
            "set data.num_nodes or data.x",
        )
    n = int(data.num_nodes)
    edges = np.zeros((2, 0), np.int64)
    if data.edge_index is not None:
        edges = as_array(data.edge_index, "edge_index")
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise HaarPoolError(
            "edge_index as whole numbers of shape (2, number of edges)",
            f"shape {edges.shape}, dtype {edges.dtype}",
            "pass one column per edge; transpose a list of pairs",
        )
    weight = np.ones(edges.shape[1], np.int64)
    if getattr(data, "edge_weight", None) is not None:
        weight = as_array(data.edge_weight, "edge_weight")
    if weight.shape != edges.shape[1:]:
        raise HaarPoolError(
            f"edge_weight of shape ({edges.shape[1]},), one per column of edge_index",
            f"shape {weight.shape}",
            "pass one weight per edge or none",
        )
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        raise HaarPoolError(
            f"node ids in 0..{n - 1}",
            f"ids from {edges.min()} to {edges.max()} in edge_index",
            "set data.num_nodes or renumber the nodes",
        )
    return EdgeList(edges[0], edges[1], weight, n)


def _check_weights(adjacency: sparse.csr_array) -> None:
    weights = adjacency.data
    if adjacency.shape[0] == 0:
        raise HaarPoolError(
            "a graph with at least one node", "an empty graph", "remove empty graphs"
        )
    if not np.isfinite(weights).all():
        raise HaarPoolError(
            "finite edge weights", "NaN or infinity", "correct the weights or remove these edges"
        )
    if (weights < 0).any():
        raise HaarPoolError(
            "edge weights >= 0",
            f"a weight of {weights.min():g}",
            "pass their absolute values or remove these edges",
        )


def _symmetric(adjacency: sparse.csr_array, precision: float, symmetrize: bool) -> sparse.csr_array:
    if (adjacency.data == 0).any():
        adjacency.eliminate_zeros()
    if _is_symmetric(adjacency):
        return adjacency
    transposed = sparse.csr_array(adjacency.T)
    difference = abs(adjacency - transposed)
    larger = adjacency.maximum(transposed)
    # Differences by rounding, for example of products or of float32, are not an asymmetry.
    allowed = 100 * precision * larger
    allowed.data += np.finfo(float).eps * adjacency.data.max()
    excess = (difference - allowed).tocoo()
    worst = int(excess.data.argmax())
    if excess.data[worst] > 0 and not symmetrize:
        u, v = int(excess.row[worst]), int(excess.col[worst])
        raise HaarPoolError(
            "a symmetric adjacency matrix (an undirected graph)",
            f"A[{u}, {v}] = {adjacency[u, v]:.9g} but A[{v}, {u}] = {adjacency[v, u]:.9g}",
            "pass {symmetrize} to take the larger of the two",
            symmetrize=True,
        )
    larger.sort_indices()
    return larger

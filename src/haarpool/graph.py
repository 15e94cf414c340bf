"""Whatever a user calls a graph -> one checked, symmetric, sparse adjacency matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from haarpool.errors import HaarPoolError


def as_adjacency(graph: Any, *, symmetrize: bool = False) -> sparse.csr_array:
    """The weighted adjacency matrix of `graph`, checked and in canonical form.

    Args:
        graph: a scipy sparse or a dense (N, N) array; a networkx graph (edge attribute `weight`,
            1 where there is none); or a PyTorch Geometric `Data` (its `edge_weight`, else 1).
            Parallel edges add up. An entry of zero is no edge.
        symmetrize: make an asymmetric matrix symmetric. An edge given in one direction only then
            counts in both; where the two directions differ, the larger weight is taken.

    Returns:
        (N, N) CSR array of float64: symmetric, finite, non-negative, indices sorted.

    >>> as_adjacency([[0, 2], [2, 0]]).toarray()
    array([[0., 2.],
           [2., 0.]])
    """
    if hasattr(graph, "edge_index") and hasattr(graph, "num_nodes"):
        adjacency = _from_pyg(graph)
    elif hasattr(graph, "nodes") and hasattr(graph, "is_directed"):
        adjacency = _from_networkx(graph)
    else:
        adjacency = _from_array(graph)
    _check_weights(adjacency)
    adjacency.eliminate_zeros()
    return _symmetric(adjacency, symmetrize)


def from_edges(
    rows: NDArray[Any], columns: NDArray[Any], weights: NDArray[Any], size: int
) -> sparse.csr_array:
    """(size, size) CSR array, duplicates summed, with indices of 32 bits wherever they fit."""
    small = max(size, len(weights)) < 2**31
    index = np.int32 if small else np.int64
    places = (rows.astype(index), columns.astype(index))
    return sparse.csr_array((weights.astype(np.float64), places), shape=(size, size))


def _from_array(graph: Any) -> sparse.csr_array:
    matrix = graph if sparse.issparse(graph) else np.asarray(graph)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise HaarPoolError(
            "a square adjacency matrix (N, N)",
            f"shape {tuple(matrix.shape)}",
            "pass one row and one column per node, a networkx graph or a PyG Data",
        )
    if matrix.dtype.kind not in "biuf":
        raise HaarPoolError(
            "real numbers as edge weights", f"dtype {matrix.dtype}", "convert the weights to float"
        )
    if hasattr(matrix, "check_format"):  # compressed formats, whose indices scipy trusts
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise HaarPoolError(
                "a valid sparse matrix", f"one with broken indices ({error})", "build it anew"
            ) from error
    entries = sparse.coo_array(matrix)
    return from_edges(entries.row, entries.col, entries.data, matrix.shape[0])


def _from_networkx(graph: Any) -> sparse.csr_array:
    import networkx as nx

    if not len(graph):
        return sparse.csr_array((0, 0), dtype=np.float64)
    return _from_array(nx.to_scipy_sparse_array(graph, dtype=np.float64, weight="weight"))


def _from_pyg(data: Any) -> sparse.csr_array:
    if data.num_nodes is None:
        raise HaarPoolError(
            "a Data that knows its number of nodes",
            "num_nodes=None",
            "set data.num_nodes or data.x",
        )
    # Tensors are read through their own methods, so that this module needs no torch.
    n = int(data.num_nodes)
    edges = data.edge_index
    edges = np.zeros((2, 0), np.int64) if edges is None else edges.detach().cpu().numpy()
    weight = getattr(data, "edge_weight", None)
    weight = np.ones(edges.shape[1]) if weight is None else weight.detach().cpu().double().numpy()
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
    return from_edges(edges[0], edges[1], weight, n)


def _check_weights(adjacency: sparse.csr_array) -> None:
    weights = adjacency.data
    if adjacency.shape[0] == 0:
        raise HaarPoolError("a graph with at least one node", "an empty graph", "drop empty graphs")
    if not np.isfinite(weights).all():
        raise HaarPoolError(
            "finite edge weights", "NaN or infinity", "clean the weights or drop these edges"
        )
    if (weights < 0).any():
        raise HaarPoolError(
            "edge weights >= 0",
            f"a weight of {weights.min():g}",
            "pass their absolute values or drop these edges",
        )


def _symmetric(adjacency: sparse.csr_array, symmetrize: bool) -> sparse.csr_array:
    difference = abs(adjacency - adjacency.T).tocoo()
    if difference.nnz == 0:
        return adjacency
    # Rounding on the way here (a product, a conversion from float32) is no asymmetry.
    worst = int(difference.data.argmax())
    if difference.data[worst] > 1e-10 * adjacency.data.max() and not symmetrize:
        u, v = int(difference.row[worst]), int(difference.col[worst])
        raise HaarPoolError(
            "a symmetric adjacency matrix (an undirected graph)",
            f"A[{u}, {v}] = {adjacency[u, v]:g} but A[{v}, {u}] = {adjacency[v, u]:g}",
            "pass symmetrize=True to take the larger of the two",
        )
    result = sparse.csr_array(adjacency.maximum(adjacency.T))
    result.sort_indices()
    return result

"""Positions of the nodes of a graph in the plane, in seconds for ten thousand nodes."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import without_self_loops

_PIVOTS = 40  # nodes from which all distances are computed
_STEPS = 60
_MAX_SECOND = 40  # pairs at distance two per node, on average; more take memory
_CIRCLE = 6  # a component with at most so many nodes is a circle


def plane_layout(adjacency: sparse.csr_array, seed: int = 0) -> Floats:
    """Compute positions whose distances are about those in the graph, counted in edges.

    Stress between all nodes and some pivots, and between nodes at distance one or two, is made
    small, from the first two coordinates of pivot MDS (Brandes and Pich 2006) on. Components are
    next to each other, in rows.

    Args:
        adjacency: (N, N); weights, directions and self-loops are ignored.
        seed: Seed of the random numbers.

    Returns:
        (N, 2) positions. A typical edge has length 1.

    Example:
        >>> path = sparse.csr_array(np.eye(9, k=1) + np.eye(9, k=-1))
        >>> np.ptp(plane_layout(path), axis=0).max().round()
        np.float64(8.0)
    """
    graph = sparse.csr_array(without_self_loops(adjacency))
    graph.data = np.ones(graph.nnz)
    graph = sparse.csr_array(graph + graph.T)
    graph.data[:] = 1
    number, component = csgraph.connected_components(graph, directed=False)
    rng, positions = np.random.default_rng(seed), np.zeros((graph.shape[0], 2))
    order = np.argsort(component, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(component, minlength=number))[:-1])
    for part in parts:
        if len(part) > _CIRCLE:
            positions[part] = _layout(sparse.csr_array(graph[part][:, part]), rng)
        elif len(part) > 1:
            angle = 2 * np.pi * np.arange(len(part)) / len(part)
            radius = 0.5 / np.sin(np.pi / len(part))
            positions[part] = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _side_by_side(positions, parts) if number > 1 else positions


def _layout(graph: sparse.csr_array, rng: np.random.Generator) -> Floats:
    """Compute the positions of a connected graph with edges of length 1."""
    pivots, distance = _pivots(graph, min(_PIVOTS, graph.shape[0]), rng)
    centred = distance**2
    centred -= centred.mean(axis=0) + centred.mean(axis=1, keepdims=True) - centred.mean()
    vectors = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    x = centred @ vectors
    # The scale with the least stress, then some noise: twins have the same coordinates.
    lengths = np.linalg.norm(x[:, None] - x[pivots], axis=2)
    x *= (lengths * distance).sum() / max((lengths**2).sum(), 1e-12)
    x += rng.normal(scale=0.3, size=x.shape)
    near = graph
    second = sparse.csr_array(graph @ graph)
    if second.nnz <= _MAX_SECOND * len(x):
        second.data[:] = 2.0
        second = second - second.multiply(graph > 0)
        second.setdiag(0)
        second.eliminate_zeros()
        near = sparse.csr_array(graph + second)
    start, end = near.nonzero()
    length: Floats = near.data
    # Pivots stand for all nodes, near pairs for themselves.
    near_weight = 1 / length**2
    far_weight = np.where(distance > 0, 1 / np.maximum(distance, 1) ** 2, 0)
    far_weight *= len(x) / len(pivots) / 20
    total = far_weight.sum(axis=1) + np.bincount(start, near_weight, minlength=len(x))
    for _ in range(_STEPS):
        pull = _pull(x[:, None], x[pivots][None], distance, far_weight).sum(axis=1)
        near_pull = _pull(x[start], x[end], length, near_weight)
        pull += np.stack([np.bincount(start, one, minlength=len(x)) for one in near_pull.T], 1)
        x = pull / total[:, None]
    # The longer axis is horizontal.
    middle = x - x.mean(axis=0)
    turned: Floats = middle @ np.linalg.svd(middle, full_matrices=False)[2].T
    return turned


def _pull(u: Floats, v: Floats, length: Floats, weight: Floats) -> Floats:
    """Return where u is at a distance `length` from v, in the direction that it has, weighted."""
    between = u - v
    norm = np.sqrt((between**2).sum(axis=-1)) + 1e-9
    pull: Floats = weight[..., None] * (v + (length / norm)[..., None] * between)
    return pull


def _pivots(graph: sparse.csr_array, number: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Choose nodes far from each other; return them and the (N, number) distances to them."""
    pivots, columns = [int(rng.integers(graph.shape[0]))], list[Floats]()
    while True:
        columns.append(csgraph.dijkstra(graph, indices=pivots[-1], unweighted=True))
        if len(pivots) == number:
            return np.array(pivots), np.stack(columns, axis=1)
        pivots.append(int(np.min(columns, axis=0).argmax()))


def _side_by_side(positions: Floats, parts: list[Ints]) -> Floats:
    """Put components into rows, the largest ones first, as wide together as they are high."""
    corners = np.array([positions[part].min(axis=0) for part in parts])
    sizes = np.array([np.ptp(positions[part], axis=0) for part in parts]) + 1.5
    width = max(np.sqrt(sizes.prod(axis=1).sum()), sizes[:, 0].max())
    left = bottom = height = 0.0
    for i in np.lexsort([-sizes[:, 0], -sizes[:, 1]]):
        if left + sizes[i, 0] > width and left > 0:
            left, bottom, height = 0.0, bottom - height, 0.0
        height = max(height, sizes[i, 1])
        corner = np.array([left, bottom - sizes[i, 1]])
        positions[parts[i]] += corner - corners[i]
        left += sizes[i, 0]
    return positions

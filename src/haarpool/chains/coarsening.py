"""From a graph to its chain: cluster, coarsen, and repeat."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from haarpool._types import Floats, Ints, Measure, Order
from haarpool.chains.adjacency import as_adjacency, as_array
from haarpool.chains.chain import Chain
from haarpool.chains.clustering import ClusteringFunction, cluster
from haarpool.chains.graph_batch import GraphBatch, coarse_batch
from haarpool.chains.recipe import Recipe
from haarpool.errors import HaarPoolError


def build_chain(
    graph: Any,
    num_levels: int | Recipe | None = None,
    ratio: float | Iterable[float] = 0.5,
    top: int | None = 1,
    method: str | ClusteringFunction = "spectral",
    seed: int = 0,
    sizes: Iterable[int] | Literal["paper"] | None = None,
    order: Order = "degree",
    measure: Measure = "children",
    symmetrize: bool = False,
    options: Mapping[str, Any] | None = None,
    *,
    features: ArrayLike | None = None,
) -> Chain:
    """Coarsen a graph step by step into a chain.

    Each step clusters the N_j nodes of a level, edge weights and self-loops included, into
    floor(ratio · N_j) clusters, at least one. A graph that is too small for a step keeps its nodes
    there, so every graph gets the same number of levels. A method that chooses the number of
    clusters itself (`dbscan`, `leiden`, ...) ignores the ratio; if it merges nothing, `matching`
    does the step.

    Args:
        graph: N nodes, in any form that `as_adjacency` takes: scipy sparse or dense array, networkx
            graph, PyG `Data`.
        num_levels: Number of steps K >= 1; `None` takes as many as the ratio needs to reach one
            node. Or a `Recipe`, instead of all parameters up to `options`.
        ratio: Share of the nodes that a step keeps, in (0, 1); one number, or one per level.
        top: 1 makes the last step merge all remaining nodes, `None` leaves it to the ratio.
        method: Clustering method: a name from `clusterings()`, or a function (see `register`).
        seed: Seed of methods that use random numbers.
        sizes: Number of clusters of every step, instead of `ratio` and `top`. "paper" takes
            floor(N_j / 2) + 1, as the authors' code does, and one cluster once N_j <= 2.
        order: Order of clusters and of their members: "degree" (descending weighted degree without
            self-loops, ties by index) or "index".
        measure: Weight of a member in its cluster: "children" (all members count the same, as in
            the paper) or "mass" (by the number of level-0 nodes below it).
        symmetrize: Make an asymmetric adjacency matrix symmetric, see `as_adjacency`.
        options: Options of the method by name: `haarpool methods` lists them.
        features: (N, d) node features for methods that read them; those of a cluster are the mean
            over its level-0 nodes.

    Returns:
        The chain; it keeps the graph.

    Example:
        >>> import networkx as nx
        >>> build_chain(nx.karate_club_graph(), num_levels=3)
        Chain(34 -> 17 -> 8 -> 1)
        >>> build_chain(nx.karate_club_graph(), num_levels=3, top=None)
        Chain(34 -> 17 -> 8 -> 4)
        >>> build_chain(nx.karate_club_graph(), sizes=[10, 4], method="matching")
        Chain(34 -> 10 -> 4)
    """
    recipe = Recipe.of(
        num_levels, ratio, top, method, seed, sizes, order, measure, symmetrize, options
    )
    adjacency = as_adjacency(graph, symmetrize=recipe.symmetrize)
    columns = None if features is None else as_features(features, adjacency.shape[0], recipe)
    coarse: list[GraphBatch] = []
    ((parents, _),) = coarsen(GraphBatch.of(adjacency), recipe, columns, coarse)
    # Sums of whole numbers do not depend on their order; others may differ in the last bit.
    exact = (adjacency.data % 1 == 0).all() and adjacency.data.sum() < 2**53
    known = tuple(coarse) if exact else ()
    return Chain(tuple(parents), recipe.order, recipe.measure, adjacency, known)


def coarsen(
    batch: GraphBatch,
    recipe: Recipe,
    features: Floats | None = None,
    coarse: list[GraphBatch] | None = None,
) -> list[tuple[list[Ints], list[float]]]:
    """Coarsen every graph of a batch; all graphs take a step at the same time.

    Args:
        batch: The graphs.
        recipe: All parameters of the chains.
        features: (N, d) node features of all graphs, or None.
        coarse: A list that receives the coarse graphs of levels 1, ..., K-1.

    Returns:
        For each graph the parent vectors and the seconds of its steps. The time of a step is
        shared among the graphs by their nodes.
    """
    starts, parents, seconds = [batch.start], list[Ints](), list[float]()
    options = dict(recipe.options or {})
    mass: Floats = np.ones(0 if features is None else len(features))
    while True:
        began = time.perf_counter()
        targets = num_clusters(recipe, len(parents), batch.sizes)
        parent = cluster(batch, targets, recipe.clustering, recipe.seed, features, options)
        parents.append(parent)
        seconds.append((time.perf_counter() - began) / len(parent))
        # Clusters are numbered by their first members, so those of a graph are consecutive again.
        starts.append(batch.start.copy())
        starts[-1][1:] = np.maximum.reduceat(parent, batch.start[:-1]) + 1
        if len(parents) == recipe.num_levels:
            break
        if recipe.num_levels is None and starts[-1][-1] == len(batch):
            break  # every graph has one node left
        batch = coarse_batch(batch, parent, starts[-1])
        if coarse is not None:
            coarse.append(batch)
        if features is not None:
            weight: Floats = np.bincount(parent, mass).astype(np.float64, copy=False)
            sums = [np.bincount(parent, mass * column) for column in features.T]
            features, mass = np.stack(sums, axis=1) / weight[:, None], weight
    levels = list(zip(parents, starts, starts[1:], seconds, strict=False))
    return [_steps(g, levels, recipe) for g in range(len(batch))]


def num_clusters(recipe: Recipe, level: int, sizes: Ints) -> Ints:
    """Return how many clusters to make of graphs with these sizes at a level."""
    if isinstance(recipe.sizes, tuple):
        return np.minimum(recipe.sizes[level], sizes)
    if recipe.top == 1 and recipe.num_levels == level + 1:
        return np.ones_like(sizes)
    if recipe.sizes == "paper":
        return np.where(sizes <= 2, 1, sizes // 2 + 1)
    ratio = recipe.ratio[level] if isinstance(recipe.ratio, tuple) else recipe.ratio
    # The small number keeps 0.29 · 100 from being 28.
    return np.maximum(1, (ratio * sizes + 1e-9).astype(np.int64))


def _steps(
    g: int, levels: list[tuple[Ints, Ints, Ints, float]], recipe: Recipe
) -> tuple[list[Ints], list[float]]:
    """Return the parent vectors and the seconds of one graph of a batch."""
    parents, seconds = list[Ints](), list[float]()
    for parent, start, start_above, seconds_per_node in levels:
        local = parent[start[g] : start[g + 1]] - start_above[g]
        if recipe.num_levels is None and parents and len(local) == 1:
            break  # other graphs of the batch need more steps
        parents.append(local)
        seconds.append(len(local) * seconds_per_node)
    return parents, seconds


def as_features(features: Any, size: int, recipe: Recipe) -> Floats:
    """Return node features as (N, d) numbers, or raise an error."""
    columns = as_array(features, "features")
    if columns.dtype.kind not in "biuf" or columns.ndim != 2 or len(columns) != size:
        raise HaarPoolError(
            f"of shape ({size}, d), real numbers, one row per node",
            f"shape {columns.shape}, dtype {columns.dtype}",
            "pass a matrix with as many rows as the graph has nodes",
            parameter="features",
        )
    if not np.isfinite(columns).all():
        expected, remedy = "that are finite", "clean or drop these columns"
        raise HaarPoolError(expected, "NaN or infinity", remedy, parameter="features")
    if not recipe.clustering.takes_features:
        raise HaarPoolError(
            "that reads features",
            f"{recipe.clustering.name!r}",
            "leave {features} out, or pass for example {method}",
            parameter="method",
            features=...,
            method="kmeans",
        )
    return columns.astype(np.float64)

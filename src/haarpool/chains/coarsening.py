"""From a graph to its chain: cluster, coarsen, and again."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from haarpool._types import Floats, Ints, Measure, Order
from haarpool.chains.adjacency import as_adjacency, as_array
from haarpool.chains.chain import Chain, check_choices
from haarpool.chains.clustering import Clustering, cluster
from haarpool.chains.graph_batch import GraphBatch, coarse_batch
from haarpool.chains.recipe import Ratio, Recipe, Sizes
from haarpool.errors import HaarPoolError


def build_chain(
    graph: Any,
    num_levels: int | None = None,
    ratio: Ratio = 0.5,
    top: int | None = 1,
    method: str | Clustering = "spectral",
    seed: int = 0,
    *,
    sizes: Sizes = None,
    features: ArrayLike | None = None,
    order: Order = "degree",
    measure: Measure = "children",
    symmetrize: bool = False,
    **options: Any,
) -> Chain:
    """Coarsen a graph step by step into a chain.

    Each step clusters the N_j nodes of a level, edge weights and self-loops included, into
    floor(ratio · N_j) clusters or a few less, at least one. A graph too small for a step keeps its
    nodes there, so that every graph has the same number of levels. A method that chooses the
    number of clusters itself (`dbscan`, `leiden`, ...) is left to it; where it would merge nothing,
    `matching` does the step.

    Args:
        graph: N nodes, in any form that `as_adjacency` takes: scipy sparse or dense array,
            networkx graph, PyG `Data`.
        num_levels: K >= 1, the number of steps; `None` takes as many as the ratio needs to come
            down to one node.
        ratio: nodes kept per step, in (0, 1); one number, or one per level.
        top: 1 makes the last step merge everything that is left; `None` leaves it to the ratio.
        method: the clustering: a name out of `clusterings()`, or a function (see `register`).
        seed: for methods that draw at random.
        sizes: instead of `ratio` and `top` the number of clusters of every step; "paper" takes
            floor(N_j / 2) + 1, as the authors' code does, and one once N_j <= 2.
        features: (N, d) node features for methods that look at them; those of a cluster are the
            mean over its level-0 nodes.
        order, measure: see `Chain`.
        symmetrize: see `as_adjacency`.
        options: passed to the method.

    >>> import networkx as nx
    >>> build_chain(nx.karate_club_graph(), num_levels=3)
    Chain(34 -> 17 -> 8 -> 1)
    >>> build_chain(nx.karate_club_graph(), num_levels=3, top=None)
    Chain(34 -> 17 -> 8 -> 4)
    >>> build_chain(nx.karate_club_graph(), sizes=[10, 4], method="matching")
    Chain(34 -> 10 -> 4)
    """
    recipe = Recipe.of(num_levels, ratio, top, method, seed, sizes, **options)
    check_choices(order, measure)
    adjacency = as_adjacency(graph, symmetrize=symmetrize)
    columns = None if features is None else as_features(features, adjacency.shape[0], recipe)
    (steps,) = coarsen(GraphBatch.of(adjacency), recipe, columns)
    return Chain(tuple(steps.parents), order, measure, adjacency)


class Steps(NamedTuple):
    """What coarsening a graph gave: parent vectors, and how long each of them took."""

    parents: list[Ints]
    seconds: list[float]


def coarsen(batch: GraphBatch, recipe: Recipe, features: Floats | None = None) -> list[Steps]:
    """The steps of every graph of a batch; all take a step at the same time.

    The seconds of a step are shared among the graphs by their nodes.
    """
    starts, parents, seconds = [batch.start], list[Ints](), list[float]()
    mass = np.ones(batch.start[-1])
    while True:
        began = time.perf_counter()
        targets = recipe.targets(len(parents), batch.sizes)
        options = dict(recipe.options)
        parent = cluster(batch, targets, recipe.method, recipe.seed, features, options)
        parents.append(parent)
        seconds.append((time.perf_counter() - began) / batch.start[-1])
        # Clusters are numbered by first members, so those of a graph lie together again.
        starts.append(np.concatenate([[0], np.maximum.reduceat(parent, batch.start[:-1]) + 1]))
        if len(parents) == recipe.num_levels:
            break
        if recipe.num_levels is None and starts[-1][-1] == len(batch):
            break  # every graph has come down to one node
        batch = coarse_batch(batch, parent, starts[-1])
        if features is not None:
            weight = np.bincount(parent, mass)
            sums = [np.bincount(parent, mass * column) for column in features.T]
            features, mass = np.stack(sums, axis=1) / weight[:, None], weight
    levels = list(zip(parents, starts, starts[1:], seconds, strict=False))
    return [_of_graph(g, levels, recipe) for g in range(len(batch))]


def _of_graph(g: int, levels: list[tuple[Ints, Ints, Ints, float]], recipe: Recipe) -> Steps:
    steps = Steps([], [])
    for parent, start, above, seconds_per_node in levels:
        own = parent[start[g] : start[g + 1]] - above[g]
        if recipe.num_levels is None and steps.parents and len(own) == 1:
            break  # other graphs of the batch needed more steps
        steps.parents.append(own)
        steps.seconds.append(len(own) * seconds_per_node)
    return steps


def as_features(features: Any, size: int, recipe: Recipe) -> Floats:
    """Node features as (N, d) numbers, or an error."""
    columns = as_array(features, "features")
    if columns.dtype.kind not in "biuf" or columns.ndim != 2 or len(columns) != size:
        raise HaarPoolError(
            f"features of shape ({size}, d), real numbers, one row per node",
            f"shape {columns.shape}, dtype {columns.dtype}",
            "pass a matrix with as many rows as the graph has nodes",
        )
    if not np.isfinite(columns).all():
        raise HaarPoolError("finite features", "NaN or infinity", "clean or drop these columns")
    if not recipe.method.takes_features:
        raise HaarPoolError(
            "features together with a method that looks at them",
            f"method {recipe.method.name!r}",
            "leave them out, or take for example method='kmeans'",
        )
    return columns.astype(np.float64)

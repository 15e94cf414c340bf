"""Statistics of clusters, to compare clustering methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import entry_rows
from haarpool.chains.chain import Chain, check_chain
from haarpool.chains.graph_batch import GraphBatch, coarse_batch


class StepQuality(NamedTuple):
    """Statistics of one step of a chain, or their means over the chains of a dataset.

    Attributes:
        level: The level that is clustered.
        nodes: Number of nodes of this level.
        clusters: Number of clusters, the nodes of the next level.
        cut: Share of the edge weight between clusters, without self-loops.
        balance: Size of the largest cluster divided by the mean size.
        singletons: Share of clusters with one member.
        seconds: Time to compute the clusters, NaN if unknown.
    """

    level: int
    nodes: float
    clusters: float
    cut: float
    balance: float
    singletons: float
    seconds: float = np.nan


def step_quality(chain: Chain, level: int) -> StepQuality:
    """Return statistics of the clusters of a level.

    Args:
        chain: A chain that knows its graph.
        level: j in 0..K-1.

    Example:
        >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
        >>> chain = Chain.from_parents([[0, 0, 1, 1]], adjacency=path)
        >>> step_quality(chain, 0)[:6]
        (0, 4.0, 2.0, 0.3333333333333333, 1.0, 0.0)
    """
    check_chain(chain)
    level = chain.check_level(level, highest=chain.num_levels - 1)
    batch = GraphBatch.of(chain.adjacency(level))
    (row,) = _statistics(batch, chain.parents[level], np.array([0, chain.sizes[level + 1]]))
    return StepQuality(level, *row.tolist())


def _statistics(batch: GraphBatch, parent: Ints, start: Ints) -> Floats:
    """Return (graphs, 5): nodes, clusters, cut, balance and singletons of one step of each graph.

    The arguments are those of `coarse_batch`.
    """
    num_graphs = len(batch)
    graph = np.repeat(np.arange(num_graphs), batch.sizes)
    row, column, weight = entry_rows(batch.adjacency), batch.adjacency.indices, batch.adjacency.data
    weight = np.where(row == column, 0, weight)
    total = np.bincount(graph[row], weight, num_graphs)
    between = np.bincount(graph[row], weight * (parent[row] != parent[column]), num_graphs)
    members, clusters = np.bincount(parent), np.diff(start)
    columns = [
        batch.sizes,
        clusters,
        between / np.where(total > 0, total, 1),
        np.maximum.reduceat(members, start[:-1]) * clusters / batch.sizes,
        np.add.reduceat(members == 1, start[:-1], dtype=np.int64) / clusters,
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def dataset_quality(
    batches: Iterable[tuple[GraphBatch, list[tuple[list[Ints], list[float]]]]],
) -> list[StepQuality]:
    """Return the means per level over the graphs with more than one node on it.

    Args:
        batches: Batches of graphs, each with the parent vectors and seconds of its graphs.
    """
    levels: dict[int, list[Floats]] = {}
    for batch, steps in batches:
        num_levels = max(len(parents) for parents, _ in steps)
        for level in range(num_levels):
            # A graph that reached one node earlier than others keeps it.
            parents = [p[level] if level < len(p) else np.zeros(1, np.int64) for p, _ in steps]
            start = np.concatenate([[0], np.cumsum([p.max() + 1 for p in parents])])
            parent = np.concatenate(parents) + np.repeat(start[:-1], batch.sizes)
            times = [seconds[level] if level < len(seconds) else 0.0 for _, seconds in steps]
            rows = np.column_stack([_statistics(batch, parent, start), times])
            levels.setdefault(level, []).append(rows[batch.sizes > 1])
            batch = coarse_batch(batch, parent, start)
    tables = {level: np.concatenate(rows) for level, rows in levels.items()}
    return [
        StepQuality(level, *table.mean(axis=0).tolist())
        for level, table in tables.items()
        if len(table)
    ]

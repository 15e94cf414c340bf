"""What clusters are like: numbers for choosing a method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import entry_rows
from haarpool.chains.chain import Chain
from haarpool.chains.graph_batch import GraphBatch, coarse_batch

Steps = tuple[list[Ints], list[float]]  # parent vectors of a graph, and seconds


class StepQuality(NamedTuple):
    """One step of a chain, or the mean over the chains of a dataset.

    Attributes:
        level: from which the step starts.
        nodes, clusters: before and after it.
        cut: share of the edge weight that runs between clusters, self-loops left out.
        balance: nodes in the largest cluster over nodes in a mean one.
        singletons: share of the clusters that have one member.
        seconds: for computing the clusters, where known.
    """

    level: int
    nodes: float
    clusters: float
    cut: float
    balance: float
    singletons: float
    seconds: float = np.nan


def step_quality(chain: Chain, level: int) -> StepQuality:
    """The quality of the clusters of a level.

    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> chain = Chain.from_parents([[0, 0, 1, 1]], adjacency=path)
    >>> step_quality(chain, 0)[:6]
    (0, 4.0, 2.0, 0.3333333333333333, 1.0, 0.0)
    """
    level = chain.check_level(level, highest=chain.num_levels - 1)
    batch = GraphBatch.of(chain.adjacency(level))
    (row,) = _measured(batch, chain.parents[level], np.array([0, chain.sizes[level + 1]]))
    return StepQuality(level, *row.tolist())


def _measured(batch: GraphBatch, parent: Ints, start: Ints) -> Floats:
    """(graphs, 5) nodes, clusters, cut, balance, singletons of one step of all graphs."""
    graphs = len(batch)
    owner = np.repeat(np.arange(graphs), batch.sizes)
    row, column, weight = entry_rows(batch.adjacency), batch.adjacency.indices, batch.adjacency.data
    weight = np.where(row == column, 0, weight)
    total = np.bincount(owner[row], weight, graphs)
    between = np.bincount(owner[row], weight * (parent[row] != parent[column]), graphs)
    members, clusters = np.bincount(parent), np.diff(start)
    columns = [
        batch.sizes,
        clusters,
        between / np.where(total > 0, total, 1),
        np.maximum.reduceat(members, start[:-1]) * clusters / batch.sizes,
        np.add.reduceat(members == 1, start[:-1], dtype=np.int64) / clusters,
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def dataset_quality(batches: Iterable[tuple[GraphBatch, list[Steps]]]) -> list[StepQuality]:
    """Per level the means over those graphs that still have something to merge there."""
    levels: dict[int, list[Floats]] = {}
    for batch, steps in batches:
        depth = max(len(parents) for parents, _ in steps)
        for level in range(depth):
            # A graph that has come down to one node earlier than others stays there.
            own = [p[level] if level < len(p) else np.zeros(1, np.int64) for p, _ in steps]
            start = np.concatenate([[0], np.cumsum([p.max() + 1 for p in own])])
            parent = np.concatenate(own) + np.repeat(start[:-1], batch.sizes)
            spent = [seconds[level] if level < len(seconds) else 0.0 for _, seconds in steps]
            rows = np.column_stack([_measured(batch, parent, start), spent])
            levels.setdefault(level, []).append(rows[batch.sizes > 1])
            batch = coarse_batch(batch, parent, start)
    means = {level: np.concatenate(rows) for level, rows in levels.items()}
    return [StepQuality(k, *m.mean(axis=0).tolist()) for k, m in means.items() if len(m)]

"""What clusters are like: numbers for choosing a method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from haarpool.chain import Chain
from haarpool.graph import entry_rows


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


def step_quality(chain: Chain, level: int, seconds: float = np.nan) -> StepQuality:
    """The quality of the clusters of a level.

    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> chain = Chain.from_parents([[0, 0, 1, 1]], adjacency=path)
    >>> step_quality(chain, 0)[:6]
    (0, 4, 2, 0.3333333333333333, 1.0, 0.0)
    """
    parent = chain.parents[chain.check_level(level, highest=chain.num_levels - 1)]
    graph = chain.adjacency(level)
    members = np.bincount(parent)
    between = parent[entry_rows(graph)] != parent[graph.indices]
    weight = graph.data.sum()
    cut = float(graph.data[between].sum() / weight) if weight else 0.0
    return StepQuality(
        level,
        len(parent),
        len(members),
        cut,
        float(members.max() / members.mean()),
        float((members == 1).mean()),
        seconds,
    )


def dataset_quality(chains: Iterable[Chain], seconds: Iterable[list[float]]) -> list[StepQuality]:
    """Per level the means over those chains that still have something to merge there."""
    levels: dict[int, list[StepQuality]] = {}
    for chain, times in zip(chains, seconds, strict=True):
        for level, size in enumerate(chain.sizes[:-1]):
            if size > 1:
                levels.setdefault(level, []).append(step_quality(chain, level, times[level]))
    return [StepQuality(*np.mean(steps, axis=0).tolist()) for steps in levels.values()]

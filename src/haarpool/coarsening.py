"""From a graph to its chain: cluster, coarsen, and again."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

from haarpool.chain import Chain, Ints, Measure, Order
from haarpool.clustering import check_method, cluster
from haarpool.errors import HaarPoolError
from haarpool.graph import as_adjacency, coarse_graph


def build_chain(
    graph: Any,
    num_levels: int | None = None,
    ratio: float = 0.5,
    top: int | None = 1,
    method: str = "spectral",
    seed: int = 0,
    *,
    order: Order = "degree",
    measure: Measure = "children",
    symmetrize: bool = False,
    **options: Any,
) -> Chain:
    """Coarsen a graph step by step into a chain.

    Each step clusters the N_j nodes of a level, edge weights and self-loops included, into
    floor(ratio · N_j) clusters or a few less, at least one. A level with one node is repeated, so
    that every graph has the same number of levels, however small it is.

    Args:
        graph: N nodes, in any form that `as_adjacency` takes: scipy sparse or dense array,
            networkx graph, PyG `Data`.
        num_levels: K >= 1, the number of steps; `None` takes as many as the ratio needs to come
            down to one node.
        ratio: nodes kept per step, in (0, 1).
        top: 1 makes the last step merge everything that is left; `None` leaves it to the ratio.
        method: the clustering; "spectral" so far.
        seed: for methods that draw at random.
        order, measure: see `Chain`.
        symmetrize: see `as_adjacency`.
        options: passed to the method.

    >>> import networkx as nx
    >>> build_chain(nx.karate_club_graph(), num_levels=3)
    Chain(34 -> 17 -> 8 -> 1)
    >>> build_chain(nx.karate_club_graph(), num_levels=3, top=None)
    Chain(34 -> 17 -> 8 -> 4)
    """
    check_method(method, options)
    steps = _checked_steps(num_levels)
    if not (isinstance(ratio, Real) and 0 < ratio < 1):
        raise HaarPoolError("a ratio in (0, 1)", f"{ratio!r}", "pass for example ratio=0.5")
    if top not in (1, None):
        raise HaarPoolError(
            "top=1 (one node at the top) or top=None",
            f"top={top!r}",
            "leave the size of the top to the ratio with top=None",
        )
    adjacency = as_adjacency(graph, symmetrize=symmetrize)
    parents: list[Ints] = []
    current = adjacency
    while len(parents) != steps and not (steps is None and current.shape[0] == 1 and parents):
        last = steps is not None and len(parents) == steps - 1
        # The small number keeps 0.29 · 100 from being 28.
        size = 1 if last and top == 1 else max(1, int(ratio * current.shape[0] + 1e-9))
        parents.append(cluster(current, size, method=method, seed=seed, **options))
        current = coarse_graph(current, parents[-1])
    return Chain.from_parents(parents, adjacency=adjacency, order=order, measure=measure)


def _checked_steps(num_levels: int | None) -> int | None:
    if num_levels is None:
        return None
    try:
        steps = operator.index(num_levels)
    except TypeError:
        steps = 0
    if steps < 1:
        raise HaarPoolError(
            "num_levels >= 1, or None to go on to one node",
            f"{num_levels!r}",
            "count the poolings of your network",
        )
    return steps

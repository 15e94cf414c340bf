"""Tree order: the nodes of each level cluster by cluster, these in the order of the level above.

Then the members of a cluster are neighbours in memory on every level, as are clusters with the same
parent, and so on up. Transforms and convolutions read a signal from its first row to its last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from haarpool._types import Ints
from haarpool.chains.graph_batch import GraphBatch

if TYPE_CHECKING:
    from haarpool.chains.chain import Chain


class Reordered(NamedTuple):
    """A chain in tree order.

    Attributes:
        chain: The chain of the renumbered graph.
        order: (N_0,) The number that each node had before: node i was node `order[i]`.
    """

    chain: Chain
    order: Ints


def reorder(chain: Chain) -> Reordered:
    """Renumber the nodes of all levels of a chain, see `Chain.reorder`."""
    orders = orders_of(chain)
    parents = [
        inverse(above)[parent[order]]
        for parent, order, above in zip(chain.parents, orders, orders[1:], strict=False)
    ]
    known = zip(chain.known_graphs, orders, strict=False)
    graphs = [_renumber(graph, order) for graph, order in known]
    input_graph = graphs[0] if graphs else None
    coarse = tuple(map(GraphBatch.of, graphs[1:]))
    new = replace(chain, parents=tuple(parents), input_graph=input_graph, coarse=coarse)
    return Reordered(new, orders[0])


def inverse(order: Ints) -> Ints:
    """Return the inverse of a permutation: the new number of each old one."""
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def orders_of(chain: Chain) -> list[Ints]:
    """Return for each level the old numbers of its nodes, in tree order."""
    orders = [chain.ordering(chain.num_levels)]
    for j in reversed(range(chain.num_levels)):
        nodes = chain.ordering(j)
        cluster = inverse(orders[0])[chain.parents[j][nodes]]
        orders.insert(0, nodes[np.argsort(cluster, kind="stable")])
    return orders


def _renumber(graph: sparse.csr_array, order: Ints) -> sparse.csr_array:
    """Return a graph whose node i is node order[i] of the given one; its entries are the same."""
    rows = graph[order]
    columns = inverse(order).astype(rows.indices.dtype)[rows.indices]
    result = sparse.csr_array((rows.data, columns, rows.indptr), shape=graph.shape)
    result.sort_indices()
    return result

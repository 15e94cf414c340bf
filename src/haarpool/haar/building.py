"""From chains to the tensors of `ChainTensors`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import entry_rows
from haarpool.chains.chain import Chain
from haarpool.chains.graph_batch import GraphBatch
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import START, TensorDict, Tree
from haarpool.haar.edge_features import EdgeFeatures, reversed_edges
from haarpool.haar.joining import JoinedTensors


def chain_tensors(
    chain: Chain, *, edges: bool = True, features: EdgeFeatures | None = None
) -> TensorDict:
    """Build all tensors of a chain; with `edges`, those of the coarse graphs, too.

    For these, the chain must know its graph. With `features` of the edges of the input graph,
    those of coarse edges are among them.
    """
    parents = (*chain.parents, np.zeros(chain.sizes[-1], np.int64))
    graphs = chain.graphs[1:] if edges or chain.order == "degree" else ()
    coarse = tuple(map(GraphBatch.of, graphs))
    forest = Chain(parents, chain.order, chain.measure, chain.input_graph, coarse)
    return joined_tensors(forest, edges=edges, features=features).tensors


def joined_tensors(
    forest: Chain, *, edges: bool = True, features: EdgeFeatures | None = None
) -> JoinedTensors:
    """Build the tensors of many chains at once, which is much faster than one by one.

    Args:
        forest: The chains side by side as one chain, graph by graph on every level, with one more
            step: the nodes of its last level are the graphs.
        edges: See `chain_tensors`.
        features: See `chain_tensors`; those of all graphs, with nodes numbered as in the forest.
    """
    if forest.sizes[0] >= 2**31:
        raise HaarPoolError("fewer than 2^31 nodes", f"{forest!r}", "use smaller graphs")
    K, G = forest.num_levels - 1, forest.sizes[-1]
    levels = _level_nodes(forest)
    trees = [np.zeros((len(Tree), size), np.int32) for size in forest.sizes[:-1]]
    arrays: dict[str, NDArray[Any]] = {}
    lengths: dict[str, Ints] = {}
    for j, tree in enumerate(trees):
        _fill_tree(tree, trees[j + 1] if j < K else None, forest, levels, j)
        arrays[f"haar_tree_{j}"], lengths[f"haar_tree_{j}"] = tree, levels[j].num_nodes
    for j in range(1, K + 1) if edges else ():
        graph = forest.adjacency(j)
        array, trees[j][Tree.EDGE], num_edges = _edges(graph, levels[j])
        arrays[f"haar_edges_{j}"], lengths[f"haar_edges_{j}"] = array, num_edges
        if features is not None:
            features = features.coarser(forest.parents[j - 1])
            before = np.repeat(_starts(num_edges), num_edges)  # edges of the graphs before
            arrays[f"haar_attr_{j}"] = features.of_edges(graph)
            arrays[f"haar_reverse_{j}"] = (reversed_edges(graph) - before).astype(np.int32)[None]
            lengths[f"haar_attr_{j}"] = lengths[f"haar_reverse_{j}"] = num_edges
    # PyG collates in this order. START is last: its rows alone say less about a missing level.
    arrays[START], lengths[START] = np.zeros((K + 2, G), np.int32), np.ones(G, np.int64)
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    for key, tensor in tensors.items():
        if tensor.numel() == 0:  # numpy has strides of 0 here; then it has no view as another type
            tensors[key] = tensor.new_empty(tensor.shape)
    return JoinedTensors(tensors, lengths)


class _LevelNodes(NamedTuple):
    """The nodes of a level of a forest, which are sorted graph by graph."""

    graph: Ints  # (N_j,) graph of each node
    num_nodes: Ints  # (G,) number of nodes of each graph
    start: Ints  # (G,) first node of each graph


def _level_nodes(forest: Chain) -> list[_LevelNodes]:
    graph, levels = np.arange(forest.sizes[-1]), list[_LevelNodes]()
    for parent in (None, *reversed(forest.parents)):
        graph = graph if parent is None else graph[parent]
        num_nodes = np.bincount(graph, minlength=forest.sizes[-1])
        levels.insert(0, _LevelNodes(graph, num_nodes, _starts(num_nodes)))
    return levels


def _fill_tree(
    tree: NDArray[np.int32],
    tree_above: NDArray[np.int32] | None,
    forest: Chain,
    levels: list[_LevelNodes],
    j: int,
) -> None:
    """Fill the rows of `trees[j]`, and CHILD of the level above."""
    parent, (graph, _, start), above = forest.parents[j], levels[j], levels[j + 1]
    ordering = forest.ordering(j)
    nodes = ordering[np.argsort(parent[ordering], kind="stable")]  # cluster by cluster
    cluster = parent[nodes]
    sizes = np.bincount(parent)
    first = _starts(sizes)
    m = forest.measures(j)[nodes].astype(np.int64)
    until = np.cumsum(m)
    total = np.add.reduceat(m, first)
    later = np.repeat(until[first + sizes - 1], sizes) - until
    # The details of a graph come after its coarse coefficients, cluster by cluster in the order of
    # the chain, which is not the order of numbers.
    rank_above = np.empty(len(above.graph), np.int64)
    order_above = forest.ordering(j + 1)
    by_graph = order_above[np.argsort(above.graph[order_above], kind="stable")]
    rank_above[by_graph] = np.arange(len(by_graph))
    num_details = (sizes - 1)[by_graph]
    details_before = _starts(num_details)
    first_detail = details_before - details_before[above.start][above.graph[by_graph]]
    detail = first_detail[rank_above[cluster]] + np.arange(len(nodes)) - first[cluster]
    detail += above.num_nodes[graph[nodes]]
    tree[Tree.PARENT] = parent - above.start[graph]
    tree[Tree.MEMBER] = nodes - start[graph[nodes]]
    tree[Tree.MASS, nodes], tree[Tree.LATER, nodes] = m, later
    tree[Tree.TOTAL, nodes] = total[cluster]
    tree[Tree.DETAIL, nodes] = np.where(later > 0, detail, 0)
    if tree_above is not None:
        tree_above[Tree.CHILD] = first - start[above.graph]


def _edges(graph: sparse.csr_array, level: _LevelNodes) -> tuple[Ints, Ints, Ints]:
    """Return `haar_edges_j`, the first edge of each node, and the number of edges per graph."""
    row = entry_rows(graph)
    first = level.start[level.graph[row]]
    edges = np.stack([row - first, graph.indices - first, *weight_bits(graph.data)])
    num_edges = np.bincount(level.graph[row], minlength=len(level.num_nodes))
    return edges, graph.indptr[:-1] - _starts(num_edges)[level.graph], num_edges


def weight_bits(weights: Floats) -> Ints:
    """Return (2, E) the bits of weights: of float64, and of float32 in the first half."""
    single = np.zeros((len(weights), 2), np.float32)
    with np.errstate(over="ignore"):  # infinite in float32, as after any conversion
        single[:, 0] = weights
    return np.stack([weights.view(np.int64), single.view(np.int64)[:, 0]])


def _starts(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts

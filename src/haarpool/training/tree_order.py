"""Nodes of large graphs in tree order inside minibatches, and in that of the file outside.

A minibatch in tree order has `ORIGINAL_INDEX`, and all that it says about nodes is renumbered. What
comes from outside (which nodes have a label) and goes there (outputs) passes through this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from haarpool._types import Ints
from haarpool.chains.adjacency import entry_rows
from haarpool.chains.chain import Chain
from haarpool.chains.tree_order import Reordered, inverse
from haarpool.haar.joining import JoinedTensors
from haarpool.haar.node_order import ORIGINAL_INDEX
from haarpool.nn import Network

MIN_NODES = 2**16  # of the largest graph; smaller ones fit a cache
GAIN = 2.0  # how much nearer the ends of edges must come: a grid numbered row by row stays


def is_allowed(network: Network, largest: int) -> bool:
    """Return whether the nodes of a dataset are renumbered if that brings neighbours together.

    Args:
        network: The network; its outputs must not depend on numbers.
        largest: Number of nodes of the largest graph.
    """
    return largest >= MIN_NODES and network.ignores_numbering and network.domain == "vertex"


def in_tree_order(forest: Chain) -> Reordered:
    """Return a forest in tree order, or as it is if its edges join near numbers already.

    A training step spends most of its time on edges: with random numbers it is 1.2 times as long as
    in tree order on 65,536 nodes and more, row by row on a grid about as long.
    """
    reordered = forest.reorder()
    if GAIN * _distance(reordered.chain) < _distance(forest):
        return reordered
    return Reordered(forest, np.arange(forest.sizes[0]))


def _distance(forest: Chain) -> float:
    """Return the mean difference between the numbers of the ends of an edge."""
    graph = forest.known_graphs[0]
    return float(np.abs(entry_rows(graph) - graph.indices).mean()) if graph.nnz else 0.0


def renumber(joined: JoinedTensors, order: Ints, *, of_nodes: bool) -> JoinedTensors:
    """Renumber the nodes of the tensors of a dataset, which are x, edge_index, y and others.

    Args:
        joined: The tensors; numbers of nodes start at 0 in each graph.
        order: (N,) the old number of each new node, among the nodes of all graphs. A graph keeps
            its place.
        of_nodes: Whether y has a row per node.
    """
    tensors, lengths = dict(joined.tensors), dict(joined.lengths)
    first = np.cumsum(lengths["x"]) - lengths["x"]
    of_edge = torch.from_numpy(np.repeat(first, lengths["edge_index"]))
    of_node = np.repeat(first, lengths["x"])
    rank = torch.from_numpy(inverse(order) - of_node)
    tensors["edge_index"] = rank[tensors["edge_index"] + of_edge]
    for key in ("x", *["y"] * of_nodes):
        if key in tensors:
            tensors[key] = tensors[key].index_select(0, torch.from_numpy(order))
    tensors[ORIGINAL_INDEX] = torch.from_numpy(order - of_node)
    lengths[ORIGINAL_INDEX] = lengths["x"]
    return JoinedTensors(tensors, lengths)


def at_nodes(values: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return values (N,) that stand in the order of the file for the nodes of a minibatch."""
    order = batch.get(ORIGINAL_INDEX)
    return values if order is None else values.index_select(0, order)


def output_rows(network: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """Compute (n, out_channels) outputs, for graphs or nodes in the order of the file."""
    output: Tensor = network(batch).float()
    order = batch.get(ORIGINAL_INDEX)
    if order is not None and network.task.of_nodes:
        output = torch.empty_like(output).index_copy_(-2, order, output)
    return output.flatten(0, -2)

"""Renumber the nodes of a PyG graph, and remember the number that each had before."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from haarpool._types import Ints
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import is_chain_key

if TYPE_CHECKING:
    from torch_geometric.data import Data

# (N,) of a graph in tree order: the number that each node had before. PyG's collation adds the
# number of the nodes before to a key with "index".
ORIGINAL_INDEX = "original_index"


def renumber(data: Data, order: Ints) -> Data:
    """Renumber the nodes of a graph.

    Args:
        data: The graph.
        order: (N,) the old number of each new node.
    """
    for key in ("adj", "adj_t"):
        if key in data:
            expected, got = "a Data with edge_index", f"a Data with {key}"
            raise HaarPoolError(expected, got, "apply AddHaarChain before ToSparseTensor")
    result, nodes = copy.copy(data), torch.from_numpy(order)
    rank = torch.empty_like(nodes)
    rank[nodes] = torch.arange(len(nodes))
    x = data.get("x")
    has_signals = isinstance(x, Tensor) and x.ndim == 3 and x.shape[1] == len(nodes)
    signals = x.shape[:2] if has_signals else None
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor) and signals is not None and value.shape[:2] == signals:
            result[key] = value.index_select(1, nodes.to(value.device))
        elif ("index" in key or key == "face") and key != ORIGINAL_INDEX:  # numbers of nodes
            if isinstance(value, Tensor):
                result[key] = rank.to(value.device)[value]
        elif not is_chain_key(key) and data.is_node_attr(key):
            result[key] = _take(value, nodes, data.__cat_dim__(key, value))
    if ORIGINAL_INDEX not in data:
        result[ORIGINAL_INDEX] = nodes
    return result


def _take(values: Any, nodes: Tensor, dimension: int) -> Any:
    """Return the values of some nodes: of a tensor, an array or a list."""
    if isinstance(values, Tensor):
        return values.index_select(dimension, nodes.to(values.device))
    if isinstance(values, np.ndarray):
        return values.take(nodes.numpy(), dimension)
    return type(values)(values[node] for node in nodes.tolist())

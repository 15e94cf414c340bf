"""How graphs are joined to a batch: one table, which PyG's collation and our minibatches read.

An index counts the entries of a tensor of its graph: PARENT, for example, those of the tree of the
next level. In a batch the entries of the graphs before come first, so their number is added to it.
`counted` says for each row of a tensor which tensor it counts; all else follows from that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from haarpool._types import Ints
from haarpool.haar.chain_tensors import (
    START,
    TensorDict,
    Tree,
    is_chain_key,
    kind_and_level,
    missing_chain,
)

DIMENSION = -1  # along which the tensors of chains are concatenated


@cache
def counted(key: str, num_levels: int) -> tuple[str | None, ...]:
    """Return for each row of a tensor of chains the key of the tensor whose entries it counts.

    Args:
        key: The key of the tensor.
        num_levels: K of the chains.

    Returns:
        A key per row, or `None` for a row that is no index; nothing for tensors without an index.

    Example:
        >>> counted("haar_edges_1", num_levels=2)
        ('haar_tree_1', 'haar_tree_1', None, None)
    """
    nodes = [*(f"haar_tree_{j}" for j in range(num_levels + 1)), START]  # of level K+1: the graphs
    kind, j = kind_and_level(key)
    if key == START:
        return tuple(nodes)
    if kind == "edges":
        return nodes[j], nodes[j], None, None
    if kind == "reverse":
        return (f"haar_edges_{j}",)
    if kind != "tree":
        return ()
    rows = {
        Tree.PARENT: nodes[j + 1],
        Tree.MEMBER: nodes[j],
        Tree.GRAPH: START,
        Tree.CHILD: nodes[j - 1] if j > 0 else None,
        Tree.EDGE: f"haar_edges_{j}",
    }
    return tuple(rows.get(row) for row in Tree)


def increments(tensors: Mapping[str, Tensor]) -> TensorDict:
    """Return by key what a graph, or a batch, adds to the rows of the next one, (rows, 1)."""
    if START not in tensors:
        raise missing_chain(tensors)
    num_levels = tensors[START].shape[0] - 2
    chains = {key: value for key, value in tensors.items() if is_chain_key(key)}
    lengths: dict[str | None, int] = {k: value.shape[DIMENSION] for k, value in chains.items()}
    return {
        key: torch.tensor([[lengths.get(one, 0)] for one in rows], dtype=value.dtype)
        for key, value in chains.items()
        if (rows := counted(key, num_levels))
    }


def concatenate(parts: Sequence[TensorDict]) -> TensorDict:
    """Make the batch of some graphs from their chain tensors, as PyG does."""
    if len(parts) == 1:
        return parts[0]
    batch, more = {}, [increments(part) for part in parts]
    for key in parts[0]:
        values, total = [], torch.zeros((), dtype=torch.int32)
        for part, increment in zip(parts, more, strict=True):
            values.append(part[key] + total)
            total = total + increment[key]
        batch[key] = torch.cat(values, DIMENSION)
    return batch


class JoinedTensors(NamedTuple):
    """The tensors of several graphs, concatenated without increments.

    Attributes:
        tensors: Tensors by key.
        lengths: By key, the number of entries of each graph.
    """

    tensors: TensorDict
    lengths: dict[str, Ints]

"""Checks of the parent vectors, the graph and the levels of a chain."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from haarpool._types import Ints
from haarpool._validate import whole_number
from haarpool.chains.adjacency import as_array
from haarpool.errors import HaarPoolError

_RENUMBER = "renumber with np.unique(parents, return_inverse=True)[1]"


def check_input_graph(graph: sparse.csr_array | None, size: int, order: str) -> None:
    """Check that a graph fits a chain over `size` nodes; the order "degree" requires one."""
    if graph is not None and graph.shape[0] != size:
        raise HaarPoolError(
            f"of {size} nodes, the length of parents[0]",
            f"{graph.shape[0]} nodes",
            "pass the graph that was clustered",
            parameter="adjacency",
        )
    if graph is None and order == "degree":
        raise HaarPoolError(
            'of the graph, which sorts the nodes for the order "degree"',
            "none",
            "pass it, or {order}",
            parameter="adjacency",
            order="index",
        )


def checked_parents(parents: Any) -> tuple[Ints, ...]:
    """Check the parent vectors of a `Chain` and return read-only int64 copies of them."""
    vectors = list(parents) if hasattr(parents, "__iter__") else []
    if not vectors:
        expected, remedy = "as a list of vectors", "pass one vector of cluster ids per step"
        raise HaarPoolError(expected, "none", remedy, parameter="parents")
    checked, children = list[Ints](), np.zeros(0, np.int64)
    for j, vector in enumerate(vectors):
        name = f"parents[{j}]"
        parent = as_array(vector, name)
        if parent.ndim != 1 or parent.size == 0:
            raise HaarPoolError(
                "as a vector with one cluster id per node",
                f"shape {parent.shape}",
                "pass a list of one-dimensional arrays, none of them empty, one per step",
                parameter=name,
            )
        if parent.dtype.kind not in "iu":
            raise HaarPoolError(
                "as integer cluster ids",
                f"dtype {parent.dtype}",
                "convert with .astype(int) if the values are whole numbers",
                parameter=name,
            )
        if j > 0 and len(parent) != len(children):
            raise HaarPoolError(
                f"of length {len(children)}, the number of clusters of step {j - 1}",
                f"length {len(parent)}",
                "give every cluster of the previous step one parent",
                parameter=name,
            )
        smallest, largest = int(parent.min()), int(parent.max())
        if smallest < 0 or largest >= len(parent):
            raise HaarPoolError(
                f"with cluster ids in 0..{len(parent) - 1} (at most as many clusters as nodes)",
                f"ids from {smallest} to {largest}",
                _RENUMBER,
                parameter=name,
            )
        children = np.bincount(parent)
        if children.min() == 0:
            raise HaarPoolError(
                "with cluster ids without gaps",
                f"no node in cluster {children.argmin()} (largest id {largest})",
                _RENUMBER,
                parameter=name,
            )
        checked.append(read_only(parent.astype(np.int64)))  # a copy
    return tuple(checked)


def checked_level(level: int, highest: int, owner: str) -> int:
    """Check that a level of `owner`, which error messages name, is in 0..highest."""
    with suppress(TypeError):
        level = operator.index(level)  # a tensor, for example
    remedy = f"levels of {owner} count from 0 (the input graph); a step needs a level above it"
    return whole_number("level", level, 0, highest, remedy=remedy)


def read_only(array: Ints) -> Ints:
    """Make an array read-only, in place."""
    array.setflags(write=False)
    return array

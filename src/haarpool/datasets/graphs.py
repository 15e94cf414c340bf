"""Many graphs with their features and labels as flat arrays: what every reader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats, Ints, Task
from haarpool.chains.adjacency import from_edges, ranges
from haarpool.chains.graph_batch import GraphBatch

MISSING = -1  # the class of a graph without label; a missing value is NaN


@dataclass(frozen=True, eq=False)
class Graphs:
    """Graphs as they were read, before features are encoded.

    Attributes:
        name: of the dataset.
        start: (G + 1,) graph g owns the nodes start[g] .. start[g + 1] - 1.
        edges: (2, E) pairs of nodes, an undirected edge in both directions, graph by graph.
        columns: (N, ...) per node what is known of it, by kind: "labels" whole numbers, others
            (such as "attributes", "atoms", "x") real numbers.
        edge_weight: (E,) or None.
        edge_columns: (E, ...) the same for edges.
        task: what the labels ask for; None without labels.
        targets: (G,) numbers of classes, or (G, T) values.
        classes: their names.
        target_names: (T,) names of the values.
        split: the published one: lists of graphs under "train", "validation", "test".
        ids: (G,) names of graphs, for instance SMILES.
        id_name: what these are.
        places: (G,) the line of its file in which each graph stands.
        numbers: (G,) of each graph in the whole input, for a part of it; None for all of it.
        default_features: the kind of features to take where nobody chose one.
    """

    name: str
    start: Ints
    edges: Ints
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    edge_weight: Floats | None = None
    edge_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    task: Task | None = None
    targets: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    split: Mapping[str, Ints] | None = None
    ids: tuple[str, ...] | None = None
    id_name: str = "graph"
    places: Ints | None = None
    numbers: Ints | None = None
    default_features: str | None = None

    def __len__(self) -> int:
        return len(self.start) - 1

    @cached_property
    def sizes(self) -> Ints:
        """(G,) nodes of each graph."""
        return np.diff(self.start)

    @cached_property
    def edge_start(self) -> Ints:
        """(G + 1,) graph g owns the edges edge_start[g] .. edge_start[g + 1] - 1."""
        counts = np.bincount(self.owner[self.edges[0]], minlength=len(self))
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def owner(self) -> Ints:
        """(N,) the graph of each node."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def batch(self) -> GraphBatch:
        """The graphs as matrices: an edge that is listed twice without weight is one edge."""
        weights = self.edge_weight
        if weights is None:
            weights = np.ones(self.edges.shape[1])
        adjacency = from_edges(self.edges[0], self.edges[1], weights, int(self.start[-1]))
        if self.edge_weight is None:
            adjacency.data[:] = 1
        return GraphBatch(adjacency, self.start)

    @cached_property
    def is_labelled(self) -> NDArray[np.bool_]:
        """(G,) whether a graph has a label, or one of several values."""
        if self.targets is None:
            return np.zeros(len(self), bool)
        if self.task == "classification":
            return np.asarray(self.targets != MISSING)
        return np.asarray(np.isfinite(self.targets).any(axis=1))

    def where(self, graph: int) -> str:
        """A graph in the words of an error, by its number in the whole input, from 0."""
        line = "" if self.places is None else f" (line {self.places[graph]})"
        return f"graph {graph if self.numbers is None else self.numbers[graph]}{line}"

    def take(self, graphs: Ints) -> Graphs:
        """Some of the graphs, in the order given."""
        graphs = np.asarray(graphs, np.int64)
        sizes, edges = self.sizes[graphs], np.diff(self.edge_start)[graphs]
        node, edge = ranges(self.start[graphs], sizes), ranges(self.edge_start[graphs], edges)
        start = np.concatenate([[0], np.cumsum(sizes)])
        shift = np.repeat(start[:-1] - self.start[graphs], edges)
        return replace(
            self,
            start=start,
            edges=self.edges[:, edge] + shift,
            columns={kind: values[node] for kind, values in self.columns.items()},
            edge_weight=None if self.edge_weight is None else self.edge_weight[edge],
            edge_columns={kind: values[edge] for kind, values in self.edge_columns.items()},
            targets=None if self.targets is None else self.targets[graphs],
            split=None,
            ids=None if self.ids is None else tuple(self.ids[g] for g in graphs.tolist()),
            places=None if self.places is None else self.places[graphs],
            numbers=graphs if self.numbers is None else self.numbers[graphs],
        )

    def digest(self) -> str:
        """A hash of all graphs, features and labels."""
        state = sha256(repr((self.task, self.classes, self.target_names)).encode())
        arrays = {"start": self.start, "edges": self.edges, "weight": self.edge_weight}
        arrays |= {"targets": self.targets, **self.columns}
        arrays |= {f"edge {kind}": values for kind, values in self.edge_columns.items()}
        for name, array in arrays.items():
            if array is not None:
                state.update(f"{name} {array.dtype} {array.shape}".encode())
                state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()

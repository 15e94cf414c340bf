"""`Graphs`: many graphs with features and labels as flat arrays. Every reader returns one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import from_edges, ranges
from haarpool.chains.graph_batch import GraphBatch
from haarpool.tasks import Names, Task, find_task


@dataclass(frozen=True, eq=False)
class Graphs:
    """Graphs as they were read, before features are encoded.

    Attributes:
        name: Name of the dataset.
        start: (G + 1,) Graph g has the nodes start[g] .. start[g + 1] - 1.
        edges: (2, E) Pairs of nodes, an undirected edge in both directions, graph by graph;
            `check_graphs` brings those of a reader into this order.
        columns: (N, columns) Node features by kind: "labels" are whole numbers or text, others
            (such as "attributes", "atoms", "x") are real numbers. "pos" are positions: no features
            by default; figures draw the nodes there if these are two columns. Those of signals may
            be stored once, as the edges are: one row for each node of the graph.
        edge_weight: (E,) Edge weights, or None.
        edge_columns: (E, columns) Edge features by kind.
        task: The task; None without labels. The constructor also finds it by its name.
        targets: (G,) Classes, -1 without label; or (G, T) zeros and ones, NaN without label; or
            (G, T) values, NaN without label. For tasks of nodes, N rows instead of G.
        classes: (C,) Names of the classes.
        target_names: (T,) Names of the targets, of tasks with several.
        split: Published split: graphs under "train", "validation" and "test".
        folds: (G,) Published fold of each graph.
        ids: (G,) Names of the graphs, for example SMILES.
        id_name: Kind of these names, the header of their column in a table of predictions.
        lines: (G,) Line of each graph in its file, for errors and predictions.
        numbers: (G,) Number of each graph in the input, for a part of it; None for all of it.
        signals: All graphs have the same nodes and edges, which are stored once: `edges` and what
            belongs to them are those of one graph. Then a graph is a signal on it.
        node_splits: Published splits of the nodes, of a dataset of one graph or of signals.
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
    folds: Ints | None = None
    ids: tuple[str, ...] | None = None
    id_name: str = "name"
    lines: Ints | None = None
    numbers: Ints | None = None
    signals: bool = False
    node_splits: tuple[Mapping[str, Ints], ...] = ()

    def __post_init__(self) -> None:
        """Find the task by its name."""
        object.__setattr__(self, "task", find_task(self.task))

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def names(self) -> Names:
        """Names of what is predicted."""
        return Names(self.classes, self.target_names)

    @property
    def unit(self) -> str:
        """What each of them is: "graph", or "signal"."""
        return "signal" if self.signals else "graph"

    @cached_property
    def sizes(self) -> Ints:
        """(G,) Number of nodes of each graph."""
        return np.diff(self.start)

    @property
    def structure(self) -> Graphs:
        """The graphs without repetition: of signals, the first one alone."""
        return replace(self.take(np.zeros(1, np.int64)), signals=False) if self.signals else self

    @cached_property
    def edge_start(self) -> Ints:
        """(G + 1,) Graph g has the edges edge_start[g] .. edge_start[g + 1] - 1."""
        if self.signals:
            return np.array([0, self.edges.shape[1]])
        counts = np.bincount(self.owner[self.edges[0]], minlength=len(self))
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def owner(self) -> Ints:
        """(N,) Graph of each node."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def batch(self) -> GraphBatch:
        """Adjacency matrices; an edge that is listed twice without weight is one edge.

        Signals have one matrix.
        """
        weights = self.edge_weight
        if weights is None:
            weights = np.ones(self.edges.shape[1])
        start = self.start[:2] if self.signals else self.start
        adjacency = from_edges(self.edges[0], self.edges[1], weights, int(start[-1]))
        if self.edge_weight is None:
            adjacency.data[:] = 1
        return GraphBatch(adjacency, start)

    @cached_property
    def largest_component(self) -> int:
        """Number of nodes of the largest connected component of all graphs."""
        component = connected_components(self.batch.adjacency, directed=False)[1]
        return int(np.bincount(component).max())

    @cached_property
    def is_labelled(self) -> NDArray[np.bool_]:
        """(G,) True if a graph has a label, or at least one of several values."""
        if self.task is None or self.targets is None:
            return np.zeros(len(self), bool)
        labelled = self.task.labelled(self.targets)
        return (
            np.logical_or.reduceat(labelled, self.start[:-1]) if self.has_node_labels else labelled
        )

    @property
    def has_node_labels(self) -> bool:
        """Whether targets have a row per node, not per graph."""
        return self.task is not None and self.task.of_nodes

    def rows(self, graphs: Ints) -> Ints:
        """Return the rows of `targets` that belong to some graphs, by their (n,) numbers."""
        return ranges(self.start[graphs], self.sizes[graphs]) if self.has_node_labels else graphs

    def places(self, rows: Ints) -> list[Ints]:
        """Return where rows of `targets` belong: their graphs, and for tasks of nodes the nodes.

        Args:
            rows: (n,) Numbers of rows.
        """
        if not self.has_node_labels:
            return [rows]
        graph = np.searchsorted(self.start, rows, side="right") - 1
        return [graph, rows - self.start[graph]]

    def where(self, graph: int) -> str:
        """Name a graph for an error message, by its number in the input, from 0."""
        line = "" if self.lines is None else f" (line {self.lines[graph]})"
        return f"{self.unit} {graph if self.numbers is None else self.numbers[graph]}{line}"

    @property
    def shares_positions(self) -> bool:
        """Whether the columns "pos" are stored once for all signals."""
        return self.signals and len(self.columns.get("pos", ())) == self.start[1]

    def positions(self, graph: int) -> Floats | None:
        """Return the (n, 2) positions of the nodes of a graph in the plane, or None without these.

        Args:
            graph: Number of the graph.
        """
        if "pos" not in self.columns or self.columns["pos"].shape[1] != 2:
            return None
        first = 0 if self.shares_positions else self.start[graph]
        positions = self.columns["pos"][first : first + self.sizes[graph]]
        return positions.astype(np.float64) if np.isfinite(positions).all() else None

    def take(self, graphs: Ints) -> Graphs:
        """Select graphs by their (n,) numbers, in any order."""
        graphs = np.asarray(graphs, np.int64)
        sizes = self.sizes[graphs]
        node, start = ranges(self.start[graphs], sizes), np.concatenate([[0], np.cumsum(sizes)])
        edges = self.edges
        edge: Any = slice(None)
        if not self.signals:
            counts = np.diff(self.edge_start)[graphs]
            edge = ranges(self.edge_start[graphs], counts)
            edges = edges[:, edge] + np.repeat(start[:-1] - self.start[graphs], counts)
        return replace(
            self,
            start=start,
            edges=edges,
            columns={
                kind: values if kind == "pos" and self.shares_positions else values[node]
                for kind, values in self.columns.items()
            },
            edge_weight=None if self.edge_weight is None else self.edge_weight[edge],
            edge_columns={kind: values[edge] for kind, values in self.edge_columns.items()},
            targets=None if self.targets is None else self.targets[self.rows(graphs)],
            split=None,
            folds=None,
            ids=None if self.ids is None else tuple(self.ids[g] for g in graphs.tolist()),
            lines=None if self.lines is None else self.lines[graphs],
            numbers=graphs if self.numbers is None else self.numbers[graphs],
        )

    def digest(self) -> str:
        """Return a hash of all graphs, features and labels."""
        state = sha256(repr((self.task, self.classes, self.target_names)).encode())
        arrays = {"start": self.start, "edges": self.edges, "weight": self.edge_weight}
        arrays |= {"targets": self.targets, **self.columns}
        arrays |= {f"edge {kind}": values for kind, values in self.edge_columns.items()}
        arrays["signals"] = np.array(len(self)) if self.signals else None
        for name, array in arrays.items():
            if array is not None:
                state.update(f"{name} {array.dtype} {array.shape}".encode())
                state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()

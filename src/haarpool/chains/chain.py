"""The chain: a graph, its clusters, the clusters of these, and so on.

A chain G_0, ..., G_K of a graph G_0 is one parent vector per step: `parents[j][v]` is the node of
level j+1, that is the cluster, to which node v of level j belongs. Everything else follows from
these vectors, the edge weights of G_0, and two choices: the `order` of clusters and members, and
the `measure` by which the members of a cluster count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from haarpool._files import Arrays, read_arrays, unreadable, write_arrays
from haarpool._types import Floats, Ints, Measure, Order
from haarpool._validate import choice
from haarpool.chains.adjacency import (
    as_adjacency,
    coarse_graph,
    nodes_by_degree,
    without_self_loops,
)
from haarpool.chains.chain_checks import (
    check_input_graph,
    checked_level,
    checked_parents,
    read_only,
)
from haarpool.chains.graph_batch import GraphBatch
from haarpool.chains.tree_order import Reordered, reorder
from haarpool.errors import HaarPoolError

FORMAT = 1  # of the files that `Chain.save` writes


class Members(NamedTuple):
    """The nodes of one level, cluster by cluster, in the order of the chain.

    Cluster number c has the id `clusters[c]` and the members `nodes[start[c]:start[c + 1]]`.
    """

    nodes: Ints
    start: Ints
    clusters: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Chain:
    """A coarse-grained chain G_0 -> ... -> G_K; build it with `from_parents` or `build_chain`.

    Attributes:
        parents: K int64 vectors; `parents[j]` has N_j entries in 0..N_{j+1}-1, all of them used.
        order: "index", or "degree": by descending weighted degree without self-loops, ties by
            index.
        measure: "children": all members of a cluster count the same, as in the paper; "mass": a
            member counts by the number of nodes of G_0 below it.
        input_graph: G_0, or `None` if the chain does not know it.
        coarse: The graphs of levels 1, 2, ... that are known already, with self-loops, each as a
            batch of one; they are neither compared nor pickled.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]])
        >>> chain
        Chain(8 -> 3 -> 1)
        >>> chain.sizes, chain.num_levels, chain.is_filtration
        ((8, 3, 1), 2, True)
    """

    parents: tuple[Ints, ...]
    order: Order = "index"
    measure: Measure = "children"
    input_graph: sparse.csr_array | None = None
    coarse: tuple[GraphBatch, ...] = ()

    @classmethod
    def from_parents(
        cls,
        parents: Sequence[ArrayLike],
        *,
        adjacency: Any = None,
        order: Order = "index",
        measure: Measure = "children",
        symmetrize: bool = False,
    ) -> Chain:
        """Build a chain from given clusterings.

        Args:
            parents: K vectors of cluster ids; vector j has shape (N_j,) and the values
                0..N_{j+1}-1 without gaps.
            adjacency: The graph G_0 in any form that `as_adjacency` takes; required for
                `order="degree"` and for `chain.adjacency`.
            order: "index" or "degree", see the class.
            measure: "children" or "mass", see the class.
            symmetrize: See `as_adjacency`.
        """
        graph = None if adjacency is None else as_adjacency(adjacency, symmetrize=symmetrize)
        return cls(parents, order, measure, graph)  # type: ignore[arg-type]  # see __post_init__

    def __post_init__(self) -> None:
        """Check all fields, also of unpickled chains."""
        choice("order", self.order, get_args(Order))
        choice("measure", self.measure, get_args(Measure))
        object.__setattr__(self, "parents", checked_parents(self.parents))
        check_input_graph(self.input_graph, self.sizes[0], self.order)

    @property
    def num_levels(self) -> int:
        """K, the number of steps; levels are 0..K."""
        return len(self.parents)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """(N_0, ..., N_K), the number of nodes of each level."""
        return *map(len, self.parents), int(self.parents[-1].max()) + 1

    @property
    def has_graph(self) -> bool:
        """Whether the chain knows its graph, which `adjacency` requires."""
        return self.input_graph is not None

    @cached_property
    def is_filtration(self) -> bool:
        """Whether every parent has at least two children, as the paper's locality requires."""
        return all(bool((np.bincount(parent) >= 2).all()) for parent in self.parents)

    def check_level(self, level: int, *, highest: int | None = None) -> int:
        """Check that a level is in 0..highest; `highest` is K by default."""
        return checked_level(level, self.num_levels if highest is None else highest, repr(self))

    def adjacency(self, level: int, *, self_loops: bool = False) -> sparse.csr_array:
        """Return the (N_j, N_j) adjacency matrix of the coarse graph of level j.

        The weight of an edge between clusters is the sum over all pairs of their members.

        Args:
            level: j in 0..K.
            self_loops: Keep the diagonal, as clustering does. Entry (p, p) is the total weight
                inside cluster p, where each undirected edge counts in both directions.

        Example:
            >>> square = [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
            >>> chain = Chain.from_parents([[0, 0, 1, 1]], adjacency=square)
            >>> chain.adjacency(1).toarray().tolist()
            [[0.0, 2.0], [2.0, 0.0]]
            >>> chain.adjacency(1, self_loops=True).toarray().tolist()
            [[2.0, 2.0], [2.0, 2.0]]
        """
        level = self.check_level(level)
        graph = self.graphs[level].copy()
        return graph if self_loops else without_self_loops(graph)

    @cached_property
    def graphs(self) -> tuple[sparse.csr_array, ...]:
        """The graphs of all levels, with self-loops; do not change them."""
        if self.input_graph is None:
            raise HaarPoolError(
                "a chain that knows its graph",
                "a chain made from parents alone",
                "pass {adjacency} to Chain.from_parents",
                adjacency=...,
            )
        graphs = list(self.known_graphs)
        for parent in self.parents[len(graphs) - 1 :]:
            graphs.append(coarse_graph(graphs[-1], parent))
        return tuple(graphs)

    @property
    def known_graphs(self) -> tuple[sparse.csr_array, ...]:
        """The graphs of levels 0, 1, ... that need not be computed; do not change them."""
        if self.input_graph is None:
            return ()
        if "graphs" in self.__dict__:
            return self.graphs
        return self.input_graph, *(batch.adjacency for batch in self.coarse)

    def mass(self, level: int) -> Ints:
        """Return the number of nodes of G_0 below each node of level j, shape (N_j,)."""
        mass = np.ones(self.sizes[0], np.int64)
        for parent in self.parents[: self.check_level(level)]:
            mass = np.bincount(parent, weights=mass).astype(np.int64)
        return mass

    def measures(self, level: int) -> Floats:
        """Return how much each node of level j counts in its cluster, shape (N_j,)."""
        if self.measure == "mass":
            return self.mass(level).astype(np.float64)
        return np.ones(self.sizes[self.check_level(level)])

    def ordering(self, level: int) -> Ints:
        """Return the node ids of level j in the order of the chain, shape (N_j,)."""
        return self._orderings[self.check_level(level)]

    @cached_property
    def _orderings(self) -> tuple[Ints, ...]:
        if self.order == "index":
            return tuple(read_only(np.arange(size)) for size in self.sizes)
        return tuple(read_only(nodes_by_degree(graph)) for graph in self.graphs)

    def members(self, level: int) -> Members:
        """Return the nodes of a level, cluster by cluster.

        The nodes of the top level form one cluster: its basis is the basis of a cluster, too.

        Example:
            >>> chain = Chain.from_parents([[1, 0, 1, 0, 1]])
            >>> nodes, start, _ = chain.members(0)
            >>> nodes.tolist(), start.tolist()
            ([1, 3, 0, 2, 4], [0, 2, 5])
        """
        nodes = self.ordering(level)
        if level == self.num_levels:
            return Members(nodes, np.array([0, len(nodes)]), np.zeros(1, np.int64))
        clusters = self.ordering(level + 1)
        rank = np.empty_like(clusters)
        rank[clusters] = np.arange(len(clusters))
        cluster_rank = rank[self.parents[level][nodes]]
        start = np.concatenate([[0], np.cumsum(np.bincount(cluster_rank))])
        return Members(nodes[np.argsort(cluster_rank, kind="stable")], start, clusters)

    def reorder(self) -> Reordered:
        """Renumber the nodes of all levels depth-first along the tree.

        The members of a cluster then have consecutive numbers on every level, and the clusters are
        in the order of their parents. On large graphs transforms and convolutions are several times
        faster: they read neighbours from memory that is near. Graphs of a batch stay in order.

        The wavelets are the same: for `chain, order = old.reorder()`, entry i of each is entry
        `order[i]` of a wavelet of `old`, so `adjoint(chain, x[order])` has the coefficients of
        `adjoint(old, x)`. Those of the top level come first and in the same order. The details of
        a level come cluster by cluster, and the clusters may come in another order, unless they
        are sorted by degrees of which no two are equal.

        Returns:
            The chain of the renumbered graph, and (N_0,) the old number of each new node.

        Example:
            >>> old = Chain.from_parents([[0, 1, 2, 0, 1, 2], [1, 0, 1], [0, 0]])
            >>> chain, order = old.reorder()
            >>> order.tolist(), [parent.tolist() for parent in chain.parents]
            ([1, 4, 0, 3, 2, 5], [[0, 0, 1, 1, 2, 2], [0, 1, 1], [0, 0]])
        """
        return reorder(self)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what decides the chain, not the values that are computed from it."""
        names = ("parents", "order", "measure", "input_graph")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: equal chains have equal digests, in any process."""
        content = hashlib.sha256(repr((self.sizes, self.order, self.measure)).encode())
        for parent in self.parents:
            content.update(parent.astype("<i8").tobytes())
        if (graph := self.input_graph) is not None:
            content.update(graph.indptr.astype("<i8").tobytes())
            content.update(graph.indices.astype("<i8").tobytes())
            content.update(graph.data.astype("<f8").tobytes())
        return content.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chain):
            return NotImplemented
        return self is other or self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        measure = "" if self.measure == "children" else f", measure={self.measure!r}"
        return f"Chain({' -> '.join(map(str, self.sizes))}{measure})"

    def _repr_html_(self) -> str:
        """Return a table with the nodes, and if the graph is known the edges, of each level."""
        names = ["level", "nodes", "children (min–max)"]
        counts = [np.bincount(parent) for parent in self.parents]
        children = ["–", *(f"{count.min()}–{count.max()}" for count in counts)]
        rows = [[level, size, children[level]] for level, size in enumerate(self.sizes)]
        if self.has_graph:
            names.append("edges")
            for level, row in enumerate(rows):
                row.append(self.adjacency(level).nnz // 2)
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        caption = repr(self).replace("->", "&rarr;")
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the chain to one `.npz` file; an error leaves an earlier file unchanged."""
        arrays: Arrays = {
            "format": np.array(FORMAT),
            "digest": np.array(self.digest),
            "order": np.array(self.order),
            "measure": np.array(self.measure),
            "sizes": np.array(self.sizes),
            "parents": np.concatenate(self.parents),
        }
        if (graph := self.input_graph) is not None:
            arrays |= {"weights": graph.data, "indices": graph.indices, "indptr": graph.indptr}
        write_arrays(path, arrays)

    @staticmethod
    def load(path: str | PathLike[str]) -> Chain:
        """Read a chain that `save` wrote, and check it as `from_parents` does."""
        arrays = read_arrays(path)
        try:
            if arrays["format"] != FORMAT:
                raise ValueError(f"format {arrays['format']}, this version reads {FORMAT}")
            sizes = arrays["sizes"]
            graph = None
            if "weights" in arrays:
                matrix = (arrays["weights"], arrays["indices"], arrays["indptr"])
                graph = sparse.csr_array(matrix, shape=(sizes[0], sizes[0]))
            chain = Chain.from_parents(
                np.split(arrays["parents"], np.cumsum(sizes[:-1])[:-1]),
                adjacency=graph,
                order=str(arrays["order"]),  # type: ignore[arg-type]  # from_parents checks it
                measure=str(arrays["measure"]),  # type: ignore[arg-type]  # and this
            )
            if str(arrays["digest"]) != chain.digest:
                raise ValueError("the content does not match its digest")
            return chain
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise unreadable(path, error) from error


def check_chain(value: Any) -> None:
    """Check that an argument is one chain, not a plan or a graph."""
    if not isinstance(value, Chain):
        raise HaarPoolError(
            "as a Chain",
            type(value).__name__,
            "build one with build_chain or Chain.from_parents",
            parameter="chain",
        )

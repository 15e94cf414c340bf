"""The chain: a graph, its clusters, their clusters, and so on; frozen and checked once.

A chain G_0, ..., G_K of a graph G_0 is one parent vector per step: `parents[j][v]` is the node of
level j+1, that is the cluster, to which node v of level j belongs. Everything else follows from
these vectors, the edge weights of G_0, and two choices: in which `order` clusters and members
stand, and by which `measure` the members of a cluster count.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from haarpool._files import Arrays, read_arrays, unreadable, write_arrays
from haarpool._types import Floats, Ints, Measure, Order
from haarpool.chains.adjacency import as_adjacency, as_array, coarse_graph, without_self_loops
from haarpool.errors import HaarPoolError

_FORMAT = 1  # of the .npz file


class Members(NamedTuple):
    """The nodes of one level, cluster by cluster, in the order of the chain.

    The c-th cluster has the id `clusters[c]` and owns `nodes[start[c]:start[c + 1]]`.
    """

    nodes: Ints
    start: Ints
    clusters: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Chain:
    """A coarse-grained chain G_0 -> ... -> G_K. Make one with `from_parents` or `build_chain`.

    Attributes:
        parents: K int64 vectors; `parents[j]` has N_j entries in 0..N_{j+1}-1, all of them used.
        order: "index", or "degree": by falling weighted degree, self-loops left out, ties by index.
        measure: "children": every member of a cluster counts alike, as in the paper; "mass": a
            member counts by the number of nodes of G_0 under it.

    >>> chain = Chain.from_parents([[0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0]])
    >>> chain
    Chain(8 -> 3 -> 1)
    >>> chain.sizes, chain.num_levels, chain.is_filtration
    ((8, 3, 1), 2, True)
    """

    parents: tuple[Ints, ...]
    order: Order = "index"
    measure: Measure = "children"
    _base: sparse.csr_array | None = None

    # ------------------------------------------------------------------ making one

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
        """A chain from your own clusterings, checked.

        Args:
            parents: for each step j the cluster ids of the N_j nodes of level j: integers
                0..N_{j+1}-1 without gaps.
            adjacency: the graph G_0 in any form that `as_adjacency` takes; needed for
                `order="degree"` and for `chain.adjacency`.
            order, measure: see the class.
            symmetrize: see `as_adjacency`.
        """
        base = None if adjacency is None else as_adjacency(adjacency, symmetrize=symmetrize)
        return cls(parents, order, measure, base)  # type: ignore[arg-type]  # see __post_init__

    def __post_init__(self) -> None:
        """Check everything, whichever way the chain is made."""
        check_choices(self.order, self.measure)
        object.__setattr__(self, "parents", _checked_parents(self.parents))
        if self._base is not None and self._base.shape[0] != self.sizes[0]:
            raise HaarPoolError(
                f"an adjacency matrix of {self.sizes[0]} nodes, the length of parents[0]",
                f"{self._base.shape[0]} nodes",
                "pass the graph that was clustered",
            )
        if self._base is None and self.order == "degree":
            raise HaarPoolError(
                'adjacency= together with order="degree"',
                "no adjacency",
                'pass the graph or use order="index"',
            )

    # ------------------------------------------------------------------ looking at it

    @property
    def num_levels(self) -> int:
        """K, the number of steps; levels are 0..K."""
        return len(self.parents)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """(N_0, ..., N_K), the number of nodes of each level."""
        return len(self.parents[0]), *(int(p.max()) + 1 for p in self.parents)

    @property
    def has_graph(self) -> bool:
        """Whether the chain knows its graph, as `adjacency` needs it."""
        return self._base is not None

    @cached_property
    def is_filtration(self) -> bool:
        """Whether every parent has at least two children (what the paper's locality asks for)."""
        return all(bool((np.bincount(p) >= 2).all()) for p in self.parents)

    def check_level(self, level: int, *, highest: int | None = None) -> int:
        """`level` itself if it is one of 0..highest (K unless given), else an error."""
        highest = self.num_levels if highest is None else highest
        return checked_level(level, highest, f"{self!r}")

    def adjacency(self, level: int, *, self_loops: bool = False) -> sparse.csr_array:
        """The coarse graph of a level as CSR: the weight of an edge of clusters is the sum over
        all pairs of their members.

        Args:
            level: 0..K.
            self_loops: keep the diagonal. Clustering wants it: entry (p, p) is all weight inside
                cluster p, each undirected edge counted in both directions. Convolution does not.

        >>> square = [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
        >>> chain = Chain.from_parents([[0, 0, 1, 1]], adjacency=square)
        >>> chain.adjacency(1).toarray().tolist()
        [[0.0, 2.0], [2.0, 0.0]]
        >>> chain.adjacency(1, self_loops=True).toarray().tolist()
        [[2.0, 2.0], [2.0, 2.0]]
        """
        level = self.check_level(level)
        graph = self._graphs[level].copy()
        if not self_loops:
            graph = without_self_loops(graph)
        return graph

    @cached_property
    def _graphs(self) -> tuple[sparse.csr_array, ...]:
        if self._base is None:
            raise HaarPoolError(
                "a chain that knows its graph",
                "a chain made from parents alone",
                "pass adjacency= to Chain.from_parents",
            )
        graphs = [self._base]
        for parent in self.parents:
            graphs.append(coarse_graph(graphs[-1], parent))
        return tuple(graphs)

    def mass(self, level: int) -> Ints:
        """(N_level,) number of nodes of G_0 under each node of a level."""
        mass = np.ones(self.sizes[0], np.int64)
        for parent in self.parents[: self.check_level(level)]:
            mass = np.bincount(parent, weights=mass).astype(np.int64)
        return mass

    def measures(self, level: int) -> Floats:
        """(N_level,) what each node counts in its cluster: 1, or its mass (see `measure`)."""
        if self.measure == "mass":
            return self.mass(level).astype(np.float64)
        return np.ones(self.sizes[self.check_level(level)])

    def ordering(self, level: int) -> Ints:
        """(N_level,) the node ids of a level in the order of the chain."""
        return self._orderings[self.check_level(level)]

    @cached_property
    def _orderings(self) -> tuple[Ints, ...]:
        if self.order == "index":
            return tuple(_frozen(np.arange(size)) for size in self.sizes)
        return tuple(_frozen(_by_degree(graph)) for graph in self._graphs)

    def members(self, level: int) -> Members:
        """The nodes of a level, cluster by cluster.

        The top level counts as one cluster, so that its basis too is the basis of a cluster.

        >>> chain = Chain.from_parents([[1, 0, 1, 0, 1]])
        >>> nodes, start, _ = chain.members(0)
        >>> nodes.tolist(), start.tolist()
        ([1, 3, 0, 2, 4], [0, 2, 5])
        """
        own = self.ordering(level)
        if level == self.num_levels:
            return Members(own, np.array([0, len(own)]), np.zeros(1, np.int64))
        clusters = self.ordering(level + 1)
        rank = np.empty_like(clusters)
        rank[clusters] = np.arange(len(clusters))
        cluster_rank = rank[self.parents[level][own]]
        start = np.concatenate([[0], np.cumsum(np.bincount(cluster_rank))])
        return Members(own[np.argsort(cluster_rank, kind="stable")], start, clusters)

    @cached_property
    def _derived(self) -> dict[Any, Any]:
        """What others work out from the chain, plans for instance, kept as long as it lives."""
        return {}

    # ------------------------------------------------------------------ as a value

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is worked out from them does not travel."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy is as frozen as the original."""
        self.__dict__.update(state)
        self.__post_init__()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: equal chains have equal digests, in any process."""
        content = hashlib.sha256(repr((self.sizes, self.order, self.measure)).encode())
        for parent in self.parents:
            content.update(parent.astype("<i8").tobytes())
        if self._base is not None:
            content.update(self._base.indptr.astype("<i8").tobytes())
            content.update(self._base.indices.astype("<i8").tobytes())
            content.update(self._base.data.astype("<f8").tobytes())
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
        """A table for notebooks: nodes, and where the graph is known edges, of each level."""
        names = ["level", "nodes", "children (min–max)"]
        counts = [np.bincount(parent) for parent in self.parents]
        children = ["–", *(f"{c.min()}–{c.max()}" for c in counts)]
        rows = [[j, n, children[j]] for j, n in enumerate(self.sizes)]
        if self.has_graph:
            names.append("edges")
            for j, row in enumerate(rows):
                row.append(self.adjacency(j).nnz // 2)
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><caption>{self!r}</caption><tr>{head}</tr>{body}</table>".replace(
            "->", "&rarr;"
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the chain to one `.npz` file (plain arrays, no pickle), whole or not at all."""
        arrays: Arrays = {
            "format": np.array(_FORMAT),
            "digest": np.array(self.digest),
            "order": np.array(self.order),
            "measure": np.array(self.measure),
            "sizes": np.array(self.sizes),
            "parents": np.concatenate(self.parents),
        }
        if (base := self._base) is not None:
            arrays |= {"weights": base.data, "indices": base.indices, "indptr": base.indptr}
        write_arrays(path, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Chain:
        """Read a chain that `save` wrote; its content goes through all checks of `from_parents`."""
        arrays = read_arrays(path)
        try:
            if arrays["format"] != _FORMAT:
                raise ValueError(f"format {arrays['format']}, this version reads {_FORMAT}")
            sizes = arrays["sizes"]
            adjacency = None
            if "weights" in arrays:
                matrix = (arrays["weights"], arrays["indices"], arrays["indptr"])
                adjacency = sparse.csr_array(matrix, shape=(sizes[0], sizes[0]))
            chain = cls.from_parents(
                np.split(arrays["parents"], np.cumsum(sizes[:-1])[:-1]),
                adjacency=adjacency,
                order=str(arrays["order"]),  # type: ignore[arg-type]  # from_parents checks it
                measure=str(arrays["measure"]),  # type: ignore[arg-type]  # and this
            )
            if str(arrays["digest"]) != chain.digest:
                raise ValueError("its content is not what was saved")
            return chain
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise unreadable(path, error) from error


# ---------------------------------------------------------------------- pieces


def _by_degree(adjacency: sparse.csr_array) -> Ints:
    """Node ids by falling weighted degree, self-loops left out, ties by index."""
    row = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    off = row != adjacency.indices
    degree = np.bincount(row[off], adjacency.data[off], minlength=adjacency.shape[0])
    # Equal degrees may differ in the last bit after other sums; they are ties all the same.
    mantissa, exponent = np.frexp(degree)
    return np.argsort(-np.ldexp(np.round(mantissa, 12), exponent), kind="stable")


def checked_level(level: int, highest: int, where: str) -> int:
    """`level` as an int if it lies in 0..highest, else an error that names `where`."""
    try:
        value = operator.index(level)
    except TypeError:
        value = -1
    if not 0 <= value <= highest:
        raise HaarPoolError(
            f"a level in 0..{highest} of {where}",
            f"{level!r}",
            "levels count from 0 (the input graph) to the top; a step needs a level above it",
        )
    return value


def _checked_parents(parents: Any) -> tuple[Ints, ...]:
    steps = list(parents) if hasattr(parents, "__iter__") else []
    if not steps:
        raise HaarPoolError(
            "at least one parent vector", "none", "pass one vector of cluster ids per step"
        )
    checked: list[Ints] = []
    size = 0
    for j, given in enumerate(steps):
        parent = as_array(given, f"parents[{j}]")
        if parent.ndim != 1 or parent.size == 0:
            raise HaarPoolError(
                f"parents[{j}] as a vector with one cluster id per node",
                f"shape {parent.shape}",
                "pass a list of one-dimensional arrays, none of them empty, one per step",
            )
        if parent.dtype.kind not in "iu":
            raise HaarPoolError(
                f"integer cluster ids in parents[{j}]",
                f"dtype {parent.dtype}",
                "convert with .astype(int) if the values are whole numbers",
            )
        size = size or len(parent)
        if len(parent) != size:
            raise HaarPoolError(
                f"parents[{j}] of length {size}, the number of clusters of step {j - 1}",
                f"length {len(parent)}",
                "give every cluster of the step before one parent",
            )
        least, largest = int(parent.min()), int(parent.max())
        if least < 0 or largest >= size:
            raise HaarPoolError(
                f"cluster ids in 0..{size - 1} in parents[{j}] (never more clusters than nodes)",
                f"ids from {least} to {largest}",
                "renumber with np.unique(parents, return_inverse=True)[1]",
            )
        members = np.bincount(parent)
        if members.min() == 0:
            raise HaarPoolError(
                f"cluster ids without gaps in parents[{j}]",
                f"no node in cluster {members.argmin()} (largest id {largest})",
                "renumber with np.unique(parents, return_inverse=True)[1]",
            )
        checked.append(_frozen(parent.astype(np.int64)))  # a copy
        size = largest + 1
    return tuple(checked)


def _frozen(array: Ints) -> Ints:
    array.setflags(write=False)
    return array


def check_choices(order: str, measure: str) -> None:
    """Raise unless these are an order and a measure of a chain."""
    for name, value, kind in (("order", order, Order), ("measure", measure, Measure)):
        if value not in (choices := get_args(kind)):
            raise HaarPoolError(f"{name} in {choices}", f"{value!r}", f"choose one of {choices}")

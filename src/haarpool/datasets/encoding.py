"""`Encoding`: how node and edge columns become the features of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError

Singles = NDArray[np.float32]

AUTO = ("labels", "x", "atoms", "attributes")  # the first one of these; else degrees
REAL = ("attributes", "x")  # kinds of unknown units


@dataclass(frozen=True)
class FeatureColumns:
    """Features of one kind.

    Attributes:
        kind: "degree", "constant" or a kind of columns of the graphs.
        width: Number of feature columns.
        values: For labels, the known values of each column in ascending order: numbers or text.
        real: Numbers of the columns with real numbers, which networks standardise.
    """

    kind: str
    width: int
    values: tuple[tuple[int | str, ...], ...] = ()
    real: tuple[int, ...] = ()


@dataclass(frozen=True)
class Encoding:
    """How features are made: fitted to a dataset, then the same for all other graphs.

    "labels" become one-hot columns, one per known value; "degree" is the degree without self-loops,
    one-hot up to the largest known one, which also represents larger ones; "constant" is a column
    of ones; every other kind is used unchanged.

    Attributes:
        nodes: Features that `encode` makes, in this order.
        edges: Features that `encode_edges` makes: all columns of the edges.

    Example:
        >>> path = Graphs("path", np.array([0, 3]), np.array([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> encoding = Encoding.fit(path, "degree+constant")
        >>> encoding.encode(path)
        array([[0., 1., 0., 1.],
               [0., 0., 1., 1.],
               [0., 1., 0., 1.]], dtype=float32)
        >>> Encoding.from_json(encoding.to_json()) == encoding
        True
    """

    nodes: tuple[FeatureColumns, ...]
    edges: tuple[FeatureColumns, ...] = ()

    @classmethod
    def fit(cls, graphs: Graphs, kinds: str = "auto") -> Encoding:
        """Make an encoding for graphs like these.

        Args:
            graphs: All graphs to encode; a label that they do not have is unknown.
            kinds: Kinds joined by "+", for example "labels+degree"; "auto" chooses one by the
                columns of the graphs.
        """
        names = [kind.strip() for kind in kinds.split("+")]
        if "auto" in names:
            first = next((kind for kind in AUTO if kind in graphs.columns), "degree")
            first = graphs.default_features or first
            others = [kind for kind in names if kind not in ("auto", first)]
            names = [first, *others]
        known = [*graphs.columns, "degree", "constant"]
        for kind in names:
            if kind not in known or names.count(kind) > 1:
                raise HaarPoolError(
                    f"features of {graphs.name} out of {', '.join(known)}",
                    f"{kinds!r}",
                    "join different kinds by +, for example features=degree+constant",
                )
        edges = [_fit(kind, values) for kind, values in graphs.edge_columns.items()]
        nodes = []
        for kind in names:
            if kind == "degree":
                nodes.append(FeatureColumns(kind, int(_degree(graphs).max(initial=0)) + 1))
            elif kind == "constant":
                nodes.append(FeatureColumns(kind, 1))
            else:
                nodes.append(_fit(kind, graphs.columns[kind]))
        return cls(tuple(nodes), tuple(edges))

    @property
    def width(self) -> int:
        """Number of node features."""
        return sum(part.width for part in self.nodes)

    @property
    def kinds(self) -> str:
        """The kinds of node features, as `fit` takes them.

        Example:
            >>> Encoding((FeatureColumns("labels", 2, ((0, 5),)), FeatureColumns("x", 1))).kinds
            'labels+x'
        """
        return "+".join(part.kind for part in self.nodes)

    @property
    def real_nodes(self) -> tuple[int, ...]:
        """Columns of `encode` with real numbers, which networks standardise."""
        return _real(self.nodes)

    @property
    def edge_width(self) -> int:
        """Number of edge features."""
        return sum(part.width for part in self.edges)

    @property
    def real_edges(self) -> tuple[int, ...]:
        """Columns of `encode_edges` with real numbers, which networks standardise."""
        return _real(self.edges)

    def encode(self, graphs: Graphs) -> Singles:
        """Return the (N, width) features of all nodes."""
        size = int(graphs.start[-1])
        parts: list[NDArray[Any]] = []
        for part in self.nodes:
            if part.kind == "constant":
                parts.append(np.ones((size, 1), np.float32))
            elif part.kind == "degree":
                degree = np.minimum(_degree(graphs), part.width - 1)
                parts.append(degree[:, None] == np.arange(part.width))
            else:
                parts.append(_encode(part, graphs.columns, graphs, graphs.owner, "node"))
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def encode_edges(self, graphs: Graphs) -> Singles | None:
        """Return the (E, columns) features of all edges, or None if the encoding has none."""
        if not self.edges:
            return None
        owner = graphs.owner[graphs.edges[0]]
        parts = [_encode(part, graphs.edge_columns, graphs, owner, "edge") for part in self.edges]
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def to_json(self) -> dict[str, Any]:
        """Return the encoding as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Encoding:
        """Make an encoding from the values of `to_json`, or from their JSON text.

        Args:
            data: The values.
        """
        try:
            return cls(*(tuple(_part(**part) for part in data[key]) for key in ("nodes", "edges")))
        except (KeyError, TypeError, ValueError) as error:
            raise HaarPoolError(
                "an encoding made by Encoding.to_json", f"{error!r}", "make it again"
            ) from error


def _part(kind: str, width: int, values: Any = (), real: Any = ()) -> FeatureColumns:
    return FeatureColumns(
        str(kind),
        int(width),
        tuple(tuple(v if isinstance(v, str) else int(v) for v in column) for column in values),
        tuple(map(int, real)),
    )


def _fit(kind: str, values: NDArray[Any]) -> FeatureColumns:
    if kind != "labels":
        real = [c for c, column in enumerate(values.T) if not _is_binary(column)]
        return FeatureColumns(kind, values.shape[1], (), tuple(real if kind in REAL else ()))
    columns = tuple(tuple(np.unique(column).tolist()) for column in values.T)
    return FeatureColumns(kind, sum(map(len, columns)), columns)


def _real(parts: Sequence[FeatureColumns]) -> tuple[int, ...]:
    first = accumulate((part.width for part in parts), initial=0)
    return tuple(
        start + column for start, part in zip(first, parts, strict=False) for column in part.real
    )


def _is_binary(column: NDArray[Any]) -> bool:
    """Return whether all values are 0 or 1."""
    return bool(((column == 0) | (column == 1)).all())


def _degree(graphs: Graphs) -> Ints:
    """Return the (N,) numbers of neighbours, without the node itself."""
    source, target = graphs.edges
    return np.bincount(source[source != target], minlength=int(graphs.start[-1]))


def _encode(
    part: FeatureColumns,
    columns: Mapping[str, NDArray[Any]],
    graphs: Graphs,
    owner: Ints,
    what: str,
) -> NDArray[Any]:
    """Return the (N, width) features of one kind, checked; `owner` is the graph of each row."""
    values = columns.get(part.kind)
    width = len(part.values) if part.kind == "labels" else part.width
    if values is None or values.shape[1] != width:
        raise HaarPoolError(
            f"{width} columns {part.kind!r} of each {what}",
            f"{0 if values is None else values.shape[1]} in {graphs.name}",
            "use a dataset with the same columns, or choose other features",
        )
    if part.kind != "labels":
        with np.errstate(over="ignore"):
            singles = values.astype(np.float32)
        for row, column in np.argwhere(~np.isfinite(singles))[:1].tolist():
            raise HaarPoolError(
                f"finite numbers as {part.kind!r} of each {what}, in float32",
                f"{values[row, column]:g} in {graphs.where(int(owner[row]))} of {graphs.name}",
                "clean or scale the features, or drop this graph",
            )
        return singles
    parts = []
    for column, known in zip(values.T, part.values, strict=True):
        one_hot = column[:, None] == np.array(known)
        unknown = np.flatnonzero(~one_hot.any(axis=1))
        if unknown.size:
            row = int(unknown[0])
            listed = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
            raise HaarPoolError(
                f"labels of {what}s out of {listed}",
                f"{column[row]} in {graphs.where(int(owner[row]))} of {graphs.name}",
                "use graphs with the labels that the encoding was fitted to",
            )
        parts.append(one_hot)
    return np.concatenate(parts, axis=1)

"""How the columns of nodes and edges become numbers for a network: `Encoding`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints
from haarpool.datasets import read_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError

if TYPE_CHECKING:
    from haarpool.datasets.pyg import GraphDataset

Singles = NDArray[np.float32]

AUTO = ("labels", "x", "atoms", "attributes")  # the first that is there; else degrees


@dataclass(frozen=True)
class FeatureColumns:
    """Columns of one kind.

    Attributes:
        kind: "degree", "constant" or the name of a column of the graphs.
        width: how many columns it makes.
        values: of labels, for each of their columns those that there are, in rising order.
    """

    kind: str
    width: int
    values: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Encoding:
    """How features are made, learnt from some graphs and then the same for any others.

    "labels" become one-hot columns, one per value that was seen; "degree" the degree without
    self-loops, one-hot up to the largest that was seen, which stands for larger ones too;
    "constant" is a column of ones; every other kind is taken as it is.

    Attributes:
        nodes: what `encode` makes, in this order.
        edges: what `encode_edges` makes: every column that edges have.

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
        """An encoding for graphs like these.

        Args:
            graphs: all that are to be encoded, since labels that are not in them are unknown.
            kinds: joined by "+", for instance "labels+degree"; "auto" is what suits the graphs.
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
                    "join different ones by +, for example degree+constant",
                )
        edges = [_fit(kind, values) for kind, values in graphs.edge_columns.items()]
        nodes = []
        for kind in names:
            if kind == "degree":
                nodes.append(FeatureColumns(kind, int(_degree(graphs).max(initial=0)) + 1))
            else:
                nodes.append(
                    FeatureColumns(kind, 1)
                    if kind == "constant"
                    else _fit(kind, graphs.columns[kind])
                )
        return cls(tuple(nodes), tuple(edges))

    @property
    def width(self) -> int:
        """Columns of x."""
        return sum(part.width for part in self.nodes)

    @property
    def kinds(self) -> str:
        """As `fit` takes them.

        >>> Encoding((FeatureColumns("labels", 2, ((0, 5),)), FeatureColumns("constant", 1))).kinds
        'labels+constant'
        """
        return "+".join(part.kind for part in self.nodes)

    def encode(self, graphs: Graphs) -> Singles:
        """(N, width) the features of all nodes."""
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
        """(E, columns) the features of all edges; None where the encoding has none."""
        if not self.edges:
            return None
        owner = graphs.owner[graphs.edges[0]]
        parts = [_encode(part, graphs.edge_columns, graphs, owner, "edge") for part in self.edges]
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def to_json(self) -> dict[str, Any]:
        """All of it as lists, texts and numbers."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Encoding:
        """What `to_json` made, also after it went through a JSON text."""
        try:
            return cls(*(tuple(_part(**part) for part in data[key]) for key in ("nodes", "edges")))
        except (KeyError, TypeError, ValueError) as error:
            raise HaarPoolError(
                "an encoding as Encoding.to_json makes it", f"{error!r}", "make it anew"
            ) from error


def load_dataset(
    source: Any, root: Any = None, *, features: str = "auto", transform: Any = None, **options: Any
) -> GraphDataset:
    """A dataset as PyG has them, read, encoded and in memory.

    Args:
        source, root, options: as in `read_graphs`.
        features: the kinds of `Encoding.fit`.
        transform: done to every graph when it is asked for, as in any PyG dataset.

    >>> dataset = load_dataset("MUTAG")
    >>> dataset[0], dataset.num_classes
    (Data(x=[17, 7], edge_index=[2, 38], edge_attr=[38, 4], y=[1]), 2)
    """
    from haarpool.datasets.pyg import GraphDataset

    graphs = read_graphs(source, root, **options)
    return GraphDataset(graphs, Encoding.fit(graphs, features), transform)


def _part(kind: str, width: int, values: Any = ()) -> FeatureColumns:
    return FeatureColumns(
        str(kind), int(width), tuple(tuple(int(v) for v in column) for column in values)
    )


def _fit(kind: str, values: NDArray[Any]) -> FeatureColumns:
    if kind != "labels":
        return FeatureColumns(kind, values.shape[1])
    columns = tuple(tuple(np.unique(column).tolist()) for column in values.T)
    return FeatureColumns(kind, sum(map(len, columns)), columns)


def _degree(graphs: Graphs) -> Ints:
    """(N,) neighbours other than the node itself."""
    source, target = graphs.edges
    return np.bincount(source[source != target], minlength=int(graphs.start[-1]))


def _encode(
    part: FeatureColumns,
    columns: Mapping[str, NDArray[Any]],
    graphs: Graphs,
    owner: Ints,
    what: str,
) -> NDArray[Any]:
    """(N, width) one kind of features, checked; `owner` is the graph of each row."""
    values = columns.get(part.kind)
    width = len(part.values) if part.kind == "labels" else part.width
    if values is None or values.shape[1] != width:
        raise HaarPoolError(
            f"{width} columns {part.kind!r} of each {what}",
            f"{0 if values is None else values.shape[1]} in {graphs.name}",
            "take a dataset of the same kind, or other features",
        )
    if part.kind != "labels":
        with np.errstate(over="ignore"):
            singles = values.astype(np.float32)
        for row, column in np.argwhere(~np.isfinite(singles))[:1].tolist():
            raise HaarPoolError(
                f"finite numbers as {part.kind!r} of each {what}, also in float32",
                f"{values[row, column]:g} in {graphs.where(int(owner[row]))} of {graphs.name}",
                "clean or scale the features, or drop this graph",
            )
        return singles
    parts = []
    for column, known in zip(values.T, part.values, strict=True):
        same = column[:, None] == np.array(known)
        wrong = np.flatnonzero(~same.any(axis=1))
        if wrong.size:
            at = int(wrong[0])
            some = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
            raise HaarPoolError(
                f"labels of {what}s out of {some}",
                f"{column[at]} in {graphs.where(int(owner[at]))} of {graphs.name}",
                "take graphs like those that the encoding was made for",
            )
        parts.append(same)
    return np.concatenate(parts, axis=1)

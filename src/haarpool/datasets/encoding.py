"""`Encoding`: how node and edge columns become the features of a network."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints, Singles
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.walks import STEPS, return_probabilities
from haarpool.errors import HaarPoolError, HaarPoolWarning

Label = int | str | None

# All of these that the graphs have, and degrees.
AUTO = ("labels", "x", "atoms", "isotopes", "attributes")
REAL = ("x", "attributes", "pos")  # kinds of columns in unknown units
ZERO_IF_ABSENT = ("isotopes",)  # molecules without isotopes do not have the column
MAX_DEGREE = 16  # larger degrees share the last column of "degree"
MAX_LABELS = 256  # columns of one label; rare values share the last one
_TEXT = {"labels": "node labels", "log_degree": "log degree"}


class UnknownLabelWarning(HaarPoolWarning):
    """Nodes or edges have a label that the training data do not have.

    Attributes:
        text: The message without their number, which differs between blocks of a dataset.
        what: "node" or "edge".
    """

    def __init__(self, share: str, text: str, what: str) -> None:
        super().__init__(f"{share} {text}")
        self.text, self.what = text, what


@dataclass(frozen=True)
class FeatureColumns:
    """Features of one kind.

    Attributes:
        kind: "degree", "log_degree", "constant" or a kind of columns of the graphs.
        width: Number of feature columns.
        values: For labels, the known values of each column in ascending order: numbers or text.
            None at the end means all other values.
        real: Numbers of the columns with real numbers, which networks standardise.
    """

    kind: str
    width: int
    values: tuple[tuple[Label, ...], ...] = ()
    real: tuple[int, ...] = ()

    def describe(self, name: str = "") -> str:
        """Return name, by default the kind, and number of columns in words.

        Example:
            >>> FeatureColumns("x", 3, real=(0, 1, 2)).describe()
            'x (3, standardised)'
            >>> FeatureColumns("labels", 3, ((0, 7, None),)).describe("node labels")
            'node labels (3, rare ones together)'
        """
        notes = [str(self.width)]
        if self.real:
            count = "" if len(self.real) == self.width else f"{len(self.real)} "
            notes.append(f"{count}standardised")
        if any(None in column for column in self.values):
            notes.append("rare ones together")
        return f"{name or self.kind} ({', '.join(notes)})"


@dataclass(frozen=True)
class Encoding:
    """How features are made: fitted to a dataset, then the same for all other graphs.

    - "labels" become one-hot columns, one per known value. A label with more than `MAX_LABELS`
      values has columns for the most frequent ones; the others share a column. Otherwise a value
      that is not known becomes a row of zeros, with a warning.
    - "degree" is the degree without self-loops, one-hot up to the largest known one, at most
      `MAX_DEGREE`. The last column also represents larger degrees.
    - "log_degree" is log(1 + degree), one column.
    - "walks" are probabilities that random walks come back, see `return_probabilities`.
    - "constant" is a column of ones.
    - Every other kind is used unchanged. Networks standardise the columns of "x", "attributes"
      and "pos" that have other values than 0 and 1, "log_degree" and "walks".

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
        >>> encoding.describe()
        'degree (3), constant (1)'
        >>> Encoding.from_json(encoding.to_json()) == encoding
        True
    """

    nodes: tuple[FeatureColumns, ...]
    edges: tuple[FeatureColumns, ...] = ()

    @classmethod
    def fit(cls, graphs: Graphs, kinds: str = "auto") -> Encoding:
        """Make an encoding for graphs like these.

        Args:
            graphs: All graphs of a run, those of its test part too: which columns and labels there
                are, and the largest degree, follow from them. Targets are not used; networks take
                the scale of real numbers from the training part alone.
            kinds: Kinds joined by "+", for example "labels+degree"; "auto" is labels, x, atoms,
                isotopes and attributes, if the graphs have them, and degrees, also as
                "log_degree" if there are larger ones than `MAX_DEGREE`.
        """
        degree = _degree(graphs)
        largest = int(degree.max(initial=0))
        names = [kind.strip() for kind in kinds.split("+")]
        if "auto" in names:
            auto = [kind for kind in AUTO if kind in graphs.columns]
            auto += ["degree"] if largest <= MAX_DEGREE else ["degree", "log_degree"]
            names = [*auto, *(kind for kind in names if kind not in ("auto", *auto))]
        known = [*graphs.columns, "degree", "log_degree", "walks", "constant"]
        for kind in names:
            if kind not in known or names.count(kind) > 1:
                raise HaarPoolError(
                    f"of {graphs.name} out of {', '.join(known)}",
                    f"{kinds!r}",
                    "join different kinds by +, for example {features}",
                    parameter="features",
                    features="degree+constant",
                )
        made = {
            "degree": FeatureColumns("degree", min(largest, MAX_DEGREE) + 1),
            "log_degree": FeatureColumns("log_degree", 1, real=(0,)),
            "walks": FeatureColumns("walks", STEPS - 1, real=tuple(range(STEPS - 1))),
            "constant": FeatureColumns("constant", 1),
        }
        return cls(
            tuple(made.get(kind) or _fit(kind, graphs.columns[kind]) for kind in names),
            tuple(_fit(kind, values) for kind, values in graphs.edge_columns.items()),
        )

    @property
    def width(self) -> int:
        """Number of node features."""
        return sum(part.width for part in self.nodes)

    @property
    def edge_width(self) -> int:
        """Number of edge features."""
        return sum(part.width for part in self.edges)

    @property
    def real_nodes(self) -> tuple[int, ...]:
        """Columns of `encode` with real numbers, which networks standardise."""
        return tuple(start + c for start, part in _starts(self.nodes) for c in part.real)

    @property
    def real_edges(self) -> tuple[int, ...]:
        """Columns of `encode_edges` with real numbers, which networks standardise."""
        return tuple(start + c for start, part in _starts(self.edges) for c in part.real)

    def describe(self) -> str:
        """Return what a network reads, in one line.

        Example:
            >>> nodes = (FeatureColumns("labels", 2, ((0, 5),)), FeatureColumns("x", 1, real=(0,)))
            >>> Encoding(nodes, (FeatureColumns("labels", 4, ((0, 1, 2, 3),)),)).describe()
            'node labels (2), x (1, standardised); edges: labels (4)'
        """
        nodes = ", ".join(part.describe(_TEXT.get(part.kind, "")) for part in self.nodes)
        edges = ", ".join(part.describe() for part in self.edges)
        return f"{nodes}; edges: {edges}" if edges else nodes

    def encode(self, graphs: Graphs) -> Singles:
        """Return the (N, width) features of all nodes."""
        features = np.zeros((int(graphs.start[-1]), self.width), np.float32)
        for start, part in _starts(self.nodes):
            columns = features[:, start : start + part.width]
            if part.kind == "constant":
                columns[:] = 1
            elif part.kind == "degree":
                columns[np.arange(len(columns)), np.minimum(_degree(graphs), part.width - 1)] = 1
            elif part.kind == "log_degree":
                columns[:, 0] = np.log1p(_degree(graphs))
            elif part.kind == "walks":
                walks = return_probabilities(graphs.structure)
                columns[:] = np.tile(walks, (len(columns) // len(walks), 1))
            else:
                _encode(part, columns, graphs, "node")
        return features

    def encode_edges(self, graphs: Graphs) -> Singles | None:
        """Return the (E, columns) features of all edges, or None if the encoding has none."""
        if not self.edges:
            return None
        features = np.zeros((graphs.edges.shape[1], self.edge_width), np.float32)
        for start, part in _starts(self.edges):
            columns = features[:, start : start + part.width]
            _encode(part, columns, graphs, "edge")
        return features

    def to_json(self) -> dict[str, Any]:
        """Return the encoding as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Encoding:
        """Make an encoding from the values of `to_json`, which may come from a JSON file."""
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
        tuple(tuple(v if v is None or isinstance(v, str) else int(v) for v in c) for c in values),
        tuple(map(int, real)),
    )


def _fit(kind: str, values: NDArray[Any]) -> FeatureColumns:
    if kind == "labels":
        columns = tuple(map(_known_labels, values.T))
        return FeatureColumns(kind, sum(map(len, columns)), columns)
    if kind not in REAL:
        return FeatureColumns(kind, values.shape[1])
    is_real = ~np.isin(values, (0, 1)).all(axis=0)
    return FeatureColumns(kind, values.shape[1], real=tuple(np.flatnonzero(is_real).tolist()))


def _known_labels(column: NDArray[Any]) -> tuple[Label, ...]:
    """Return the values in ascending order, or the most frequent ones and None."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= MAX_LABELS:
        return tuple(values.tolist())
    frequent = np.argsort(-counts, kind="stable")[: MAX_LABELS - 1]
    return (*np.sort(values[frequent]).tolist(), None)


def _degree(graphs: Graphs) -> Ints:
    """Return the (N,) numbers of neighbours, without the node itself."""
    source, target = graphs.edges
    size = int(graphs.sizes[0] if graphs.signals else graphs.start[-1])
    degree = np.bincount(source[source != target], minlength=size)
    return np.tile(degree, len(graphs)) if graphs.signals else degree


def _starts(parts: Sequence[FeatureColumns]) -> Iterator[tuple[int, FeatureColumns]]:
    """Return the first column of each part, and the part."""
    return zip(accumulate((part.width for part in parts), initial=0), parts, strict=False)


def _encode(part: FeatureColumns, features: Singles, graphs: Graphs, what: str) -> None:
    """Write the (N, width) features of one kind, checked, of each "node" or "edge"."""
    columns, starts = graphs.columns, graphs.start
    if what == "edge":
        columns, starts = graphs.edge_columns, graphs.edge_start

    def where(row: int) -> str:
        return graphs.where(int(np.searchsorted(starts, row, side="right")) - 1)

    values = columns.get(part.kind)
    width = len(part.values) if part.kind == "labels" else part.width
    if values is None and part.kind in ZERO_IF_ABSENT:
        return
    if values is None or values.shape[1] != width:
        raise HaarPoolError(
            f"{width} columns {part.kind!r} of each {what}",
            f"{0 if values is None else values.shape[1]} in {graphs.name}",
            "use a dataset with the same columns, or choose other features",
        )
    if what == "node" and part.kind == "pos" and graphs.shares_positions:
        values = np.tile(values, (len(graphs), 1))
    if part.kind != "labels":
        with np.errstate(over="ignore"):
            features[:] = values
        wrong = np.isfinite(features)
        np.logical_not(wrong, out=wrong)  # ~ would need a second array on Python 3.14
        for row, column in np.argwhere(wrong)[:1].tolist():
            raise HaarPoolError(
                f"finite numbers as {part.kind!r} of each {what}, in float32",
                f"{values[row, column]:g} in {where(row)} of {graphs.name}",
                "clean or scale the features, or drop this graph",
            )
        return
    start = 0
    for labels, known in zip(values.T, part.values, strict=True):
        column = _label_columns(labels, known)
        unknown = np.flatnonzero(column < 0)
        if unknown.size:
            row = int(unknown[0])
            if any(isinstance(label, str) != isinstance(labels[row], str) for label in known[:1]):
                listed = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
                raise HaarPoolError(
                    f"labels of {what}s like {listed}",
                    f"{labels[row]!s} in {where(row)} of {graphs.name}",
                    "use text for all labels, or numbers, as in the training data",
                )
            text = (
                f"{what}s of {graphs.name} have a label that the training data do not have, "
                f"such as {labels[row]} in {where(row)}: "
                "it is encoded as zeros"
            )
            share = f"{len(unknown):,} of {len(labels):,}"
            warnings.warn(UnknownLabelWarning(share, text, what), stacklevel=3)
        known_rows = np.flatnonzero(column >= 0)
        features[known_rows, start + column[known_rows]] = 1
        start += len(known)


def _label_columns(labels: NDArray[Any], known: Sequence[Label]) -> Ints:
    """Return the (N,) columns of labels, -1 for those that are not known."""
    values, inverse = np.unique(labels, return_inverse=True)
    number = {label: column for column, label in enumerate(known)}
    others = number.get(None, -1)
    columns = np.array([number.get(value, others) for value in values.tolist()], np.int64)
    return np.asarray(columns[inverse])

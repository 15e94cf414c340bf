"""Graph datasets in the text layout of the TU collection (Morris et al., 2020).

They are read with numpy alone, from a folder or straight out of a zip file.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from math import isinf, isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints, Task
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import Number, as_classes, as_number
from haarpool.errors import HaarPoolError

Place = Path | zipfile.Path

# TRIANGLES is split by position. Its node attributes give the answer away and are never read.
TRIANGLES = "TRIANGLES"
PARTS = {"train": (0, 30_000), "validation": (30_000, 35_000), "test": (35_000, 45_000)}


def tu_name(folder: Place) -> str | None:
    """The name of the dataset whose files lie in `folder`, if there is one."""
    files = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    ends = "_graph_indicator.txt"
    names = sorted(file.removesuffix(ends) for file in files if file.endswith(ends))
    return next((name for name in names if f"{name}_A.txt" in files), None)


def read_tu(place: Path, task: Task | None = None) -> Graphs:
    """Read all graphs; an edge that is listed twice is one edge.

    Args:
        place: a folder, or a zip file that holds the files, in a folder or not.
        task: "regression" takes `_graph_attributes`, else numbers in `_graph_labels`;
            "classification" takes `_graph_labels`. Without it, labels that are whole numbers are
            classes, and attributes count where there are no labels.
    """
    try:
        folder = place if place.is_dir() else _inside(place)
        name = tu_name(folder)
        if name is None:
            raise HaarPoolError("files in TU layout", f"none in {place}", "check the folder")
        return _read(folder, name, task)
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise HaarPoolError(
            f"readable text files in {place}", f"{error}", "fetch them again"
        ) from error


def _inside(place: Path) -> zipfile.Path:
    """The folder in a zip file that holds a dataset."""
    top = zipfile.Path(place)
    return next((folder for folder in top.iterdir() if tu_name(folder)), top)


def _read(folder: Place, name: str, task: Task | None) -> Graphs:
    files = _Files(folder, name)
    owner, start = _owners(files)
    size, count = len(owner), len(start) - 1
    edges, lines = _edges(files, owner)
    columns: dict[str, NDArray[Any]] = {}
    edge_columns: dict[str, NDArray[Any]] = {}
    if (labels := files.lines("node_labels", np.int64, size, "node")) is not None:
        columns["labels"] = labels
    if name != TRIANGLES and (
        (values := files.lines("node_attributes", np.float64, size, "node")) is not None
    ):
        columns["attributes"] = values
    listed = len(lines)
    if (labels := files.lines("edge_labels", np.int64, listed, "line of A")) is not None:
        edge_columns["labels"] = labels[lines[: edges.shape[1]]]
    if (values := files.lines("edge_attributes", np.float64, listed, "line of A")) is not None:
        edge_columns["attributes"] = values[lines[: edges.shape[1]]]
    return Graphs(
        name,
        start,
        edges,
        columns,
        edge_columns=edge_columns,
        split=published_split() if name == TRIANGLES and count == 45_000 else None,
        **_targets(files, count, task),
    )


def published_split() -> dict[str, Ints]:
    """The split of TRIANGLES."""
    return {part: np.arange(*bounds) for part, bounds in PARTS.items()}


def _owners(files: _Files) -> tuple[Ints, Ints]:
    """(N,) the graph of each node, and (G + 1,) where graphs start."""
    owner = files.table("graph_indicator", np.int64, columns=1)[:, 0]
    step = np.diff(owner, prepend=0)
    wrong = np.flatnonzero((step < 0) | (step > 1))
    if owner.size == 0 or owner[0] != 1 or wrong.size:
        at = 0 if owner.size == 0 or owner[0] != 1 else wrong[0]
        got = f"line {at + 1}: {owner[at]}" if owner.size else "no lines"
        raise files.broken("graph_indicator", "graph ids from 1 that never fall or skip one", got)
    return owner, np.concatenate([[0], np.flatnonzero(np.diff(owner)) + 1, [len(owner)]])


def _edges(files: _Files, owner: Ints) -> tuple[Ints, Ints]:
    """(2, E) the different edges, sorted and thus graph by graph; the lines: these E first."""
    edges = files.table("A", np.int64, columns=2) - 1
    size = len(owner)
    wrong = np.flatnonzero((edges < 0).any(axis=1) | (edges >= size).any(axis=1))
    if wrong.size == 0:
        wrong = np.flatnonzero(owner[edges[:, 0]] != owner[edges[:, 1]])
    if wrong.size:
        where = f"line {wrong[0] + 1}: {edges[wrong[0], 0] + 1}, {edges[wrong[0], 1] + 1}"
        raise files.broken("A", f"two of 1..{size} in one graph", where)
    key = edges[:, 0] * size + edges[:, 1]
    lines = np.arange(len(edges))
    if (key[1:] <= key[:-1]).any():
        lines = np.argsort(key, kind="stable")
        again = np.diff(key[lines], prepend=-1) == 0  # the first line of an edge counts
        edges, lines = edges[lines[~again]], np.concatenate([lines[~again], lines[again]])
    return np.ascontiguousarray(edges.T), lines


def _targets(files: _Files, count: int, task: Task | None) -> Mapping[str, Any]:
    """The fields of `Graphs` that say what is to be predicted."""
    labels = files.lines("graph_labels", object, count, "graph")  # exact, as names of classes
    values = files.lines("graph_attributes", np.float64, count, "graph", gaps=True)
    if labels is None and (values is None or task == "classification"):
        if task is None:
            return {}
        raise HaarPoolError(
            f"labels of graphs for {task}",
            f"no {files.name}_graph_labels.txt in {files.folder}",
            "add the file" if values is None else "take --task regression",
        )
    if task is None:
        known = [0.5] if labels is None else [label for label in labels.flat if label == label]
        task = "classification" if all(label % 1 == 0 for label in known) else "regression"
    if task == "regression":
        if values is None:
            assert labels is not None
            values = labels.astype(np.float64)
        width = values.shape[1]
        names = ("target",) if width == 1 else tuple(f"target {i + 1}" for i in range(width))
        return {"task": task, "targets": values, "target_names": names}
    assert labels is not None
    if labels.shape[1] > 1:
        raise files.broken("graph_labels", "one label per line", f"{labels.shape[1]}")
    numbers, classes = as_classes(labels[:, 0].tolist())
    return {"task": task, "targets": numbers, "classes": classes}


# ---------------------------------------------------------------------- files of numbers


@dataclass(frozen=True)
class _Files:
    """The files of a dataset."""

    folder: Place
    name: str

    def lines(
        self, kind: str, dtype: type, count: int, per: str, *, gaps: bool = False
    ) -> NDArray[Any] | None:
        """(count, columns) the numbers of a file, or None where there is no such file."""
        if not self.path(kind).exists():
            return None
        table = self.table(kind, dtype, gaps=gaps)
        if len(table) != count:
            raise self.broken(kind, f"{count} lines, one per {per}", f"{len(table)} lines")
        return table

    def path(self, kind: str) -> Place:
        """The file of a kind, such as "A" or "node_labels"."""
        return self.folder / f"{self.name}_{kind}.txt"

    def table(
        self, kind: str, dtype: type, *, columns: int | None = None, gaps: bool = False
    ) -> NDArray[Any]:
        """The numbers of a file, a row per line; an error names the line.

        Args:
            kind: of the file.
            dtype: int64, float64, or object for numbers with all their digits, or NaN.
            columns: how many; else as many as the first line has.
            gaps: let NaN pass.
        """
        text = self.path(kind).read_text(encoding="utf-8-sig").rstrip()
        lines = text.splitlines()
        width = columns or (lines[0].count(",") + 1 if lines else 1)
        gaps = gaps or dtype is object
        values = None if dtype is object else _parsed(text, dtype)
        if (
            values is not None
            and values.shape == (len(lines), width)
            and not (np.isinf(values) if gaps else ~np.isfinite(values)).any()
        ):
            return values
        rows = []
        for number, line in enumerate(lines, start=1):
            row = [as_number(part) for part in line.split(",")]
            if what := _wanted(row, width, dtype, gaps):
                got = f"line {number}: {line.strip()[:40]!r}"
                raise self.broken(kind, f"{width} {what} per line", got)
            rows.append(row)
        return np.array(rows, dtype).reshape(-1, width)

    def broken(self, kind: str, expected: str, got: str) -> HaarPoolError:
        """The error for a damaged file."""
        remedy = "the file is damaged; fetch it again"
        return HaarPoolError(f"{expected} in {self.path(kind)}", got, remedy)


def _parsed(text: str, dtype: type) -> NDArray[Any] | None:
    """All numbers of a text at once, which is quick; None if anything is odd about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of an empty text; and older versions of numpy round
        try:
            return np.loadtxt(StringIO(text), dtype, comments=None, delimiter=",", ndmin=2)
        except (ValueError, UserWarning, DeprecationWarning):
            return None


def _wanted(row: list[Number | None], width: int, dtype: type, gaps: bool) -> str:
    """What a row should hold and does not; "" for a good one."""
    numbers = [number for number in row if number is not None]
    if len(numbers) != width or len(row) != width:
        return "numbers"
    if any(isinf(number) or (isnan(number) and not gaps) for number in numbers):
        return "finite numbers"
    if dtype is np.int64 and any(number % 1 != 0 for number in numbers):
        return "whole numbers"
    if dtype is np.int64 and any(not -(2**63) <= number < 2**63 for number in numbers):
        return "whole numbers of 64 bits"
    return ""

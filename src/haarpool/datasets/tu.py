"""Graph datasets in the text layout of the TU collection (Morris et al., 2020).

They are read with numpy alone, from a folder or from a zip file.
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

Folder = Path | zipfile.Path

# TRIANGLES is split by position. Its node attributes contain the answer and are never read.
TRIANGLES = "TRIANGLES"
PARTS = {"train": (0, 30_000), "validation": (30_000, 35_000), "test": (35_000, 45_000)}


def tu_name(folder: Folder) -> str | None:
    """Return the name of the dataset whose files are in `folder`, or None if there is none."""
    files = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    end = "_graph_indicator.txt"
    names = sorted(file.removesuffix(end) for file in files if file.endswith(end))
    return next((name for name in names if f"{name}_A.txt" in files), None)


def read_tu(path: Path, task: Task | None = None) -> Graphs:
    """Read all graphs; an edge that is listed twice is one edge.

    Args:
        path: A folder, or a zip file that contains the files, in a folder or not.
        task: "regression" reads `_graph_attributes`, or numbers in `_graph_labels`;
            "classification" reads `_graph_labels`. By default, labels that are whole numbers are
            classes, and attributes are read if there are no labels.
    """
    try:
        folder = path if path.is_dir() else _folder_in_zip(path)
        name = tu_name(folder)
        if name is None:
            raise HaarPoolError("files in TU layout", f"none in {path}", "check the folder")
        return _read(folder, name, task)
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise HaarPoolError(
            f"readable text files in {path}", f"{error}", "download them again"
        ) from error


def _folder_in_zip(path: Path) -> zipfile.Path:
    """Return the folder in a zip file that contains a dataset."""
    top = zipfile.Path(path)
    return next((folder for folder in top.iterdir() if tu_name(folder)), top)


def _read(folder: Folder, name: str, task: Task | None) -> Graphs:
    files = _Files(folder, name)
    owner, start = _graph_of_nodes(files)
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
    """Return the published split of TRIANGLES."""
    return {part: np.arange(*bounds) for part, bounds in PARTS.items()}


def _graph_of_nodes(files: _Files) -> tuple[Ints, Ints]:
    """Read the (N,) graph of each node, and the (G + 1,) starts of the graphs."""
    owner = files.table("graph_indicator", np.int64, columns=1)[:, 0]
    step = np.diff(owner, prepend=0)
    wrong = np.flatnonzero((step < 0) | (step > 1))
    if owner.size == 0 or owner[0] != 1 or wrong.size:
        line = 0 if owner.size == 0 or owner[0] != 1 else wrong[0]
        got = f"line {line + 1}: {owner[line]}" if owner.size else "no lines"
        raise files.damaged("graph_indicator", "ascending graph ids from 1 without gaps", got)
    return owner, np.concatenate([[0], np.flatnonzero(np.diff(owner)) + 1, [len(owner)]])


def _edges(files: _Files, owner: Ints) -> tuple[Ints, Ints]:
    """Read the edges without duplicates.

    Args:
        files: The dataset.
        owner: (N,) Graph of each node, from 1.

    Returns:
        (2, E) The edges, sorted and thus graph by graph; and the numbers of all lines, first those
        of these E edges, then those of duplicates.
    """
    edges = files.table("A", np.int64, columns=2) - 1
    size = len(owner)
    wrong = np.flatnonzero((edges < 0).any(axis=1) | (edges >= size).any(axis=1))
    if wrong.size == 0:
        wrong = np.flatnonzero(owner[edges[:, 0]] != owner[edges[:, 1]])
    if wrong.size:
        got = f"line {wrong[0] + 1}: {edges[wrong[0], 0] + 1}, {edges[wrong[0], 1] + 1}"
        raise files.damaged("A", f"two nodes of 1..{size} in one graph", got)
    key = edges[:, 0] * size + edges[:, 1]
    lines = np.arange(len(edges))
    if (key[1:] <= key[:-1]).any():
        lines = np.argsort(key, kind="stable")
        duplicate = np.diff(key[lines], prepend=-1) == 0  # the first line of an edge is kept
        edges = edges[lines[~duplicate]]
        lines = np.concatenate([lines[~duplicate], lines[duplicate]])
    return np.ascontiguousarray(edges.T), lines


def _targets(files: _Files, count: int, task: Task | None) -> Mapping[str, Any]:
    """Read the fields of `Graphs` about labels."""
    labels = files.lines("graph_labels", object, count, "graph")  # all digits, for class names
    values = files.lines("graph_attributes", np.float64, count, "graph", gaps=True)
    if labels is None and (values is None or task == "classification"):
        if task is None:
            return {}
        raise HaarPoolError(
            f"labels of graphs for task={task}",
            f"no {files.name}_graph_labels.txt in {files.folder}",
            "add the file" if values is None else "pass task=regression",
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
        raise files.damaged("graph_labels", "one label per line", f"{labels.shape[1]}")
    numbers, classes = as_classes(labels[:, 0].tolist())
    return {"task": task, "targets": numbers, "classes": classes}


# ---------------------------------------------------------------------- files of numbers


@dataclass(frozen=True)
class _Files:
    """The files of a dataset."""

    folder: Folder
    name: str

    def lines(
        self, kind: str, dtype: type, count: int, per: str, *, gaps: bool = False
    ) -> NDArray[Any] | None:
        """Read the numbers of a file.

        Args:
            kind: Kind of the file, such as "A" or "node_labels".
            dtype: As in `table`.
            count: Number of lines that it should have.
            per: What each line describes, for an error message.
            gaps: As in `table`.

        Returns:
            (count, columns) The numbers; None if the file does not exist.
        """
        if not self.path(kind).exists():
            return None
        table = self.table(kind, dtype, gaps=gaps)
        if len(table) != count:
            raise self.damaged(kind, f"{count} lines, one per {per}", f"{len(table)} lines")
        return table

    def path(self, kind: str) -> Folder:
        """Return the file of a kind, such as "A" or "node_labels"."""
        return self.folder / f"{self.name}_{kind}.txt"

    def table(
        self, kind: str, dtype: type, *, columns: int | None = None, gaps: bool = False
    ) -> NDArray[Any]:
        """Read the numbers of a file, one row per line; an error names the line.

        Args:
            kind: Kind of the file.
            dtype: int64, float64, or object for numbers with all their digits, or NaN.
            columns: Number of columns; by default that of the first line.
            gaps: True allows NaN.
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
            if expected := _violation(row, width, dtype, gaps):
                got = f"line {number}: {line.strip()[:40]!r}"
                raise self.damaged(kind, f"{width} {expected} per line", got)
            rows.append(row)
        return np.array(rows, dtype).reshape(-1, width)

    def damaged(self, kind: str, expected: str, got: str) -> HaarPoolError:
        """Return the error for a damaged file."""
        remedy = "the file is damaged; download it again"
        return HaarPoolError(f"{expected} in {self.path(kind)}", got, remedy)


def _parsed(text: str, dtype: type) -> NDArray[Any] | None:
    """Parse all numbers of a text at once, which is fast; None if it has any problem."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # for an empty text, or if an older numpy rounds numbers
        try:
            return np.loadtxt(StringIO(text), dtype, comments=None, delimiter=",", ndmin=2)
        except (ValueError, UserWarning, DeprecationWarning):
            return None


def _violation(row: list[Number | None], width: int, dtype: type, gaps: bool) -> str:
    """Return what a row should contain and does not; "" for a valid row."""
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

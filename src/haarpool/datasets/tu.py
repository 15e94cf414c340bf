"""Graph datasets in the text layout of the TU collection (Morris et al., 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from haarpool.batch import Batch
from haarpool.errors import HaarPoolError
from haarpool.graph import from_edges

Floats = NDArray[np.float64]


class TUGraphs(NamedTuple):
    """A dataset: its graphs as one batch, and the features of all their nodes."""

    name: str
    batch: Batch
    features: Floats | None


def tu_files(folder: Path) -> str | None:
    """The name of the dataset whose files lie in `folder`, if there is one."""
    indicators = sorted(folder.glob("*_graph_indicator.txt")) if folder.is_dir() else []
    names = [path.name.removesuffix("_graph_indicator.txt") for path in indicators]
    return next((name for name in names if (folder / f"{name}_A.txt").exists()), None)


def read_tu(folder: Path) -> TUGraphs:
    """Read all graphs; an edge that is listed twice is one edge.

    Features are the node labels, one-hot, and then the attributes, where there are any.
    """
    name = tu_files(folder)
    if name is None:
        raise HaarPoolError("files in TU layout", f"none in {folder}", "check the folder")
    owner = _table(folder / f"{name}_graph_indicator.txt", 1)[:, 0].astype(np.int64)
    if owner.size == 0 or owner[0] < 1 or (np.diff(owner) < 0).any():
        raise _broken(folder / f"{name}_graph_indicator.txt", "graph ids from 1 that never fall")
    edges = _table(folder / f"{name}_A.txt", 2).astype(np.int64) - 1
    size = len(owner)
    wrong = np.flatnonzero((edges < 0).any(axis=1) | (edges >= size).any(axis=1))
    if wrong.size == 0:
        wrong = np.flatnonzero(owner[edges[:, 0]] != owner[edges[:, 1]])
    if wrong.size:
        where = f"line {wrong[0] + 1}: {edges[wrong[0], 0] + 1}, {edges[wrong[0], 1] + 1}"
        raise _broken(folder / f"{name}_A.txt", f"two of 1..{size} in one graph", where)
    adjacency = from_edges(edges[:, 0], edges[:, 1], np.ones(len(edges)), size)
    adjacency.data[:] = 1
    start = np.searchsorted(owner, np.arange(1, owner[-1] + 2))
    return TUGraphs(name, Batch(adjacency, start), _features(folder, name, size))


def _features(folder: Path, name: str, size: int) -> Floats | None:
    parts = []
    for kind in ("node_labels", "node_attributes"):
        path = folder / f"{name}_{kind}.txt"
        if not path.exists():
            continue
        table = _table(path)
        if len(table) != size:
            raise _broken(path, f"{size} lines, one per node", f"{len(table)} lines")
        if kind == "node_labels":
            columns = [column[:, None] == np.unique(column) for column in table.T]
            table = np.concatenate(columns, axis=1).astype(np.float64)
        parts.append(table)
    return np.concatenate(parts, axis=1) if parts else None


def _table(path: Path, columns: int | None = None) -> Floats:
    """The numbers of a file, a row per line; an error names the line."""
    text = path.read_text()
    lines = text.splitlines()
    width = columns or (lines[0].count(",") + 1 if lines else 1)
    try:
        values = np.array(text.replace(",", " ").split(), np.float64)
        if text.count(",") == (width - 1) * len(lines) and len(values) == width * len(lines):
            return values.reshape(-1, width)
    except ValueError:
        pass
    for number, line in enumerate(lines, start=1):
        try:
            if len([float(part) for part in line.split(",")]) == width:
                continue
        except ValueError:
            pass
        raise _broken(path, f"{width} numbers per line", f"line {number}: {line.strip()[:40]!r}")
    return np.zeros((0, width))


def _broken(path: Path, expected: str, got: str = "others") -> HaarPoolError:
    return HaarPoolError(f"{expected} in {path}", got, "the file is damaged; fetch it again")

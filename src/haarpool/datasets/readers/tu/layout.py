"""Graph datasets in the text layout of the TU collection (Morris et al., 2020).

They are read with numpy alone, from a folder or from a zip file, as people write them: numbers
between commas or blanks, empty lines, labels as text, nodes in any order, graphs without nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import label_fields
from haarpool.datasets.readers.tu.files import TuFiles, is_text
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError, HaarPoolWarning
from haarpool.tasks import find_task

TRIANGLES = "TRIANGLES"  # its node attributes contain the answer and are never read


def read_tu(path: Path, task: str | None = None) -> Graphs:
    """Read all graphs that have nodes; an edge that is listed twice is one edge.

    Args:
        path: A folder, or a zip file that contains the files, in folders or not.
        task: A task of values reads `_graph_attributes`, or numbers in `_graph_labels`; one of
            classes reads `_graph_labels`. By default, labels that are whole numbers or
            text are classes, and attributes are read if there are no labels.
    """
    files = TuFiles.find(path)
    nodes = _nodes(files)
    size, name = len(nodes.order), files.name
    edges, lines = _edges(files, nodes)
    columns: dict[str, NDArray[Any]] = {}
    edge_columns: dict[str, NDArray[Any]] = {}
    for kind in ("labels", "attributes"):
        is_answer = (name, kind) == (TRIANGLES, "attributes")
        values = None if is_answer else files.lines(f"node_{kind}", size, "node")
        if values is not None:
            columns[kind] = values[nodes.order]
        values = files.lines(f"edge_{kind}", len(lines), "line of A")
        if values is not None:
            edge_columns[kind] = values[lines[: edges.shape[1]]]
    targets, numbers = _targets(files, nodes.ids, task)
    return Graphs(
        name,
        nodes.start,
        edges,
        columns,
        edge_columns=edge_columns,
        split=published_split() if name == TRIANGLES and len(nodes.ids) == 45_000 else None,
        numbers=numbers,
        **targets,
    )


def published_split() -> dict[str, Ints]:
    """Return the published split of TRIANGLES, which is by position."""
    return Split(*np.split(np.arange(45_000), [30_000, 35_000]))._asdict()


class _Nodes(NamedTuple):
    """Which graph each node belongs to."""

    owner: Ints  # (N,) graph id of each node, in the order of the file
    order: Ints  # (N,) the nodes, graph by graph
    start: Ints  # (G + 1,) where each graph starts in `order`
    ids: Ints  # (G,) graph ids, from 1 and ascending, without those of graphs without nodes


def _nodes(files: TuFiles) -> _Nodes:
    owner = files.table("graph_indicator", columns=1)[:, 0]
    wrong = np.flatnonzero(owner < 1)
    if owner.size == 0 or wrong.size:
        got = files.quote("graph_indicator", wrong[0]) if wrong.size else "no lines"
        remedy = "number graphs from 1" if wrong.size else "add the graph of each node"
        raise files.wrong("graph_indicator", "graph ids from 1", got, remedy)
    order = np.arange(len(owner))
    if (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner, kind="stable")
    ids, first = np.unique(owner[order], return_index=True)
    return _Nodes(owner, order, np.append(first, len(owner)), ids)


def _edges(files: TuFiles, nodes: _Nodes) -> tuple[Ints, Ints]:
    """Read the edges without duplicates.

    Returns:
        (2, E) The edges, sorted and thus graph by graph; and the numbers of all rows of the file,
        first those of these E edges, then those of duplicates.
    """
    edges = files.table("A", columns=2) - 1
    size = len(nodes.owner)
    remedy = "number nodes from 1, one per line of the graph_indicator file"
    wrong = np.flatnonzero((edges < 0).any(axis=1) | (edges >= size).any(axis=1))
    if wrong.size == 0:
        wrong = np.flatnonzero(nodes.owner[edges[:, 0]] != nodes.owner[edges[:, 1]])
        remedy = "correct this line, or the graphs of these nodes in the graph_indicator file"
    if wrong.size:
        got = files.quote("A", wrong[0])
        raise files.wrong("A", f"two nodes of 1..{size} in one graph", got, remedy)
    position = np.empty_like(nodes.order)
    position[nodes.order] = np.arange(size)
    edges = position[edges]
    key = edges[:, 0] * size + edges[:, 1]
    rows = np.arange(len(edges))
    if (key[1:] <= key[:-1]).any():
        rows = np.argsort(key, kind="stable")
        duplicate = np.diff(key[rows], prepend=-1) == 0  # the first line of an edge is kept
        edges = edges[rows[~duplicate]]
        rows = np.concatenate([rows[~duplicate], rows[duplicate]])
    return np.ascontiguousarray(edges.T), rows


def _targets(files: TuFiles, ids: Ints, task: str | None) -> tuple[Mapping[str, Any], Ints | None]:
    """Read the fields of `Graphs` about labels, and its field `numbers`."""
    labels, values = (files.of_graphs(kind, ids) for kind in ("graph_labels", "graph_attributes"))
    read = labels or values
    # Without labels, every id that is skipped is a graph without nodes.
    listed = int(ids[-1]) if read is None else read.listed
    numbers = None if listed == len(ids) else ids - 1
    if numbers is not None:
        text = (
            f"{listed - len(ids)} of {listed} graphs of {files.name} have no nodes and are left out"
        )
        warnings.warn(text, HaarPoolWarning, stacklevel=5)
    kind = find_task(task)
    if kind is None:
        chosen = labels or values
    else:
        chosen = labels if kind.reads_classes else values or labels
    if chosen is None:
        if task is None:
            return {}, numbers
        raise HaarPoolError(
            "labels of graphs for {task}",
            f"no {files.name}_graph_labels.txt in {files.source}",
            "add the file" if values is None else "pass another",
            task=task,
        )
    texts = [text for _, text in chosen.rows]
    if chosen is labels and (kind is None or kind.reads_classes) and is_text(texts):
        return label_fields(texts, kind), numbers
    table = files.numbers(chosen.kind, chosen.rows)
    is_whole = all(number % 1 == 0 for number in table.flat if number == number)
    like_classes = is_whole and chosen is labels
    if table.shape[1] > 1 and (like_classes if kind is None else kind.reads_classes):
        got = f"{table.shape[1]} in line {chosen.rows[0][0]}"
        raise files.wrong(
            "graph_labels", "one label per line", got, "pass {task}", task="regression"
        )
    return label_fields(table, kind, like_classes=like_classes), numbers

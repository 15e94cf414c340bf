"""Checks of graphs that a reader returned, so that all other code can rely on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import check_targets
from haarpool.errors import HaarPoolError
from haarpool.tasks import find_task


def check_graphs(
    graphs: Any, reader: object = "", task: str | None = None, source: object = ""
) -> Graphs:
    """Check graphs, bring their edges graph by graph and convert names to text.

    Args:
        graphs: What a reader returned.
        reader: The reader, for errors; "" if there is none.
        task: The task that they must have; None for any.
        source: What it read, for errors; "" for objects.

    Returns:
        The same object if there is nothing to change.
    """
    try:
        if not isinstance(graphs, Graphs):
            raise _wrong("an object of the class Graphs", f"{type(graphs).__name__}")
        changes = _nodes_and_edges(graphs) | _names(graphs)
        graphs = replace(graphs, **changes) if changes else graphs
        _check_columns(graphs)
        _check_labels(graphs)
        asked = find_task(task, len(graphs.target_names))
        if asked is not None and graphs.task is not asked:
            got = f"{graphs.task}" if graphs.task else "no labels"
            raise _wrong("{task}", got, "leave {task} out", task=asked)
    except HaarPoolError as error:
        expected, got, remedy = error.args
        is_ours = type(reader).__module__.partition(".")[0] == __name__.partition(".")[0]
        if not reader:
            remedy = remedy or "make them again"
        elif is_ours:  # then its input is wrong
            got = f"{got} in {source}" if source else got
            remedy = remedy or ("correct the file" if source else "correct the graphs")
        else:
            expected = f"{expected} from the reader {reader}"
            remedy = remedy or "correct the reader"
        raise HaarPoolError(expected.rstrip(","), got, remedy, **error.values) from None
    return check_targets(graphs)


def _wrong(expected: str, got: str, remedy: str = "", **values: Any) -> HaarPoolError:
    return HaarPoolError(expected, got, remedy, **values)


def _nodes_and_edges(graphs: Graphs) -> dict[str, Any]:
    """Check nodes and edges; return the fields that change so that edges are graph by graph."""
    start, edges = graphs.start, graphs.edges
    if _shape(start) != (np.size(start),) or len(start) < 2 or start.dtype.kind != "i":
        raise _wrong("start as an array of G + 1 whole numbers, G > 0,", _about(start))
    if start[0] != 0 or (start[1:] <= start[:-1]).any():
        got = f"{start[0]} first"
        if start[0] == 0:
            got = f"none in graph {np.argmax(start[1:] <= start[:-1])}"
        raise _wrong("start from 0 with at least one node per graph", got)
    size = int(start[1] if graphs.signals else start[-1])
    if graphs.signals and (np.diff(start) != size).any():
        raise _wrong("signals with as many nodes each", f"{np.diff(start).min()} to {size}")
    if _shape(edges) != (2, np.size(edges) // 2) or edges.dtype.kind != "i":
        raise _wrong("edges as an array (2, E) of whole numbers", _about(edges))
    if edges.size and (edges.min() < 0 or edges.max() >= size):
        got = f"{edges.min()} to {edges.max()}"
        raise _wrong(f"edges with nodes in 0..{size - 1} of all graphs", got)
    # The edges of signals are those of the first graph.
    owners = np.zeros(size, np.int64) if graphs.signals else graphs.owner
    owner = owners[edges[0]]
    between = np.flatnonzero(owner != owners[edges[1]])
    if between.size:
        u, v = edges[:, between[0]]
        a, b = owner[between[0]], owners[v]
        got = f"{u} - {v} between {graphs.where(a)} and {graphs.where(b)}"
        raise _wrong("edges inside a graph, with nodes numbered over all graphs,", got)
    count = edges.shape[1]
    weight = graphs.edge_weight
    if weight is not None:
        if _shape(weight) != (count,) or weight.dtype.kind not in "iuf":
            raise _wrong(f"edge_weight as an array ({count},) of numbers", _about(weight))
        if not np.isfinite(weight).all():
            g = owner[np.argmin(np.isfinite(weight))]
            got, remedy = f"NaN or infinity in {graphs.where(g)}", "correct or remove these edges"
            raise _wrong("finite edge weights", got, remedy)
        if count and not weight.any():  # an edge of weight 0 connects nothing
            remedy = "leave edge_weight out, or pass weights above 0"
            raise _wrong("an edge weight above 0", f"0 for all {count:,} edges", remedy)
    _check_rows("edge_columns", graphs.edge_columns, count)
    if (owner[1:] >= owner[:-1]).all():
        return {}
    order = np.argsort(owner, kind="stable")
    columns = {kind: values[order] for kind, values in graphs.edge_columns.items()}
    weight = None if weight is None else weight[order]
    return {"edges": edges[:, order], "edge_weight": weight, "edge_columns": columns}


def _names(graphs: Graphs) -> dict[str, Any]:
    """Return the names that are no text yet."""
    changes = {}
    for field in ("classes", "target_names", "ids"):
        names = getattr(graphs, field)
        if names is not None and not (
            isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        ):
            changes[field] = tuple(map(str, names))
    return changes


def _check_columns(graphs: Graphs) -> None:
    """Check what has a row per node or graph."""
    columns = graphs.columns
    if isinstance(columns, Mapping) and graphs.shares_positions:
        _check_rows("columns", {"pos": columns["pos"]}, int(graphs.start[1]))
        columns = {kind: values for kind, values in columns.items() if kind != "pos"}
    _check_rows("columns", columns, int(graphs.start[-1]))
    if graphs.split is not None and not isinstance(graphs.split, Mapping):
        raise _wrong("split as a mapping from parts to numbers of graphs", _about(graphs.split))
    for field in ("folds", "lines", "numbers"):
        values = getattr(graphs, field)
        if values is not None and (_shape(values) != (len(graphs),) or values.dtype.kind != "i"):
            raise _wrong(f"{field} as an array ({len(graphs)},) of whole numbers", _about(values))
    if graphs.ids is not None and len(graphs.ids) != len(graphs):
        raise _wrong(f"{len(graphs)} ids, one per graph,", f"{len(graphs.ids)}")


def _check_rows(field: str, columns: Mapping[str, NDArray[Any]], count: int) -> None:
    if not isinstance(columns, Mapping):
        raise _wrong(f"{field} as a mapping from kinds to arrays", _about(columns))
    for kind, values in columns.items():
        shape = _shape(values)
        if shape is None or len(shape) != 2 or len(values) != count:
            raise _wrong(f"{field}[{kind!r}] as an array ({count}, columns)", _about(values))
        numbers = "whole numbers or text" if kind == "labels" else "numbers"
        if values.dtype.kind not in ("biuU" if kind == "labels" else "biuf"):
            raise _wrong(f"{numbers} in {field}[{kind!r}]", _about(values))


def _check_labels(graphs: Graphs) -> None:
    """Check that targets have the shape of their task, and classes a name."""
    task, targets, number = graphs.task, graphs.targets, len(graphs.target_names)
    if task is None or targets is None:
        if (task is None) != (targets is None):
            got = "targets alone" if task is None else f"task {task} alone"
            raise _wrong("task and targets together, or none of them,", got)
        return
    names = f", with T target_names ({number})" if task.has_targets else ""
    rows = int(graphs.start[-1]) if task.of_nodes else len(graphs)
    shape: tuple[int, ...] = (rows, number) if task.has_targets else (rows,)
    if _shape(targets) != shape or targets.dtype.kind not in "iuf" or targets.size == 0:
        letter = "N" if task.of_nodes else "G"
        letters = f"({letter}, T)" if task.has_targets else f"({letter},)"
        raise _wrong(f"targets as numbers {letters} for {task}{names},", _about(targets))
    if not task.reads_classes:
        return
    classes, known = graphs.classes, targets[task.known(targets)]
    if len(set(classes)) < len(classes):
        raise _wrong("classes with different names", ", ".join(classes))
    for wrong in known[~np.isin(known, np.arange(len(classes)))][:1]:
        expected = f"targets in 0..{len(classes) - 1}, the numbers of {len(classes)} classes,"
        raise _wrong(expected, f"{wrong}")


def _shape(values: Any) -> tuple[int, ...] | None:
    return values.shape if isinstance(values, np.ndarray) else None


def _about(values: Any) -> str:
    if not isinstance(values, np.ndarray):
        return type(values).__name__
    return f"{values.dtype} of shape {values.shape}"

"""From arrays to `Graphs` with labels at the nodes: one graph, or one graph with many signals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats, Ints
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import check_targets, default_names
from haarpool.errors import HaarPoolError, HaarPoolWarning
from haarpool.tasks import MISSING, Task, find_task, infer_task

MASKS = {"train": "train_mask", "validation": "val_mask", "test": "test_mask"}
ARRAYS = ("edge_index", "edge_weight", "edge_attr", "x", "y", "pos", *MASKS.values())


def node_label_fields(
    y: NDArray[Any], task: str | None = None, names: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the fields of `Graphs` about labels of nodes.

    Args:
        y: (rows,) labels, or (rows, T) of several targets. Whole numbers, booleans and text are
            classes, real numbers are values, NaN is missing.
        task: The task; by default what the labels look like.
        names: (T,) names of the targets.

    Example:
        >>> node_label_fields(np.array([3, 5, 3]))["targets"]
        array([0, 1, 0])
        >>> node_label_fields(np.array([0.5, np.nan]))["task"]
        'node_regression'
    """
    columns = y.reshape(len(y), -1)
    num_targets = columns.shape[1]
    is_class = y.dtype.kind in "biuUO" and num_targets == 1
    kind = find_task(task, num_targets)
    if kind is None:
        kind = infer_task(num_targets, 2 if is_class else None, of_nodes=True)
    if not kind.has_targets:
        if num_targets > 1:
            got = f"{num_targets} targets"
            raise HaarPoolError("one target for {task}", got, "leave {task} out", task=task)
        return kind.label_fields(*_classes(columns[:, 0]))
    if columns.dtype.kind not in "biuf":
        got = f"{columns.dtype} in y"
        raise HaarPoolError("numbers as labels for {task}", got, "leave {task} out", task=str(kind))
    return kind.label_fields(
        columns.astype(np.float64, copy=False), targets=names or default_names(num_targets)
    )


def with_node_labels(graphs: Graphs, y: Any, task: Task) -> tuple[Graphs, str | None]:
    """Return graphs with other labels at their nodes, and the dtype of their classes.

    Args:
        graphs: Graphs of N nodes in all, or S signals on a graph of N nodes.
        y: (N,) or (N, T) labels, graph by graph; (S, N) or (S, N, T) for signals. NaN is missing.
        task: The task of one target.
    """
    labels = np.asarray(y)
    if graphs.signals:
        rows = _label_rows(labels, len(graphs), int(graphs.sizes[0]))
    else:
        rows = _label_rows(labels, None, int(graphs.start[-1]))
    graphs = check_targets(replace(graphs, **node_label_fields(rows, task)))
    if not graphs.is_labelled.any():
        raise HaarPoolError("labels in y", "only missing ones", "pass y with known labels")
    return graphs, str(labels.dtype) if task.reads_classes and labels.dtype != object else None


def _classes(labels: NDArray[Any]) -> tuple[Ints, tuple[str, ...]]:
    """Return the class of each label, -1 for a missing one, and the names of the classes."""
    known = labels == labels  # NaN differs from itself
    if labels.dtype.kind == "O":
        known &= np.array([label is not None for label in labels.tolist()], bool)
    values, numbers = np.unique(labels[known], return_inverse=True)
    targets = np.full(len(labels), MISSING)
    targets[known] = numbers
    if MISSING in values.tolist():
        text = "-1 is one of the classes: use NaN, or masks, if it means that a label is missing"
        warnings.warn(text, HaarPoolWarning, stacklevel=4)
    return targets, tuple(map(str, values.tolist()))


def graphs_of_arrays(
    arrays: Mapping[str, Any], name: str, task: str | None = None, *, labels: bool = True
) -> Graphs:
    """Convert the arrays of a graph: `Graphs` of one graph, or of a signal per x and y.

    Args:
        arrays: edge_index (2, E); and those that there are of edge_weight (E,), edge_attr (E, C),
            x (N, d) or (S, N, d), y (N,), (N, T), (S, N) or (S, N, T), pos (N, 2), train_mask,
            val_mask and test_mask (N,) or (N, splits), target_names (T,). The shape of x decides
            whether there are signals; without x that of y.
        name: Name of the dataset.
        task: The task; by default what the labels look like.
        labels: False leaves `y` and the masks out.

    Example:
        >>> path = {"edge_index": np.array([[0, 1], [1, 0]]), "x": np.ones((5, 2, 3))}
        >>> graphs = graphs_of_arrays(path | {"y": np.zeros((5, 2))}, "path")
        >>> len(graphs), graphs.signals, graphs.task, graphs.targets.shape
        (5, True, 'node_regression', (10, 1))
    """
    x, y = arrays.get("x"), arrays.get("y") if labels else None
    edges = np.asarray(arrays["edge_index"])
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        got = f"{edges.dtype} of shape {edges.shape}"
        raise HaarPoolError("edge_index as whole numbers (2, E)", got, "transpose or convert it")
    num_signals, num_nodes = _sizes(arrays, x, y, edges)
    repeat = num_signals or 1
    columns: dict[str, NDArray[Any]] = {}
    for kind in ("x", "pos"):
        if np.size(arrays.get(kind, ())):
            is_once = kind == "pos" and np.ndim(arrays[kind]) == 2  # for all signals
            each = None if is_once else num_signals
            columns[kind] = _node_rows(kind, arrays[kind], each, num_nodes)
    if y is not None:
        y = _label_rows(y, num_signals, num_nodes)
    attributes = _edge_rows("edge_attr", arrays.get("edge_attr"), edges.shape[1], (1, 2))
    if attributes is not None and attributes.ndim == 1:
        attributes = attributes[:, None]
    fields = {}
    if y is not None:
        fields = node_label_fields(y, task, _target_names(arrays, y))
    return Graphs(
        name,
        np.arange(repeat + 1) * num_nodes,
        edges.astype(np.int64),
        columns,
        edge_weight=_edge_rows("edge_weight", arrays.get("edge_weight"), edges.shape[1], (1,)),
        edge_columns={} if attributes is None else {"attributes": attributes},
        signals=num_signals is not None,
        node_splits=_splits(arrays, num_signals, num_nodes) if labels else (),
        **fields,
    )


def _sizes(arrays: Mapping[str, Any], x: Any, y: Any, edges: Ints) -> tuple[int | None, int]:
    """Return the number of signals, None for a single graph, and the number of nodes."""
    number = int(edges.max(initial=-1)) + 1
    if x is not None:
        x = np.asarray(x)
        if x.ndim not in (2, 3) or 0 in x.shape[:-1]:
            got = f"shape {x.shape}"
            raise HaarPoolError("x of shape (N, d), or (S, N, d) for S signals", got, "reshape it")
        kind, shape, is_signals = "x", x.shape[:-1], x.ndim == 3
    else:
        others = {"y": y} | {key: arrays.get(key) for key in ("pos", *MASKS.values())}
        shapes = ((key, np.shape(one)) for key, one in others.items() if one is not None)
        kind, shape = next((one for one in shapes if one[1]), ("edge_index", (number,)))
        is_signals = kind == "y" and len(shape) == 3
    size = shape[1] if is_signals else shape[0]
    if size < number:
        expected = f"edge_index with nodes in 0..{size - 1}, the {size:,} nodes of {kind}"
        remedy = "number nodes from 0, or give them all a row"
        if kind == "y" and len(shape) == 2:
            remedy = "give y of S signals the shape (S, N, 1), or add x (S, N, d)"
        raise HaarPoolError(expected, f"{number - 1}", remedy)
    return (shape[0] if is_signals else None), size


def _edge_rows(key: str, values: Any, num_edges: int, ndims: Sequence[int]) -> Floats | None:
    """Return an array with a row per edge; None if there is none."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.ndim not in ndims or len(array) != num_edges or array.dtype.kind not in "biuf":
        shapes = " or ".join(f"({num_edges},{' columns' * (ndim > 1)})" for ndim in ndims)
        got = f"{array.dtype} of shape {array.shape}"
        remedy = "give each edge of edge_index a row of numbers"
        raise HaarPoolError(f"{key} as numbers of shape {shapes}", got, remedy)
    return array.astype(np.float64, copy=False)


def _target_names(arrays: Mapping[str, Any], y: NDArray[Any]) -> tuple[str, ...]:
    """Return the names of the targets, () if there are none."""
    if arrays.get("target_names") is None:
        return ()
    names, number = np.asarray(arrays["target_names"]), y.shape[1] if y.ndim > 1 else 1
    if names.shape != (number,):
        expected, got = f"target_names of shape ({number},), one per target", f"shape {names.shape}"
        raise HaarPoolError(expected, got, "name each target")
    return tuple(map(str, names))


def _node_rows(kind: str, values: Any, num_signals: int | None, num_nodes: int) -> NDArray[Any]:
    """Return real numbers with a row per node, signal by signal."""
    array = np.asarray(values)
    shape = (num_nodes,) if num_signals is None else (num_signals, num_nodes)
    if array.shape[:-1] != shape or array.dtype.kind not in "biuf":
        expected = f"{kind} as numbers of shape ({', '.join(map(str, shape))}, columns)"
        raise HaarPoolError(expected, f"{array.dtype} of shape {array.shape}", "reshape it")
    rows = array.reshape(-1, array.shape[-1])
    return rows if rows.dtype == np.float32 else rows.astype(np.float64, copy=False)


def _label_rows(y: Any, num_signals: int | None, num_nodes: int) -> NDArray[Any]:
    """Return labels with a row per node, signal by signal: (rows,), or (rows, T)."""
    array = np.asarray(y)
    shape = (num_nodes,) if num_signals is None else (num_signals, num_nodes)
    if array.shape[: len(shape)] != shape or array.ndim > len(shape) + 1:
        named = "(N,) or (N, T)" if num_signals is None else "(S, N) or (S, N, T)"
        sizes = f"{num_nodes:,} nodes"
        sizes += "" if num_signals is None else f" and {num_signals:,} signals"
        got = f"shape {array.shape}"
        raise HaarPoolError(
            f"y of shape {named}, for {sizes}", got, "give each node a label, or NaN"
        )
    return array.reshape(-1, *array.shape[len(shape) :])


def _splits(
    arrays: Mapping[str, Any], num_signals: int | None, num_nodes: int
) -> tuple[dict[str, Ints], ...]:
    """Return the published splits of nodes: one per column of the masks."""
    masks = {part: arrays[key] for part, key in MASKS.items() if arrays.get(key) is not None}
    if not masks:
        return ()
    present = ", ".join(MASKS[part] for part in masks)
    if num_signals is not None:
        got, remedy = f"{present} with {num_signals:,} signals", "leave the masks out"
        raise HaarPoolError("masks of nodes without signals, which are split whole", got, remedy)
    if len(masks) < len(MASKS):
        missing = ", ".join(key for part, key in MASKS.items() if part not in masks)
        text = f"{present} without {missing} is no split: it is ignored, and nodes are split anew"
        warnings.warn(text, HaarPoolWarning, stacklevel=4)
        return ()
    columns = {part: np.asarray(mask) for part, mask in masks.items()}
    columns = {part: one[:, None] if one.ndim == 1 else one for part, one in columns.items()}
    numbers = {one.shape[1] for one in columns.values() if one.ndim == 2} - {1}
    for part, key in MASKS.items():
        kind, shape = columns[part].dtype.kind, columns[part].shape
        if kind != "b" or len(shape) != 2 or shape[0] != num_nodes or len(numbers) > 1:
            got = f"{columns[part].dtype} of shape {np.shape(masks[part])}"
            expected = f"{key} as booleans ({num_nodes},), or ({num_nodes}, splits)"
            raise HaarPoolError(expected, got, "convert it, with as many columns in all masks")
    number = max(numbers, default=1)
    spread = {part: np.broadcast_to(mask, (num_nodes, number)) for part, mask in columns.items()}
    return tuple(
        {part: np.flatnonzero(mask[:, i]) for part, mask in spread.items()} for i in range(number)
    )

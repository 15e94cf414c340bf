"""Labels that are passed as an array, instead of those of the graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import array_classes, check_targets, default_names
from haarpool.errors import HaarPoolError
from haarpool.tasks import MISSING, Task, find_task, infer_task


def with_labels(graphs: Graphs, y: Any, task: Task | None = None) -> tuple[Graphs, str | None]:
    """Return graphs with other labels, and the dtype of their classes if they have one each.

    Args:
        graphs: G graphs.
        y: Labels of shape (G,), or (G, T) for several targets; None and NaN are missing ones.
        task: The task of one target; by default what the labels look like.
    """
    labels = _as_array(y, len(graphs))
    num_targets = 1 if labels.ndim == 1 else labels.shape[1]
    if task is None:
        task = infer_task(num_targets, _num_classes(labels))
    task = find_task(task, num_targets)
    if task.has_targets and labels.ndim == 1:
        labels = labels[:, None]
    dtype = None
    if not task.reads_classes:
        graphs = with_values(graphs, task, labels)
    elif task.has_targets:
        names = default_names(labels.shape[1])
        fields = task.label_fields(_zeros_and_ones(labels), ("0", "1"), names)
        graphs = replace(graphs, **fields)
    else:
        targets, classes, dtype = array_classes(labels.reshape(len(graphs)))
        graphs = replace(graphs, **task.label_fields(targets, classes))
    if not graphs.is_labelled.any():
        expected, remedy = "labels in y", "pass y with the labels that are known"
        raise HaarPoolError(expected, "only missing ones (None or NaN)", remedy)
    return graphs, dtype


def with_values(graphs: Graphs, task: Task, y: NDArray[Any]) -> Graphs:
    """Return graphs with these labels as values."""
    try:
        values = y.astype(np.float64).reshape(len(graphs), -1)
    except (ValueError, TypeError) as error:
        raise HaarPoolError("numbers as labels", f"{error}", "use HaarClassifier") from error
    fields = task.label_fields(values, targets=default_names(values.shape[1]))
    return check_targets(replace(graphs, **fields))


def _num_classes(labels: NDArray[Any]) -> int | None:
    """Return the number of different labels; None for numbers that are not all whole."""
    if labels.dtype.kind != "f":
        return len(set(labels.ravel().tolist()))
    known = labels[np.isfinite(labels)]
    return None if (known != np.rint(known)).any() else len(np.unique(known))


def _as_array(y: Any, num_graphs: int) -> NDArray[Any]:
    """Return labels as an array of shape (G,) or (G, T); NaN among text stays a missing label."""
    labels = np.asarray(y)
    if labels.ndim not in (1, 2) or len(labels) != num_graphs or not labels.size:
        expected = f"{num_graphs} labels, of shape (G,) or (G, T)"
        raise HaarPoolError(expected, f"shape {labels.shape}", "pass one row per graph")
    if labels.dtype.kind == "U" and isinstance(y, list | tuple):
        objects = np.asarray(y, object)
        return objects if (objects != objects).any() else labels
    return labels


def _zeros_and_ones(y: NDArray[Any]) -> Floats:
    """Return (G, T) labels, zeros and ones, or -1 where a label is None or NaN."""
    try:
        targets = y.astype(np.float64)
        wrong = targets[~np.isin(targets, (0, 1)) & ~np.isnan(targets)]
        if wrong.size:
            raise ValueError(f"{wrong[0]:g}")
    except (ValueError, TypeError) as error:
        raise HaarPoolError(
            "0, 1 or NaN as labels of several targets", f"{error}", "use one classifier per target"
        ) from error
    return np.nan_to_num(targets, nan=MISSING)

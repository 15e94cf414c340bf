"""Labels of graphs: from text, numbers or arrays to classes, or to values within float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats, Ints
from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError
from haarpool.tasks import MISSING, Task, find_task, infer_task

Number = int | float

MAX_CLASSES = 20  # more different numbers or texts may be values, or names of graphs
ABSENT = ("", "na", "n/a", "nan", "null")  # missing labels; "none" may be a class
LARGEST = float(np.finfo(np.float32).max)  # networks compute in float32


def as_number(text: str) -> Number | None:
    """Convert text to a number, a whole number with all its digits; None if it is no number.

    Example:
        >>> as_number(" 4611686018427387905"), as_number("1e3"), as_number("nan"), as_number("1_5")
        (4611686018427387905, 1000.0, nan, None)
    """
    if "_" in text:  # Python allows it in numbers
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    if isfinite(number):
        with suppress(ValueError):
            return int(text)
    return number


def as_classes(values: Sequence[Any]) -> tuple[Ints, tuple[str, ...]]:
    """Convert numbers, or text, to classes.

    Args:
        values: (G,) Label of each graph; None and NaN are missing.

    Returns:
        (G,) The class of each graph, -1 if it is missing, and the names of the classes: numbers in
        ascending, text in alphabetical order.

    Example:
        >>> as_classes([10, 9, 1.0, None, 1])
        (array([ 2,  1,  0, -1,  0]), ('1', '9', '10'))
        >>> as_classes(["yes", "no", None, "yes"])
        (array([ 1,  0, -1,  1]), ('no', 'yes'))
    """
    known = sorted({value for value in values if value is not None and value == value})
    index = {value: c for c, value in enumerate(known)}
    numbers = [index.get(value, MISSING) if value is not None else MISSING for value in values]
    # With all digits: shorter names could be the same for two classes.
    names = tuple(str(v) if isinstance(v, str) or v % 1 else str(int(v)) for v in known)
    return np.array(numbers, np.int64), names


def label_fields(
    labels: Sequence[Any], task: str | None = None, name: str = "y"
) -> Mapping[str, Any]:
    """Return the fields of `Graphs` about one label per graph: `Graphs(..., **label_fields(...))`.

    Args:
        labels: (G,) Number or text of each graph; text may be a number, too. None, NaN and the text
            of `ABSENT` are missing.
        task: The task; by default text and few different whole numbers are classes, and other
            numbers are values.
        name: Name of a target with values.

    Example:
        >>> label_fields(["yes", "no", None])["targets"], label_fields(["0.5", "1"])["targets"]
        (array([ 1,  0, -1]), array([[0.5],
               [1. ]]))
    """
    labels = [None if _is_none_or_nan(label) else label for label in labels]
    labels = [None if isinstance(one, str) and is_missing(one) else one for one in labels]
    numbers = [as_number(one) if isinstance(one, str) else one for one in labels]
    if numbers.count(None) == labels.count(None):
        labels = numbers
    known = [label for label in labels if label is not None]
    if not known:
        if task is not None:
            raise HaarPoolError("labels for {task}", "none", "leave {task} out", task=task)
        return {}
    texts = [label for label in known if isinstance(label, str)]
    if texts and len(texts) < len(known):
        raise HaarPoolError("text or numbers as labels", "both", "convert them")
    looks_like_classes = bool(texts) or are_classes(known, len(labels))
    kind = find_task(task) or infer_task(1, len(set(known)) if looks_like_classes else None)
    if kind.reads_classes:
        return kind.label_fields(*as_classes(labels), [name])
    if texts:
        got = f"{texts[0][:40]!r}"
        raise HaarPoolError("numbers as labels for {task}", got, "leave {task} out", task=task)
    values = [np.nan if label is None else float(label) for label in labels]
    return kind.label_fields(np.array(values)[:, None], targets=[name])


def array_classes(y: NDArray[Any]) -> tuple[Ints, tuple[str, ...], str]:
    """Convert labels in an array to classes.

    Args:
        y: (G,) Label of each graph; None and NaN are missing.

    Returns:
        (G,) The class of each graph, -1 if it is missing; the names of the classes in ascending
        order; and the dtype with which `class_values` makes the classes from their names.

    Example:
        >>> array_classes(np.array([1.5, 0.5, np.nan, 1.0], np.float32))
        (array([ 2,  0, -1,  1]), ('0.5', '1', '1.5'), 'float32')
    """
    known = np.array([not _is_none_or_nan(label) for label in y.tolist()], bool)
    values = y[known]
    is_text = values.dtype.kind in "UT" or all(isinstance(value, str) for value in values.tolist())
    if values.dtype.kind == "O" and not is_text:
        values = np.array(values.tolist())  # whole numbers or booleans, beside missing ones
    if values.dtype.kind not in "biuf" and not is_text:
        raise HaarPoolError(
            "booleans, numbers or text as classes, all of one kind",
            " and ".join(sorted({type(label).__name__ for label in y[known].tolist()})),
            "convert them, for example to text with np.asarray(y).astype(str)",
        )
    for g in np.flatnonzero(known)[np.isinf(values)][:1] if values.dtype.kind == "f" else ():
        remedy = "correct it, or pass NaN for a missing label"
        raise HaarPoolError("finite numbers as classes", f"{y[g]} for graph {g}", remedy)
    classes, numbers = np.unique(values, return_inverse=True)
    targets = np.full(len(y), MISSING)
    targets[known] = numbers
    names = (int(v) if isinstance(v, float) and v == int(v) else v for v in classes.tolist())
    dtype = "str" if values.dtype.kind in "UT" else values.dtype.name
    return targets, tuple(str(name) for name in names), dtype


def class_values(names: Sequence[str], dtype: str | None = None) -> NDArray[Any]:
    """Return classes in the dtype that they had as labels.

    Args:
        names: (C,) Names of the classes.
        dtype: "bool", "object" and "str" for text, or the name of a dtype of numbers. By default
            whole numbers if all names are, else text.

    Example:
        >>> class_values(["False", "True"], "bool"), class_values(["0.5", "1"], "float64")
        (array([False,  True]), array([0.5, 1. ]))
    """
    if dtype is None:
        are_numbers = all(name.removeprefix("-").isdecimal() for name in names)
        return np.array([int(name) for name in names] if are_numbers else names)
    if dtype == "bool":
        return np.array([name == "True" for name in names])
    return np.array(names).astype(dtype)


def _is_none_or_nan(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # NaN differs from itself
    except TypeError:  # pandas.NA
        return True


def default_names(number: int) -> tuple[str, ...]:
    """Return names for a number of targets that have none.

    Example:
        >>> default_names(1), default_names(2)
        (('y',), ('y0', 'y1'))
    """
    return ("y",) if number == 1 else tuple(f"y{t}" for t in range(number))


def is_missing(text: str) -> bool:
    """Return whether a label in a text file is missing."""
    return text.strip().lower() in ABSENT


def are_classes(numbers: Sequence[Number], num_graphs: int) -> bool:
    """Return whether numbers that may be values look like classes: few different whole numbers.

    Args:
        numbers: Labels of graphs, without missing ones.
        num_graphs: Number of all graphs.

    Example:
        >>> are_classes([0.0, 1.0, 1.0, 0.0, 1.0], 5), are_classes([0.0, 0.5, 1.0, 0.0, 0.0], 5)
        (True, False)
    """
    different = len(set(numbers))
    is_whole = all(number % 1 == 0 for number in numbers)
    return is_whole and different <= MAX_CLASSES and 2 * different < num_graphs


def check_classes(graphs: Graphs) -> Graphs:
    """Check that labels that were read as classes, without a given task, repeat; return the graphs.

    Many whole numbers or texts that hardly repeat are values, or names of the graphs.
    """
    known = int(graphs.is_labelled.sum())
    if graphs.task is not None and graphs.targets is not None:
        known = int(graphs.task.labelled(graphs.targets).sum())
    if len(graphs.classes) > max(MAX_CLASSES, known // 2):
        raise unclear_labels(f"the labels of {graphs.name}", len(graphs.classes), known)
    return graphs


def unclear_labels(where: str, different: int, num_graphs: int) -> HaarPoolError:
    """Return the error for labels from which the task does not follow."""
    return HaarPoolError(
        f"{where} to be clearly classes or values",
        f"{different:,} different ones of {num_graphs:,} graphs",
        "pass {task}, or regression if they are values",
        task="classification",
    )


def check_targets(graphs: Graphs) -> Graphs:
    """Check that all values to predict are within float32; return the graphs."""
    if graphs.target_names and graphs.targets is not None:
        for row, t in np.argwhere(np.abs(graphs.targets) > LARGEST)[:1]:
            where = graphs.where(int(graphs.places(np.array([row]))[0][0]))
            raise HaarPoolError(
                f"values of at most {LARGEST:.2g}, the largest of float32",
                f"{graphs.targets[row, t]:g} as {graphs.target_names[t]!r} of {where}",
                "use another unit; a missing value is NaN, or an empty cell of a table",
            )
    return graphs


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

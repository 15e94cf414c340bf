"""Labels of graphs: from text, numbers or arrays to classes, or to values within float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Ints
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


def as_rows(labels: Any) -> NDArray[Any]:
    """Convert labels to rows of numbers, or of text if not all of them are numbers.

    Args:
        labels: (n,) Labels, or (n, T) for several targets: numbers, or text, which may be a number,
            too. None, NaN and the text of `ABSENT` are missing.

    Returns:
        (n, T) labels; None is a missing one.

    Example:
        >>> as_rows(["2", "NA", "0.5"]).tolist(), as_rows([["2", "x"]]).tolist()
        ([[2], [None], [0.5]], [['2', 'x']])
    """
    rows = np.array(labels, object)
    rows = rows[:, None] if rows.ndim == 1 else rows
    flat = [None if _is_none_or_nan(label) else label for label in rows.flat]
    flat = [None if isinstance(one, str) and is_missing(one) else one for one in flat]
    numbers = [as_number(one) if isinstance(one, str) else one for one in flat]
    flat = numbers if numbers.count(None) == flat.count(None) else flat
    return np.array(flat, object).reshape(rows.shape)


def task_of(
    rows: NDArray[Any], task: str | None = None, *, like_classes: bool | None = None
) -> Task:
    """Return the task of rows of labels.

    Args:
        rows: (n, T) labels, of `as_rows`.
        task: The task, if it is given; for several targets "classification" is "multilabel".
        like_classes: Without a given task, whether the labels look like classes; by default text
            and few different whole numbers do.
    """
    num_targets = rows.shape[1]
    if task is not None:
        return find_task(task, num_targets)
    known = [label for label in rows.flat if label is not None]
    if like_classes is None:
        like_classes = isinstance(known[0], str) or are_classes(known, rows.size)
    return infer_task(num_targets, len(set(known)) if like_classes else None)


def label_fields(
    labels: Any,
    task: str | None = None,
    names: Sequence[str] = (),
    *,
    like_classes: bool | None = None,
) -> Mapping[str, Any]:
    """Return the fields of `Graphs` about labels: `Graphs(..., **label_fields(...))`.

    Args:
        labels: (G,) Labels of the graphs, or (G, T) for several targets, as in `as_rows`.
        task: The task, as in `task_of`.
        names: (T,) Names of the targets.
        like_classes: As in `task_of`.

    Example:
        >>> label_fields(["yes", "no", None])["targets"], label_fields(["0.5", "1"])["targets"]
        (array([ 1,  0, -1]), array([[0.5],
               [1. ]]))
        >>> label_fields([[0, 1], [1, None]], "multilabel", ["a", "b"])["targets"]
        array([[ 0.,  1.],
               [ 1., nan]])
    """
    rows = as_rows(labels)
    kinds = {isinstance(label, str) for label in rows.flat if label is not None}
    if not kinds:
        if task is not None:
            raise HaarPoolError("labels for {task}", "none", "leave {task} out", task=task)
        return {}
    if len(kinds) > 1:
        raise HaarPoolError("text or numbers as labels", "both", "convert them")
    return _fields(rows, task_of(rows, task, like_classes=like_classes), names)


def _fields(rows: NDArray[Any], task: Task, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return the fields about (n, T) labels, None without label, of a task."""
    num_targets = rows.shape[1]
    names = names or default_names(num_targets)
    if num_targets > 1 and not task.has_targets:
        raise _one_label(task, names)
    if task.reads_classes:
        return task.label_fields(*as_classes(rows.ravel().tolist()), names)
    try:
        values = rows.astype(np.float64)
    except (ValueError, TypeError) as error:
        texts = [label for label in rows.flat if isinstance(label, str)]
        got = f"{texts[0][:40]!r}" if texts else f"{error}"
        remedy = "for classes pass {task}"
        classes = str(infer_task(1, 2, of_nodes=task.of_nodes))
        raise HaarPoolError("numbers as labels", got, remedy, task=classes) from error
    return task.label_fields(values, targets=names)


def _one_label(task: Task, names: Sequence[str]) -> HaarPoolError:
    return HaarPoolError(
        f"one label per {task.unit} for {task}",
        f"{len(names)}: {', '.join(names)}",
        "choose one of them, or pass {task} if all are numbers",
        task=_for_values(task),
    )


def _for_values(task: Task) -> str:
    """Return the task for values of the same units, graphs or nodes."""
    return str(infer_task(1, of_nodes=task.of_nodes))


def class_values(names: Sequence[str], dtype: str | None = None) -> NDArray[Any]:
    """Return classes in the dtype that they had as labels.

    Args:
        names: (C,) Names of the classes.
        dtype: The dtype of `with_labels`. By default whole numbers if all names are, else text.

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


def with_labels(graphs: Graphs, y: Any, task: str | None = None) -> tuple[Graphs, str | None]:
    """Return graphs with other labels, and the dtype with which `class_values` makes their classes.

    Args:
        graphs: G graphs.
        y: Labels of shape (G,), or (G, T) for several targets; None and NaN are missing ones.
        task: The task of one target; by default what the labels look like.
    """
    labels = _as_array(y, len(graphs))
    flat = [None if _is_none_or_nan(label) else label for label in labels.ravel().tolist()]
    rows = np.array(flat, object).reshape(len(labels), -1)
    is_whole = all(not isinstance(label, float) or label % 1 == 0 for label in flat)
    kind, dtype = task_of(rows, task, like_classes=is_whole), None
    names = default_names(rows.shape[1])
    if kind.classes:
        fields = kind.label_fields(_in_classes(rows, kind.classes), kind.classes, names)
    else:
        if kind.reads_classes:
            dtype = _class_dtype(labels, rows)
        if dtype == "bool":  # by name, as in `class_values`
            rows[:] = [[label if label is None else str(label) for label in row] for row in rows]
        fields = _fields(rows, kind, names)
    graphs = check_targets(replace(graphs, **fields))
    if not graphs.is_labelled.any():
        expected, remedy = "labels in y", "pass y with the labels that are known"
        raise HaarPoolError(expected, "only missing ones (None or NaN)", remedy)
    return graphs, dtype


def _as_array(y: Any, num_rows: int) -> NDArray[Any]:
    """Return labels as an array of shape (n,) or (n, T); NaN among text stays a missing label."""
    labels = np.asarray(y)
    if labels.ndim not in (1, 2) or len(labels) != num_rows or not labels.size:
        expected = f"{num_rows} labels, of shape (G,) or (G, T)"
        raise HaarPoolError(expected, f"shape {labels.shape}", "pass one row per graph")
    if labels.dtype.kind == "U" and isinstance(y, list | tuple):
        objects = np.asarray(y, object)
        return objects if (objects != objects).any() else labels
    return labels


def _in_classes(rows: NDArray[Any], classes: Sequence[str]) -> Ints:
    """Return (n * T,) the numbers that labels have among given classes, -1 without label."""
    numbers = {label: c for c, label in enumerate(as_rows(classes).flat)} | {None: MISSING}
    labels = as_rows(rows).ravel().tolist()
    for wrong in [label for label in labels if label not in numbers][:1]:
        expected = f"{', '.join(classes)} or NaN as labels of several targets"
        raise HaarPoolError(expected, f"{wrong}", "convert them, or train on one target at a time")
    return np.array([numbers[label] for label in labels], np.int64)


def _class_dtype(labels: NDArray[Any], rows: NDArray[Any]) -> str:
    """Return the dtype of classes: that of the labels, or of the known ones among objects."""
    known = [
        (g, label) for g, row in enumerate(rows.tolist()) for label in row if label is not None
    ]
    values = [label for _, label in known]
    is_text = all(isinstance(label, str) for label in values)
    dtype = labels.dtype if is_text or labels.dtype.kind != "O" else np.array(values).dtype
    if dtype.kind not in "biuf" and not is_text:
        raise HaarPoolError(
            "booleans, numbers or text as classes, all of one kind",
            " and ".join(sorted({type(label).__name__ for label in values})),
            "convert them, for example to text with np.asarray(y).astype(str)",
        )
    for g, label in [(g, label) for g, label in known if label in (inf, -inf)][:1]:
        remedy = "correct it, or pass NaN for a missing label"
        raise HaarPoolError("finite numbers as classes", f"{label} for graph {g}", remedy)
    return "str" if dtype.kind in "UT" else dtype.name


def with_task(graphs: Graphs, task: Task) -> Graphs:
    """Return graphs whose labels belong to another task; classes may become values."""
    before, targets = graphs.task, graphs.targets
    if before is None or targets is None or before in (task, task.of_several):
        return graphs
    if before.of_nodes != task.of_nodes:
        raise HaarPoolError(
            f"labels of {task.unit}s",
            f"labels of the {before.unit}s of {graphs.name}",
            "pass {task}",
            task=str(before),
        )
    if task.reads_classes and not before.reads_classes:
        expected, remedy = "classes, as whole numbers", "pass y with classes, or pass {task}"
        raise HaarPoolError(expected, "real values", remedy, task=_for_values(task))
    names = graphs.target_names or default_names(1)
    if not task.has_targets and len(names) > 1:
        raise _one_label(task, names)
    if not before.reads_classes:
        fields = task.label_fields(targets, targets=names)
    else:
        numbers = np.where(before.known(targets), targets, MISSING).astype(np.int64)
        if task.reads_classes:
            fields = task.label_fields(numbers.ravel(), graphs.classes, names)
        else:
            labels = np.array([*graphs.classes, None], object)[numbers]  # -1 is the last one
            fields = _fields(labels.reshape(len(labels), -1), task, names)
    return check_targets(replace(graphs, **fields))

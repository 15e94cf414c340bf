"""Reading a dataset by name or path, in any supported format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any

from haarpool._progress import ProgressOption
from haarpool._validate import whole_number
from haarpool.datasets.checks import check_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import check_classes, with_labels, with_task
from haarpool.datasets.locations import Found, Source, find_here, find_source
from haarpool.datasets.nodes import with_node_labels
from haarpool.datasets.readers.registry import readers
from haarpool.errors import HaarPoolError, python_words
from haarpool.tasks import Task, find_task


def read_graphs(
    source: Source,
    root: Source | None = None,
    *,
    task: str | None = None,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    strict: bool = False,
    seed: int = 0,
    progress: ProgressOption = None,
) -> Graphs:
    """Read the graphs of a dataset with their features and labels.

    Args:
        source: A name, as `known_datasets` lists them, or the path of a file or folder that one of
            the `haarpool.datasets.readers` reads.
        root: Folder that holds datasets; `find_dataset` says where else they are searched.
        task: What is predicted, one of `haarpool.tasks.task_names()`; by default what the labels
            look like. For several targets "classification" is "multilabel".
        smiles: Column of a CSV file with the SMILES; by default the column "smiles".
        targets: Columns of a CSV file to predict.
        strict: Raise an error for an invalid SMILES; by default it is skipped.
        seed: Seed of generated graphs.
        progress: True shows a progress bar, False hides it, None shows it on a terminal after one
            second; a function is called with a line of text every 30 seconds.

    Example:
        >>> graphs = read_graphs("rings")
        >>> len(graphs), graphs.task, graphs.classes, list(graphs.columns)
        (240, 'classification', ('fused', 'linked'), ['labels'])
    """
    columns = [targets] if isinstance(targets, str) else targets
    options = {"smiles": smiles, "targets": columns, "strict": strict, "seed": seed}
    graphs = _read(source, root, task, progress=progress, **options)
    return graphs if task is not None else check_classes(graphs)


def _read(
    source: Source, root: Source | None = None, task: str | None = None, **options: Any
) -> Graphs:
    """Read graphs, whose task may be doubtful: predictions do not need it."""
    kind = find_task(task)
    reader, path, name = found = find_source(source, root)
    _check_columns(found, source, options)
    kinds = [find_task(one) for one in reader.tasks]
    if kind and kinds and not any(map(kind.reads_like, kinds)):
        what = next(filter(None, (reader.phrase, *reader.names, reader)))
        expected = f"{' or '.join(reader.tasks)} for {what}"
        raise HaarPoolError(expected, f"{kind}", "leave it out", parameter="task")
    graphs = reader.read(path or name, task, **reader.supported(**options))
    return check_graphs(graphs, reader, task, path or "")


def _check_columns(found: Found, source: Source, options: dict[str, Any]) -> None:
    """Raise an error if columns are named, but the source has none."""
    for option in ("smiles", "targets"):
        if options.get(option) and option not in found.reader.options:
            takes = (one.phrase for one in readers() if option in one.options)
            got = f"{str(source)!r} together with columns"
            raise HaarPoolError(
                f"a {' or '.join(takes)}",
                got,
                "leave out {smiles} and {targets}",
                smiles=...,
                targets=...,
            )


def stream_graphs(
    source: Source,
    root: Source | None = None,
    *,
    smiles: str | None = None,
    strict: bool = False,
    block: int = 1024,
) -> Iterator[Graphs]:
    """Read the graphs of a dataset in blocks; a CSV file of any length fits into memory.

    Args:
        source: As in `read_graphs`. A CSV file is read without labels.
        root: As in `read_graphs`.
        smiles: As in `read_graphs`.
        strict: As in `read_graphs`.
        block: Number of graphs, or of lines of a CSV file, in a block.

    Example:
        >>> [len(graphs) for graphs in stream_graphs("rings", block=100)]
        [100, 100, 40]
    """
    whole_number("block", block)
    reader, path, name = found = find_source(source, root)
    _check_columns(found, source, {"smiles": smiles})
    options = reader.supported(smiles=smiles, strict=strict, labels=False)
    for graphs in reader.stream(path or name, block, **options):
        yield check_graphs(graphs, reader, source=path or "")


def as_graphs(graphs: Any, task: str | None = None, *, labels: bool = True) -> Graphs:
    """Convert graphs in any form.

    Args:
        graphs: `Graphs`, a source of `read_graphs`, a PyG `Data` or a list of them, a PyG dataset,
            or a list of other objects that a reader converts. The labels of a CSV file are the only
            column besides SMILES; none if there are several.
        task: The task of a list with labels, or of a CSV file; by default what the labels look
            like.
        labels: False leaves out the labels of these, so that they may be anything.

    Example:
        >>> len(as_graphs("rings"))
        240
    """
    if isinstance(graphs, Graphs):
        return check_graphs(graphs)
    if isinstance(graphs, str | PathLike):
        columns = columns_to_predict(graphs) if labels else None
        if columns and len(columns) == 1:
            return _read(graphs, task=task, targets=columns)
        return _read(graphs, labels=labels)
    if hasattr(graphs, "edge_index") and hasattr(graphs, "to_dict"):  # a single PyG graph
        graphs = [graphs]
    kinds = " or ".join(one.objects for one in readers() if one.objects)
    try:
        objects = list(graphs)
    except TypeError as error:
        got = f"{type(graphs).__name__}"
        expected = f"as a list of {kinds} or a dataset"
        raise HaarPoolError(expected, got, "put it into a list", parameter="graphs") from error
    if not objects:
        raise HaarPoolError("at least one graph", "an empty list", "pass a list of graphs")
    for reader in readers():
        if reader.converts(objects[0]):
            name = getattr(graphs, "name", "graphs")
            converted = reader.convert(objects, name, task, labels=labels)
            return check_graphs(converted, reader, task if converted.task else None)
    got = f"{type(objects[0]).__name__} in graph 0"
    raise HaarPoolError(f"a {kinds} for each graph", got, "convert them")


def labelled_graphs(
    graphs: Any, y: Any = None, task: Task | None = None
) -> tuple[Graphs, str | None]:
    """Convert graphs in any form that have labels.

    Args:
        graphs: As in `as_graphs`.
        y: Labels instead of those of the graphs, as in `with_labels`.
        task: The task of one target; by default what the labels look like.

    Returns:
        The graphs, and the dtype of the classes in y, see `class_values`.
    """
    # Labels that look like values are no classes, unless a task of classes is chosen.
    asked = None if task is None or task.of_several else task
    given = graphs
    try:
        graphs = as_graphs(given, asked, labels=y is None)
    except HaarPoolError:
        if asked is not None and y is None:
            _check_units(given, asked)
        raise
    if asked is not None and y is None and len(graphs) == 1:  # its nodes may look like targets
        _check_units(given, asked)
    if y is not None and task is not None and task.of_nodes:
        return with_node_labels(graphs, y, task)
    if y is not None:
        return with_labels(graphs, y, task)
    if not graphs.is_labelled.any():
        remedy = "pass y" if graphs.ids is None else "pass y, or {targets}"
        expected = f"labels of the graphs of {graphs.name}"
        raise HaarPoolError(expected, "none", remedy, targets="COLUMN")
    return graphs if task is None else with_task(graphs, task), None


def _check_units(graphs: Any, task: Task) -> None:
    """Raise an error if nodes have labels where those of graphs are meant, or the other way."""
    with suppress(HaarPoolError):
        graphs = as_graphs(graphs)
    if isinstance(graphs, Graphs) and graphs.task and graphs.task.of_nodes != task.of_nodes:
        with_task(graphs, task)


def words_of_graphs(name: str, value: Any = ...) -> str:
    """Return a parameter, as a function writes it that takes graphs, or a dataset to read.

    Example:
        >>> words_of_graphs("root", "DIR"), words_of_graphs("epochs", 3)
        ('haarpool.datasets.read_graphs(..., root="DIR")', 'epochs=3')
    """
    text = python_words(name, value)
    is_of_reading = value is not ... and name in ("root", "task", "smiles", "targets", "strict")
    return f"haarpool.datasets.read_graphs(..., {text})" if is_of_reading else text


def columns_to_predict(
    source: Source, root: Source | None = None, *, smiles: str | None = None
) -> list[str] | None:
    """Return the columns of a table that can be targets: all but SMILES; None for other sources.

    The arguments are those of `read_graphs`.
    """
    found = find_here(source, root)
    return found.reader.columns(found.path, smiles) if found and found.path else None

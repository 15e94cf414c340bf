"""Datasets by name or path, as flat arrays of graphs; nothing here loads torch until it must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np

from haarpool._types import Task
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import check_targets
from haarpool.datasets.places import TABLES, find_dataset, known_datasets, local_source
from haarpool.datasets.summary import summary
from haarpool.datasets.triangles import read_triangles
from haarpool.datasets.tu import read_tu
from haarpool.errors import HaarPoolError

__all__ = [
    "Graphs",
    "as_graphs",
    "find_dataset",
    "known_datasets",
    "local_source",
    "read_graphs",
    "stream_graphs",
    "summary",
]


def read_graphs(
    source: str | PathLike[str],
    root: str | PathLike[str] | None = None,
    *,
    task: Task | None = None,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    strict: bool = False,
    seed: int = 0,
    progress: bool | None = None,
) -> Graphs:
    """The graphs of a dataset with what is known of their nodes, edges and labels.

    Args:
        source: a name (any of the TU collection, "triangles", "qm7"), or the path of a folder in
            TU layout, of a `.csv` or `.tsv` file with a column of SMILES, or of a `.pt` list of
            PyG `Data`.
        root: a folder that holds datasets; see `find_dataset` for where else they are found.
        task: "classification" or "regression"; else found out.
        smiles, targets: columns of a CSV file.
        strict: refuse bad SMILES, which are skipped otherwise.
        seed: of generated graphs.
        progress: show a bar; None shows it on a terminal, after a second.

    >>> graphs = read_graphs("MUTAG")
    >>> len(graphs), graphs.task, graphs.classes, list(graphs.columns)
    (188, 'classification', ('-1', '1'), ['labels'])
    """
    if task not in (None, "classification", "regression"):
        raise HaarPoolError("the task classification or regression", f"{task!r}", "leave it out")
    place = find_dataset(source, root)
    kind = "triangles" if place is None else place.suffix.lower()
    if kind not in TABLES and (smiles is not None or targets):
        got = f"{str(source)!r} together with columns"
        raise HaarPoolError("a CSV file", got, "leave out --smiles and --target")
    if place is None:
        return read_triangles(seed, task, progress=progress)
    if kind in TABLES:
        from haarpool.datasets.smiles import read_smiles

        columns = [targets] if isinstance(targets, str) else targets
        graphs = read_smiles(place, smiles, columns, task=task, strict=strict, progress=progress)
    elif kind == ".pt":
        from haarpool.datasets.saved import read_saved

        graphs = read_saved(place, task)
    elif kind == ".mat":
        from haarpool.datasets.qm7 import read_qm7

        graphs = read_qm7(place, task)
    else:
        graphs = read_tu(place, task)
    return check_targets(graphs)


def stream_graphs(
    source: str | PathLike[str],
    root: str | PathLike[str] | None = None,
    *,
    smiles: str | None = None,
    strict: bool = False,
    block: int = 1024,
) -> Iterator[Graphs]:
    """The same graphs in blocks, for prediction: a CSV file is read bit by bit, without labels.

    Args:
        source, root, smiles, strict: as in `read_graphs`.
        block: graphs, or lines of a CSV file, at a time.

    >>> [len(graphs) for graphs in stream_graphs("MUTAG", block=100)]
    [100, 88]
    """
    place = find_dataset(source, root)
    if place is not None and place.suffix.lower() in TABLES:
        from haarpool.datasets.smiles import stream_smiles

        yield from stream_smiles(place, smiles, strict=strict, block=block)
        return
    graphs = read_graphs(source, root, smiles=smiles)
    for first in range(0, len(graphs), block):
        yield graphs.take(np.arange(first, min(first + block, len(graphs))))


def as_graphs(graphs: Any) -> Graphs:
    """Graphs in any form: `Graphs`, a list of PyG `Data`, a PyG dataset, or a source to read.

    >>> len(as_graphs("MUTAG"))
    188
    """
    if isinstance(graphs, Graphs):
        return check_targets(graphs)
    if isinstance(graphs, str | PathLike):
        return read_graphs(graphs)
    from haarpool.datasets.saved import from_data_list

    try:
        many = list(graphs)
    except TypeError as error:
        got = f"{type(graphs).__name__}"
        raise HaarPoolError("a list of PyG Data or a dataset", got, "put it into a list") from error
    return check_targets(from_data_list(many, getattr(graphs, "name", "graphs")))

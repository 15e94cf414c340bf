"""Reading a dataset by name or path, in any supported format."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np

from haarpool._progress import ProgressOption
from haarpool._validate import whole_number
from haarpool.datasets.download import DownloadError
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import check_classes, check_targets
from haarpool.datasets.locations import (
    TABLES,
    Source,
    find_dataset,
    is_available,
    is_download,
    local_source,
)
from haarpool.datasets.rings import read_rings
from haarpool.datasets.table import columns_besides
from haarpool.datasets.triangles import read_triangles
from haarpool.datasets.tu import read_tu
from haarpool.errors import HaarPoolError, HaarPoolWarning
from haarpool.tasks import find_task


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
        source: A name (any of the TU collection, "qm7", "triangles", "rings"), or the path of a
            folder or zip file in TU layout, of a `.csv` or `.tsv` file with a column of SMILES, or
            of a `.pt` file with a list of PyG `Data`.
        root: Folder that holds datasets; `find_dataset` says where else they are searched.
        task: "classification", "multilabel" (several targets with two classes each) or
            "regression"; by default what the labels look like.
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
    table: dict[str, Any] = {"smiles": smiles, "targets": columns, "strict": strict}
    graphs = _read(source, root, task, seed=seed, progress=progress, **table)
    return graphs if task is not None else check_classes(graphs)


def _read(
    source: Source,
    root: Source | None = None,
    task: str | None = None,
    *,
    labels: bool = True,
    seed: int = 0,
    progress: ProgressOption = None,
    **table: Any,
) -> Graphs:
    """Read graphs, whose task may be doubtful: predictions do not need it.

    Args:
        source: As in `read_graphs`, and so are the arguments that follow.
        root: See there.
        task: See there.
        labels: False leaves labels out where they may be anything: in a list of PyG `Data`.
        seed: See there.
        progress: See there.
        **table: Arguments of `read_smiles`, for CSV files.
    """
    kind = find_task(task)
    path = find_dataset(source, root)
    suffix = "" if path is None else path.suffix.lower()
    if suffix not in TABLES and (table.get("smiles") is not None or table.get("targets")):
        got = f"{str(source)!r} together with columns"
        raise HaarPoolError("a CSV file", got, "leave out smiles= and targets=")
    if kind and kind.reads_classes and kind.has_targets and suffix not in (*TABLES, ".pt"):
        raise HaarPoolError(
            f"a CSV file or a list of PyG Data for task={kind}",
            f"{str(source)!r}",
            "leave out task=",
        )
    if path is None and str(source).lower() == "rings":
        return read_rings(seed, task)
    if path is None:
        return read_triangles(seed, task, progress=progress)
    if suffix in TABLES:
        from haarpool.datasets.smiles import read_smiles

        graphs = read_smiles(path, task=task, progress=progress, **table)
    elif suffix == ".pt":
        from haarpool.datasets.data_list import read_data_list

        graphs = read_data_list(path, task, labels=labels)
    elif suffix == ".mat":
        from haarpool.datasets.qm7 import read_qm7

        graphs = read_qm7(path, task)
    else:
        graphs = read_tu(path, task, downloaded=is_download(path))
    return check_targets(graphs)


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
    path = find_dataset(source, root)
    if path is not None and path.suffix.lower() in TABLES:
        from haarpool.datasets.smiles import stream_smiles

        yield from stream_smiles(path, smiles, strict=strict, block=block)
        return
    graphs = _read(source, root, labels=False, smiles=smiles)
    for first in range(0, len(graphs), block):
        yield graphs.take(np.arange(first, min(first + block, len(graphs))))


def as_graphs(graphs: Any, task: str | None = None, *, labels: bool = True) -> Graphs:
    """Convert graphs in any form.

    Args:
        graphs: `Graphs`, a list of PyG `Data`, a PyG dataset, or a source of `read_graphs`. The
            labels of a CSV file are the only column besides SMILES; none if there are several.
        task: The task of a list or a dataset of PyG with labels, or of a CSV file; by default what
            the labels look like.
        labels: False leaves out the labels of these, so that they may be anything.

    Example:
        >>> len(as_graphs("rings"))
        240
    """
    if isinstance(graphs, Graphs):
        return check_targets(graphs)
    if isinstance(graphs, str | PathLike):
        if labels and (target := default_target(columns_to_predict(graphs))):
            return _read(graphs, task=task, targets=target)
        return _read(graphs, labels=labels)
    from haarpool.datasets.data_list import from_data_list

    try:
        data_list = list(graphs)
    except TypeError as error:
        got = f"{type(graphs).__name__}"
        raise HaarPoolError("a list of PyG Data or a dataset", got, "put it into a list") from error
    name = getattr(graphs, "name", "graphs")
    if all(getattr(data, "y", None) is None for data in data_list):
        task = None
    return check_targets(from_data_list(data_list, name, task, labels=labels))


def columns_to_predict(
    source: Source, root: Source | None = None, *, smiles: str | None = None
) -> list[str]:
    """Return the columns of a CSV file that can be targets: all but SMILES; [] for other sources.

    Args:
        source: As in `read_graphs`.
        root: As in `read_graphs`.
        smiles: As in `read_graphs`.
    """
    path = local_source(source, root)
    if path is None or path.suffix.lower() not in TABLES:
        return []
    return columns_besides(path, smiles)


def default_target(columns: Sequence[str]) -> list[str]:
    """Return what is predicted if no column is named: the only one; [] if there are several.

    Args:
        columns: The columns of `columns_to_predict`.
    """
    return list(columns) if len(columns) == 1 else []


def default_dataset(root: Source | None = None) -> str:
    """Return the name of a dataset for a first run: "MUTAG", or "rings" where it is not available.

    MUTAG is downloaded if it is not on this machine. If that fails, a warning says so in one line.

    Args:
        root: As in `read_graphs`.
    """
    if not is_available("MUTAG", root):
        try:
            find_dataset("MUTAG", root)  # downloads it
        except DownloadError:
            text = (
                "MUTAG is not on this machine and cannot be downloaded: "
                "using generated graphs instead (dataset rings)"
            )
            warnings.warn(text, HaarPoolWarning, stacklevel=2)
            return "rings"
    return "MUTAG"

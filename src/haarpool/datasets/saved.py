"""Lists of PyTorch Geometric `Data`, in memory or in a `.pt` file."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from haarpool._types import Floats, Task
from haarpool.chains.adjacency import as_array, edge_list
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import as_classes
from haarpool.errors import HaarPoolError

CLASSES = (Data, DataEdgeAttr, DataTensorAttr, GlobalStorage)
EXPECTED = "a list of PyG Data, as torch.save writes it"


def read_saved(path: Path, task: Task | None = None) -> Graphs:
    """The graphs of a `.pt` file; only tensors and PyG's own classes are loaded, no code is run."""
    try:
        # Those that are allowed already stay so: leaving the context forbids all of its classes.
        allowed = torch.serialization.get_safe_globals()
        with torch.serialization.safe_globals([one for one in CLASSES if one not in allowed]):
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = " ".join(str(error).split())
        at = max(reason.find("Unsupported"), reason.find("GLOBAL"), 0)
        raise HaarPoolError(
            f"{EXPECTED}, without other classes",
            f"{path} ({reason[at : at + 80]})",
            "save plain Data objects",
        ) from error
    except Exception as error:  # a damaged file makes torch raise almost anything
        reason = " ".join(str(error).split())[:80]
        raise HaarPoolError(EXPECTED, f"{path} ({reason})", "save the list again") from error
    if not isinstance(found, list | tuple):
        found = [None]
    if any(not isinstance(data, Data) for data in found):
        raise HaarPoolError(EXPECTED, f"something else in {path}", "save list(dataset)")
    return from_data_list(found, path.stem, task)


def from_data_list(graphs: Sequence[Any], name: str = "graphs", task: Task | None = None) -> Graphs:
    """Graphs out of PyG's: `x`, `edge_index`, `edge_weight`, `edge_attr` and `y`, where there.

    Args:
        graphs: each with the same attributes. `y` is a whole number, which makes classes, or one or
            several real ones; a graph without it, or with NaN, has no label.
        name: of the dataset.
        task: forces classes or values.

    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> found = from_data_list([Data(edge_index=edge, num_nodes=2, y=torch.tensor([4]))])
    >>> found.task, found.classes, found.sizes
    ('classification', ('4',), array([2]))
    """
    if not len(graphs):
        raise HaarPoolError("at least one graph", "an empty list", "check where it comes from")
    edges, sizes, weights = [], [], []
    for g, data in enumerate(graphs):
        if not hasattr(data, "edge_index"):
            raise _wrong(g, "a PyG Data", type(data).__name__, "build Data objects")
        try:
            rows, columns, weight, size, _ = edge_list(data)
        except HaarPoolError as error:
            raise HaarPoolError(error.expected, f"in graph {g} {error.got}", error.remedy) from None
        if size == 0:
            raise _wrong(g, "at least one node", "none", "drop empty graphs")
        edges.append(np.stack([rows, columns]).astype(np.int64))
        sizes.append(size)
        weights.append(weight)
    start = np.cumsum([0, *sizes])
    counts = [pairs.shape[1] for pairs in edges]
    weighted = getattr(graphs[0], "edge_weight", None) is not None
    for g, data in enumerate(graphs):
        if (getattr(data, "edge_weight", None) is not None) != weighted:
            expected = "edge_weight in all graphs or in none"
            raise _wrong(g, expected, "another choice than in graph 0", "give all graphs the same")
    x, attributes = _rows(graphs, "x", sizes), _rows(graphs, "edge_attr", counts)
    return Graphs(
        name,
        start,
        np.concatenate(edges, axis=1) + np.repeat(start[:-1], counts),
        {} if x is None else {"x": x},
        edge_weight=np.concatenate(weights).astype(np.float64) if weighted else None,
        edge_columns={} if attributes is None else {"attributes": attributes},
        **_targets(graphs, task),
    )


def _rows(graphs: Sequence[Any], key: str, counts: Sequence[int]) -> Floats | None:
    """An attribute of all graphs, one row per node or edge; None where no graph has it."""
    if all(getattr(data, key, None) is None for data in graphs):
        return None
    parts: list[NDArray[Any]] = []
    for g, (data, count) in enumerate(zip(graphs, counts, strict=True)):
        if (value := getattr(data, key, None)) is None:
            raise _wrong(g, f"{key} in all graphs or in none", "none", "give all graphs the same")
        array = as_array(value, f"{key} of graph {g}")
        array = array[:, None] if array.ndim == 1 else array
        width = parts[0].shape[1] if parts else array.shape[-1]
        if array.shape != (count, width) or array.dtype.kind not in "biuf":
            got = f"shape {array.shape}, dtype {array.dtype}"
            raise _wrong(g, f"{key} of shape ({count}, {width})", got, "give all graphs the same")
        parts.append(array)
    return np.concatenate(parts).astype(np.float64)


def _targets(graphs: Sequence[Any], task: Task | None) -> Mapping[str, Any]:
    """The fields of `Graphs` that say what is to be predicted."""
    given = {g: as_array(data.y, f"y of graph {g}").reshape(-1)
             for g, data in enumerate(graphs) if getattr(data, "y", None) is not None}  # fmt: skip
    if not given:
        if task is not None:
            raise HaarPoolError(f"y in some graph for {task}", "none", "set data.y")
        return {}
    first = next(iter(given.values()))
    whole = first.dtype.kind in "biu"
    for g, y in given.items():
        if y.size != first.size or (y.dtype.kind in "biu") != whole or y.dtype.kind not in "biuf":
            expected = f"y with {first.size} of {'whole' if whole else 'real'} numbers"
            raise _wrong(g, expected, f"{y.size}, dtype {y.dtype}", "give all graphs the same")
    task = task or ("classification" if whole else "regression")
    if task == "regression":
        values = np.full((len(graphs), first.size), np.nan)
        values[list(given)] = np.stack(list(given.values()))
        names = ("y",) if first.size == 1 else tuple(f"y {t + 1}" for t in range(first.size))
        return {"task": task, "targets": values, "target_names": names}
    for g, y in given.items():
        if y.size != 1 or not (np.isnan(y[0]) or float(y[0]).is_integer()):
            raise _wrong(g, "y as one whole number", f"{y}", "take --task regression")
    labels = [given[g].item() if g in given else None for g in range(len(graphs))]
    numbers, classes = as_classes(labels)
    return {"task": task, "targets": numbers, "classes": classes}


def _wrong(g: int, expected: str, got: str, remedy: str) -> HaarPoolError:
    return HaarPoolError(expected, f"in graph {g} {got}", remedy)

"""From PyTorch Geometric `Data` to `Graphs`; torch is imported to load a file."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool._types import Floats
from haarpool.chains.adjacency import as_array, edge_list
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.labels import label_fields
from haarpool.datasets.nodes import ARRAYS, graphs_of_arrays, node_label_fields
from haarpool.errors import HaarPoolError
from haarpool.tasks import find_task

MAX_TARGETS = 20  # of graphs with as many nodes; more are labels of nodes
EXPECTED = "a list of PyG Data, written by torch.save"


def load_data_list(path: Path) -> Sequence[Any]:
    """Load a `.pt` file; only tensors and PyG's own classes are loaded, no code is executed."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    try:
        with open(path, "rb") as file:
            is_saved = file.read(2).startswith((b"PK", b"\x80"))  # a zip file, or a pickle
        if not is_saved:
            remedy = "write it with torch.save(list_of_data, path)"
            raise HaarPoolError(EXPECTED, f"{path}, which is another kind of file", remedy)
        # Graphs with chains: their module is above this one, and allows its classes itself.
        import_module("haarpool.data")
        # Classes that are already allowed are left out: the context forbids its classes at the end.
        classes = {Data, DataEdgeAttr, DataTensorAttr, GlobalStorage}
        allowed = classes - set(torch.serialization.get_safe_globals())
        with torch.serialization.safe_globals(list(allowed)):
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except HaarPoolError:
        raise
    except pickle.UnpicklingError as error:
        reason = " ".join(str(error).split())
        begin = max(reason.find("Unsupported"), reason.find("GLOBAL"), 0)
        raise HaarPoolError(
            f"{EXPECTED}, without other classes",
            f"{path} ({reason[begin : begin + 80]})",
            "save plain Data objects",
        ) from error
    except Exception as error:  # for a damaged file, torch raises almost anything
        reason = " ".join(str(error).split())[:80]
        raise HaarPoolError(EXPECTED, f"{path} ({reason})", "save the list again") from error
    if isinstance(content, Data):  # a single graph, with labels at its nodes
        content = [content]
    is_list = isinstance(content, list | tuple)
    if not is_list or any(not isinstance(data, Data) for data in content):
        raise HaarPoolError(EXPECTED, f"something else in {path}", "save list(dataset)")
    return list(content)


def from_data_list(
    graphs: Sequence[Any],
    name: str = "graphs",
    task: str | None = None,
    *,
    labels: bool = True,
) -> Graphs:
    """Convert PyG graphs: their `x`, `edge_index`, `edge_weight`, `edge_attr`, `pos` and `y`.

    Args:
        graphs: Graphs with the same attributes. `y` is a whole number (a class), or one or several
            real numbers (values; a few different whole numbers are classes in any dtype), or
            several zeros and ones (targets with two classes each); a graph without `y`, or with
            NaN, has no label. If `y` has a row per node of its graph, nodes have labels, unless
            all graphs have the same small number of nodes; then `task` decides. One graph may have
            S signals: `x` (S, N, d), `y` (S, N) or (S, N, T). `pos` is kept if all
            graphs have it with as many columns.
        name: Name of the dataset.
        task: The task, as in `read_graphs`.
        labels: False leaves `y` out, so that it may be anything.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> edge = torch.tensor([[0, 1], [1, 0]])
        >>> graphs = from_data_list([Data(edge_index=edge, num_nodes=2, y=torch.tensor([4]))])
        >>> graphs.task, graphs.classes, graphs.sizes
        ('classification', ('4',), array([2]))
    """
    if not len(graphs):
        raise HaarPoolError("at least one graph", "an empty list", "pass a list of graphs")
    if len(graphs) == 1 and getattr(graphs[0], "edge_index", None) is not None:
        alone = _single_graph(graphs[0], name, task, labels=labels)
        if alone is not None:
            return alone
    edges, sizes, weights = [], [], []
    for g, data in enumerate(graphs):
        if not hasattr(data, "edge_index"):
            raise _wrong(g, "a PyG Data", type(data).__name__, "build Data objects")
        try:
            rows, columns, weight, size = edge_list(data)
        except HaarPoolError as error:
            raise error.located(f"in graph {g}") from None
        if size == 0:
            raise _wrong(g, "at least one node", "none", "drop empty graphs")
        edges.append(np.stack([rows, columns]).astype(np.int64))
        sizes.append(size)
        weights.append(weight)
    start = np.cumsum([0, *sizes])
    counts = [pairs.shape[1] for pairs in edges]
    weighted = _have(graphs, "edge_weight")
    node_columns = {"x": _rows(graphs, "x", sizes)}
    with suppress(HaarPoolError):  # some graphs have no positions, or others
        node_columns["pos"] = _rows(graphs, "pos", sizes)
    attributes = _rows(graphs, "edge_attr", counts)
    fields: Mapping[str, Any] = {}
    if labels and _has_node_labels(graphs, task):
        fields = _node_targets(graphs, task, sizes)
    elif labels:
        fields = _targets(graphs, task)
    return Graphs(
        name,
        start,
        np.concatenate(edges, axis=1) + np.repeat(start[:-1], counts),
        {kind: values for kind, values in node_columns.items() if values is not None},
        edge_weight=np.concatenate(weights).astype(np.float64) if weighted else None,
        edge_columns={} if attributes is None else {"attributes": attributes},
        **fields,
    )


def _single_graph(data: Any, name: str, task: str | None, *, labels: bool) -> Graphs | None:
    """Convert a graph with signals, or with labels at its nodes; None if it is another one."""
    arrays = {key: as_array(one, key) for key, one in data.to_dict().items() if key in ARRAYS}
    if np.ndim(arrays.get("x", 0)) != 3 and np.ndim(arrays.get("y", 0)) != 3:
        if not (labels and _has_node_labels([data], task)):
            return None
        arrays.setdefault("y", np.zeros(0))
    if "x" not in arrays and arrays["y"].ndim < 3:
        arrays["x"] = np.zeros((data.num_nodes, 0))
    return graphs_of_arrays(arrays, name, task, labels=labels)


def _has_node_labels(graphs: Sequence[Any], task: str | None) -> bool:
    """Return whether labels belong to nodes: each y has as many rows as the graph has nodes.

    Of graphs with the same small number of nodes, as many labels may also be targets of the graph.
    """
    if task is not None:
        return find_task(task).of_nodes
    labels = [(data.num_nodes, np.shape(data.y)) for data in graphs if _has_y(data)]
    if not labels or any(not shape or shape[0] != nodes for nodes, shape in labels):
        return False
    sizes = {nodes for nodes, _ in labels}
    several_rows = any(len(shape) > 1 for _, shape in labels) and sizes != {1}
    return several_rows or len(sizes) > 1 or len(graphs) == 1 or max(sizes) > MAX_TARGETS


def _has_y(data: Any) -> bool:
    return getattr(data, "y", None) is not None


def _node_targets(graphs: Sequence[Any], task: str | None, sizes: Sequence[int]) -> dict[str, Any]:
    """Return the fields of `Graphs` about labels of nodes; a graph without y has none."""
    labels = {g: as_array(one.y, f"y of graph {g}") for g, one in enumerate(graphs) if _has_y(one)}
    width = max((y.shape[1:] for y in labels.values()), default=())
    for g, y in labels.items():
        if y.shape != (sizes[g], *width):
            expected = f"y of shape {(sizes[g], *width)}, a label or NaN per node"
            raise _wrong(g, expected, f"shape {y.shape}", "use the same form in all graphs")
    missing: Any = np.nan
    if len(labels) < len(graphs) and all(y.dtype.kind in "biu" for y in labels.values()):
        missing = None  # so that the others stay whole numbers
    empty = (np.full((size, *width), missing) for size in sizes)
    rows = [labels.get(g, one) for g, one in enumerate(empty)]
    return node_label_fields(np.concatenate(rows), task)


def _have(graphs: Sequence[Any], key: str) -> bool:
    """Return whether the graphs have an attribute: all of them or none."""
    have = [getattr(data, key, None) is not None for data in graphs]
    if any(have) and not all(have):
        expected, remedy = f"{key} in all graphs or in none", "add it to all graphs"
        raise _wrong(have.index(False), expected, "none", remedy)
    return any(have)


def _rows(graphs: Sequence[Any], key: str, counts: Sequence[int]) -> Floats | None:
    """Return an attribute of all graphs, one row per node or edge; None if no graph has it."""
    if not _have(graphs, key):
        return None
    parts: list[NDArray[Any]] = []
    for g, (data, count) in enumerate(zip(graphs, counts, strict=True)):
        array = as_array(getattr(data, key), f"{key} of graph {g}")
        array = array[:, None] if array.ndim == 1 else array
        width = parts[0].shape[1] if parts else array.shape[1] if array.ndim > 1 else 1
        if array.shape != (count, width) or array.dtype.kind not in "biuf":
            got = f"shape {array.shape}, dtype {array.dtype}"
            expected = f"{key} of shape ({count}, {width})"
            raise _wrong(g, expected, got, "use the same number of columns in all graphs")
        parts.append(array)
    return np.concatenate(parts).astype(np.float64)


def labels_of(graphs: Sequence[Any]) -> dict[int, NDArray[Any]]:
    """Return the labels of the graphs that have any which is known."""
    arrays = {
        g: as_array(data.y, f"y of graph {g}").reshape(-1)
        for g, data in enumerate(graphs)
        if getattr(data, "y", None) is not None
    }
    return {g: y for g, y in arrays.items() if y.dtype.kind != "f" or not np.isnan(y).all()}


def _targets(graphs: Sequence[Any], task: str | None) -> Mapping[str, Any]:
    """Return the fields of `Graphs` about labels."""
    labels = labels_of(graphs)
    if not labels:
        if task is not None:
            raise HaarPoolError("y in some graph for {task}", "none", "set data.y", task=task)
        return {}
    first = next(iter(labels.values()))
    is_whole = first.dtype.kind in "biu"
    for g, y in labels.items():
        same_kind = (y.dtype.kind in "biu") == is_whole and y.dtype.kind in "biuf"
        if y.size != first.size or not same_kind:
            expected = f"y with {first.size} of {'whole' if is_whole else 'real'} numbers"
            raise _wrong(g, expected, f"{y.size}, dtype {y.dtype}", "use the same in all graphs")
    missing = np.full(first.size, np.nan)
    rows = [labels.get(g, missing).tolist() for g in range(len(graphs))]
    kind = find_task(task, first.size)
    is_binary = {number for row in rows for number in row if number == number} == {0, 1}
    one_class = is_whole and not is_binary if kind is None else not kind.has_targets
    for g, y in labels.items() if one_class else ():
        if y.size != 1 or not (np.isnan(y[0]) or float(y[0]).is_integer()):
            raise _wrong(g, "y as one whole number", f"{y}", "pass {task}", task="regression")
    like_classes = is_whole or (is_binary if first.size > 1 else None)
    return label_fields(rows, kind, like_classes=like_classes)


def _wrong(g: int, expected: str, got: str, remedy: str, **values: Any) -> HaarPoolError:
    return HaarPoolError(expected, f"{got} in graph {g}", remedy, **values)

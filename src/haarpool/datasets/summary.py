"""Statistics of a dataset, as in the tables of papers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from haarpool._types import Ints
from haarpool.datasets.graphs import Graphs


def summary(graphs: Graphs) -> dict[str, Any]:
    """Compute statistics of sizes, labels and special cases of a dataset, ready for JSON.

    An edge is a pair of different nodes, counted once even if both directions are listed.

    Args:
        graphs: The dataset.

    Returns:
        Statistics by name.

    Example:
        >>> path = Graphs("path", np.array([0, 3]), np.array([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> result = summary(path)
        >>> result["graphs"], result["nodes"]["mean"], result["isolated nodes"]
        (1, 3.0, 0)
    """
    size = int(graphs.start[-1])
    loops = graphs.edges[0] == graphs.edges[1]
    low, high = np.sort(graphs.edges[:, ~loops], axis=0)
    low, high = np.divmod(np.unique(low * size + high), size)
    pairs = np.bincount(graphs.owner[low], minlength=len(graphs))
    degree = np.bincount(np.concatenate([low, high]), minlength=size)
    components = _components(graphs, low, high)
    isolated = np.flatnonzero(degree == 0)
    columns = {kind: values.shape[1] for kind, values in graphs.columns.items()}
    result: dict[str, Any] = {
        "graphs": len(graphs),
        "task": graphs.task,
        **_targets(graphs),
        **({} if graphs.task is None else {"missing labels": int((~graphs.is_labelled).sum())}),
        "nodes": _spread(graphs.sizes),
        "edges": _spread(pairs),
        "total nodes": size,
        "total edges": len(low),
        "largest degree": int(degree.max(initial=0)),
        "node columns": columns,
        "edge columns": {kind: values.shape[1] for kind, values in graphs.edge_columns.items()},
        "weighted": graphs.edge_weight is not None,
        "isolated nodes": len(isolated),
        "graphs with isolated nodes": len(np.unique(graphs.owner[isolated])),
        "disconnected graphs": int((components > 1).sum()),
        "most components": int(components.max(initial=0)),
        "self-loops": int(loops.sum()),
    }
    if "labels" in graphs.columns:
        kinds = [len(np.unique(column)) for column in graphs.columns["labels"].T]
        result["node labels"] = kinds[0] if len(kinds) == 1 else kinds
    if graphs.split is not None:
        result["published split"] = {name: len(part) for name, part in graphs.split.items()}
    return result


def _targets(graphs: Graphs) -> dict[str, Any]:
    """Count the graphs of each class, for each target, or compute statistics of the values."""
    if graphs.targets is None:
        return {}
    if graphs.task == "classification":
        counts = np.bincount(graphs.targets[graphs.is_labelled], minlength=len(graphs.classes))
        return {"classes": dict(zip(graphs.classes, counts.tolist(), strict=True))}
    values: dict[str, dict[str, Any]] = {}
    for name, column in zip(graphs.target_names, graphs.targets.T, strict=True):
        known = column[np.isfinite(column)]
        if graphs.task == "multilabel":
            counts = np.bincount(known.astype(np.int64), minlength=2)
            values[name] = dict(zip(graphs.classes, counts.tolist(), strict=True))
            values[name]["missing"] = len(column) - len(known)
            continue
        values[name] = _spread(known) | {"std": float(known.std()) if known.size else None}
        values[name]["missing"] = len(column) - len(known)
    return {"targets": values}


def _spread(values: NDArray[Any]) -> dict[str, Any]:
    if not values.size:
        return {"mean": None, "min": None, "max": None}
    return {"mean": float(values.mean()), "min": values.min().item(), "max": values.max().item()}


def _components(graphs: Graphs, low: Ints, high: Ints) -> Ints:
    """Count the (G,) connected components of each graph."""
    size = int(graphs.start[-1])
    pairs = sparse.coo_array((np.ones(len(low), np.int8), (low, high)), shape=(size, size))
    count, component = connected_components(pairs, directed=False)
    owner = np.zeros(count, np.int64)
    owner[component] = graphs.owner
    return np.bincount(owner, minlength=len(graphs))

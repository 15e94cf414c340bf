"""Statistics of a dataset, as in the tables of papers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from haarpool.datasets.graphs import Graphs
from haarpool.tasks import spread


def summary(graphs: Graphs) -> dict[str, Any]:
    """Compute statistics of sizes, labels and special cases of a dataset, ready for JSON.

    An edge is a pair of different nodes, counted once even if both directions are listed.

    Example:
        >>> path = Graphs("path", np.array([0, 3]), np.array([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> result = summary(path)
        >>> result["graphs"], result["nodes"]["mean"], result["isolated nodes"]
        (1, 3.0, 0)
    """
    structure = graphs.structure  # signals share it
    size = int(structure.start[-1])
    loops = structure.edges[0] == structure.edges[1]
    low, high = np.sort(structure.edges[:, ~loops], axis=0)
    low, high = np.divmod(np.unique(low * size + high), size)
    pairs = np.bincount(structure.owner[low], minlength=len(structure))
    degree = np.bincount(np.concatenate([low, high]), minlength=size)
    adjacency = sparse.coo_array((np.ones(len(low), np.int8), (low, high)), shape=(size, size))
    component = connected_components(adjacency, directed=False)[1]
    first_nodes = np.unique(component, return_index=True)[1]
    components = np.bincount(structure.owner[first_nodes], minlength=len(structure))
    isolated = np.flatnonzero(degree == 0)
    result: dict[str, Any] = {
        "graphs": len(structure),
        **({"signals": len(graphs)} if graphs.signals else {}),
        "task": graphs.task,
        **_labels(graphs),
        "nodes": spread(structure.sizes),
        "edges": spread(pairs),
        "total nodes": size,
        "total edges": len(low),
        "largest degree": int(degree.max(initial=0)),
        "node columns": {kind: values.shape[1] for kind, values in graphs.columns.items()},
        "edge columns": {kind: values.shape[1] for kind, values in graphs.edge_columns.items()},
        "weighted": graphs.edge_weight is not None,
        "isolated nodes": len(isolated),
        "graphs with isolated nodes": len(np.unique(structure.owner[isolated])),
        "disconnected graphs": int((components > 1).sum()),
        "most components": int(components.max(initial=0)),
        "self-loops": int(loops.sum()),
    }
    if "labels" in graphs.columns:
        kinds = [len(np.unique(column)) for column in graphs.columns["labels"].T]
        result["node labels"] = kinds[0] if len(kinds) == 1 else kinds
    if graphs.split is not None:
        result["published split"] = {name: len(part) for name, part in graphs.split.items()}
    if len(graphs.node_splits) == 1:
        split = graphs.node_splits[0]
        result["published split of nodes"] = {name: len(part) for name, part in split.items()}
    elif graphs.node_splits:
        sizes = {
            part: spread(np.array([len(split[part]) for split in graphs.node_splits]))
            for part in graphs.node_splits[0]
        }
        result["published splits of nodes"] = {"number": len(graphs.node_splits), **sizes}
    if "pos" in graphs.columns:
        result["coordinates of nodes"] = graphs.columns["pos"].shape[1]
    return result


def _labels(graphs: Graphs) -> dict[str, Any]:
    """Return statistics of the labels, and the number of graphs without one."""
    if graphs.task is None:
        return {}
    labels = {} if graphs.targets is None else graphs.task.summary(graphs.targets, graphs.names)
    return labels | {"missing labels": int((~graphs.is_labelled).sum())}

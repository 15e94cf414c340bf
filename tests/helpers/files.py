"""Dataset files for tests."""

import os
import sqlite3
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from scipy.io import savemat

REAL = os.environ.get("HAARPOOL_DATA")
needs_data = pytest.mark.skipif(not REAL, reason="HAARPOOL_DATA is not set: no real datasets here")

# Two graphs: a path of three nodes and a pair. Edges stand out of order, one stands twice.
TINY = {
    "A": "4, 5\n2, 1\n1, 2\n2, 3\n3, 2\n5, 4\n1, 2\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "7\n-1\n",
    "node_labels": "3\n5\n3\n3\n9\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n",
    "edge_labels": "1\n2\n2\n4\n4\n1\n8\n",
}


def write_tu(folder: Path, name: str, graphs: list) -> Path:
    """A dataset in TU layout, without any labels of nodes."""
    folder = folder / name / "raw"
    folder.mkdir(parents=True)
    lines, owners, first = [], [], 1
    for g, graph in enumerate(graphs, start=1):
        A = nx.to_scipy_sparse_array(graph).tocoo()
        lines += [f"{u + first}, {v + first}" for u, v in zip(A.row, A.col, strict=True)]
        owners += [str(g)] * len(graph)
        first += len(graph)
    (folder / f"{name}_A.txt").write_text("\n".join(lines) + "\n")
    (folder / f"{name}_graph_indicator.txt").write_text("\n".join(owners) + "\n")
    return folder


def write_rings_tu(folder: Path, name: str) -> Path:
    """The generated dataset rings in TU layout, with labels of graphs, nodes and edges."""
    from haarpool.datasets import read_graphs

    graphs = read_graphs("rings")
    folder = folder / name / "raw"
    folder.mkdir(parents=True)
    lines = {
        "A": [f"{u}, {v}" for u, v in (graphs.edges + 1).T],
        "graph_indicator": np.repeat(np.arange(len(graphs)), graphs.sizes) + 1,
        "graph_labels": graphs.targets,
        "node_labels": graphs.columns["labels"].ravel(),
        "edge_labels": np.zeros(graphs.edges.shape[1], int),
    }
    for kind, values in lines.items():
        (folder / f"{name}_{kind}.txt").write_text("\n".join(map(str, values)) + "\n")
    return folder


def write_tiny_tu(folder: Path, name="TINY", **changes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, text in (TINY | changes).items():
        path = folder / f"{name}_{kind}.txt"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
    return folder


def write_qm7(path: Path, **changes) -> None:
    """Water and hydrogen cyanide, somewhat out of shape."""
    R = np.zeros((2, 4, 3))
    R[0, :3] = [[0, 0, 0], [1.8, 0, 0], [-0.5, 1.7, 0]]
    R[1, :3] = [[0, 0, 0], [2.0, 0, 0], [4.2, 0, 0]]
    Z = np.array([[8, 1, 1, 0], [1, 6, 7, 0]])
    savemat(path, {"R": R, "Z": Z, "T": [[-230.0, -310.0]]} | changes)


def count_cached_chains(cache: Path) -> int:
    """Number of chains in a cache that another process may be writing."""
    if not (cache / "chains.sqlite").exists():
        return 0
    connection = sqlite3.connect(f"file:{cache / 'chains.sqlite'}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute("SELECT count(*) FROM chains").fetchone()[0]
    except sqlite3.OperationalError:  # the table is not there yet
        return 0
    finally:
        connection.close()

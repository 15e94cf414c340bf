"""Peptides-func: ten functions of a peptide from its molecular graph.

What is predicted: ten targets of a whole graph, 0 or 1 each, such as whether a peptide acts against
bacteria. 15,535 molecules of 151 heavy atoms on average; atoms and bonds have the features of
`haarpool.datasets.smiles`, without those that are the same everywhere. The metric is the mean
average precision over the targets.

Data: Peptides-func of the Long Range Graph Benchmark (Dwivedi et al., NeurIPS 2022), CC BY-NC 4.0:
for evaluation only, never committed, and no drawings of its molecules; below HAARPOOL_DATA in
peptides. Reading SMILES needs RDKit; the file that is made here does not.

Split: the official one, 10,873 / 2,331 / 2,331. The five seeds differ in the weights of the
networks alone.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haarpool.datasets import Graphs, read_graphs
from haarpool.datasets.splits import Split
from paper.pooling.data.files import Dataset, raw_file

TARGETS = [f"function {t}" for t in range(10)]


def make(number: int | None = None) -> Dataset:
    """Read the molecules.

    Args:
        number: Number of molecules to use, the first ones; None for all.
    """
    with gzip.open(raw_file("peptides/peptides-func.csv.gz"), "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))[:number]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "peptides.csv"
        with open(path, "w", encoding="utf-8", newline="") as table:
            writer = csv.writer(table)
            writer.writerow(["smiles", *TARGETS])
            writer.writerows([row["smiles"], *json.loads(row["labels"])] for row in rows)
        graphs = read_graphs(path, targets=TARGETS, strict=True)
    official = json.loads(raw_file("peptides/split.json").read_text(encoding="utf-8"))
    parts = (np.array(official[part]) for part in Split._fields)
    return Dataset(as_arrays(graphs), [Split(*(part[part < len(rows)] for part in parts))])


def as_arrays(graphs: Graphs) -> list[dict[str, NDArray[Any]]]:
    """Return the arrays of each molecule, in small numbers."""
    assert graphs.targets is not None
    assert graphs.edge_weight is not None
    atoms, bonds = (
        _varying(one) for one in (graphs.columns["atoms"], graphs.edge_columns["bonds"])
    )
    arrays = []
    for g in range(len(graphs)):
        nodes = slice(*graphs.start[g : g + 2])
        edges = slice(*graphs.edge_start[g : g + 2])
        arrays.append(
            {
                "x": atoms[nodes],
                "edge_index": (graphs.edges[:, edges] - graphs.start[g]).astype(np.int32),
                "edge_attr": bonds[edges],
                "edge_weight": graphs.edge_weight[edges].astype(np.float32),
                "y": graphs.targets[g : g + 1].astype(np.int64),
            }
        )
    return arrays


def _varying(features: NDArray[Any]) -> NDArray[np.int8]:
    """Return the features that are not the same everywhere, all of which are small numbers."""
    return features[:, features.min(0) < features.max(0)].astype(np.int8)

"""How the datasets of the study are stored: arrays and splits, as files that haarpool reads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from haarpool._files import atomic_write, write_arrays, write_text
from haarpool._types import Ints
from haarpool.datasets import Graphs, read_graphs
from haarpool.datasets.splits import Split, as_json, make_splits
from haarpool.errors import HaarPoolError

Arrays = Mapping[str, NDArray[Any]]

SPLITS = 5  # one for each seed of the study
SUFFIXES = (".npz", ".pt")


class Dataset(NamedTuple):
    """A dataset before it is stored.

    Attributes:
        graphs: The arrays of one graph, or of one with signals, as `docs/nodes.md` has them; or a
            list with the arrays of each graph.
        splits: Splits of signals or graphs; empty if the arrays have masks of nodes.
    """

    graphs: Arrays | Sequence[Arrays]
    splits: Sequence[Split] = ()


def random_splits(number: int, held_out: int, seed: int = 0) -> list[Split]:
    """Split `number` graphs at random, `held_out` each for validation and test.

    Example:
        >>> [len(part) for part in random_splits(750, 75)[0]], len(random_splits(750, 75))
        ([600, 75, 75], 5)
    """
    orders = [np.random.default_rng([seed, s]).permutation(number) for s in range(SPLITS)]
    ends = (held_out, 2 * held_out)
    parts = [[np.sort(part) for part in np.split(order, ends)] for order in orders]
    return [Split(train, validation, test) for test, validation, train in parts]


def both_directions(pairs: Ints, size: int) -> Ints:
    """Return (2, E) each edge once in both directions, sorted, without loops.

    Args:
        pairs: (2, n) Pairs of nodes in any direction.
        size: Number of nodes.

    Example:
        >>> both_directions(np.array([[0, 1, 2], [1, 0, 2]]), 3).tolist()
        [[0, 1], [1, 0]]
    """
    pairs = pairs[:, pairs[0] != pairs[1]]
    keys = np.unique(np.concatenate([pairs[0] * size + pairs[1], pairs[1] * size + pairs[0]]))
    return np.stack([keys // size, keys % size])


def raw_file(path: str) -> Path:
    """Return a file of raw data below the folder HAARPOOL_DATA."""
    base = os.environ.get("HAARPOOL_DATA")
    file = Path(base or "") / path
    if not base or not file.is_file():
        got = f"no {file}" if base else "HAARPOOL_DATA is not set"
        remedy = "set HAARPOOL_DATA to the folder that holds datasets"
        raise HaarPoolError(f"the file {path}", got, remedy)
    return file


def find(name: str, folder: str | Path) -> Path | None:
    """Return the file of a dataset in a folder; None if there is none."""
    paths = (Path(folder) / f"{name}{suffix}" for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def save(dataset: Dataset, name: str, folder: str | Path) -> Path:
    """Store a dataset in a folder and return its file; the splits come first, as it needs both."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    if dataset.splits:
        write_text(Path(folder) / f"{name}.split.json", as_json(dataset.splits))
    path = Path(folder) / f"{name}{'.npz' if isinstance(dataset.graphs, Mapping) else '.pt'}"
    if isinstance(dataset.graphs, Mapping):
        write_arrays(path, dict(dataset.graphs))
    else:
        _save_list(path, dataset.graphs)
    return path


def _save_list(path: Path, graphs: Sequence[Arrays]) -> None:
    """Store graphs as a list of PyG `Data`, whose tensors are views of a few large ones.

    torch stores a tensor once, however many views there are: 15,000 graphs are four arrays in the
    file, and edges that all graphs share stand there once.
    """
    import torch
    from torch_geometric.data import Data

    columns = {key: _views([graph[key] for graph in graphs], key) for key in graphs[0]}
    content = [
        Data(**{key: views[g] for key, views in columns.items()}) for g in range(len(graphs))
    ]
    with atomic_write(path) as partial, open(partial, "xb") as file:
        torch.save(content, file)


def _views(arrays: Sequence[NDArray[Any]], key: str) -> Sequence[Any]:
    """Return the arrays of all graphs as views of one tensor."""
    import torch

    if all(array is arrays[0] for array in arrays):
        return [torch.from_numpy(arrays[0])] * len(arrays)
    axis = 1 if key == "edge_index" else 0
    sizes = [array.shape[axis] for array in arrays]
    return torch.split(torch.from_numpy(np.concatenate(arrays, axis)), sizes, axis)


def read(path: Path) -> tuple[Graphs, list[Split]]:
    """Read a dataset and its splits, from the file beside it or from masks."""
    graphs, splits = read_graphs(path), path.with_suffix(".split.json")
    return graphs, make_splits(str(splits) if splits.is_file() else "given", graphs)

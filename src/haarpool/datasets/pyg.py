"""Graphs as a PyTorch Geometric dataset in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from haarpool._progress import ProgressOption
from haarpool._types import Ints
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.graphs import Graphs
from haarpool.datasets.reading import read_graphs


def load_dataset(  # noqa: D417  # `read_graphs` explains the others
    source: str | PathLike[str],
    root: str | PathLike[str] | None = None,
    *,
    features: str = "auto",
    transform: Callable[[Any], Any] | None = None,
    task: str | None = None,
    smiles: str | None = None,
    targets: Sequence[str] = (),
    strict: bool = False,
    seed: int = 0,
    progress: ProgressOption = None,
) -> GraphDataset:
    """Load a dataset as a PyG dataset, encoded and in memory.

    The parameters from `task` to `progress` are those of `read_graphs`.

    Args:
        source: A name or a path, as in `read_graphs`.
        root: Folder that holds datasets.
        features: Kinds of node features, as in `Encoding.fit`.
        transform: Function that is applied to every graph on access, as in any PyG dataset.

    Example:
        >>> dataset = load_dataset("rings")
        >>> dataset[0], dataset.num_classes
        (Data(x=[16, 12], edge_index=[2, 36], y=[1]), 2)
        >>> dataset.encoding.describe()
        'node labels (3), degree (9)'
    """
    graphs = read_graphs(
        source,
        root,
        task=task,
        smiles=smiles,
        targets=targets,
        strict=strict,
        seed=seed,
        progress=progress,
    )
    return GraphDataset(graphs, Encoding.fit(graphs, features), transform)


def graph_tensors(graphs: Graphs, encoding: Encoding) -> dict[str, tuple[Tensor, Ints]]:
    """Return the tensors of all graphs one after the other, as networks read them.

    Returns:
        By key (x, edge_index and, if the graphs have them, edge_weight, edge_attr and y) the tensor
        and (G + 1,) where the entries of each graph start. Node ids start at 0 in each graph.
    """
    local = graphs.edges
    if not graphs.signals:
        local = local - np.repeat(graphs.start[:-1], np.diff(graphs.edge_start))
    tensors = {
        "x": (torch.from_numpy(encoding.encode(graphs)), graphs.start),
        "edge_index": (torch.from_numpy(local), graphs.edge_start),
    }
    if graphs.edge_weight is not None:
        weights = torch.from_numpy(graphs.edge_weight).float()
        tensors["edge_weight"] = (weights, graphs.edge_start)
    if (attributes := encoding.encode_edges(graphs)) is not None:
        tensors["edge_attr"] = (torch.from_numpy(attributes), graphs.edge_start)
    if graphs.task is not None and graphs.targets is not None:
        y = torch.from_numpy(graphs.targets.astype(graphs.task.dtype))
        starts = graphs.start if graphs.task.of_nodes else np.arange(len(graphs) + 1)
        tensors["y"] = (y, starts)
    return tensors


class GraphDataset(InMemoryDataset):  # type: ignore[misc]  # PyG has no types
    """Graphs for PyG's `DataLoader`, slices and transforms.

    A graph has x, edge_index, y (long (1,) for classes, float (1, T) for several targets or values)
    and, if the graphs have them, edge_weight and edge_attr.

    Attributes:
        graphs: All graphs as they were read, also in a slice.
        encoding: How their features are made.
    """

    def __init__(
        self, graphs: Graphs, encoding: Encoding, transform: Callable[[Any], Any] | None = None
    ) -> None:
        super().__init__(transform=transform)
        self.graphs, self.encoding = graphs, encoding
        tensors = graph_tensors(graphs, encoding)
        self._data = Data(**{key: values for key, (values, _) in tensors.items()})
        self.slices = {key: torch.from_numpy(starts) for key, (_, starts) in tensors.items()}

    @property
    def num_classes(self) -> int:
        """Number of outputs of a network: classes, or targets of a graph."""
        task, names = self.graphs.task, self.graphs.names
        return len(task.output_names(names)) if task else 0

    def __repr__(self) -> str:
        return f"{self.graphs.name}({len(self)})"

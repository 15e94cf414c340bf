"""Graphs as a PyTorch Geometric dataset in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from haarpool._types import Ints
from haarpool.datasets.graphs import Graphs


class Encoder(Protocol):
    """What makes features; see `haarpool.datasets.encoding.Encoding`."""

    def encode(self, graphs: Graphs) -> NDArray[np.float32]:
        """(N, columns) for nodes."""

    def encode_edges(self, graphs: Graphs) -> NDArray[np.float32] | None:
        """(E, columns) for edges."""


def graph_tensors(graphs: Graphs, encoding: Encoder) -> dict[str, tuple[Tensor, Ints]]:
    """Return the tensors of all graphs one after the other, as networks read them.

    Args:
        graphs: The graphs.
        encoding: How features are made.

    Returns:
        By key (x, edge_index, edge_weight, edge_attr, y, as far as there are such) the tensor, and
        (G + 1,) where the entries of each graph start. Nodes are numbered from 0 in each graph.
    """
    local = graphs.edges - np.repeat(graphs.start[:-1], np.diff(graphs.edge_start))
    tensors = {
        "x": (torch.from_numpy(encoding.encode(graphs)), graphs.start),
        "edge_index": (torch.from_numpy(local), graphs.edge_start),
    }
    if graphs.edge_weight is not None:
        weights = torch.from_numpy(graphs.edge_weight).float()
        tensors["edge_weight"] = (weights, graphs.edge_start)
    if (attributes := encoding.encode_edges(graphs)) is not None:
        tensors["edge_attr"] = (torch.from_numpy(attributes), graphs.edge_start)
    if graphs.targets is not None:
        dtype = torch.long if graphs.task == "classification" else torch.float
        y = torch.from_numpy(graphs.targets).to(dtype, copy=True)
        tensors["y"] = (y, np.arange(len(graphs) + 1))
    return tensors


class GraphDataset(InMemoryDataset):  # type: ignore[misc]  # PyG has no types
    """Graphs that PyG's `DataLoader`, slices and transforms work with.

    A graph has x, edge_index, y (long (1,) for classes, float (1, T) for values) and, where the
    graphs have them, edge_weight and edge_attr.

    Attributes:
        graphs: the whole dataset as it was read, also in a slice.
        encoding: how its features were made.
    """

    def __init__(
        self, graphs: Graphs, encoding: Encoder, transform: Callable[[Any], Any] | None = None
    ) -> None:
        super().__init__(transform=transform)
        self.graphs, self.encoding = graphs, encoding
        tensors = graph_tensors(graphs, encoding)
        self._data = Data(**{key: values for key, (values, _) in tensors.items()})
        self.slices = {key: torch.from_numpy(starts) for key, (_, starts) in tensors.items()}

    @property
    def num_classes(self) -> int:
        """Outputs of a network for it: the classes, or the values of a graph."""
        return len(self.graphs.classes) or len(self.graphs.target_names)

    def __repr__(self) -> str:
        return f"{self.graphs.name}({len(self)})"

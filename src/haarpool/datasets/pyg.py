"""Graphs as a PyTorch Geometric dataset in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from haarpool.datasets.graphs import Graphs


class Encoder(Protocol):
    """What makes features; see `haarpool.datasets.encoding.Encoding`."""

    def encode(self, graphs: Graphs) -> NDArray[np.float32]:
        """(N, columns) for nodes."""

    def encode_edges(self, graphs: Graphs) -> NDArray[np.float32] | None:
        """(E, columns) for edges."""


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
        # Flat arrays and where graphs start in them are just what PyG keeps.
        nodes, edges = torch.from_numpy(graphs.start), torch.from_numpy(graphs.edge_start)
        local = graphs.edges - np.repeat(graphs.start[:-1], np.diff(graphs.edge_start))
        self._data = Data(x=torch.from_numpy(encoding.encode(graphs)))
        self._data.edge_index = torch.from_numpy(local)
        self.slices = {"x": nodes, "edge_index": edges}
        if graphs.edge_weight is not None:
            self._add("edge_weight", torch.from_numpy(graphs.edge_weight).float(), edges)
        if (attributes := encoding.encode_edges(graphs)) is not None:
            self._add("edge_attr", torch.from_numpy(attributes), edges)
        if graphs.targets is not None:
            y = torch.from_numpy(graphs.targets)
            kind = torch.long if graphs.task == "classification" else torch.float
            self._add("y", y.to(kind, copy=True), torch.arange(len(graphs) + 1))

    def _add(self, key: str, values: Tensor, slices: Tensor) -> None:
        self._data[key], self.slices[key] = values, slices

    @property
    def num_classes(self) -> int:
        """Outputs of a network for it: the classes, or the values of a graph."""
        return len(self.graphs.classes) or len(self.graphs.target_names)

    def __repr__(self) -> str:
        return f"{self.graphs.name}({len(self)})"

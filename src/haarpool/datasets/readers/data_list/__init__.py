"""Lists of PyTorch Geometric `Data`, in memory or in a `.pt` file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haarpool.datasets.readers.registry import Reader, register

if TYPE_CHECKING:
    from haarpool.datasets.graphs import Graphs


@register
class DataList(Reader):
    """Lists of PyG `Data`; a file is read without executing code."""

    phrase = ".pt list of Data"
    suffixes = (".pt",)
    modules = ("torch", "torch_geometric.data")
    objects = "PyG Data"

    def read(self, source: Path, task: str | None = None, *, labels: bool = True) -> Graphs:
        """Read a `.pt` file."""
        from haarpool.datasets.readers.data_list.convert import from_data_list, load_data_list

        return from_data_list(load_data_list(source), source.stem, task, labels=labels)

    def converts(self, one: Any) -> bool:
        """Return whether an object is a PyG graph."""
        return hasattr(one, "edge_index")

    def convert(
        self, objects: Sequence[Any], name: str, task: str | None = None, *, labels: bool = True
    ) -> Graphs:
        """Convert a list of `Data`."""
        from haarpool.datasets.readers.data_list.convert import from_data_list, labels_of

        if labels and not labels_of(objects):
            task = None
        return from_data_list(objects, name, task, labels=labels)

    def sample(self, folder: Path) -> Path:
        """Write paths and rings of four nodes with two attributes."""
        import torch
        from torch_geometric.data import Data

        path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        ring = torch.cat([path, torch.tensor([[0, 3], [3, 0]])], dim=1)
        graphs = [Data(x=torch.ones(4, 2), edge_index=path if y else ring, y=y) for y in [0, 1] * 8]
        torch.save(graphs, folder / "sample.pt")
        return folder / "sample.pt"

"""Minibatches of a dataset that is stored as flat tensors on the device of the network.

Collating graph by graph takes longer than a training step of a small network. Here the tensors of
all graphs are concatenated once, and a minibatch is one gather per tensor. It holds the same
tensors as PyG's `Batch.from_data_list`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from haarpool._types import Ints
from haarpool.haar.chain_tensors import (
    GROWTH,
    JoinedTensors,
    TensorDict,
    growing_rows,
    is_chain_key,
)


class Minibatches:
    """The graphs of a dataset as concatenated tensors.

    Args:
        parts: Concatenated tensors of graphs; a key may come in several parts.
        device: Device of the tensors.

    Example:
        >>> path = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> dot = Data(x=torch.zeros(1, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
        >>> Minibatches.of([dot, path]).take([1, 0, 1])["edge_index"]
        tensor([[0, 1, 3, 4],
                [1, 0, 4, 3]])
    """

    def __init__(self, parts: Iterable[JoinedTensors], device: torch.device | str = "cpu") -> None:
        tensors: dict[str, list[Tensor]] = {}
        lengths: dict[str, list[Ints]] = {}
        for part in parts:
            for key, value in part.tensors.items():
                tensors.setdefault(key, []).append(value.to(device))
                lengths.setdefault(key, []).append(part.lengths[key])
        self.device = torch.device(device)
        self._flat: TensorDict = {}
        self._offsets: list[_GraphOffsets] = []  # tensors with equal lengths share one
        self._offsets_of: dict[str, _GraphOffsets] = {}
        for key, values in tensors.items():
            self._flat[key] = torch.cat(values, _dimension(key))
            self._offsets_of[key] = self._shared_offsets(np.concatenate(lengths[key]))

    @classmethod
    def of(cls, graphs: Iterable[Data], device: torch.device | str = "cpu") -> Minibatches:
        """Make minibatches of `Data` or `ChainData`, all with the same keys."""
        return cls(map(_tensors_of_graph, graphs), device)

    def _shared_offsets(self, lengths: Ints) -> _GraphOffsets:
        for offsets in self._offsets:
            if np.array_equal(offsets.lengths, lengths):
                return offsets
        self._offsets.append(_GraphOffsets(lengths, self.device))
        return self._offsets[-1]

    def __len__(self) -> int:
        return len(self._offsets_of["x"].lengths)

    def __getitem__(self, key: str) -> Tensor:
        """Return the concatenated tensor of all graphs."""
        return self._flat[key]

    def take(self, graphs: Sequence[int] | Ints) -> TensorDict:
        """Return the minibatch of some graphs, in the given order."""
        chosen = np.asarray(graphs, np.int64)
        numbers = torch.from_numpy(chosen).to(self.device, non_blocking=True)
        selections = {id(one): one.select(chosen, numbers) for one in self._offsets}
        nodes = selections[id(self._offsets_of["x"])]
        batch: TensorDict = {"batch": nodes.graph, "ptr": nodes.ptr}
        if GROWTH in self._flat:
            growth = self._flat[GROWTH][:, numbers]
            growth = growth.cumsum(1) - growth
        for key, flat in self._flat.items():
            selected = selections[id(self._offsets_of[key])]
            value = flat.index_select(_dimension(key), selected.entry)
            if key == "edge_index":
                value += nodes.ptr[selected.graph]
            elif is_chain_key(key) and (rows := growing_rows(key)) is not None:
                value += growth[rows].index_select(1, selected.graph)
            batch[key] = value
        return batch

    def epoch(
        self, graphs: Ints, size: int, generator: np.random.Generator | None = None
    ) -> Iterator[Ints]:
        """Yield the graphs of each minibatch of an epoch.

        Args:
            graphs: (n,) numbers of graphs.
            size: Graphs per minibatch.
            generator: Shuffles the graphs if given.
        """
        order = graphs if generator is None else generator.permutation(graphs)
        for i in range(0, len(order), size):
            yield order[i : i + size]


class _Selection(NamedTuple):
    """The entries of a tensor that belong to the chosen graphs.

    Attributes:
        entry: (n,) positions of the entries.
        graph: (n,) graph of each entry in the minibatch.
        ptr: (graphs + 1,) where the entries of each graph start in the minibatch.
    """

    entry: Tensor
    graph: Tensor
    ptr: Tensor


class _GraphOffsets:
    """Number of entries of each graph in a tensor, and where they start."""

    def __init__(self, lengths: Ints, device: torch.device) -> None:
        self.lengths = lengths
        self._length = torch.from_numpy(lengths).to(device)
        self._start = self._length.cumsum(0) - self._length

    def select(self, chosen: Ints, numbers: Tensor) -> _Selection:
        """Select the entries of some graphs; their number is known without asking the device."""
        total, device = int(self.lengths[chosen].sum()), numbers.device
        length, start = self._length[numbers], self._start[numbers]
        ptr = torch.nn.functional.pad(length.cumsum(0), (1, 0))
        graph = torch.arange(len(numbers), device=device)
        graph = torch.repeat_interleave(graph, length, output_size=total)
        entry = torch.arange(total, device=device) + (start - ptr[:-1])[graph]
        return _Selection(entry, graph, ptr)


def _tensors_of_graph(data: Data) -> JoinedTensors:
    tensors = {k: v for k, v in data.to_dict().items() if isinstance(v, Tensor)}
    return JoinedTensors(
        tensors, {k: np.array([v.shape[_dimension(k)]]) for k, v in tensors.items()}
    )


def _dimension(key: str) -> int:
    return -1 if key == "edge_index" or is_chain_key(key) else 0

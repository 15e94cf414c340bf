"""Minibatches cut out of one flat copy of a dataset, on the device where the network is.

Collating graph by graph takes longer than a step of a small network. Here all graphs lie joined,
and a minibatch is one gather per tensor: the same tensors as PyG's `Batch.from_data_list` makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from haarpool._types import Ints
from haarpool.haar.chain_tensors import GROWTH, JoinedTensors, growing_rows, is_chain_key

Tensors = dict[str, Tensor]


class Minibatches:
    """The graphs of a dataset, joined.

    Args:
        parts: tensors of graphs one after the other; a key may come in several parts.
        device: where the tensors shall lie.

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
        self._flat: Tensors = {}
        self._layouts: list[_GraphOffsets] = []  # many tensors share one
        self._layout_of: dict[str, _GraphOffsets] = {}
        for key, values in tensors.items():
            self._flat[key] = torch.cat(values, _dimension(key))
            self._layout_of[key] = self._layout(np.concatenate(lengths[key]))

    @classmethod
    def of(cls, graphs: Iterable[Data], device: torch.device | str = "cpu") -> Minibatches:
        """The same from `Data` or `ChainData`, all with the same keys."""
        return cls(map(_alone, graphs), device)

    def _layout(self, lengths: Ints) -> _GraphOffsets:
        for layout in self._layouts:
            if np.array_equal(layout.lengths, lengths):
                return layout
        self._layouts.append(_GraphOffsets(lengths, self.device))
        return self._layouts[-1]

    def __len__(self) -> int:
        return len(self._layout_of["x"].lengths)

    def __getitem__(self, key: str) -> Tensor:
        """The tensor of all graphs."""
        return self._flat[key]

    def take(self, graphs: Sequence[int] | Ints) -> Tensors:
        """The batch of some graphs, in the order given."""
        chosen = np.asarray(graphs, np.int64)
        numbers = torch.from_numpy(chosen).to(self.device, non_blocking=True)
        picks = {id(layout): layout.pick(chosen, numbers) for layout in self._layouts}
        nodes = picks[id(self._layout_of["x"])]
        batch: Tensors = {"batch": nodes.graph, "ptr": nodes.ptr}
        if GROWTH in self._flat:
            growth = self._flat[GROWTH][:, numbers]
            growth = growth.cumsum(1) - growth
        for key, flat in self._flat.items():
            pick = picks[id(self._layout_of[key])]
            value = flat.index_select(_dimension(key), pick.entry)
            if key == "edge_index":
                value += nodes.ptr[pick.graph]
            elif is_chain_key(key) and (rows := growing_rows(key)) is not None:
                value += growth[rows].index_select(1, pick.graph)
            batch[key] = value
        return batch

    def epoch(
        self, graphs: Ints, size: int, generator: np.random.Generator | None = None
    ) -> Iterator[Ints]:
        """Numbers of graphs, batch by batch; shuffled if there is a generator."""
        order = graphs if generator is None else generator.permutation(graphs)
        for i in range(0, len(order), size):
            yield order[i : i + size]


class _Selection(NamedTuple):
    """Which entries of a tensor belong to the chosen graphs."""

    entry: Tensor  # where they lie
    graph: Tensor  # of which graph of the batch each is
    ptr: Tensor  # where each graph begins in the batch, and its end


class _GraphOffsets:
    """How many entries of a tensor each graph has, and where they begin."""

    def __init__(self, lengths: Ints, device: torch.device) -> None:
        self.lengths = lengths
        self._length = torch.from_numpy(lengths).to(device)
        self._start = self._length.cumsum(0) - self._length

    def pick(self, chosen: Ints, numbers: Tensor) -> _Selection:
        """The entries of some graphs. How many there are is known without asking the device."""
        total, device = int(self.lengths[chosen].sum()), numbers.device
        length, start = self._length[numbers], self._start[numbers]
        ptr = torch.nn.functional.pad(length.cumsum(0), (1, 0))
        graph = torch.arange(len(numbers), device=device)
        graph = torch.repeat_interleave(graph, length, output_size=total)
        entry = torch.arange(total, device=device) + (start - ptr[:-1])[graph]
        return _Selection(entry, graph, ptr)


def _alone(data: Data) -> JoinedTensors:
    tensors = {k: v for k, v in data.to_dict().items() if isinstance(v, Tensor)}
    return JoinedTensors(
        tensors, {k: np.array([v.shape[_dimension(k)]]) for k, v in tensors.items()}
    )


def _dimension(key: str) -> int:
    return -1 if key == "edge_index" or is_chain_key(key) else 0

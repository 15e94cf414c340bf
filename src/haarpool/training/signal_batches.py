"""Minibatches of signals on one graph, which is stored and prepared once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from haarpool._types import Ints
from haarpool.haar.chain_tensors import TensorDict
from haarpool.haar.joining import JoinedTensors
from haarpool.haar.node_order import ORIGINAL_INDEX
from haarpool.training.minibatches import MAX_ROWS, Minibatches


class Signals(NamedTuple):
    """What differs from signal to signal on one graph of N nodes.

    Attributes:
        x: (S, N, varying columns) features of the nodes.
        columns: The numbers of these columns among all features.
        y: (S, N) or (S, N, T) labels of the nodes; None without labels.
    """

    x: Tensor
    columns: Tensor
    y: Tensor | None


class SignalBatches(Minibatches):
    """The signals on one graph: a minibatch has the tensors of the graph, and some signals.

    In a minibatch of S signals x is (S, N, columns). All shapes are fixed by S, so a padded
    minibatch is like any other.

    Args:
        parts: The tensors of the graph; its x are the features of the first signal.
        signals: What differs from signal to signal.
        device: Device of the tensors.
    """

    def __init__(
        self,
        parts: Iterable[JoinedTensors],
        signals: Signals,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(parts, device)
        self._graph = super().take([0])
        self._x, self._columns = self._at_nodes(signals.x), signals.columns.to(self.device)
        self._y = None if signals.y is None else self._at_nodes(signals.y)

    def _at_nodes(self, values: Tensor) -> Tensor:
        """Return (S, N, ...) values on the device, renumbered as the graph is."""
        values, order = values.to(self.device), self._graph.get(ORIGINAL_INDEX)
        return values if order is None else values.index_select(1, order)

    def __len__(self) -> int:
        return len(self._x)

    def take(self, graphs: Sequence[int] | Ints) -> TensorDict:
        """Return the minibatch of some signals, in the given order."""
        numbers = torch.from_numpy(np.asarray(graphs, np.int64))
        return self._take(numbers.to(self.device, non_blocking=True))

    def take_padded(self, numbers: Tensor, capacity: object) -> TensorDict:
        """Return the minibatch of some signals; nothing is read back from the device."""
        return self._take(numbers)

    def _take(self, numbers: Tensor) -> TensorDict:
        x = self._x.index_select(0, numbers)
        if len(self._columns) < self._graph["x"].shape[1]:  # the others are the same for all
            same = self._graph["x"].expand(len(numbers), -1, -1)
            x = same.index_copy(2, self._columns, x)
        batch = {**self._graph, "x": x}
        if self._y is not None:
            batch["y"] = self._y.index_select(0, numbers).flatten(0, 1)
        return batch

    def capacity(self, size: int) -> AnySignals:  # type: ignore[override]
        """Return the capacity of a minibatch: any signals fit."""
        return AnySignals()

    def chunks(self, graphs: Ints, size: int) -> Iterator[Ints]:
        """Yield the signals of minibatches that need no gradients."""
        rows = self._x.shape[1] + self._graph["edge_index"].shape[1]
        size = min(size, max(1, MAX_ROWS // rows))
        yield from np.array_split(graphs, math.ceil(len(graphs) / size)) if len(graphs) else ()


class AnySignals(NamedTuple):
    """The capacity of a minibatch of signals."""

    def fits(self, chosen: Ints) -> bool:
        """Return whether some signals fit: always."""
        return True

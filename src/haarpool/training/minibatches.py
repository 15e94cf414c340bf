"""Minibatches of a dataset that is stored as flat tensors on the device of the network.

Collating graph by graph takes longer than a training step of a small network. Here the tensors of
all graphs are concatenated once, and a minibatch is one gather per tensor. It holds the same
tensors as PyG's `Batch.from_data_list`, with the edges sorted by their target, and the lists of
`haarpool.nn.layers.neighbours`.

A *padded* minibatch has a fixed number of nodes and edges, so that a CUDA graph can be replayed on
it: one more graph at the end fills it up. That graph has a chain like any other (`_padding_tree`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from haarpool._types import Ints
from haarpool.haar.building import weight_bits
from haarpool.haar.chain_tensors import START, TensorDict, Tree, is_chain_key, kind_and_level
from haarpool.haar.joining import DIMENSION, JoinedTensors, counted
from haarpool.haar.node_order import ORIGINAL_INDEX
from haarpool.nn.layers.neighbours import BY_SOURCE, STARTS
from haarpool.tasks import MISSING

# What the indices count that are not of chains, see `counted`.
_COUNTED = {
    "edge_index": ("x", "x"),
    STARTS: ("edge_index", "edge_index"),
    BY_SOURCE: ("edge_index",),
    ORIGINAL_INDEX: ("x",),
}
MAX_ROWS = 2**17  # nodes and edges of a minibatch without gradients
_SPREAD = 4  # standard deviations of the size of a batch that a padded batch has room for


class Minibatches:
    """The graphs of a dataset as concatenated tensors.

    Args:
        parts: Concatenated tensors of graphs; a key may come in several parts.
        device: Device of the tensors.

    Example:
        >>> path = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> dot = Data(x=torch.zeros(1, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
        >>> Minibatches.of([dot, path]).take([1, 0, 1])["edge_index"]
        tensor([[1, 0, 4, 3],
                [0, 1, 3, 4]])
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
        self._layouts: list[_Layout] = []  # tensors with equal lengths share one
        self._layout_of: dict[str, _Layout] = {}
        for key, values in tensors.items():
            flat = values[0] if len(values) == 1 else torch.cat(values, _dimension(key))
            self._add(key, flat, np.concatenate(lengths[key]))
        self._sort_edges()
        levels = range(self._flat[START].shape[0] - 1 if START in self._flat else 0)
        self._levels = [self._layout_of[f"haar_tree_{j}"] for j in levels]
        self._counted = {key: self._counted_layouts(key) for key in self._flat}

    @classmethod
    def of(cls, graphs: Iterable[Data], device: torch.device | str = "cpu") -> Minibatches:
        """Make minibatches of `Data` or `ChainData`, all with the same keys."""
        return cls(map(_tensors_of_graph, graphs), device)

    def _add(self, key: str, flat: Tensor, lengths: Ints) -> None:
        self._flat[key] = flat
        for layout in self._layouts:
            if np.array_equal(layout.lengths, lengths):
                self._layout_of[key] = layout
                return
        self._layout_of[key] = _Layout(lengths, self.device)
        self._layouts.append(self._layout_of[key])

    def _counted_layouts(self, key: str) -> list[_Layout | None]:
        """Return the layout that each row of an index counts, without the last rows that do not."""
        keys = _COUNTED.get(key) or counted(key, len(self._levels) - 1)
        layouts = [self._layout_of.get(one or "") for one in keys]
        while layouts and layouts[-1] is None:
            layouts.pop()
        return layouts

    def _sort_edges(self) -> None:
        """Sort the edges of each graph by their target, and add the lists of neighbours."""
        if "edge_index" not in self._flat:
            return
        nodes, edges = self._layout_of["x"], self._layout_of["edge_index"]
        graph = edges.graph()
        by_target = (self._flat["edge_index"][1] + nodes.start[graph]).argsort(stable=True)
        for key, flat in self._flat.items():
            if key.startswith("edge_"):
                self._flat[key] = flat.index_select(_dimension(key), by_target)
        ends = self._flat["edge_index"] + nodes.start[graph]  # source and target of each edge
        by_source = ends[0].argsort(stable=True)
        starts = []
        for row in (1, 0):
            count = torch.bincount(ends[row], minlength=len(self._flat["x"]))
            starts.append(count.cumsum(0) - count - edges.start[nodes.graph()])
        self._add(STARTS, torch.stack(starts).int(), nodes.lengths)
        self._add(BY_SOURCE, (by_source - edges.start[graph]).int(), edges.lengths)

    def __len__(self) -> int:
        return len(self._layout_of["x"].lengths)

    def __getitem__(self, key: str) -> Tensor:
        """Return the concatenated tensor of all graphs."""
        return self._flat[key]

    def take(self, graphs: Sequence[int] | Ints) -> TensorDict:
        """Return the minibatch of some graphs, in the given order."""
        chosen = np.asarray(graphs, np.int64)
        numbers = torch.from_numpy(chosen).to(self.device, non_blocking=True)
        return self._cut(
            {one: one.select(numbers, int(one.lengths[chosen].sum())) for one in self._layouts}
        )

    def take_padded(self, numbers: Tensor, capacity: Capacity) -> TensorDict:
        """Return a padded minibatch; nothing is read back from the device.

        Args:
            numbers: (B,) graphs on the device; `capacity.fits` must be true for them.
            capacity: The numbers of nodes and edges.

        Returns:
            The minibatch of B + 1 graphs, of which the last fills it up.
        """
        selections = {
            layout: layout.select(numbers, total, padded=True)
            for layout, total in capacity.totals.items()
        }
        return self._cut(selections, padded=True)

    def capacity(self, size: int) -> Capacity:
        """Return the capacity of padded minibatches of some number of graphs."""
        totals: dict[_Layout, int] = {}
        above = np.zeros(len(self), np.int64)
        room = 1  # a graph for padding has one node on each level at least
        for level in reversed(self._levels):
            # Down the chain the room for padding must not shrink: `_padding_tree` needs it.
            room += _upper_bound(level.lengths - above, size)
            above = level.lengths
            totals[level] = room
        for layout in self._layouts:
            totals.setdefault(layout, _upper_bound(layout.lengths, size) + 1)
        return Capacity(totals, [self._layout_of["x"], *self._levels])

    def epoch(
        self,
        graphs: Ints,
        size: int,
        generator: np.random.Generator | None = None,
        min_size: int = 1,
    ) -> Iterator[Ints]:
        """Yield the graphs of each minibatch of an epoch.

        Args:
            graphs: (n,) numbers of graphs.
            size: Graphs per minibatch.
            generator: Shuffles the graphs if given.
            min_size: A last minibatch with fewer graphs is left out, unless it is the only one.
        """
        order = graphs if generator is None else generator.permutation(graphs)
        for i in range(0, len(order), size):
            if i == 0 or len(order) - i >= min_size:
                yield order[i : i + size]

    def chunks(self, graphs: Ints, size: int) -> Iterator[Ints]:
        """Yield the graphs of minibatches that need no gradients: their size is limited by memory.

        Args:
            graphs: (n,) numbers of graphs.
            size: Graphs per minibatch. It has fewer if they have more than `MAX_ROWS` nodes and
                edges; a larger graph is a minibatch alone.
        """
        rows = self._layout_of["x"].lengths[graphs]
        if (edges := self._layout_of.get("edge_index")) is not None:
            rows = rows + edges.lengths[graphs]
        end = np.cumsum(rows)
        start = 0
        while start < len(graphs):
            limit = MAX_ROWS + end[start] - rows[start]
            fitting = int(np.searchsorted(end, limit, side="right"))
            stop = min(start + size, max(fitting, start + 1))
            yield graphs[start:stop]
            start = stop

    def _cut(self, selections: Selections, *, padded: bool = False) -> TensorDict:
        nodes = selections[self._layout_of["x"]]
        batch: TensorDict = {"batch": nodes.graph, "ptr": nodes.ptr}
        for key, flat in self._flat.items():
            part = selections[self._layout_of[key]]
            if padded and flat.numel() == 0:  # no graph has such entries, but the padding has
                shape = list(flat.shape)
                shape[_dimension(key)] = 1
                flat = flat.new_zeros(shape)
            value = flat.index_select(_dimension(key), part.entry)
            if padded:
                value = self._pad(key, value, selections)
            if layouts := self._counted[key]:
                rows = value[: len(layouts)] if value.ndim > 1 else value
                rows += _entries_before(layouts, part, selections, value.dtype)
            batch[key] = value
        return batch

    def _pad(self, key: str, value: Tensor, selections: Selections) -> Tensor:
        """Replace the entries of the last graph by those of a graph that fills the minibatch."""
        part = selections[self._layout_of[key]]
        kind, level = kind_and_level(key)
        first = next(iter(self._counted[key]), None)
        counts = part if first is None else selections[first]  # what the first row counts
        if kind == "tree":
            edges = self._layout_of.get(f"haar_edges_{level}")
            num_edges = None if edges is None else selections[edges].padding
            filler = _padding_tree(part, counts.padding, num_edges)
        elif key == STARTS:
            filler = _first_edges(part, counts.padding).int().expand(2, -1)
        elif key == BY_SOURCE or kind == "reverse":  # of self-loops
            filler = part.position.int()
        elif key == ORIGINAL_INDEX:
            filler = part.position
        elif key == "edge_weight":
            filler = torch.ones_like(value)  # any other weight might be negative
        elif key == "edge_index":
            filler = _loops(part, counts.padding).expand(2, -1)
        elif key == "y" and part is selections[self._layout_of["x"]]:
            filler = torch.full_like(value, math.nan if value.is_floating_point() else MISSING)
        elif kind == "edges":
            nodes = _loops(part, counts.padding)
            weights = (torch.full_like(nodes, int(bits)) for bits in weight_bits(np.ones(1))[:, 0])
            filler = torch.stack([nodes, nodes, *weights])
        else:
            return value  # features and labels of any graph will do
        is_padding = (
            part.is_padding if key != "y" else part.is_padding.view(-1, *[1] * (value.ndim - 1))
        )
        return torch.where(is_padding, filler, value)


class Capacity(NamedTuple):
    """The numbers of nodes and edges of a padded minibatch.

    Attributes:
        totals: The number of entries of each layout of the dataset.
        levels: The layouts of the nodes of all levels, and before them that of the features.
    """

    totals: dict[_Layout, int]
    levels: list[_Layout]

    def fits(self, chosen: Ints) -> bool:
        """Return whether some graphs fit: rarely do they not, and then they are not padded."""
        used = {layout: int(layout.lengths[chosen].sum()) for layout in self.totals}
        room = {layout: total - used[layout] for layout, total in self.totals.items()}
        padding = [room[level] for level in self.levels]
        return (
            min(room.values()) >= 0
            and padding[-1] >= 1
            and padding == sorted(padding, reverse=True)
            and min(used[level] for level in self.levels) > 1  # one row has no variance
        )


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

    @property
    def padding(self) -> Tensor:
        """Number of entries of the last graph."""
        return self.ptr[-1] - self.ptr[-2]

    @property
    def is_padding(self) -> Tensor:
        """(n,) whether an entry belongs to the last graph."""
        return self.graph == self.ptr.shape[0] - 2

    @property
    def position(self) -> Tensor:
        """(n,) number of each entry in its graph, right for the last graph only."""
        return torch.arange(self.graph.shape[0], device=self.graph.device) - self.ptr[-2]


class _Layout:
    """Number of entries of each graph in a tensor, and where they start."""

    def __init__(self, lengths: Ints, device: torch.device) -> None:
        self.lengths = lengths
        self._length = torch.from_numpy(lengths).to(device)
        self.start = self._length.cumsum(0) - self._length

    def graph(self) -> Tensor:
        """Return the graph of each entry."""
        graphs = torch.arange(len(self.lengths), device=self.start.device)
        return graphs.repeat_interleave(self._length, output_size=int(self.lengths.sum()))

    def select(self, numbers: Tensor, total: int, *, padded: bool = False) -> _Selection:
        """Select the entries of some graphs.

        Args:
            numbers: (B,) numbers of the graphs.
            total: Number of entries, so that the host need not ask the device.
            padded: Add a graph at the end that fills up to `total`.
        """
        length, start = self._length[numbers], self.start[numbers]
        if padded:
            length = torch.cat([length, total - length.sum(0, keepdim=True)])
            start = torch.nn.functional.pad(start, (0, 1))
        ptr = torch.nn.functional.pad(length.cumsum(0), (1, 0))
        graph = torch.arange(len(length), device=length.device)
        graph = graph.repeat_interleave(length, output_size=total)
        entry = torch.arange(total, device=length.device) + (start - ptr[:-1])[graph]
        if padded:
            entry = entry.masked_fill_(graph == len(numbers), 0)
        return _Selection(entry, graph, ptr)


Selections = dict[_Layout, _Selection]


def _entries_before(
    layouts: list[_Layout | None], part: _Selection, selections: Selections, dtype: torch.dtype
) -> Tensor:
    """Return (rows, n) or (n,) what is added to an index: the entries of the graphs before."""
    first, *others = layouts
    if first is not None and all(one is first for one in others):
        return selections[first].ptr.to(dtype)[part.graph]
    zero = torch.zeros_like(part.ptr)
    before = [zero if one is None else selections[one].ptr for one in layouts]
    return torch.stack(before).to(dtype).index_select(1, part.graph)


def _padding_tree(nodes: _Selection, num_above: Tensor, num_edges: Tensor | None) -> Tensor:
    """Return a tree whose entries of the last graph are those of a chain for padding.

    Its p nodes have q <= p clusters: node i < q - 1 is a cluster alone, and the others are the last
    cluster.
    """
    i, p, q = nodes.position, nodes.padding, num_above
    alone = i < q - 1
    zero = torch.zeros_like(i)
    later = torch.where(alone, 0, p - 1 - i)
    rows = {
        Tree.PARENT: torch.minimum(i, q - 1),
        Tree.MEMBER: i,
        Tree.GRAPH: zero,
        Tree.CHILD: i,
        Tree.MASS: zero + 1,
        Tree.LATER: later,
        Tree.TOTAL: torch.where(alone, 1, p - q + 1),
        Tree.DETAIL: torch.where(later > 0, i + 1, 0),
        Tree.EDGE: zero if num_edges is None else _first_edges(nodes, num_edges),
    }
    return torch.stack([rows[row] for row in Tree]).int()


def _first_edges(nodes: _Selection, num_edges: Tensor) -> Tensor:
    """Spread the edges of the last graph over its nodes: return the first edge of each node."""
    return (nodes.position * num_edges + nodes.padding - 1) // nodes.padding


def _loops(edges: _Selection, num_nodes: Tensor) -> Tensor:
    """Return the node of each edge of the last graph; all its edges are self-loops."""
    return edges.position * num_nodes // edges.padding.clamp(min=1)


def _upper_bound(lengths: Ints, size: int) -> int:
    """Return a number of entries that few minibatches exceed."""
    typical = lengths.mean() * size + _SPREAD * lengths.std() * math.sqrt(size)
    return math.ceil(min(float(typical), float(lengths.max(initial=0)) * size))


def _tensors_of_graph(data: Data) -> JoinedTensors:
    tensors = {k: v for k, v in data.to_dict().items() if isinstance(v, Tensor)}
    return JoinedTensors(
        tensors, {k: np.array([v.shape[_dimension(k)]]) for k, v in tensors.items()}
    )


def _dimension(key: str) -> int:
    return DIMENSION if key in ("edge_index", STARTS) or is_chain_key(key) else 0

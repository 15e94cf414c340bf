"""`ChainTensors`: one or many chains as flat index tensors on a device.

This is the only form of a chain besides `Chain`: transforms, layers and minibatches all read it. It
has the tree alone, no bases. For the chains of G graphs with levels 0..K its keys are:

    haar_start      (K+2, G)  first node of each graph on each level; level K+1 are the graphs
    haar_tree_j     (9, N_j)  one number per node of level j; `Tree` lists the rows
    haar_edges_j    (4, E_j)  the coarse graph of level j >= 1, without self-loops: rows, columns,
                              and the bits of the weights, in float64 and in float32
    haar_modes_j    (H, N_j)  for EigenPool, see `haarpool.chains.modes`

A batch is a concatenation along the last dimension; each row has its increment (`increments`). So
PyG's `DataLoader` makes batches of chains. Numbers are int32, those of edges int64 as in PyG.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from operator import is_
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import entry_rows
from haarpool.chains.chain import Chain
from haarpool.errors import HaarPoolError

START = "haar_start"
_KINDS = ("tree", "edges", "modes")
TensorDict = dict[str, Tensor]


class Tree(IntEnum):
    """Rows of `trees[j]`, one number per node v of level j.

    A cluster has members v_0, ..., v_{k-1} in the order of the chain, with measures m_t. Clusters
    of level K are whole graphs.
    """

    PARENT = 0  # cluster of v on level j+1
    MEMBER = 1  # not of v: all nodes, cluster by cluster
    GRAPH = 2  # graph of v
    CHILD = 3  # first member of the cluster v, its position in MEMBER of level j-1
    MASS = 4  # m_t for v = v_t
    LATER = 5  # m_{t+1} + ... + m_{k-1}; zero at the last member
    TOTAL = 6  # m_0 + ... + m_{k-1}
    DETAIL = 7  # row of its detail among the coefficients of its graph; none at the last member
    EDGE = 8  # first edge of v in haar_edges_j


class Steps(NamedTuple):
    """Some steps of chains from level j on, as the kernels take them.

    Attributes:
        start: `start` of the chains from level j on.
        trees: The trees of these steps; after a single step also the next, if there is one.
        skip: Whether the details of level j are left out.
        single: Whether there is one step only.
        prepared: What kernels keep from one call to the next; it depends on shapes alone.
    """

    start: Tensor
    trees: list[Tensor]
    skip: bool
    single: bool
    prepared: dict[Any, Any]


class ChainTensors:
    """One or many chains, prepared for the transforms: `hp.adjoint(tensors, x)`.

    Each graph has its own basis. The rows of signals and of coefficients are sorted graph by graph.
    Users of transforms know it as `haarpool.TransformPlan`.

    Args:
        tensors: The tensors of the chains by key, for example a batch of `ChainData`.
        level: A level that the chains must have.

    Attributes:
        start: (K+2, G) first node of each graph on each level.
        trees: K+1 tensors (9, N_j), see `Tree`.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> ChainTensors.from_chains([chain, chain])
        TransformPlan(2 graphs: 6 -> 4 -> 2, cpu)
    """

    def __init__(self, tensors: Mapping[str, Tensor], level: int = 0) -> None:
        if START not in tensors:
            raise missing_chain(tensors)
        self.tensors, self.start = tensors, tensors[START]
        levels = range(self.start.shape[0] - 1)
        # A graph of an `InMemoryDataset` has views of longer tensors; kernels read whole ones.
        self.trees = tuple([self._read("tree", j).contiguous() for j in levels])
        self._steps: dict[tuple[int, bool, bool], Steps] = {}
        self.check_level(level)

    @classmethod
    def from_chains(
        cls, chains: Iterable[Chain], device: torch.device | str | None = None
    ) -> ChainTensors:
        """Build the tensors of chains that all have the same number of levels.

        Args:
            chains: One chain or several.
            device: Device of the tensors, by default the CPU.
        """
        chains = (chains,) if isinstance(chains, Chain) else tuple(chains)
        other_types = sorted({type(chain).__name__ for chain in chains} - {"Chain"})
        if not chains or other_types:
            raise HaarPoolError(
                "at least one chain, and only chains",
                f"{other_types or 'none'}",
                "pass a list of chains",
            )
        num_levels = {chain.num_levels for chain in chains}
        if len(num_levels) > 1:
            raise HaarPoolError(
                "chains with the same number of levels in one plan",
                f"chains with {sorted(num_levels)} levels",
                "build all of them with the same num_levels",
            )
        parts = [chain_tensors(chain, edges=False) for chain in chains]
        return cls(concatenate(parts)).to(device or "cpu")

    def is_current(self) -> bool:
        """Return whether the tensors are still those that were read, and no copies of them."""
        keys = _tree_keys(len(self.trees))
        return (
            self.tensors.get(START) is self.start
            and self.start.is_contiguous()
            and all(map(is_, map(self.tensors.get, keys), self.trees))
        )

    def check_level(self, level: int) -> None:
        """Raise an error unless the chains have a level."""
        if level > self.num_levels:
            raise HaarPoolError(
                f"data with a chain of at least {level} levels",
                f"one of {self.num_levels}",
                f"use AddHaarChain(num_levels={level}), "
                f"or a level below {self.num_levels} in the layer",
            )

    def steps(self, level: int, *, skip: bool = False, single: bool = False) -> Steps:
        """Return the steps from level j on, the same for each call.

        Args:
            level: j.
            skip: Leave out the details of level j.
            single: One step only.
        """
        key = level, skip, single
        if key in self._steps:
            return self._steps[key]
        start = self.start[level:]
        trees = self.trees[level : level + 2] if single else self.trees[level:]
        steps = Steps(start, list(trees), skip, single, {})
        if not torch.compiler.is_compiling() and _is_same_kind(start, self.start):
            self._steps[key] = steps
        return steps

    def to(self, device: torch.device | str) -> ChainTensors:
        """Return the same chains on another device."""
        keys = filter(is_chain_key, self.tensors.keys())
        return ChainTensors({key: self.tensors[key].to(device) for key in keys})

    def coarse_graph(self, level: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Return the coarse graph of level j in 1..K.

        Args:
            level: j.
            dtype: Type of the weights, that of the signal.

        Returns:
            (2, E_j) edges without self-loops, (E_j,) their weights, (N_j,) graph of each node.
        """
        edges, weights = self._read("edges", level)[:2], self.coarse_weights(level, dtype)
        return edges, weights.to(dtype), self.trees[level][Tree.GRAPH].long()

    def coarse_weights(self, level: int, dtype: torch.dtype) -> Tensor:
        """Return (E_j,) weights of the coarse graph: float64 if the signal is, else float32."""
        edges = self._read("edges", level)
        # Views: nothing is copied.
        return edges.view(dtype)[2] if dtype == torch.float64 else edges.view(torch.float32)[3, ::2]

    def _read(self, kind: str, level: int) -> Tensor:
        try:
            return self.tensors[f"haar_{kind}_{level}"]
        except KeyError:
            raise HaarPoolError(
                f"data with haar_{kind}_{level}", "data without it", "do not exclude this key"
            ) from None

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self.start.device

    @property
    def num_levels(self) -> int:
        """K, the same for all chains."""
        return len(self.trees) - 1

    @property
    def num_graphs(self) -> int:
        """Number of chains."""
        return self.start.shape[1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """(N_0, ..., N_K) of all graphs together."""
        return tuple(tree.shape[1] for tree in self.trees)

    def size(self, level: int) -> int:
        """Return N_j of all graphs together."""
        return self.trees[level].shape[1]

    def num_nodes(self, level: int) -> Tensor:
        """Return (G,) the number of nodes of each graph on level j in 0..K."""
        end = self.start.new_full((1,), self.size(level))
        return torch.diff(self.start[level], append=end)

    def __reduce__(self) -> tuple[Any, ...]:
        return ChainTensors, (self.tensors,)  # without what kernels prepared

    def __repr__(self) -> str:
        graphs = f"{self.num_graphs} graph{'s' * (self.num_graphs != 1)}"
        return f"TransformPlan({graphs}: {' -> '.join(map(str, self.sizes))}, {self.device})"


def _is_same_kind(view: Tensor, tensor: Tensor) -> bool:
    """Return whether other calls can use a view: in some modes of torch only calls inside can."""
    return type(view) is type(tensor) and view.is_inference() == tensor.is_inference()


TransformPlan = ChainTensors  # the name for users of transforms


def missing_chain(tensors: Mapping[str, Any]) -> HaarPoolError:
    """Return the error for data without `haar_start`."""
    if "haar_tree_0" in tensors:
        return HaarPoolError(
            "a chain of this version of haarpool",
            "one of an earlier version",
            "process the dataset again: delete its folder processed/",
        )
    return HaarPoolError(
        "data with a chain",
        "data without one",
        "add AddHaarChain(num_levels=...) to the transforms of the dataset",
    )


# ---------------------------------------------------------------------- batches


def increments(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return by key what is added to the rows of the next graph in a batch; 0 for other keys.

    Args:
        tensors: All tensors of a graph, or of a batch.
    """
    levels, graphs = range(tensors[START].shape[0] - 1), tensors[START].shape[1]
    sizes = [0, *(tensors[f"haar_tree_{j}"].shape[1] for j in levels), graphs]
    result = {START: torch.tensor(sizes[1:], dtype=torch.int32)[:, None]}
    for j in levels:
        below, size, above = sizes[j : j + 3]
        edges = tensors.get(f"haar_edges_{j}")
        rows = {Tree.PARENT: above, Tree.MEMBER: size, Tree.GRAPH: graphs, Tree.CHILD: below}
        rows[Tree.EDGE] = 0 if edges is None else edges.shape[1]
        column = [[rows.get(row, 0)] for row in Tree]
        result[f"haar_tree_{j}"] = torch.tensor(column, dtype=torch.int32)
        result[f"haar_edges_{j}"] = torch.tensor([[size], [size], [0], [0]])
    return result


def concatenate(parts: Sequence[TensorDict]) -> TensorDict:
    """Make the batch of some graphs from their chain tensors, as PyG does."""
    if len(parts) == 1:
        return parts[0]
    batch, more = {}, [increments(part) for part in parts]
    for key in parts[0]:
        values, total = [], torch.zeros((), dtype=torch.int32)
        for part, increment in zip(parts, more, strict=True):
            values.append(part[key] + total)
            total = total + increment[key]
        batch[key] = torch.cat(values, -1)
    return batch


@cache
def _tree_keys(number: int) -> tuple[str, ...]:
    return tuple(f"haar_tree_{j}" for j in range(number))


@cache
def is_chain_key(key: str) -> bool:
    """Whether a key belongs to the tensors of a chain."""
    return key == START or kind_and_level(key)[0] in _KINDS


@cache
def kind_and_level(key: str) -> tuple[str, int]:
    """Return ("tree", 2) for haar_tree_2, and ("", -1) for other keys."""
    prefix, _, rest = key.partition("_")
    kind, _, level = rest.partition("_")
    return (kind, int(level)) if prefix == "haar" and level.isdecimal() else ("", -1)


# ---------------------------------------------------------------------- building


class JoinedTensors(NamedTuple):
    """The tensors of several graphs, concatenated without increments.

    Attributes:
        tensors: Tensors by key.
        lengths: By key, the number of entries of each graph.
    """

    tensors: TensorDict
    lengths: dict[str, Ints]


def chain_tensors(chain: Chain, *, edges: bool = True) -> TensorDict:
    """Build all tensors of a chain, by key.

    Args:
        chain: A chain.
        edges: Include the coarse graphs, for which the chain must know its graph.
    """
    top = np.zeros(chain.sizes[-1], np.int64)
    forest = Chain((*chain.parents, top), chain.order, chain.measure, chain._input_graph)
    if edges or chain.order == "degree":
        _, *coarse = chain._graphs
        forest._keep_coarse_graphs(lambda: coarse)
    return joined_tensors(forest, edges=edges).tensors


def joined_tensors(forest: Chain, *, edges: bool = True) -> JoinedTensors:
    """Build the tensors of many chains at once, which is much faster than one by one.

    Args:
        forest: The chains side by side as one chain, graph by graph on every level, with one more
            step: the nodes of its last level are the graphs.
        edges: See `chain_tensors`.
    """
    if forest.sizes[0] >= 2**31:
        raise HaarPoolError("fewer than 2^31 nodes", f"{forest!r}", "use smaller graphs")
    K, G = forest.num_levels - 1, forest.sizes[-1]
    levels = _level_nodes(forest)
    trees = [np.zeros((len(Tree), size), np.int32) for size in forest.sizes[:-1]]
    arrays: dict[str, NDArray[Any]] = {START: np.zeros((K + 2, G), np.int32)}
    lengths = {START: np.ones(G, np.int64)}
    for j, tree in enumerate(trees):
        _fill_tree(tree, trees[j + 1] if j < K else None, forest, levels, j)
        arrays[f"haar_tree_{j}"], lengths[f"haar_tree_{j}"] = tree, levels[j].num_nodes
    for j in range(1, K + 1) if edges else ():
        array, trees[j][Tree.EDGE], num_edges = _edges(forest, j, levels[j])
        arrays[f"haar_edges_{j}"], lengths[f"haar_edges_{j}"] = array, num_edges
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
    for key, tensor in tensors.items():
        if tensor.numel() == 0:  # numpy has strides of 0 here; then it has no view as another type
            tensors[key] = tensor.new_empty(tensor.shape)
    return JoinedTensors(tensors, lengths)


class _LevelNodes(NamedTuple):
    """The nodes of a level of a forest, which are sorted graph by graph."""

    graph: Ints  # (N_j,) graph of each node
    num_nodes: Ints  # (G,) number of nodes of each graph
    start: Ints  # (G,) first node of each graph


def _level_nodes(forest: Chain) -> list[_LevelNodes]:
    graph, levels = np.arange(forest.sizes[-1]), list[_LevelNodes]()
    for parent in (None, *reversed(forest.parents)):
        graph = graph if parent is None else graph[parent]
        num_nodes = np.bincount(graph, minlength=forest.sizes[-1])
        levels.insert(0, _LevelNodes(graph, num_nodes, _starts(num_nodes)))
    return levels


def _fill_tree(
    tree: NDArray[np.int32],
    tree_above: NDArray[np.int32] | None,
    forest: Chain,
    levels: list[_LevelNodes],
    j: int,
) -> None:
    """Fill the rows of `trees[j]`, and CHILD of the level above."""
    parent, (graph, _, start), above = forest.parents[j], levels[j], levels[j + 1]
    ordering = forest.ordering(j)
    nodes = ordering[np.argsort(parent[ordering], kind="stable")]  # cluster by cluster
    cluster = parent[nodes]
    sizes = np.bincount(parent)
    first = _starts(sizes)
    m = forest.measures(j)[nodes].astype(np.int64)
    until = np.cumsum(m)
    total = np.add.reduceat(m, first)
    later = np.repeat(until[first + sizes - 1], sizes) - until
    # The details of a graph come after its coarse coefficients, cluster by cluster in the order of
    # the chain, which is not the order of numbers.
    rank_above = np.empty(len(above.graph), np.int64)
    order_above = forest.ordering(j + 1)
    by_graph = order_above[np.argsort(above.graph[order_above], kind="stable")]
    rank_above[by_graph] = np.arange(len(by_graph))
    num_details = (sizes - 1)[by_graph]
    details_before = _starts(num_details)
    first_detail = details_before - details_before[above.start][above.graph[by_graph]]
    detail = first_detail[rank_above[cluster]] + np.arange(len(nodes)) - first[cluster]
    detail += above.num_nodes[graph[nodes]]
    tree[Tree.PARENT] = parent - above.start[graph]
    tree[Tree.MEMBER] = nodes - start[graph[nodes]]
    tree[Tree.MASS, nodes], tree[Tree.LATER, nodes] = m, later
    tree[Tree.TOTAL, nodes] = total[cluster]
    tree[Tree.DETAIL, nodes] = np.where(later > 0, detail, 0)
    if tree_above is not None:
        tree_above[Tree.CHILD] = first - start[above.graph]


def _edges(forest: Chain, j: int, level: _LevelNodes) -> tuple[Ints, Ints, Ints]:
    """Return `haar_edges_j`, the first edge of each node, and the number of edges per graph."""
    graph = forest.adjacency(j)
    row = entry_rows(graph)
    first = level.start[level.graph[row]]
    edges = np.stack([row - first, graph.indices - first, *weight_bits(graph.data)])
    num_edges = np.bincount(level.graph[row], minlength=len(level.num_nodes))
    return edges, graph.indptr[:-1] - _starts(num_edges)[level.graph], num_edges


def weight_bits(weights: Floats) -> Ints:
    """Return (2, E) the bits of weights: of float64, and of float32 in the first half."""
    single = np.zeros((len(weights), 2), np.float32)
    with np.errstate(over="ignore"):  # infinite in float32, as after any conversion
        single[:, 0] = weights
    return np.stack([weights.view(np.int64), single.view(np.int64)[:, 0]])


def _starts(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts

"""`ChainTensors`: one or many chains as flat index tensors on a device.

This is the only form of a chain besides `Chain`: transforms, layers and minibatches all read it. It
has the tree alone, no bases. For the chains of G graphs with levels 0..K its keys are:

    haar_start      (K+2, G)  first node of each graph on each level; level K+1 are the graphs
    haar_tree_j     (9, N_j)  one number per node of level j; `Tree` lists the rows
    haar_edges_j    (4, E_j)  the coarse graph of level j >= 1, without self-loops: rows, columns,
                              and the bits of the weights, in float64 and in float32
    haar_attr_j     (C+1, E_j) features of these edges, see `haarpool.haar.edge_features`; the last
                              row is the number of edges of the input graph. Not in all data
    haar_reverse_j  (1, E_j)  beside them, for each edge (p, q) the edge (q, p)
    haar_modes_j    (H, N_j)  for EigenPool, see `haarpool.chains.modes`

A batch is a concatenation along the last dimension, see `haarpool.haar.joining`. So PyG's
`DataLoader` makes batches of chains. Numbers are int32, those of edges int64 as in PyG. Weights are
bits among them because PyG's collation takes a fixed time per key: with weights under keys of their
own, a batch of 50 graphs with three levels takes 1.08 times as long (our minibatches: 0.99).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from operator import is_
from typing import Any, NamedTuple

import torch
from torch import Tensor

from haarpool.chains.chain import Chain
from haarpool.errors import HaarPoolError

START = "haar_start"
_KINDS = ("tree", "edges", "attr", "reverse", "modes")
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
        from haarpool.haar.building import chain_tensors
        from haarpool.haar.joining import concatenate

        chains = (chains,) if isinstance(chains, Chain) else tuple(chains)
        other_types = sorted({type(chain).__name__ for chain in chains} - {"Chain"})
        if not chains or other_types:
            raise HaarPoolError(
                "as at least one chain, and only chains",
                f"{other_types or 'none'}",
                "pass a list of chains",
                parameter="chains",
            )
        num_levels = {chain.num_levels for chain in chains}
        if len(num_levels) > 1:
            raise HaarPoolError(
                "with the same number of levels in one plan",
                f"chains with {sorted(num_levels)} levels",
                "build all of them with the same {num_levels}",
                parameter="chains",
                num_levels=...,
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
        """Return the steps from a level on, the same for each call."""
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

    def coarse_features(self, level: int, dtype: torch.dtype) -> Tensor | None:
        """Return (E_j, C+1) the features of the edges of the coarse graph, if the data has them.

        The last column is the number of edges of the input graph that run from the first cluster to
        the second. Without any, the features are 0.
        """
        key = f"haar_attr_{level}"
        return self.tensors[key].T.to(dtype) if key in self.tensors else None

    def reversed_edges(self, level: int) -> Tensor | None:
        """Return (E_j,) for each edge (p, q) the edge (q, p), if edges have features."""
        key = f"haar_reverse_{level}"
        return self.tensors[key][0] if key in self.tensors else None

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

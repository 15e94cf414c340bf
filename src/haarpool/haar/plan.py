"""The plan of the fast transforms: chains as index and weight tensors on a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool._types import Ints
from haarpool.chains.adjacency import ranges
from haarpool.chains.chain import Chain
from haarpool.errors import HaarPoolError

# Rows of a block: on the CPU it fits into the cache; elsewhere larger, as each launch takes time.
BLOCK_ROWS = {"cpu": 2**13}
BLOCK_ROWS_ELSEWHERE = 2**18


@dataclass(frozen=True, eq=False)
class Pairing:
    """One round of pairwise sums inside segments; a last row without a partner is a pair alone.

    All rounds together take O(N) time, and a sum of k terms has a rounding error of O(log k).
    """

    first: Tensor  # (pairs,) first row of each pair
    pair: Tensor  # (rows,) pair of each row
    full: Tensor  # pairs with two rows
    left: Tensor  # first row of each pair in `full`
    right: Tensor  # second row of each pair in `full`


@dataclass(frozen=True, eq=False)
class ClusterBlock:
    """Complete clusters of one level, few enough that intermediate results fit into the cache.

    The n rows of a block are sorted cluster by cluster. With m and M as in `haarpool.haar.basis`,
    r = sqrt(m), h = r · f, and sums over members of the same cluster:

        coarse      s   = norm · Σ_t h_t
        detail      d_t = a_t · h_t - b_t · Σ_{i>t} h_i
        transposed  f_i = r_i · (norm · s + a_i · d_i - Σ_{t<i} b_t · d_t)
    """

    nodes: Tensor  # (n,) node id of each row, its row in a signal on this level
    ranks: Tensor  # (n,) rank of this node, its row in the result of the level below
    cluster: Tensor  # (n,) number of its cluster in the block
    details: Tensor  # rows of all members except the last of each cluster
    r: Tensor  # (n, 1) sqrt(m_t)
    a: Tensor  # (n, 1) sqrt(M_{t+1} / (M_t m_t)), zero at the last member of a cluster
    b: Tensor  # (n, 1) sqrt(m_t / (M_t M_{t+1})), zero at the last member of a cluster
    norm: Tensor  # (clusters, 1) 1 / sqrt(M_0)
    pairings: tuple[Pairing, ...]
    coarse_rows: slice  # the clusters of the block among all clusters of the level
    detail_rows: slice  # its details among all details of the level


@dataclass(frozen=True, eq=False)
class CoefficientLayout:
    """The order of the coefficients of many graphs on one level.

    Users see them graph by graph. They are computed part by part: the first coefficient of every
    graph, the details of level K of every graph, the details of level K-1, and so on.
    """

    to_parts: Tensor  # for each row in the order of parts, its row in the order of graphs
    to_graphs: Tensor  # the inverse


@dataclass(frozen=True, eq=False, repr=False)
class TransformPlan:
    """One or many chains, prepared for the transforms: `hp.adjoint(plan, x)`.

    Each graph has its own basis. The rows of signals and of coefficients are sorted graph by graph.

    Attributes:
        chains: The chains, all with K levels.
        graph_sizes: (graphs, K+1) number of nodes of each graph on each level.
        sizes: (N_0, ..., N_K) of all graphs together.
        steps: Blocks of levels 0..K; on level K the nodes of each graph form one cluster.
        layouts: Layouts of the coefficients of levels 0..K; `None` for a single graph.
        device: Device of the tensors.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> TransformPlan.from_chains([chain, chain])
        TransformPlan(2 graphs: 6 -> 4 -> 2, cpu)
    """

    chains: tuple[Chain, ...]
    graph_sizes: Ints
    sizes: tuple[int, ...]
    steps: tuple[tuple[ClusterBlock, ...], ...]
    layouts: tuple[CoefficientLayout, ...] | None
    device: torch.device

    @classmethod
    def from_chains(
        cls, chains: Iterable[Chain], device: torch.device | str | None = None
    ) -> TransformPlan:
        """Build the plan of chains that all have the same number of levels.

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
        # "cuda" is the current GPU; the device of a tensor has its number.
        device = torch.empty(0, device=device or "cpu").device
        sizes = np.array([chain.sizes for chain in chains], np.int64)
        steps = tuple(_blocks(chains, j, sizes, device) for j in range(sizes.shape[1]))
        totals = tuple(int(n) for n in sizes.sum(axis=0))
        layouts = None
        if len(chains) > 1:
            layouts = tuple(
                _coefficient_layout(sizes[:, j:], device) for j in range(sizes.shape[1])
            )
        return cls(chains, sizes, totals, steps, layouts, device)

    def to(self, device: torch.device | str) -> TransformPlan:
        """Return the same plan on another device."""
        return TransformPlan.from_chains(self.chains, device)

    @property
    def num_levels(self) -> int:
        """K, the same for all chains."""
        return len(self.steps) - 1

    @property
    def num_graphs(self) -> int:
        """Number of chains of the plan."""
        return len(self.graph_sizes)

    def part_sizes(self, level: int) -> list[int]:
        """Return the number of rows of each part that `cut` returns."""
        bounds = [0, self.num_graphs, *self.sizes[level:][::-1]]
        return [stop - start for start, stop in pairwise(bounds)]

    def cut(self, c: Tensor, level: int) -> list[Tensor]:
        """Cut coefficients into parts.

        Args:
            c: (..., N_j, d) coefficients, sorted graph by graph.
            level: j in 0..K.

        Returns:
            The first coefficient of every graph, then the details of levels K, ..., j of every
            graph.
        """
        rows = c if self.layouts is None else c.index_select(-2, self.layouts[level].to_parts)
        return list(torch.split(rows, self.part_sizes(level), -2))

    def paste(self, parts: Tensor, level: int) -> Tensor:
        """Sort coefficients graph by graph; the inverse of `cut`.

        Args:
            parts: (..., N_j, d) the parts of `cut`, concatenated.
            level: j in 0..K.
        """
        if self.layouts is None:
            return parts
        return parts.index_select(-2, self.layouts[level].to_graphs)

    def __repr__(self) -> str:
        graphs = f"{self.num_graphs} graph{'s' * (self.num_graphs != 1)}"
        return f"TransformPlan({graphs}: {' -> '.join(map(str, self.sizes))}, {self.device})"


def _blocks(
    chains: Sequence[Chain], level: int, graph_sizes: Ints, device: torch.device
) -> tuple[ClusterBlock, ...]:
    """Build the blocks of one level for all chains, with rows graph by graph."""
    members = [chain.members(level) for chain in chains]
    offsets = np.cumsum(graph_sizes[:, level]) - graph_sizes[:, level]
    nodes = np.concatenate([m.nodes + o for m, o in zip(members, offsets, strict=True)])
    order = np.concatenate([c.ordering(level) + o for c, o in zip(chains, offsets, strict=True)])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))

    sizes = np.concatenate([np.diff(m.start) for m in members])
    end = np.cumsum(sizes)
    m = np.concatenate([chain.measures(level) for chain in chains])[nodes]
    before = np.concatenate([[0.0], np.cumsum(m)])  # whole numbers: differences are exact
    M = np.repeat(before[end], sizes) - before[:-1]
    M_next = M - m  # M_{t+1}, zero at the last member
    b = np.sqrt(np.divide(m, M * M_next, out=np.zeros_like(m), where=M_next > 0))

    def tensor(array: NDArray[Any], dtype: type = np.int64) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype)).to(device)

    def column(array: NDArray[Any]) -> Tensor:
        # Metal has no float64.
        return tensor(array, np.float32 if device.type == "mps" else np.float64)[:, None]

    blocks = []
    for c0, c1 in _cluster_ranges(sizes, BLOCK_ROWS.get(device.type, BLOCK_ROWS_ELSEWHERE)):
        inside, first = sizes[c0:c1], int(end[c0] - sizes[c0])
        rows = slice(first, int(end[c1 - 1]))
        block = ClusterBlock(
            nodes=tensor(nodes[rows]),
            ranks=tensor(rank[nodes[rows]]),
            cluster=tensor(np.repeat(np.arange(c1 - c0), inside)),
            details=tensor(np.flatnonzero(M_next[rows] > 0)),
            r=column(np.sqrt(m[rows])),
            a=column(np.sqrt(M_next[rows] / (M[rows] * m[rows]))),
            b=column(b[rows]),
            norm=column(1 / np.sqrt(M[end[c0:c1] - inside])),
            pairings=tuple(Pairing(*map(tensor, pairing)) for pairing in _pairings(inside)),
            coarse_rows=slice(c0, c1),
            detail_rows=slice(first - c0, rows.stop - c1),
        )
        blocks.append(block)
    return tuple(blocks)


def _coefficient_layout(graph_sizes: Ints, device: torch.device) -> CoefficientLayout:
    """Build the layout of level j from the sizes on levels j..K, shape (graphs, K - j + 1)."""
    size, *_ = sizes = graph_sizes.T
    begin = np.cumsum(size) - size
    bounds = [np.zeros_like(size), np.ones_like(size), *sizes[::-1]]
    parts = [ranges(begin + start, stop - start) for start, stop in pairwise(bounds)]
    to_parts = np.concatenate(parts)
    indices = (torch.from_numpy(index).to(device) for index in (to_parts, np.argsort(to_parts)))
    return CoefficientLayout(*indices)


def _cluster_ranges(sizes: Ints, rows: int) -> list[tuple[int, int]]:
    """Divide clusters of these sizes into ranges of about `rows` rows; no cluster is divided."""
    block = np.cumsum(sizes) // rows
    bounds = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(sizes)]
    return list(pairwise(bounds))


def _pairings(sizes: Ints) -> Iterator[tuple[Ints, ...]]:
    """Yield rounds of pairing until every segment has one row (see `Pairing`)."""
    while sizes.max() > 1:
        pairs = (sizes + 1) // 2
        first = ranges(np.cumsum(sizes) - sizes, pairs, stride=2)
        lengths = np.full(len(first), 2)
        lengths[np.cumsum(pairs) - 1] -= sizes % 2  # a last row without a partner
        full = np.flatnonzero(lengths == 2)
        pair = np.repeat(np.arange(len(first)), lengths)
        yield first, pair, full, first[full], first[full] + 1
        sizes = pairs

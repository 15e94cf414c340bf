"""The plan: chains as index and weight tensors on a device, what the fast transforms read."""

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

# Rows of a block: on the CPU what fits its cache; elsewhere more, since every launch costs.
BLOCK_ROWS = {"cpu": 2**13}
BLOCK_ROWS_ELSEWHERE = 2**18


@dataclass(frozen=True, eq=False)
class Pairing:
    """One round of a tree that sums inside segments: neighbours in pairs, an odd last one alone.

    All rounds together are O(N), and a sum of k terms has a rounding error of O(log k).
    """

    first: Tensor  # (pairs,) row of the first element of each pair
    pair: Tensor  # (rows,) the pair that a row belongs to
    full: Tensor  # pairs that have a second element, and the rows of both
    left: Tensor
    right: Tensor


@dataclass(frozen=True, eq=False)
class ClusterBlock:
    """Whole clusters of one level, few enough that what is computed on the way stays in cache.

    A "place" counts the n rows of the block cluster by cluster. With m and M as in
    `haarpool.haar.basis`, r = sqrt(m), h = r · f, and sums over members of the same cluster:

        coarse      s   = norm · Σ_t h_t
        detail      d_t = own_t · h_t - others_t · Σ_{i>t} h_i
        transposed  f_i = r_i · (norm · s + own_i · d_i - Σ_{t<i} others_t · d_t)
    """

    nodes: Tensor  # (n,) place -> row of a signal that enters on this level: node ids
    ranks: Tensor  # (n,) place -> row of what the step below gives: nodes in order
    cluster: Tensor  # (n,) place -> cluster of the block
    details: Tensor  # places of all members but the last of each cluster
    r: Tensor  # (n, 1)
    own: Tensor  # (n, 1), like `others` zero at the last member of a cluster
    others: Tensor  # (n, 1)
    norm: Tensor  # (clusters, 1)
    pairings: tuple[Pairing, ...]
    coarse_rows: slice  # of all coarse rows and all details of the level, those of this block
    detail_rows: slice


@dataclass(frozen=True, eq=False)
class CoefficientLayout:
    """Coefficients of many graphs on one level stand graph by graph, but are computed part by part:
    the first of every graph, the details of level K of every graph, of K-1, and so on.
    """

    to_parts: Tensor  # row part by part -> row graph by graph
    to_graphs: Tensor  # the inverse


@dataclass(frozen=True, eq=False, repr=False)
class TransformPlan:
    """One or many chains, ready for the transforms: `hp.adjoint(plan, x)`.

    Graphs do not mix: each has its own basis, and the rows of signals and of coefficients stand
    graph by graph.

    Attributes:
        graph_sizes: (graphs, K+1) number of nodes of each graph on each level.
        sizes: (N_0, ..., N_K) of all graphs together.
        steps: the blocks of levels 0..K; level K puts the top of each graph into one cluster.
        layouts: of the coefficients of levels 0..K; none are needed for a single graph.
        device: where the tensors are.

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
        """The plan of chains that all have the same number of levels."""
        chains = (chains,) if isinstance(chains, Chain) else tuple(chains)
        kinds = sorted({type(chain).__name__ for chain in chains} - {"Chain"})
        if not chains or kinds:
            raise HaarPoolError(
                "at least one chain, and nothing else",
                f"{kinds or 'none'}",
                "pass a list of chains",
            )
        depths = {chain.num_levels for chain in chains}
        if len(depths) > 1:
            raise HaarPoolError(
                "chains with the same number of levels in one plan",
                f"chains with {sorted(depths)} levels",
                "build all of them with the same num_levels",
            )
        # A bare "cuda" means the current one; a tensor knows which that is.
        device = torch.empty(0, device=device or "cpu").device
        sizes = np.array([chain.sizes for chain in chains], np.int64)
        steps = tuple(_blocks(chains, j, sizes, device) for j in range(sizes.shape[1]))
        totals = tuple(int(n) for n in sizes.sum(axis=0))
        layouts = None
        if len(chains) > 1:
            layouts = tuple(_layout(sizes[:, j:], device) for j in range(sizes.shape[1]))
        return cls(chains, sizes, totals, steps, layouts, device)

    def to(self, device: torch.device | str) -> TransformPlan:
        """The same plan on another device."""
        return TransformPlan.from_chains(self.chains, device)

    @property
    def num_levels(self) -> int:
        """K, the same for all chains."""
        return len(self.steps) - 1

    @property
    def num_graphs(self) -> int:
        """How many chains the plan holds."""
        return len(self.graph_sizes)

    def part_sizes(self, level: int) -> list[int]:
        """Rows of each part that `cut` gives."""
        bounds = [0, self.num_graphs, *self.sizes[level:][::-1]]
        return [stop - start for start, stop in pairwise(bounds)]

    def cut(self, c: Tensor, level: int) -> list[Tensor]:
        """Coefficients of a level, rows graph by graph -> [the first of every graph, then the
        details of levels K, ..., level], each graph by graph.
        """
        rows = c if self.layouts is None else c.index_select(-2, self.layouts[level].to_parts)
        return list(torch.split(rows, self.part_sizes(level), -2))

    def paste(self, parts: Tensor, level: int) -> Tensor:
        """The parts of `cut`, one after the other in one tensor -> rows graph by graph."""
        if self.layouts is None:
            return parts
        return parts.index_select(-2, self.layouts[level].to_graphs)

    def __repr__(self) -> str:
        graphs = f"{self.num_graphs} graph{'s' * (self.num_graphs != 1)}"
        return f"TransformPlan({graphs}: {' -> '.join(map(str, self.sizes))}, {self.device})"


# ---------------------------------------------------------------------- building it


def _blocks(
    chains: Sequence[Chain], level: int, graph_sizes: Ints, device: torch.device
) -> tuple[ClusterBlock, ...]:
    """The blocks of one level for all chains, whose rows stand one after the other."""
    members = [chain.members(level) for chain in chains]
    offsets = np.cumsum(graph_sizes[:, level]) - graph_sizes[:, level]
    nodes = np.concatenate([m.nodes + o for m, o in zip(members, offsets, strict=True)])
    order = np.concatenate([c.ordering(level) + o for c, o in zip(chains, offsets, strict=True)])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))

    sizes = np.concatenate([np.diff(m.start) for m in members])
    end = np.cumsum(sizes)
    m = np.concatenate([chain.measures(level) for chain in chains])[nodes]
    below = np.concatenate([[0.0], np.cumsum(m)])  # whole numbers: differences are exact
    M = np.repeat(below[end], sizes) - below[:-1]
    rest = M - m  # M_{t+1}, zero at the last member
    other = np.sqrt(np.divide(m, M * rest, out=np.zeros_like(m), where=rest > 0))

    def tensor(array: NDArray[Any], dtype: type = np.int64) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype)).to(device)

    def column(array: NDArray[Any]) -> Tensor:
        # Not every device has float64.
        return tensor(array, np.float32 if device.type == "mps" else np.float64)[:, None]

    blocks = []
    for c0, c1 in _cuts(sizes, BLOCK_ROWS.get(device.type, BLOCK_ROWS_ELSEWHERE)):
        inside, first = sizes[c0:c1], int(end[c0] - sizes[c0])
        rows = slice(first, int(end[c1 - 1]))
        block = ClusterBlock(
            nodes=tensor(nodes[rows]),
            ranks=tensor(rank[nodes[rows]]),
            cluster=tensor(np.repeat(np.arange(c1 - c0), inside)),
            details=tensor(np.flatnonzero(rest[rows] > 0)),
            r=column(np.sqrt(m[rows])),
            own=column(np.sqrt(rest[rows] / (M[rows] * m[rows]))),
            others=column(other[rows]),
            norm=column(1 / np.sqrt(M[end[c0:c1] - inside])),
            pairings=tuple(Pairing(*map(tensor, pairing)) for pairing in _pairings(inside)),
            coarse_rows=slice(c0, c1),
            detail_rows=slice(first - c0, rows.stop - c1),
        )
        blocks.append(block)
    return tuple(blocks)


def _layout(graph_sizes: Ints, device: torch.device) -> CoefficientLayout:
    """The layout of a level whose graphs have `graph_sizes` (graphs, levels from it to the top)."""
    size, *_ = sizes = graph_sizes.T
    begin = np.cumsum(size) - size
    bounds = [np.zeros_like(size), np.ones_like(size), *sizes[::-1]]
    parts = [ranges(begin + start, stop - start) for start, stop in pairwise(bounds)]
    to_parts = np.concatenate(parts)
    both = (torch.from_numpy(index).to(device) for index in (to_parts, np.argsort(to_parts)))
    return CoefficientLayout(*both)


def _cuts(sizes: Ints, rows: int) -> list[tuple[int, int]]:
    """Ranges of clusters of about `rows` rows together; one cluster is never cut."""
    number = np.cumsum(sizes) // rows
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(sizes)]
    return list(pairwise(cuts))


def _pairings(sizes: Ints) -> Iterator[tuple[Ints, ...]]:
    """Rounds of pairing until every segment is one element (see `Pairing`)."""
    while sizes.max() > 1:
        pairs = (sizes + 1) // 2
        first = ranges(np.cumsum(sizes) - sizes, pairs, stride=2)
        lengths = np.full(len(first), 2)
        lengths[np.cumsum(pairs) - 1] -= sizes % 2  # the odd last one
        full = np.flatnonzero(lengths == 2)
        pair = np.repeat(np.arange(len(first)), lengths)
        yield first, pair, full, first[full], first[full] + 1
        sizes = pairs

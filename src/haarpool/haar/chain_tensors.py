"""A chain as a few flat tensors that batch by concatenation, for the layers of `haarpool.nn`.

The keys of a chain with levels 0..K are:

    haar_depth_K   (1,)      the number of levels, also in the name
    haar_growth    (10·(K+1), 1)  increments of the rows below in a batch
    haar_tree_j    (8, N_j)  the nodes of level j; `Tree` lists the rows
    haar_links_j   (2, E_j)  edges of the coarse graph of level j >= 1, without self-loops
    haar_weights_j (E_j,)    weights of these edges
    haar_basis_j   (2, nnz)  B_j, a basis as a sparse matrix; `Basis` lists the rows
    haar_values_j  (4, nnz)  values of the entries of B_j, float32; `Values` lists the rows
    haar_modes_j   (H, N_j)  for EigenPool, see `haarpool.chains.modes`

For j >= 1, B_j = Φ_{j-1}ᵀ maps a signal on level j-1 to coefficients of level j. B_0 is U_0ᵀ with
its coarse rows left empty, that is D_0ᵀ. Each matrix is stored row by row and column by column: a
product with its transpose, which a gradient needs, then gathers like the product itself, without
scattering. In a batch all keys are concatenated along the last dimension, and each row has its
increment. Collating a key takes longer than a row; therefore the weights of a tree are stored as
the bits of float64 among whole numbers. Only values are so large that a conversion would take long,
so they are stored in float32, as networks use them, with the difference to float64 in other rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import entry_rows, ranges
from haarpool.chains.chain import Chain
from haarpool.errors import HaarPoolError
from haarpool.haar.basis import detail_entries

MAX_NONZEROS = 50_000_000  # of all bases of one chain together: 1.6 GB
GROWTH = "haar_growth"
_KINDS = ("depth", "tree", "links", "weights", "basis", "values", "modes")


class Tree(IntEnum):
    """Rows of `haar_tree_j`, one number per node of level j."""

    PARENT = 0  # parent of each node; the parent of a node of level K is its graph
    MEMBER = 1  # nodes, cluster by cluster
    BATCH = 2  # graph of each node
    CHILD = (
        3  # first child of each node in MEMBER of level j-1; on level 0, start of column i of B_0
    )
    ROW = 4  # start of row i of B_j in its entries
    COLUMN = 5  # start of column i of B_{j+1} in its entries
    WEIGHT = 6  # P_j[v, parent of v], as bits
    MEMBER_WEIGHT = 7  # the same in the order of MEMBER


class Basis(IntEnum):
    """Rows of `haar_basis_j`, one number per entry."""

    COLUMN = 0  # columns of the entries, row by row
    ROW = 1  # rows of the entries, column by column


class Values(IntEnum):
    """Rows of `haar_values_j`, one number per entry."""

    BY_ROW = 0  # values row by row
    BY_COLUMN = 1  # values column by column
    REST = 2  # rows 2 and 3: differences of rows 0 and 1 to float64


_STRIDE = len(Tree) + len(Basis)


def floats(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """Return numbers that are stored as the bits of float64."""
    return bits.view(torch.float64).to(dtype)


def entries(values: Tensor, order: Values, dtype: torch.dtype) -> Tensor:
    """Return the values of a basis in one of its orders, exact to 2⁻⁴⁸ in float64."""
    if dtype == torch.float32:
        return values[order]
    return values[order].to(dtype) + values[order + Values.REST].to(dtype)


def increment(key: str, tensors: Mapping[str, Tensor]) -> Any:
    """Return what is added to the rows of `key` of the next graph in a batch."""
    rows = growing_rows(key)
    if rows is None:
        return 0
    growth = tensors[GROWTH][rows]
    return growth if growth.shape[-1] == 1 else growth.sum(-1, keepdim=True)  # a batch of batches


@cache  # collating calls it often
def growing_rows(key: str) -> slice | None:
    """Return the rows of `haar_growth` for a key, or `None` if it has no increments."""
    kind, level = _kind_and_level(key)
    start = level * _STRIDE
    if kind == "tree":
        return slice(start, start + len(Tree))
    if kind == "basis":
        return slice(start + len(Tree), start + _STRIDE)
    if kind == "links":
        return slice(start + Tree.MEMBER, start + Tree.MEMBER + 1)
    return None


def _growth(counts: list[Ints], nonzeros: list[Ints]) -> Ints:
    """Build `haar_growth` of G graphs: per level the increments of the tree, then of the basis.

    Args:
        counts: (G,) nodes of each graph, for levels 0..K+1.
        nonzeros: (G,) entries of B_j of each graph, for j = 0..K+1.

    Returns:
        (10·(K+1), G) increments.
    """
    rows: list[Ints] = []
    zero = np.zeros_like(counts[0])
    for j, (size, next_size) in enumerate(pairwise(counts)):
        previous, child = (counts[j - 1], counts[j - 1]) if j else (size, nonzeros[0])
        rows += [next_size, size, zero + 1, child, nonzeros[j], nonzeros[j + 1], zero, zero]
        rows += [previous, size]
    return np.stack(rows)


@cache
def is_chain_key(key: str) -> bool:
    """Whether a key belongs to the tensors of a chain."""
    return key == GROWTH or _kind_and_level(key)[0] in _KINDS


def _kind_and_level(key: str) -> tuple[str, int]:
    prefix, _, rest = key.partition("_")
    kind, _, level = rest.partition("_")
    return (kind, int(level)) if prefix == "haar" and level.isdecimal() else ("", -1)


TensorDict = dict[str, Tensor]


class JoinedTensors(NamedTuple):
    """The tensors of several graphs, concatenated without increments.

    Attributes:
        tensors: Tensors by key.
        lengths: By key, the number of entries of each graph.
    """

    tensors: dict[str, Tensor]
    lengths: dict[str, Ints]


def chain_tensors(
    chain: Chain, *, bases: bool, details: bool, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Build all tensors of a chain.

    Args:
        chain: A chain that knows its graph.
        bases: Include B_1, ..., B_K, for pooling in the Haar domain and the details of levels
            above 0.
        details: Include B_0, for the details of level 0. A cluster of k nodes has k²/2 entries.
        dtype: Data type of the edge weights.
    """
    top = np.zeros(chain.sizes[-1], np.int64)
    graph, *coarse = chain._graphs
    forest = Chain((*chain.parents, top), chain.order, chain.measure, graph)
    forest._keep_coarse_graphs(lambda: coarse)
    return joined_tensors(forest, bases=bases, details=details, dtype=dtype).tensors


def joined_tensors(
    forest: Chain, *, bases: bool, details: bool, dtype: torch.dtype
) -> JoinedTensors:
    """Build the tensors of many chains at once, which is much faster than one by one.

    Args:
        forest: The chains side by side as one chain, graph by graph on every level, with one more
            step: the nodes of its last level are the graphs.
        bases: See `chain_tensors`.
        details: See `chain_tensors`.
        dtype: See `chain_tensors`.
    """
    K, G = forest.num_levels - 1, forest.sizes[-1]
    levels = _level_nodes(forest)
    trees = _trees(forest, levels)
    nonzeros = [np.zeros(G, np.int64) for _ in range(K + 2)]
    matrices: dict[str, NDArray[Any]] = {}
    for j, entries in _bases(forest, levels, trees, details) if bases else ():
        nonzeros[j] = _add_basis(j, entries, levels, trees, matrices)
    depth, growth = np.full(G, K), _growth([level.num_nodes for level in levels], nonzeros)
    arrays: dict[str, NDArray[Any]] = {f"haar_depth_{K}": depth, GROWTH: growth}
    lengths = {key: np.ones(G, np.int64) for key in arrays}
    for j, tree in enumerate(trees):
        arrays[f"haar_tree_{j}"], lengths[f"haar_tree_{j}"] = tree, levels[j].num_nodes
    for j in range(1, K + 1):
        links, weights, num_links = _links(forest, j, levels[j])
        arrays |= {f"haar_links_{j}": links, f"haar_weights_{j}": weights}
        lengths |= {f"haar_links_{j}": num_links, f"haar_weights_{j}": num_links}
    for key in sorted(matrices, key=lambda key: _kind_and_level(key)[1]):
        arrays[key], lengths[key] = matrices[key], nonzeros[_kind_and_level(key)[1]]
    tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
    for j in range(1, K + 1):
        tensors[f"haar_weights_{j}"] = tensors[f"haar_weights_{j}"].to(dtype)
    return JoinedTensors(tensors, lengths)


class _LevelNodes(NamedTuple):
    """The nodes of a level of a forest, which are sorted graph by graph."""

    graph: Ints  # (N_j,) graph of each node
    num_nodes: Ints  # (G,) number of nodes of each graph
    start: Ints  # (G,) first node of each graph
    first: Ints  # (N_j,) first node of the same graph


def _level_nodes(forest: Chain) -> list[_LevelNodes]:
    graph, levels = np.arange(forest.sizes[-1]), list[_LevelNodes]()
    for parent in (None, *reversed(forest.parents)):
        graph = graph if parent is None else graph[parent]
        num_nodes = np.bincount(graph, minlength=forest.sizes[-1])
        start = _starts(num_nodes)
        levels.insert(0, _LevelNodes(graph, num_nodes, start, start[graph]))
    return levels


def _trees(forest: Chain, levels: list[_LevelNodes]) -> list[Ints]:
    """Build `haar_tree_j` for j = 0..K, without the rows that belong to bases."""
    trees = [np.zeros((len(Tree), size), np.int64) for size in forest.sizes[:-1]]
    for j, tree in enumerate(trees):
        parent, m = forest.parents[j], forest.measures(j)
        weight = np.sqrt(m / np.bincount(parent, m)[parent])
        member = np.argsort(parent, kind="stable")
        tree[Tree.PARENT] = parent - levels[j + 1].start[levels[j].graph]
        tree[Tree.MEMBER] = member - levels[j].first
        tree[Tree.WEIGHT], tree[Tree.MEMBER_WEIGHT] = _bits(weight), _bits(weight[member])
        if j + 1 < len(trees):
            first_child = _starts(np.bincount(parent))
            trees[j + 1][Tree.CHILD] = first_child - levels[j].start[levels[j + 1].graph]
    return trees


def _links(forest: Chain, j: int, level: _LevelNodes) -> tuple[Ints, Floats, Ints]:
    """Return links and weights of level j, and the number of links of each graph."""
    graph = forest.adjacency(j, self_loops=True)
    row, column = entry_rows(graph), graph.indices
    off_diagonal = row != column
    row, column = row[off_diagonal], column[off_diagonal]
    links = np.stack([row, column]) - level.first[row]
    num_links = np.bincount(level.graph[row], minlength=len(level.num_nodes))
    return links, graph.data[off_diagonal], num_links


class _MatrixEntries(NamedTuple):
    """Entries of a sparse matrix, column by column."""

    row: Ints
    column: Ints
    value: Floats


def _add_basis(
    j: int,
    entries: _MatrixEntries,
    levels: list[_LevelNodes],
    trees: list[Ints],
    matrices: dict[str, NDArray[Any]],
) -> Ints:
    """Add B_j to the matrices, and its starts to the trees; return its entries per graph, (G,)."""
    row, column, value = entries
    below = max(j - 1, 0)  # the level of the columns
    nonzeros = np.bincount(levels[below].graph[column], minlength=len(levels[j].num_nodes))
    by_row = np.argsort(row, kind="stable")
    columns = column - levels[below].first[column]
    matrices[f"haar_basis_{j}"] = np.stack([columns[by_row], row - levels[j].first[row]])
    values = np.stack([value[by_row], value])
    single = values.astype(np.float32)
    rest = (values - single).astype(np.float32)
    matrices[f"haar_values_{j}"] = np.concatenate([single, rest])
    first = _starts(nonzeros)
    row_starts = _starts(np.bincount(row, minlength=len(levels[j].graph)))
    trees[j][Tree.ROW] = row_starts - first[levels[j].graph]
    column_starts = _starts(np.bincount(column, minlength=len(levels[below].graph)))
    trees[below][Tree.COLUMN if j else Tree.CHILD] = column_starts - first[levels[below].graph]
    return nonzeros


def _bases(
    forest: Chain, levels: list[_LevelNodes], trees: list[Ints], details: bool
) -> Iterator[tuple[int, _MatrixEntries]]:
    """Yield (j, B_j) for j = K, ..., 1, and 0 with `details`, from U_j = [P_j U_{j+1}, D_j]."""
    K, G = forest.num_levels - 1, forest.sizes[-1]
    total = np.zeros(G, np.int64)  # entries of the matrices so far
    # U_j row by row: that of node v has its non-zeros at vector[start[v] : start[v] + count[v]],
    # with the same positions in `value`. The vectors of a graph are numbered like its nodes. On the
    # top level of the forest each graph is one node with one vector.
    start, vector = np.arange(G), np.arange(G)
    count, value = np.ones_like(start), np.ones(len(start))
    for j in range(K, -1, -1):
        parent, graph = forest.parents[j], levels[j].graph
        num_coarse = _sums(graph, count[parent], G)
        total += num_coarse if j < K else 0
        sizes = np.bincount(parent)
        num_details = _sums(levels[j + 1].graph, sizes * (sizes + 1) // 2 - 1, G)
        # Entries of U_j, which is next; B_j has at least as many. Of U_0 only details are needed.
        _check_nonzeros(levels, total + (num_coarse + num_details if j else num_details * details))
        of_parents = ranges(start[parent], count[parent])
        node, vector = np.repeat(np.arange(len(parent)), count[parent]), vector[of_parents]
        value = value[of_parents] * _floats(trees[j][Tree.WEIGHT])[node]
        if j < K:
            yield j + 1, _MatrixEntries(vector, node, value)
        if j == 0:
            break
        rows, columns, values = _details(forest, levels, j)
        vector += (levels[j].start - levels[j + 1].start)[graph[node]]
        node, vector = np.concatenate([node, rows]), np.concatenate([vector, columns])
        order = np.lexsort((vector, node))
        node, vector = node[order], vector[order]
        value = np.concatenate([value, values])[order]
        count = np.bincount(node)
        start = _starts(count)
    if details:
        rows, columns, values = _details(forest, levels, 0)
        order = np.lexsort((columns, rows))
        yield 0, _MatrixEntries(columns[order], rows[order], values[order])


def _details(forest: Chain, levels: list[_LevelNodes], level: int) -> tuple[Ints, Ints, Floats]:
    """Return rows, columns and values of D_j, its columns after the coarse ones of each graph."""
    rows, columns, values = detail_entries(forest, level)
    fine, coarse = levels[level], levels[level + 1]
    # The first entries are one per column; the columns of a graph are already in order.
    graph = fine.graph[rows[: columns.max(initial=-1) + 1]]
    number = np.empty_like(graph)
    number[np.argsort(graph, kind="stable")] = np.arange(len(graph))
    number += (fine.start + coarse.num_nodes - _starts(fine.num_nodes - coarse.num_nodes))[graph]
    return rows, number[columns], values


def _sums(graph: Ints, values: Ints, num_graphs: int) -> Ints:
    """Sum values per graph, shape (G,), exact below 2^53."""
    return np.bincount(graph, values, minlength=num_graphs).astype(np.int64)


def _check_nonzeros(levels: list[_LevelNodes], nonzeros: Ints) -> None:
    if nonzeros.max() > MAX_NONZEROS:
        graph = int(nonzeros.argmax())
        sizes = " -> ".join(str(level.num_nodes[graph]) for level in levels[:-1])
        raise HaarPoolError(
            f"bases with at most {MAX_NONZEROS:,} non-zeros in total",
            f"more than that for Chain({sizes}), whose clusters are large",
            "use num_levels=None, so that clusters are small; details=False, without the details "
            'of level 0; or domain="vertex", without bases',
        )


def _starts(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts


def _bits(values: Floats) -> Ints:
    return values.view(np.int64)


def _floats(bits: NDArray[Any]) -> Floats:
    return bits.view(np.float64)

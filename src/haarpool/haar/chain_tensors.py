"""A chain as a few flat tensors that batch by concatenation: what the layers of `haarpool.nn` read.

A chain with levels 0..K is, under these keys,

    haar_depth_K   (1,)      nothing but the number of levels, in its name
    haar_growth    (10·(K+1), 1)  by how much the rows below grow in a batch
    haar_tree_j    (8, N_j)  the nodes of level j; its rows are those of `Tree`
    haar_links_j   (2, E_j)  edges of the coarse graph of level j >= 1, without self-loops
    haar_weights_j (E_j,)    and their weights
    haar_basis_j   (2, nnz)  B_j, a basis as a sparse matrix; its rows are those of `Basis`
    haar_values_j  (4, nnz)  the values of its entries, float32; its rows are those of `Values`
    haar_modes_j   (H, N_j)  for EigenPool, see `haarpool.chains.modes`

Here B_j = Φ_{j-1}ᵀ, j >= 1, takes a signal on level j-1 to coefficients of level j, and B_0 is U_0ᵀ
with its coarse rows left empty, that is D_0ᵀ. Both directions of a matrix are kept: a product with
the transpose, which a gradient needs, gathers like the product itself, and nothing is scattered.
When graphs form a batch all keys are joined along the last dimension, each row with an increment of
its own. A key costs more to collate than a row; that is why the weights of a tree stand among whole
numbers, by their 64 bits. Values are the one thing large enough that a conversion would be felt, so
they are kept in float32, as networks want them, with what is missing to float64 beside.
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

MAX_NONZEROS = 50_000_000  # of all bases of one chain: 1.6 GB
GROWTH = "haar_growth"
_KINDS = ("depth", "tree", "links", "weights", "basis", "values", "modes")


class Tree(IntEnum):
    """Rows of `haar_tree_j`, one number per node of level j. P_j holds the cluster sums."""

    PARENT = 0  # of each node; the parent of a node of level K is its graph
    MEMBER = 1  # the nodes, cluster by cluster
    BATCH = 2  # the graph of each node
    CHILD = 3  # where its children begin among the members of level j-1; level 0: column i of B_0
    ROW = 4  # where row i of B_j begins among the entries
    COLUMN = 5  # where column i of B_{j+1} begins among the entries
    WEIGHT = 6  # P_j[v, parent of v], as bits
    MEMBER_WEIGHT = 7  # the same in the order of the members


class Basis(IntEnum):
    """Rows of `haar_basis_j`, one number per entry."""

    COLUMN = 0  # its column, row by row
    ROW = 1  # its row, column by column


class Values(IntEnum):
    """Rows of `haar_values_j`, one number per entry."""

    BY_ROW = 0  # row by row
    BY_COLUMN = 1  # column by column
    REST = 2  # after each of the two: what is missing to float64


_STRIDE = len(Tree) + len(Basis)


def floats(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers that were kept as bits."""
    return bits.view(torch.float64).to(dtype)


def entries(values: Tensor, order: Values, dtype: torch.dtype) -> Tensor:
    """The values of a basis in one of its orders, exact to 2⁻⁴⁸ in float64."""
    if dtype == torch.float32:
        return values[order]
    return values[order].to(dtype) + values[order + Values.REST].to(dtype)


# ---------------------------------------------------------------------- batches


def increment(key: str, tensors: Mapping[str, Tensor]) -> Any:
    """What the rows of `key` grow by for graphs that follow in a batch."""
    rows = growing_rows(key)
    if rows is None:
        return 0
    growth = tensors[GROWTH][rows]
    return growth if growth.shape[-1] == 1 else growth.sum(-1, keepdim=True)  # itself a batch


@cache  # collating asks for these names again and again
def growing_rows(key: str) -> slice | None:
    """The rows of `haar_growth` that speak of a key; None if it does not grow."""
    kind, level = _parts(key)
    start = level * _STRIDE
    if kind == "tree":
        return slice(start, start + len(Tree))
    if kind == "basis":
        return slice(start + len(Tree), start + _STRIDE)
    if kind == "links":
        return slice(start + Tree.MEMBER, start + Tree.MEMBER + 1)
    return None


def _growth(counts: list[Ints], nonzeros: list[Ints]) -> Ints:
    """(10·(K+1), G) for each level the increments of its tree, then those of its basis."""
    rows: list[Ints] = []
    zero = np.zeros_like(counts[0])
    for j, (size, above) in enumerate(pairwise(counts)):
        below, child = (counts[j - 1], counts[j - 1]) if j else (size, nonzeros[0])
        rows += [above, size, zero + 1, child, nonzeros[j], nonzeros[j + 1], zero, zero]
        rows += [below, size]
    return np.stack(rows)


@cache
def is_chain_key(key: str) -> bool:
    """Whether a key is one of ours."""
    return key == GROWTH or _parts(key)[0] in _KINDS


def _parts(key: str) -> tuple[str, int]:
    prefix, _, rest = key.partition("_")
    kind, _, level = rest.partition("_")
    return (kind, int(level)) if prefix == "haar" and level.isdecimal() else ("", -1)


# ---------------------------------------------------------------------- making them


class JoinedTensors(NamedTuple):
    """The tensors of several graphs one after the other, each as if it were alone."""

    tensors: dict[str, Tensor]
    lengths: dict[str, Ints]  # by key: how many entries each graph has


def chain_tensors(
    chain: Chain, *, bases: bool, details: bool, dtype: torch.dtype
) -> dict[str, Tensor]:
    """All tensors of a chain that knows its graph.

    Args:
        chain: the chain.
        bases: B_1, ..., B_K, for pooling in the Haar domain and the details of levels above 0.
        details: B_0, for the details of level 0. A cluster of k nodes has k²/2 entries.
        dtype: of the edge weights.
    """
    top = np.zeros(chain.sizes[-1], np.int64)
    graph, *coarse = chain._graphs
    forest = Chain((*chain.parents, top), chain.order, chain.measure, graph)
    forest._keep_coarse_graphs(lambda: coarse)
    return joined_tensors(forest, bases=bases, details=details, dtype=dtype).tensors


def joined_tensors(
    forest: Chain, *, bases: bool, details: bool, dtype: torch.dtype
) -> JoinedTensors:
    """The tensors of many chains at once, which takes hardly longer than those of one.

    Args:
        forest: the chains side by side as one chain, graph by graph on every level, with one step
            more: the nodes of its last level are the graphs.
        bases, details, dtype: as in `chain_tensors`.
    """
    K, G = forest.num_levels - 1, forest.sizes[-1]
    parents, place = forest.parents, _places(forest)
    trees = [np.zeros((len(Tree), size), np.int64) for size in forest.sizes[:-1]]
    for j, tree in enumerate(trees):
        m = forest.measures(j)
        weight = np.sqrt(m / np.bincount(parents[j], m)[parents[j]])
        member = np.argsort(parents[j], kind="stable")
        tree[Tree.PARENT] = parents[j] - place[j + 1].start[place[j].owner]
        tree[Tree.MEMBER] = member - place[j].before
        tree[Tree.WEIGHT], tree[Tree.MEMBER_WEIGHT] = _bits(weight), _bits(weight[member])
        if j < K:
            children = _starts(np.bincount(parents[j]))
            trees[j + 1][Tree.CHILD] = children - place[j].start[place[j + 1].owner]
    found: dict[str, NDArray[Any]] = {f"haar_depth_{K}": np.full(G, K)}
    lengths = {f"haar_depth_{K}": np.ones(G, np.int64), GROWTH: np.ones(G, np.int64)}
    nonzeros = [np.zeros(G, np.int64) for _ in range(K + 2)]
    matrices: dict[str, NDArray[Any]] = {}
    for j, (row, column, value) in _bases(forest, place, trees, details) if bases else ():
        below = max(j - 1, 0)
        nonzeros[j] = np.bincount(place[below].owner[column], minlength=G)
        first = _starts(nonzeros[j])
        by_row = np.argsort(row, kind="stable")  # they come column by column
        columns = column - place[below].before[column]
        matrices[f"haar_basis_{j}"] = np.stack([columns[by_row], row - place[j].before[row]])
        both = np.stack([value[by_row], value])
        single = both.astype(np.float32)
        rest = (both - single).astype(np.float32)
        matrices[f"haar_values_{j}"] = np.concatenate([single, rest])
        rows = _starts(np.bincount(row, minlength=forest.sizes[j]))
        trees[j][Tree.ROW] = rows - first[place[j].owner]
        begins = _starts(np.bincount(column, minlength=forest.sizes[below]))
        target = trees[below][Tree.COLUMN if j else Tree.CHILD]
        target[:] = begins - first[place[below].owner]
    found[GROWTH] = _growth([own.nodes for own in place], nonzeros)
    for j, tree in enumerate(trees):
        found[f"haar_tree_{j}"], lengths[f"haar_tree_{j}"] = tree, place[j].nodes
    for j in range(1, K + 1):
        graph = forest.adjacency(j, self_loops=True)
        row, column = entry_rows(graph), graph.indices
        off = row != column
        before = place[j].before[row[off]]
        found[f"haar_links_{j}"] = np.stack([row[off], column[off]]) - before
        found[f"haar_weights_{j}"] = graph.data[off]
        number = np.bincount(place[j].owner[row[off]], minlength=G)
        lengths |= {f"haar_links_{j}": number, f"haar_weights_{j}": number}
    for key in sorted(matrices, key=lambda key: _parts(key)[1]):
        found[key], lengths[key] = matrices[key], nonzeros[_parts(key)[1]]
    tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in found.items()}
    for j in range(1, K + 1):
        tensors[f"haar_weights_{j}"] = tensors[f"haar_weights_{j}"].to(dtype)
    return JoinedTensors(tensors, lengths)


class _LevelNodes(NamedTuple):
    """Where the nodes of a level lie, graph by graph."""

    owner: Ints  # (N_j,) the graph of each node
    nodes: Ints  # (G,) how many each graph has
    start: Ints  # (G,) the first of them
    before: Ints  # (N_j,) the first node of the same graph


def _places(forest: Chain) -> list[_LevelNodes]:
    owner, places = np.arange(forest.sizes[-1]), list[_LevelNodes]()
    for parent in (None, *reversed(forest.parents)):
        owner = owner if parent is None else owner[parent]
        count = np.bincount(owner, minlength=forest.sizes[-1])
        start = _starts(count)
        places.insert(0, _LevelNodes(owner, count, start, start[owner]))
    return places


class _MatrixEntries(NamedTuple):
    row: Ints
    column: Ints
    value: Floats


def _bases(
    forest: Chain, place: list[_LevelNodes], trees: list[Ints], details: bool
) -> Iterator[tuple[int, _MatrixEntries]]:
    """(j, B_j) for j = K, ..., 1 or 0, entries column by column, from U_j = [P_j U_{j+1}, D_j]."""
    K = forest.num_levels - 1
    total = np.zeros(forest.sizes[-1], np.int64)
    # U_j as rows: those of node v are vector[start[v] : start[v] + count[v]], and so on. The
    # vectors of a graph are numbered like its nodes. On top a graph is one node with one vector.
    start, vector = np.arange(forest.sizes[-1]), np.arange(forest.sizes[-1])
    count, value = np.ones_like(start), np.ones(len(start))
    for j in range(K, -1, -1):
        parent, owner = forest.parents[j], place[j].owner
        extended = _sums(owner, count[parent], total)
        total += extended if j < K else 0
        sizes = np.bincount(parent)
        own = _sums(place[j + 1].owner, sizes * (sizes + 1) // 2 - 1, total)
        # U_j comes next, and B_j will be no smaller; of U_0 only the details, if at all.
        _refuse_dense(place, total + (extended + own if j else own * details))
        take = ranges(start[parent], count[parent])
        node, vector = np.repeat(np.arange(len(parent)), count[parent]), vector[take]
        value = value[take] * _floats(trees[j][Tree.WEIGHT])[node]
        if j < K:
            yield j + 1, _MatrixEntries(vector, node, value)
        if j == 0:
            break
        rows, columns, entries = _details(forest, place, j)
        vector += (place[j].start - place[j + 1].start)[owner[node]]
        node, vector = np.concatenate([node, rows]), np.concatenate([vector, columns])
        order = np.lexsort((vector, node))
        node, vector = node[order], vector[order]
        value = np.concatenate([value, entries])[order]
        count = np.bincount(node)
        start = _starts(count)
    if details:
        rows, columns, entries = _details(forest, place, 0)
        order = np.lexsort((columns, rows))
        yield 0, _MatrixEntries(columns[order], rows[order], entries[order])


def _details(forest: Chain, place: list[_LevelNodes], level: int) -> tuple[Ints, Ints, Floats]:
    """The entries of D_j; its columns follow the coarse vectors of the same graph."""
    rows, columns, entries = detail_entries(forest, level)
    here, above = place[level], place[level + 1]
    # The first entries are one per column. Among the clusters of a graph their order is right.
    owner = here.owner[rows[: columns.max(initial=-1) + 1]]
    number = np.empty_like(owner)
    number[np.argsort(owner, kind="stable")] = np.arange(len(owner))
    number += (here.start + above.nodes - _starts(here.nodes - above.nodes))[owner]
    return rows, number[columns], entries


def _sums(owner: Ints, values: Ints, like: Ints) -> Ints:
    """(G,) values of each graph together, exact below 2^53."""
    return np.bincount(owner, values, minlength=len(like)).astype(np.int64)


def _refuse_dense(place: list[_LevelNodes], nonzeros: Ints) -> None:
    if nonzeros.max() > MAX_NONZEROS:
        graph = int(nonzeros.argmax())
        sizes = " -> ".join(str(level.nodes[graph]) for level in place[:-1])
        raise HaarPoolError(
            f"bases of at most {MAX_NONZEROS:,} non-zeros together",
            f"more than that for Chain({sizes}), whose clusters are large",
            "build the chain with num_levels=None, whose clusters stay small; with details=False, "
            'which leaves the details of level 0 out; or with domain="vertex", without bases',
        )


def _starts(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts


def _bits(values: Floats) -> Ints:
    return values.view(np.int64)


def _floats(bits: NDArray[Any]) -> Floats:
    return bits.view(np.float64)

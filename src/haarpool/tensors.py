"""A chain as a few flat tensors that batch by concatenation: what the layers of `haarpool.nn` read.

A chain with levels 0..K is, under these keys,

    haar_depth_K   (1,)      nothing but the number of levels, in its name
    haar_growth    (10·(K+1), 1)  by how much the rows below grow in a batch
    haar_tree_j    (8, N_j)  the nodes of level j; its rows are those of `Tree`
    haar_links_j   (2, E_j)  edges of the coarse graph of level j >= 1, without self-loops
    haar_weights_j (E_j,)    and their weights
    haar_basis_j   (2, nnz)  B_j, a basis as a sparse matrix; its rows are those of `Basis`
    haar_values_j  (4, nnz)  the values of its entries, float32; its rows are those of `Values`
    haar_modes_j   (H, N_j)  for EigenPool, see `haarpool.modes`

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
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool.basis import detail_entries
from haarpool.chain import Chain, Floats, Ints
from haarpool.errors import HaarPoolError
from haarpool.graph import entry_rows, ranges

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


def _growth(sizes: tuple[int, ...], nonzeros: list[int]) -> Tensor:
    """(10·(K+1), 1) for each level the increments of its tree, then those of its basis."""
    nonzeros, above = [*nonzeros, 0], [*sizes[1:], 1]
    rows = list[int]()
    for j, size in enumerate(sizes):
        below, child = (sizes[j - 1], sizes[j - 1]) if j else (size, nonzeros[0])
        rows += [above[j], size, 1, child, nonzeros[j], nonzeros[j + 1], 0, 0]
        rows += [below, size]
    return torch.tensor(rows)[:, None]


@cache
def is_chain_key(key: str) -> bool:
    """Whether a key is one of ours."""
    return key == GROWTH or _parts(key)[0] in _KINDS


def _parts(key: str) -> tuple[str, int]:
    prefix, _, rest = key.partition("_")
    kind, _, level = rest.partition("_")
    return (kind, int(level)) if prefix == "haar" and level.isdecimal() else ("", -1)


# ---------------------------------------------------------------------- making them


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
    K, sizes = chain.num_levels, chain.sizes
    trees = [np.zeros((len(Tree), size), np.int64) for size in sizes]
    tensors = {f"haar_depth_{K}": torch.tensor([K])}
    for j, tree in enumerate(trees):
        parent = chain.parents[j] if j < K else np.zeros(sizes[K], np.int64)
        m = chain.measures(j)
        weight = np.sqrt(m / np.bincount(parent, m)[parent])
        member = np.argsort(parent, kind="stable")
        tree[Tree.PARENT], tree[Tree.MEMBER] = parent, member
        tree[Tree.WEIGHT], tree[Tree.MEMBER_WEIGHT] = _bits(weight), _bits(weight[member])
        if j < K:
            trees[j + 1][Tree.CHILD] = _starts(np.bincount(parent))
    basis: dict[int, Ints] = {}
    values: dict[int, NDArray[np.float32]] = {}
    if bases:
        weights = [_floats(tree[Tree.WEIGHT]) for tree in trees]
        for j, (row, column, value) in _bases(chain, weights, details):
            by_row = np.argsort(row, kind="stable")  # they come column by column
            basis[j] = np.stack([column[by_row], row])
            both = np.stack([value[by_row], value])
            single = both.astype(np.float32)
            values[j] = np.concatenate([single, (both - single).astype(np.float32)])
            trees[j][Tree.ROW] = _starts(np.bincount(row, minlength=sizes[j]))
            columns = trees[j - 1][Tree.COLUMN] if j else trees[0][Tree.CHILD]
            columns[:] = _starts(np.bincount(column, minlength=len(columns)))
    nonzeros = [basis[j].shape[1] if j in basis else 0 for j in range(K + 1)]
    tensors[GROWTH] = _growth(sizes, nonzeros)
    for j, tree in enumerate(trees):
        tensors[f"haar_tree_{j}"] = torch.from_numpy(tree)
    for j in range(1, K + 1):
        graph = chain.adjacency(j, self_loops=True)
        row, column = entry_rows(graph), graph.indices
        off = row != column
        tensors[f"haar_links_{j}"] = torch.from_numpy(np.stack([row[off], column[off]]))
        tensors[f"haar_weights_{j}"] = torch.from_numpy(graph.data[off]).to(dtype)
    for j in sorted(basis):
        tensors[f"haar_basis_{j}"] = torch.from_numpy(basis[j])
        tensors[f"haar_values_{j}"] = torch.from_numpy(values[j])
    return tensors


class _Entries(NamedTuple):
    row: Ints
    column: Ints
    value: Floats


def _bases(chain: Chain, weights: list[Floats], details: bool) -> Iterator[tuple[int, _Entries]]:
    """(j, B_j) for j = K, ..., 1 or 0, entries column by column, from U_j = [P_j U_{j+1}, D_j]."""
    K, total = chain.num_levels, 0
    # U_j as rows: those of node v are vector[start[v] : start[v] + count[v]], and so on.
    start, count = np.zeros(1, np.int64), np.ones(1, np.int64)
    vector, value = np.zeros(1, np.int64), np.ones(1)
    for j in range(K, -1, -1):
        parent = chain.parents[j] if j < K else np.zeros(chain.sizes[K], np.int64)
        nodes = np.arange(chain.sizes[j])
        extended = int(count[parent].sum())
        total += extended if j < K else 0
        sizes = np.bincount(parent)
        own = int((sizes * (sizes + 1) // 2 - 1).sum())
        # U_j comes next, and B_j will be no smaller; of U_0 only the details, if at all.
        _refuse_dense(chain, total + (extended + own if j else own * details))
        take = ranges(start[parent], count[parent])
        node, vector = np.repeat(nodes, count[parent]), vector[take]
        value = value[take] * weights[j][node]
        if j < K:
            yield j + 1, _Entries(vector, node, value)
        if j == 0:
            break
        rows, columns, entries = detail_entries(chain, j)
        coarse = chain.sizes[j + 1] if j < K else 1
        node, vector = np.concatenate([node, rows]), np.concatenate([vector, columns + coarse])
        order = np.lexsort((vector, node))
        node, vector = node[order], vector[order]
        value = np.concatenate([value, entries])[order]
        count = np.bincount(node)
        start = _starts(count)
    if details:
        rows, columns, entries = detail_entries(chain, 0)
        order = np.lexsort((columns, rows))
        yield 0, _Entries(columns[order] + chain.sizes[1], rows[order], entries[order])


def _refuse_dense(chain: Chain, nonzeros: int) -> None:
    if nonzeros > MAX_NONZEROS:
        raise HaarPoolError(
            f"bases of at most {MAX_NONZEROS:,} non-zeros together",
            f"more than that for {chain!r}, whose clusters are large",
            "build the chain with num_levels=None, whose clusters stay small; with details=False, "
            'which leaves the details of level 0 out; or with domain="vertex", without bases',
        )


def _starts(counts: Ints) -> Ints:
    return np.cumsum(counts) - counts


def _bits(values: Floats) -> Ints:
    return values.view(np.int64)


def _floats(bits: NDArray[Any]) -> Floats:
    return bits.view(np.float64)

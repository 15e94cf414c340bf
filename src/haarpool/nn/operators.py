"""The linear maps of the layers, on the tensors of one chain or of a batch of chains.

    pool, unpool           P_jᵀ x: weighted sums over clusters, level j -> j+1; P_j z
    compress, expand       Φ_jᵀ x: coefficients of level j+1; Φ_j z
    details, restore       D_jᵀ x: coefficients that compression drops; D_j d
    sum_members            sums over clusters without weights
    sum_graphs, spread_graphs   sums over graphs; for each node the row of its graph

All maps gather and add (`embedding_bag` is a product with a sparse matrix). So the order of
additions is fixed, nothing is read back from the device, and a compiler sees only shapes. The
backward pass of each map is its transpose, which can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag
from torch_geometric.data import Data

from haarpool.data import ChainData
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import GROWTH, Basis, Tree, Values, entries, floats

Tensors = Mapping[str, Tensor]  # a ChainData, a batch of them, or a dict of their tensors


def pool(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Compute P_jᵀ x: (N_j, d) -> (N_{j+1}, d)."""
    coarse_tree, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(x, tree.shape[-1], "pool", tree, coarse_tree)


def unpool(z: Tensor, data: Tensors, level: int) -> Tensor:
    """Compute P_j z: (N_{j+1}, d) -> (N_j, d)."""
    coarse_tree, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(z, coarse_tree.shape[-1], "unpool", tree, coarse_tree)


def compress(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Compute Φ_jᵀ x: (N_j, d) -> (N_{j+1}, d)."""
    coarse_tree, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(x, tree.shape[-1], "compress", tree, coarse_tree, *_basis(data, level + 1))


def expand(z: Tensor, data: Tensors, level: int) -> Tensor:
    """Compute Φ_j z: (N_{j+1}, d) -> (N_j, d)."""
    coarse_tree, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(z, coarse_tree.shape[-1], "expand", tree, coarse_tree, *_basis(data, level + 1))


def details(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Compute D_jᵀ x: (N_j, d) -> (N_j - N_{j+1}, d)."""
    coarse_tree, tree = tree_of(data, level + 1), tree_of(data, level)
    if level:
        c = compress(unpool(x, data, level - 1), data, level - 1)  # U_jᵀ = Φ_{j-1}ᵀ P_{j-1}
    else:
        c = _linear(x, tree.shape[-1], "details", tree, *_basis(data, 0))
    coarse_first = _linear(c, tree.shape[-1], "sort_coarse_first", _coarse_first(data, level))
    return coarse_first[coarse_tree.shape[-1] :]


def restore(d: Tensor, data: Tensors, level: int) -> Tensor:
    """Compute D_j d: (N_j - N_{j+1}, d) -> (N_j, d)."""
    coarse_tree, tree = tree_of(data, level + 1), tree_of(data, level)
    coarse_first = torch.cat([d.new_zeros(coarse_tree.shape[-1], d.shape[-1]), d])
    c = _linear(coarse_first, tree.shape[-1], "sort_by_graph", _coarse_first(data, level))
    if level:
        return pool(expand(c, data, level - 1), data, level - 1)
    return _linear(c, tree.shape[-1], "restore", tree, *_basis(data, 0))


def sum_members(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Sum over the nodes of each cluster: (N_j, d) -> (N_{j+1}, d)."""
    coarse_tree, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(x, tree.shape[-1], "sum_members", tree, coarse_tree)


def sum_graphs(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Sum over the nodes of each graph: (N_j, d) -> (B, d)."""
    batch, starts, _ = graph_bounds(data, level)
    return _linear(x, batch.shape[0], "sum_graphs", batch, starts)


def spread_graphs(z: Tensor, data: Tensors, level: int) -> Tensor:
    """Return for each node the row of its graph: (B, d) -> (N_j, d)."""
    batch, starts, _ = graph_bounds(data, level)
    return _linear(z, starts.shape[0], "spread_graphs", batch, starts)


def _coarse_first(data: Tensors, level: int) -> Tensor:
    """Return the position of each coefficient if all coarse ones come before all details.

    The coefficients of a level are sorted graph by graph: those of the first graph, coarse ones
    before details, then those of the second graph.

    Returns:
        (N_j,) positions.
    """
    batch, starts, _ = graph_bounds(data, level)
    coarse_batch, coarse_starts, coarse_ends = graph_bounds(data, level + 1)
    row = torch.arange(batch.shape[0], device=batch.device)
    row_in_graph = row - starts[batch]
    num_coarse = coarse_ends[batch] - coarse_starts[batch]  # in the graph of each row
    # A coarse row comes after the coarse rows of previous graphs. A detail comes after all coarse
    # rows; its row number counts the coarse rows of its graph and of previous graphs too.
    return torch.where(
        row_in_graph < num_coarse,
        coarse_starts[batch] + row_in_graph,
        coarse_batch.shape[0] + row - coarse_ends[batch],
    )


# ---------------------------------------------------------------------- reading the data


def tensors_of(data: Any) -> Tensors:
    """Return the tensors of a `ChainData`, a batch or a dict; anything else is an error."""
    if isinstance(data, ChainData):
        return data.tensors
    if not isinstance(data, dict | Data):
        raise HaarPoolError(
            "data: a ChainData, a batch of them, or a dict of their tensors",
            type(data).__name__,
            "pass the batch of the DataLoader",
        )
    return data


def tree_of(data: Tensors, level: int) -> Tensor:
    """Return `haar_tree_j` of the data, or raise an error about the missing chain or level."""
    try:
        return data[f"haar_tree_{level}"]
    except KeyError:
        raise _missing_level(data, level) from None


def num_graphs(data: Tensors) -> int:
    """Return the number of graphs, from a shape: nothing is read back from the device."""
    tree_of(data, 0)
    if GROWTH not in data:
        raise HaarPoolError(f"data with {GROWTH}", f"no {GROWTH}", "do not exclude this key")
    return data[GROWTH].shape[-1]


def graph_bounds(data: Tensors, level: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the graph of each node of a level, and where each graph starts and ends.

    Returns:
        (N_j,) graph of each node, (B,) first node of each graph, (B,) last node + 1.
    """
    batch = tree_of(data, level)[Tree.BATCH]
    graphs = torch.arange(num_graphs(data), device=batch.device)
    # Nodes are sorted graph by graph.
    starts, ends = (torch.searchsorted(batch, graphs, right=right) for right in (False, True))
    return batch, starts, ends


def _basis(data: Tensors, level: int) -> tuple[Tensor, Tensor]:
    """Return the positions and the values of the entries of B_j."""
    keys = f"haar_basis_{level}", f"haar_values_{level}"
    try:
        return data[keys[0]], data[keys[1]]
    except KeyError:
        raise HaarPoolError(
            "data with the bases of its chains",
            f"no {keys[1] if keys[0] in data else keys[0]}",
            'use AddHaarChain with domain="haar", or details=True for details="full"; '
            'or pool with domain="vertex" and without details',
        ) from None


def coarse_graph(data: Tensors, level: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return edges, edge weights and the batch vector of a level j >= 1."""
    tree = tree_of(data, level)
    try:
        links, weights = data[f"haar_links_{level}"], data[f"haar_weights_{level}"]
    except KeyError as error:
        raise HaarPoolError(
            f"data with the graph of level {level}", f"no {error}", "do not exclude this key"
        ) from None
    return links, weights, tree[Tree.BATCH]


def _missing_level(data: Tensors, level: int) -> HaarPoolError:
    top = max((j for j in range(level) if f"haar_tree_{j}" in data), default=None)
    if top is None:
        return HaarPoolError(
            "data with a chain",
            "data without one",
            "add AddHaarChain(num_levels=...) to the transforms of the dataset",
        )
    return HaarPoolError(
        f"data with a chain of at least {level} levels",
        f"one of {top}",
        f"use AddHaarChain(num_levels={level}), or a level below {top} in the layer",
    )


def check_signal(x: Tensor | None, rows: int) -> None:
    """Raise an error unless x is a real signal of shape (rows, d)."""
    if x is None:
        raise missing_features()
    if x.ndim != 2 or x.shape[0] != rows:
        raise HaarPoolError(
            f"a signal of shape ({rows}, d), one row per node of the level in all graphs",
            f"shape {tuple(x.shape)}",
            "check the level of the layer, and that x and data belong to the same batch",
        )
    if not x.is_floating_point():
        raise HaarPoolError("real features", f"dtype {x.dtype}", "convert them with x.float()")


def missing_features() -> HaarPoolError:
    """Return the error for data whose x is `None`."""
    return HaarPoolError(
        "node features x",
        "none",
        "add T.OneHotDegree(max_degree) or T.Constant() of torch_geometric.transforms, "
        "before AddHaarChain",
    )


# ---------------------------------------------------------------------- computing


def widened(x: Tensor) -> Tensor:
    """Return x in the type in which sums are computed: float32 for bfloat16 and float16."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _linear(x: Tensor, rows: int, name: str, *tensors: Tensor) -> Tensor:
    """Apply one of `_MAPS` to a signal with this number of rows."""
    check_signal(x, rows)
    if x.dtype in (torch.bfloat16, torch.float16):
        return _linear(x.float(), rows, name, *tensors).to(x.dtype)
    result: Tensor = _Linear.apply(x, name, tensors)  # type: ignore[no-untyped-call]
    return result


class _Linear(torch.autograd.Function):
    """One of `_MAPS`; its backward pass is the transpose."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str, tensors: tuple[Tensor, ...]) -> Tensor:
        # The tensors of the data are never changed, so they need no save_for_backward, which takes
        # a fifth of the time on small batches. With an input that requires a gradient embedding_bag
        # prepares its own backward pass, which is not needed, hence detach. embedding_bag is slow
        # on expanded tensors, such as the gradient of a sum, hence contiguous.
        ctx.name, ctx.tensors = name, tensors
        return _MAPS[name][0](x.detach().contiguous(), *tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        transpose = _MAPS[ctx.name][1]
        if torch.compiler.is_compiling():  # compiled code has no second derivatives
            result = _MAPS[transpose][0](grad.contiguous(), *ctx.tensors)
        else:
            result = _Linear.apply(grad, transpose, ctx.tensors)  # type: ignore[no-untyped-call]
        return result, None, None


def _pool(x: Tensor, tree: Tensor, coarse_tree: Tensor) -> Tensor:
    weights = floats(tree[Tree.MEMBER_WEIGHT], x.dtype)
    return _sum_ranges(x, tree[Tree.MEMBER], coarse_tree[Tree.CHILD], weights)


def _unpool(z: Tensor, tree: Tensor, coarse_tree: Tensor) -> Tensor:
    weights = floats(tree[Tree.WEIGHT], z.dtype)
    return z.index_select(0, tree[Tree.PARENT]) * weights[:, None]


def _compress(
    x: Tensor, tree: Tensor, coarse_tree: Tensor, basis: Tensor, values: Tensor
) -> Tensor:
    weights = entries(values, Values.BY_ROW, x.dtype)
    return _sum_ranges(x, basis[Basis.COLUMN], coarse_tree[Tree.ROW], weights)


def _expand(z: Tensor, tree: Tensor, coarse_tree: Tensor, basis: Tensor, values: Tensor) -> Tensor:
    weights = entries(values, Values.BY_COLUMN, z.dtype)
    return _sum_ranges(z, basis[Basis.ROW], tree[Tree.COLUMN], weights)


def _details(x: Tensor, tree: Tensor, basis: Tensor, values: Tensor) -> Tensor:
    weights = entries(values, Values.BY_ROW, x.dtype)
    return _sum_ranges(x, basis[Basis.COLUMN], tree[Tree.ROW], weights)


def _restore(c: Tensor, tree: Tensor, basis: Tensor, values: Tensor) -> Tensor:
    weights = entries(values, Values.BY_COLUMN, c.dtype)
    return _sum_ranges(c, basis[Basis.ROW], tree[Tree.CHILD], weights)


def _sum_members(x: Tensor, tree: Tensor, coarse_tree: Tensor) -> Tensor:
    return _sum_ranges(x, tree[Tree.MEMBER], coarse_tree[Tree.CHILD])


def _spread_members(z: Tensor, tree: Tensor, coarse_tree: Tensor) -> Tensor:
    return z.index_select(0, tree[Tree.PARENT])


def _sum_graphs(x: Tensor, batch: Tensor, starts: Tensor) -> Tensor:
    return _sum_ranges(x, torch.arange(x.shape[0], device=x.device), starts)


def _spread_graphs(z: Tensor, batch: Tensor, starts: Tensor) -> Tensor:
    return z.index_select(0, batch)


def _sort_coarse_first(c: Tensor, position: Tensor) -> Tensor:
    return c.index_select(0, position.argsort())


def _sort_by_graph(c: Tensor, position: Tensor) -> Tensor:
    return c.index_select(0, position)


def _sum_ranges(x: Tensor, index: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sum the rows index[starts[i] : starts[i + 1]] of x, times their weights, for each i."""
    if x.shape[1] == 0:  # embedding_bag of torch 2.11 raises an error
        return x.new_empty(starts.shape[0], 0)
    return embedding_bag(index, x, starts, mode="sum", per_sample_weights=weights)


# name: (function, name of the transpose)
_MAPS: dict[str, tuple[Callable[..., Tensor], str]] = {
    "pool": (_pool, "unpool"),
    "unpool": (_unpool, "pool"),
    "compress": (_compress, "expand"),
    "expand": (_expand, "compress"),
    "details": (_details, "restore"),
    "restore": (_restore, "details"),
    "sum_members": (_sum_members, "spread_members"),
    "spread_members": (_spread_members, "sum_members"),
    "sum_graphs": (_sum_graphs, "spread_graphs"),
    "spread_graphs": (_spread_graphs, "sum_graphs"),
    "sort_coarse_first": (_sort_coarse_first, "sort_by_graph"),
    "sort_by_graph": (_sort_by_graph, "sort_coarse_first"),
}

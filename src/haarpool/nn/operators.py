"""The linear maps behind the layers, over the tensors of one chain or of a batch of them.

    pool, unpool           P_jᵀ x: sums over clusters, level j -> j+1; P_j z
    compress, expand       Φ_jᵀ x: coefficients of level j+1; Φ_j z
    details, restore       D_jᵀ x: the coefficients that compression drops; D_j d
    sum_members            sums over clusters without weights
    sum_graphs, spread_graphs   sums over graphs; the row of its graph for each node

All of them gather and add (`embedding_bag` is a product with a sparse matrix), so the order of
additions is fixed, nothing is read back from the device, and a compiler sees shapes alone. The
backward of each map is its transpose, which can be differentiated again.
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

Tensors = Mapping[str, Tensor]  # a ChainData, a Batch of them, or a dict of their tensors


def pool(x: Tensor, data: Tensors, level: int) -> Tensor:
    """P_jᵀ x: (N_j, d) -> (N_{j+1}, d)."""
    above, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(x, tree.shape[-1], "pool", tree, above)


def unpool(z: Tensor, data: Tensors, level: int) -> Tensor:
    """P_j z: (N_{j+1}, d) -> (N_j, d)."""
    above, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(z, above.shape[-1], "unpool", tree, above)


def compress(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Φ_jᵀ x: (N_j, d) -> (N_{j+1}, d)."""
    above, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(x, tree.shape[-1], "compress", tree, above, *_basis(data, level + 1))


def expand(z: Tensor, data: Tensors, level: int) -> Tensor:
    """Φ_j z: (N_{j+1}, d) -> (N_j, d)."""
    above, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(z, above.shape[-1], "expand", tree, above, *_basis(data, level + 1))


def details(x: Tensor, data: Tensors, level: int) -> Tensor:
    """D_jᵀ x: (N_j, d) -> (N_j - N_{j+1}, d)."""
    above, tree = tree_of(data, level + 1), tree_of(data, level)
    if level:
        c = compress(unpool(x, data, level - 1), data, level - 1)  # U_jᵀ = Φ_{j-1}ᵀ P_{j-1}
    else:
        c = _linear(x, tree.shape[-1], "details", tree, *_basis(data, 0))
    parts = _linear(c, tree.shape[-1], "cut", _places(data, level))
    return parts[above.shape[-1] :]


def restore(d: Tensor, data: Tensors, level: int) -> Tensor:
    """D_j d: (N_j - N_{j+1}, d) -> (N_j, d)."""
    above, tree = tree_of(data, level + 1), tree_of(data, level)
    parts = torch.cat([d.new_zeros(above.shape[-1], d.shape[-1]), d])
    c = _linear(parts, tree.shape[-1], "paste", _places(data, level))
    if level:
        return pool(expand(c, data, level - 1), data, level - 1)
    return _linear(c, tree.shape[-1], "restore", tree, *_basis(data, 0))


def sum_members(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Sums over clusters: (N_j, d) -> (N_{j+1}, d)."""
    above, tree = tree_of(data, level + 1), tree_of(data, level)
    return _linear(x, tree.shape[-1], "sum_members", tree, above)


def sum_graphs(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Sums over the nodes of each graph: (N_j, d) -> (graphs, d)."""
    batch, starts, _ = graph_bounds(data, level)
    return _linear(x, batch.shape[0], "sum_graphs", batch, starts)


def spread_graphs(z: Tensor, data: Tensors, level: int) -> Tensor:
    """The row of its graph for each node: (graphs, d) -> (N_j, d)."""
    batch, starts, _ = graph_bounds(data, level)
    return _linear(z, starts.shape[0], "spread_graphs", batch, starts)


def _places(data: Tensors, level: int) -> Tensor:
    """(N_j,) the place of each coefficient of a level if, instead of graph by graph, all coarse
    ones stand before all details.
    """
    batch, starts, _ = graph_bounds(data, level)
    above, starts_above, ends_above = graph_bounds(data, level + 1)
    row = torch.arange(batch.shape[0], device=batch.device)
    local = row - starts[batch]
    coarse = ends_above[batch] - starts_above[batch]  # how many coarse rows its graph has
    # A coarse row stands behind those of the graphs before its own; a detail behind all coarse
    # rows, and its row number counts all coarse rows of graphs up to its own.
    return torch.where(
        local < coarse, starts_above[batch] + local, above.shape[0] + row - ends_above[batch]
    )


# ---------------------------------------------------------------------- reading


def tensors_of(data: Any) -> Tensors:
    """The tensors of a `ChainData` or of a batch of them; those of a dict as they are."""
    if isinstance(data, ChainData):
        return data.tensors
    if not isinstance(data, dict | Data):
        raise HaarPoolError(
            "the data: a ChainData, a batch of them, or a dict of their tensors",
            type(data).__name__,
            "pass what the DataLoader gives",
        )
    return data


def tree_of(data: Tensors, level: int) -> Tensor:
    """`haar_tree_j` of the data, or an error that says what is missing."""
    try:
        return data[f"haar_tree_{level}"]
    except KeyError:
        raise _missing(data, level) from None


def num_graphs(data: Tensors) -> int:
    """How many graphs there are: a shape, never a value that lies on the device."""
    tree_of(data, 0)
    if GROWTH not in data:
        raise HaarPoolError(f"data with {GROWTH}", f"no {GROWTH}", "do not exclude this key")
    return data[GROWTH].shape[-1]


def graph_bounds(data: Tensors, level: int) -> tuple[Tensor, Tensor, Tensor]:
    """(N_j,) the graph of each node, and (graphs,) where each graph begins, and where it ends."""
    batch = tree_of(data, level)[Tree.BATCH]
    graphs = torch.arange(num_graphs(data), device=batch.device)
    # Rows stand graph by graph.
    starts, ends = (torch.searchsorted(batch, graphs, right=right) for right in (False, True))
    return batch, starts, ends


def _basis(data: Tensors, level: int) -> tuple[Tensor, Tensor]:
    """The places and the values of the entries of B_j."""
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
    """Edges, their weights and the batch vector of a level j >= 1."""
    tree = tree_of(data, level)
    try:
        links, weights = data[f"haar_links_{level}"], data[f"haar_weights_{level}"]
    except KeyError as error:
        raise HaarPoolError(
            f"data with the graph of level {level}", f"no {error}", "do not exclude this key"
        ) from None
    return links, weights, tree[Tree.BATCH]


def _missing(data: Tensors, level: int) -> HaarPoolError:
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


# ---------------------------------------------------------------------- computing


def check_signal(x: Tensor | None, rows: int) -> None:
    """Raise unless x is a real signal with that many rows."""
    if x is None:
        raise missing_features()
    if x.ndim != 2 or x.shape[0] != rows:
        raise HaarPoolError(
            f"a signal ({rows}, d), a row for each node of its level in all graphs",
            f"shape {tuple(x.shape)}",
            "check the level of the layer, and that x and data belong to the same batch",
        )
    if not x.is_floating_point():
        raise HaarPoolError("real features", f"dtype {x.dtype}", "convert them with x.float()")


def missing_features() -> HaarPoolError:
    """For data whose x is None."""
    return HaarPoolError(
        "node features x",
        "none",
        "add T.OneHotDegree(max_degree) or T.Constant() of torch_geometric.transforms, "
        "before AddHaarChain",
    )


def widened(x: Tensor) -> Tensor:
    """What sums are taken in: float32 for the short types, which is then rounded once."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _linear(x: Tensor, rows: int, name: str, *tensors: Tensor) -> Tensor:
    check_signal(x, rows)
    if x.dtype in (torch.bfloat16, torch.float16):
        return _linear(x.float(), rows, name, *tensors).to(x.dtype)
    result: Tensor = _Linear.apply(x, name, tensors)  # type: ignore[no-untyped-call]
    return result


class _Linear(torch.autograd.Function):
    """One of the maps; its backward is the transpose."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str, tensors: tuple[Tensor, ...]) -> Tensor:
        # Tensors of the data, which nobody changes: keeping them needs no care, and saves a fifth
        # of the time on small batches. Where its input requires a gradient embedding_bag prepares
        # for one that nobody asks for, hence detach; a gradient that was spread, as that of a sum,
        # has no memory of its own, for which embedding_bag is slow.
        ctx.name, ctx.tensors = name, tensors
        return _MAPS[name][0](x.detach().contiguous(), *tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        transpose = _MAPS[ctx.name][1]
        if torch.compiler.is_compiling():  # compiled code has no second derivatives to offer
            back = _MAPS[transpose][0](grad.contiguous(), *ctx.tensors)
        else:
            back = _Linear.apply(grad, transpose, ctx.tensors)  # type: ignore[no-untyped-call]
        return back, None, None


def _pool(x: Tensor, tree: Tensor, above: Tensor) -> Tensor:
    weights = floats(tree[Tree.MEMBER_WEIGHT], x.dtype)
    return _bags(x, tree[Tree.MEMBER], above[Tree.CHILD], weights)


def _unpool(z: Tensor, tree: Tensor, above: Tensor) -> Tensor:
    weights = floats(tree[Tree.WEIGHT], z.dtype)
    return z.index_select(0, tree[Tree.PARENT]) * weights[:, None]


def _compress(x: Tensor, tree: Tensor, above: Tensor, basis: Tensor, values: Tensor) -> Tensor:
    weights = entries(values, Values.BY_ROW, x.dtype)
    return _bags(x, basis[Basis.COLUMN], above[Tree.ROW], weights)


def _expand(z: Tensor, tree: Tensor, above: Tensor, basis: Tensor, values: Tensor) -> Tensor:
    weights = entries(values, Values.BY_COLUMN, z.dtype)
    return _bags(z, basis[Basis.ROW], tree[Tree.COLUMN], weights)


def _details(x: Tensor, tree: Tensor, basis: Tensor, values: Tensor) -> Tensor:
    weights = entries(values, Values.BY_ROW, x.dtype)
    return _bags(x, basis[Basis.COLUMN], tree[Tree.ROW], weights)


def _restore(c: Tensor, tree: Tensor, basis: Tensor, values: Tensor) -> Tensor:
    weights = entries(values, Values.BY_COLUMN, c.dtype)
    return _bags(c, basis[Basis.ROW], tree[Tree.CHILD], weights)


def _sum_members(x: Tensor, tree: Tensor, above: Tensor) -> Tensor:
    return _bags(x, tree[Tree.MEMBER], above[Tree.CHILD])


def _spread_members(z: Tensor, tree: Tensor, above: Tensor) -> Tensor:
    return z.index_select(0, tree[Tree.PARENT])


def _sum_graphs(x: Tensor, batch: Tensor, starts: Tensor) -> Tensor:
    return _bags(x, torch.arange(x.shape[0], device=x.device), starts)


def _spread_graphs(z: Tensor, batch: Tensor, starts: Tensor) -> Tensor:
    return z.index_select(0, batch)


def _cut(c: Tensor, place: Tensor) -> Tensor:
    return c.index_select(0, place.argsort())


def _paste(parts: Tensor, place: Tensor) -> Tensor:
    return parts.index_select(0, place)


def _bags(x: Tensor, index: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    if x.shape[1] == 0:  # which embedding_bag of torch 2.11 does not know
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
    "cut": (_cut, "paste"),
    "paste": (_paste, "cut"),
}

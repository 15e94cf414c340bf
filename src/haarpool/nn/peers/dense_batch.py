"""Minibatches as dense stacks (B, n, d) and back, for poolings with an assignment matrix."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import to_dense_adj, to_dense_batch

from haarpool.errors import HaarPoolError
from haarpool.nn.output import PoolingOutput


def check_at_least(least: int, **numbers: int | None) -> None:
    """Raise unless the numbers, where given, are whole and not smaller than `least`."""
    for name, number in numbers.items():
        if number is not None and not (type(number) is int and number >= least):
            raise HaarPoolError(
                f"{name} as a whole number >= {least}",
                f"{number!r}",
                f"pass {name}={least} or more",
            )


def check_width(x: Tensor, width: int) -> None:
    """Raise unless x is (N, width)."""
    if x.dim() != 2 or x.shape[1] != width:
        raise HaarPoolError(
            f"x of shape (N, {width})", f"{tuple(x.shape)}", f"pass features of width {width}"
        )


def to_dense(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """(B, n, d) features, (B, n, n) adjacency, (B, n) which rows are nodes; zero elsewhere."""
    batch = edge_index.new_zeros(len(x)) if batch is None else batch
    if not bool((batch[1:] >= batch[:-1]).all()):
        raise HaarPoolError(
            "a sorted batch vector, nodes graph by graph",
            "an unsorted one",
            "sort x, edge_index and batch by batch first",
        )
    weight = x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight.to(x.dtype)
    dense, mask = to_dense_batch(x, batch)
    return dense, to_dense_adj(edge_index, batch, weight), mask


def to_sparse(x: Tensor, adj: Tensor, mask: Tensor) -> PoolingOutput:
    """The other way, without edges of weight zero: (B, m, d), (B, m, m), (B, m).

    PyG's dense_to_sparse changes in place what its own backward pass needs (2.8.1).
    """
    graph, row, column = adj.nonzero().unbind(1)
    number = mask.flatten().cumsum(0).view_as(mask) - 1
    edge_index = torch.stack([number[graph, row], number[graph, column]])
    return PoolingOutput(x[mask], edge_index, adj[graph, row, column], mask.nonzero()[:, 0])


def hop_counts(adj: Tensor, start: Tensor, limit: int | None = None) -> Tensor:
    """(B, n, m) edges between each node and m others, given as columns of `start` (one-hot).

    Inf stands for no path or one longer than `limit`; directions of edges are ignored.
    """
    # Float, since matrices of bool have no product; without gradients, being counts.
    step = ((adj != 0) | (adj.mT != 0)).to(adj.dtype)
    hops = torch.zeros_like(start, dtype=adj.dtype).masked_fill(~start, torch.inf)
    reached, count = start, 0
    while limit is None or count < limit:
        count += 1
        new = (step @ reached.to(step.dtype) > 0) & ~reached
        if not new.any():
            break
        hops, reached = hops.masked_fill(new, count), reached | new
    return hops


def nonzero(size: Tensor) -> Tensor:
    """One in place of zero: division then leaves zeros, and gradients no larger than elsewhere."""
    return size.masked_fill(size < torch.finfo(size.dtype).eps, 1)

"""Operations on Haar coefficients: split by level, join, threshold."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool._types import Ints
from haarpool._validate import choice, real_number, whole_number
from haarpool.chains.chain import Chain
from haarpool.chains.chain_checks import checked_level
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.signals import Signal, as_rows, checked_rows


def split(chain: Chain | ChainTensors, c: Signal, level: int = 0) -> list[Signal]:
    """Split the coefficients of level j into [coarse, details of K-1, ..., details of j].

    Args:
        chain: A chain, or a plan of many chains.
        c: (N_j,), (N_j, d) or (..., N_j, d) coefficients.
        level: j in 0..K.

    Returns:
        The N_K coefficients of the top level, then the N_i - N_{i+1} details of each level
        i = K-1, ..., j. The parts are copies: changing them does not change `c`.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> [part.tolist() for part in split(chain, np.array([1.0, 2.0, 3.0]))]
        [[1.0], [2.0], [3.0]]
    """
    tensors, rows, back = as_rows(chain, c)
    level = checked_rows(tensors, rows, level, above=0)
    return [back(rows.index_select(-2, part)) for part in _part_rows(tensors, level)]


def join(chain: Chain | ChainTensors, parts: Sequence[Signal], level: int = 0) -> Signal:
    """Join the parts that `split` returned.

    Args:
        chain: A chain, or a plan of many chains.
        parts: The list of `split`.
        level: j in 0..K.

    Returns:
        (N_j,), (N_j, d) or (..., N_j, d) coefficients.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> join(chain, split(chain, np.array([1.0, 2.0, 3.0]))).tolist()
        [1.0, 2.0, 3.0]
    """
    checked = [as_rows(chain, part) for part in parts]
    if not checked:
        remedy = "pass the complete list"
        raise HaarPoolError("as split returns them", "none", remedy, parameter="parts")
    tensors, _, back = checked[0]
    level = checked_level(level, tensors.num_levels, repr(tensors))
    part_rows = _part_rows(tensors, level)
    rows: list[Tensor] = [part[1] for part in checked]
    got, expected = [r.shape[-2] for r in rows], [len(r) for r in part_rows]
    columns = {r.shape[:-2] + r.shape[-1:] for r in rows}
    if got != expected or len(columns) > 1:
        raise HaarPoolError(
            f"with {expected} rows for level {level}",
            f"{got} rows" + " and different columns" * (len(columns) > 1),
            "pass the list that split returned for the same chain and level",
            parameter="parts",
        )
    return back(torch.cat(rows, -2).index_select(-2, torch.cat(part_rows).argsort()))


def _part_rows(chain: ChainTensors, level: int) -> list[Tensor]:
    """Return the rows of each part of `split` among the coefficients of level j.

    A graph with n_i nodes on level i has its details of level i in rows n_{i+1}, ..., n_i - 1.
    """
    parts: list[Tensor] = []
    before = torch.zeros_like(chain.start[0])
    for i in range(chain.num_levels, level - 1, -1):
        until = chain.num_nodes(i)
        count = until - before
        total = chain.sizes[i] - sum(len(part) for part in parts)
        graph = torch.arange(chain.num_graphs, device=chain.device)
        graph = graph.repeat_interleave(count, output_size=total)
        first = chain.start[level] + before - (count.cumsum(0) - count)
        parts.append(torch.arange(total, device=chain.device) + first[graph])
        before = until
    return parts


def threshold(
    chain: Chain | ChainTensors,
    c: Signal,
    keep: float | None = None,
    *,
    value: float | None = None,
    mode: Literal["hard", "soft"] = "hard",
    level: int = 0,
) -> Signal:
    """Set small coefficients to zero, for compression (`keep`) or denoising (`value`).

    The basis is orthonormal, so the largest coefficients give the best approximation of the signal
    by this number of Haar vectors, and the squared error is the sum of the squares of the others.

    Args:
        chain: A chain, or a plan of many chains.
        c: (N_j,), (N_j, d) or (..., N_j, d) coefficients; each column of each graph is separate.
        keep: Number of coefficients to keep, or their share of N_j in (0, 1], rounded up. Of equal
            magnitudes the coarser coefficient is kept.
        value: Instead of `keep`, set all coefficients below this magnitude to zero.
        mode: "hard" does not change the other coefficients; "soft" moves them towards zero by the
            largest magnitude that was set to zero (`keep`) or by `value`.
        level: j in 0..K.

    Returns:
        Coefficients of the same shape and type as `c`.

    Example:
        >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
        >>> threshold(chain, np.array([5.0, -1.0, 2.0]), keep=2).tolist()
        [5.0, 0.0, 2.0]
        >>> threshold(chain, np.array([5.0, -1.0, 2.0]), value=1.5, mode="soft").tolist()
        [3.5, 0.0, 0.5]
    """
    tensors, rows, back = as_rows(chain, c)
    level = checked_rows(tensors, rows, level, above=0)
    choice("mode", mode, ("hard", "soft"))
    if (keep is None) == (value is None):
        raise HaarPoolError(
            "either {keep} or {value}",
            "both or none",
            "pass a number to keep, or a magnitude",
            keep=...,
            value=...,
        )
    magnitude = rows.abs()
    if value is not None:
        value = real_number("value", value, includes_maximum=True, remedy="pass a magnitude")
        cut = magnitude.new_tensor(min(value, torch.finfo(magnitude.dtype).max))
        kept = magnitude >= value
    else:
        sizes = tensors.num_nodes(level).cpu().numpy().astype(np.int64)
        kept, cut = _largest(magnitude, sizes, _number_to_keep(keep, sizes))
    if mode == "soft":
        rows = rows - cut * rows.sgn()
    return back(torch.where(kept, rows, torch.zeros_like(rows)))


def _number_to_keep(keep: float | None, sizes: Ints) -> Ints:
    """Return the number of coefficients to keep in each graph, shape (graphs,)."""
    remedy = "pass a number such as 10, or a share of the coefficients: {keep}"
    if isinstance(keep, Integral):
        number = whole_number("keep", keep, 0, remedy=remedy, keep=0.1)
        return np.minimum(sizes, min(number, int(sizes.max())))
    share = real_number(
        "keep", keep, 0, 1, includes_minimum=False, includes_maximum=True, remedy=remedy, keep=0.1
    )
    return np.asarray(np.minimum(sizes, np.ceil(share * sizes - 1e-9)), np.int64)


def _largest(magnitude: Tensor, sizes: Ints, number: Ints) -> tuple[Tensor, Tensor]:
    """Find the `number` largest of the `sizes` coefficients of each graph.

    Return whether to keep each coefficient, and the largest magnitude that its column drops.
    """
    begin = np.cumsum(sizes) - sizes

    def rows(per_graph: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.repeat(per_graph, sizes)).to(magnitude.device)[:, None]

    # Row numbers graph by graph, in each by descending magnitude: sort by magnitude, then by graph.
    order = magnitude.mT.contiguous().argsort(dim=-1, descending=True, stable=True).mT
    if len(sizes) > 1:
        graph = rows(np.arange(len(sizes)))[:, 0]
        order = order.gather(-2, graph[order].argsort(dim=-2, stable=True))
    row_numbers = torch.arange(order.shape[-2], device=order.device)[:, None].expand_as(order)
    rank = torch.empty_like(order).scatter_(-2, order, row_numbers)
    dropped = np.where(number < sizes, begin + number, -1)
    descending = torch.nn.functional.pad(magnitude.gather(-2, order), (0, 0, 0, 1))  # row -1: zero
    cut = descending.index_select(-2, rows(dropped % (sizes.sum() + 1))[:, 0])
    return rank < rows(begin + number), cut

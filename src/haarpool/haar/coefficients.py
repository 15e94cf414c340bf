"""What one does with Haar coefficients: cut them by level, put them together, keep the largest."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from haarpool.chains.chain import Chain
from haarpool.chains.chain_checks import checked_level
from haarpool.errors import HaarPoolError
from haarpool.haar.plan import TransformPlan
from haarpool.haar.signals import Signal, as_rows, checked_rows


def split(chain: Chain | TransformPlan, c: Signal, level: int = 0) -> list[Signal]:
    """Cut coefficients of a level j into [coarse, details of K-1, ..., details of j].

    The coarse part are the N_K coefficients of the top level; the details of level i are
    N_i - N_{i+1} rows. Parts can be changed in place without a change to `c`. `join` puts them
    together again.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> [part.tolist() for part in split(chain, np.array([1.0, 2.0, 3.0]))]
    [[1.0], [2.0], [3.0]]
    """
    plan, rows, back = as_rows(chain, c)
    level = checked_rows(plan, rows, level, up=0)
    first, top, *details = plan.cut(rows, level)
    coarse = plan.paste(torch.cat([first, top], -2), plan.num_levels)
    return [back(part) for part in (coarse, *(d.clone() for d in details))]


def join(chain: Chain | TransformPlan, parts: Sequence[Signal], level: int = 0) -> Signal:
    """Put the parts that `split` gives together again.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> join(chain, split(chain, np.array([1.0, 2.0, 3.0]))).tolist()
    [1.0, 2.0, 3.0]
    """
    entries = [as_rows(chain, part) for part in parts]
    if not entries:
        raise HaarPoolError("the parts that split gives", "none", "pass its whole list")
    plan, _, back = entries[0]
    level = checked_level(level, plan.num_levels, repr(plan))
    first, top, *others = plan.part_sizes(level)
    rows: list[Tensor] = [entry[1] for entry in entries]
    got, expected = [r.shape[-2] for r in rows], [first + top, *others]
    columns = {r.shape[:-2] + r.shape[-1:] for r in rows}
    if got != expected or len(columns) > 1:
        raise HaarPoolError(
            f"parts with {expected} rows for level {level}",
            f"{got} rows" + " and different columns" * (len(columns) > 1),
            "pass the list that split gave, for the same chain and level",
        )
    pieces = plan.cut(rows[0], plan.num_levels) + rows[1:]
    return back(plan.paste(torch.cat(pieces, -2), level))


def threshold(
    chain: Chain | TransformPlan,
    c: Signal,
    keep: float | None = None,
    *,
    value: float | None = None,
    mode: Literal["hard", "soft"] = "hard",
    level: int = 0,
) -> Signal:
    """Set small coefficients to zero, for compression (`keep`) or denoising (`value`).

    Since the basis is orthonormal, keeping the largest gives the best approximation of the signal
    by that many Haar vectors, and the squared error is the sum of the squares that were dropped.

    Args:
        chain, c, level: as in `forward_transform`; every column of every graph by itself.
        keep: how many coefficients to keep: an int, or a share of N_j in (0, 1], rounded up. Of
            equal magnitudes the coarser is kept.
        value: instead of `keep`, zero all below this magnitude.
        mode: "hard" leaves the others as they are, "soft" moves them towards zero by the largest
            magnitude that was dropped (`keep`) or by `value`.

    >>> chain = Chain.from_parents([[0, 0, 1], [0, 0]])
    >>> threshold(chain, np.array([5.0, -1.0, 2.0]), keep=2).tolist()
    [5.0, 0.0, 2.0]
    >>> threshold(chain, np.array([5.0, -1.0, 2.0]), value=1.5, mode="soft").tolist()
    [3.5, 0.0, 0.5]
    """
    plan, rows, back = as_rows(chain, c)
    level = checked_rows(plan, rows, level, up=0)
    if mode not in ("hard", "soft"):
        raise HaarPoolError('mode "hard" or "soft"', f"{mode!r}", "choose one of the two")
    if (keep is None) == (value is None):
        raise HaarPoolError(
            "either keep= or value=", "both or none", "pass a number to keep, or a magnitude"
        )
    magnitude = rows.abs()
    if value is not None:
        if not (isinstance(value, Real) and value >= 0):
            raise HaarPoolError("value >= 0", f"{value!r}", "pass the magnitude to cut at")
        cut = magnitude.new_tensor(min(float(value), torch.finfo(magnitude.dtype).max))
        kept = magnitude >= value
    else:
        kept, cut = _largest(plan, magnitude, level, keep)
    if mode == "soft":
        rows = rows - cut * rows.sgn()
    return back(torch.where(kept, rows, torch.zeros_like(rows)))


def _largest(
    plan: TransformPlan, magnitude: Tensor, level: int, keep: float | None
) -> tuple[Tensor, Tensor]:
    """Which coefficients to keep, and for each the largest magnitude that its column drops."""
    sizes = plan.graph_sizes[:, level]
    whole = isinstance(keep, Integral)
    usable = isinstance(keep, Real) and not isinstance(keep, bool)
    if keep is None or not usable or not (keep >= 0 if whole else 0 < keep <= 1):
        raise HaarPoolError(
            "keep as a whole number >= 0, or as a share in (0, 1]",
            f"{keep!r}",
            "pass for example keep=10 or keep=0.1",
        )
    wanted = min(keep, int(sizes.max())) if whole else np.ceil(keep * sizes - 1e-9)
    number = np.minimum(sizes, wanted).astype(np.int64)
    begin = np.cumsum(sizes) - sizes

    def rows(per_graph: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.repeat(per_graph, sizes)).to(magnitude.device)[:, None]

    # Row numbers graph by graph, in each by falling magnitude: sort by magnitude, then by graph.
    order = magnitude.mT.contiguous().argsort(dim=-1, descending=True, stable=True).mT
    if plan.num_graphs > 1:
        graph = rows(np.arange(len(sizes)))[:, 0]
        order = order.gather(-2, graph[order].argsort(dim=-2, stable=True))
    place = torch.empty_like(order).scatter_(-2, order, _row_numbers(order))
    dropped = np.where(number < sizes, begin + number, -1)
    falling = torch.nn.functional.pad(magnitude.gather(-2, order), (0, 0, 0, 1))  # row -1 is zero
    cut = falling.index_select(-2, rows(dropped % (sizes.sum() + 1))[:, 0])
    return place < rows(begin + number), cut


def _row_numbers(like: Tensor) -> Tensor:
    return torch.arange(like.shape[-2], device=like.device)[:, None].expand_as(like)

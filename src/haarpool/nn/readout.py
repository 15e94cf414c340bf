"""From the rows of a level to one row per graph."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from haarpool.errors import HaarPoolError
from haarpool.nn.operators import (
    Tensors,
    check_signal,
    graph_bounds,
    pool,
    sum_graphs,
    tensors_of,
    tree_of,
    unpool,
    widened,
)
from haarpool.nn.pooling import checked_start

STATISTICS = ("scaled_sum", "mean", "sum", "energy")


class HaarReadout(torch.nn.Module):
    """One row per graph from a signal on the nodes of level j, whatever their order.

    The statistics, side by side in the order given, of a graph with n nodes on level j:

        scaled_sum  Σ x / sqrt(n)   the first Haar coefficient of a chain that merges all at once
        mean        Σ x / n
        sum         Σ x
        energy      sqrt(|D_iᵀ x_i|² / n) for each level i = j, ..., K-1, x_{i+1} = P_iᵀ x_i

    Rows of x are nodes, as the vertex domain and the input graph have them; sums over the rows of
    the Haar domain would depend on numbering. The energies say how the signal is spread over
    scales: with the top they add up to Σ x², and other than single detail coefficients they do not
    depend on the order of members.

    Args:
        level: j, the level of x.
        statistics: one or several of the above.

    Shapes:
        x (N_j, d), data -> (graphs, d · number of statistics), where "energy" counts K - j times
        (see `out_channels`).

    >>> readout = HaarReadout(statistics=["mean", "energy"])
    >>> readout, readout.out_channels(64, num_levels=3)
    (HaarReadout(level=0, statistics=['mean', 'energy']), 256)
    """

    def __init__(
        self, level: int = 0, statistics: Iterable[str] = ("scaled_sum", "mean", "energy")
    ) -> None:
        super().__init__()
        self.level = checked_start(level)
        names = (statistics,) if isinstance(statistics, str) else statistics
        self.statistics = list(names) if isinstance(names, Iterable) else [names]
        unknown = [name for name in self.statistics if name not in STATISTICS]
        if unknown or not self.statistics:
            raise HaarPoolError(
                f"statistics out of {STATISTICS}", f"{unknown or 'none'}", "choose some of these"
            )

    def reset_parameters(self) -> None:
        """Nothing to reset: no parameters."""

    def out_channels(self, in_channels: int, num_levels: int) -> int:
        """Columns of the result for a chain with this many levels."""
        energies = self.statistics.count("energy") * (num_levels - self.level - 1)
        return in_channels * (len(self.statistics) + energies)

    def forward(self, x: Tensor, data: Tensors) -> Tensor:
        """One row per graph."""
        data = tensors_of(data)
        check_signal(x, tree_of(data, self.level).shape[-1])
        work = widened(x)
        total = sum_graphs(work, data, self.level)
        _, starts, ends = graph_bounds(data, self.level)
        n = (ends - starts).to(work.dtype)[:, None]
        columns: list[Tensor] = []
        for name in self.statistics:
            if name == "energy":
                columns += [_root(energy / n) for energy in _energies(work, data, self.level)]
            else:
                columns.append(
                    {"scaled_sum": total / n.sqrt(), "mean": total / n, "sum": total}[name]
                )
        return torch.cat(columns, -1).to(x.dtype)

    def __repr__(self) -> str:
        return f"HaarReadout(level={self.level}, statistics={self.statistics})"


def _energies(x: Tensor, data: Tensors, level: int) -> list[Tensor]:
    """(graphs, d) energy of the details of each level from this one up."""
    energies = []
    while f"haar_tree_{level + 1}" in data:
        coarse = pool(x, data, level)
        rest = x - unpool(coarse, data, level)
        energies.append(sum_graphs(rest.square(), data, level))
        x, level = coarse, level + 1
    if not energies:
        tree_of(data, level + 1)  # says how many levels there are
    return energies


def _root(energy: Tensor) -> Tensor:
    """Square root with gradient zero, not infinity, where there is no energy."""
    return energy.clamp_min(torch.finfo(energy.dtype).tiny).sqrt()

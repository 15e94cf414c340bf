"""`HaarReadout`: one row per graph."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from haarpool._validate import choice, whole_number
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.operators import sum_graphs
from haarpool.nn.inputs import Tensors, chains_of, check_signal, widened
from haarpool.nn.layers.pooling import detail_part

STATISTICS = ("scaled_sum", "mean", "sum", "energy")


class HaarReadout(torch.nn.Module):
    """Compute one row per graph from a signal on level j, in any order of its nodes.

    For a graph with n nodes on level j the row consists of these statistics, in the order of the
    argument `statistics`:

        scaled_sum  Σ x / sqrt(n)   the first Haar coefficient if one step merges all nodes
        mean        Σ x / n
        sum         Σ x
        energy      sqrt(|D_iᵀ x_i|² / n) for each level i = j, ..., K-1, x_{i+1} = P_iᵀ x_i

    The rows of x must be nodes, as in the vertex domain and the input graph; sums over the rows of
    the Haar domain depend on the numbering of nodes. The energies show how the signal is
    distributed over scales: with the energy of the top level they sum to Σ x². Unlike single detail
    coefficients they do not depend on the order of members. The layer has no parameters.

    Args:
        level: Level j of x.
        statistics: One name or several.

    Shapes:
        - **input:** x (N_j, d); data, a `ChainData`, a batch of them, or a dict of their tensors
        - **output:** (B, `out_channels(d, K)`) for B graphs; `"energy"` gives K - j blocks of d
          columns, every other statistic one

    Example:
        >>> readout = HaarReadout(statistics=["mean", "energy"])
        >>> readout, readout.out_channels(64, num_levels=3)
        (HaarReadout(level=0, statistics=['mean', 'energy']), 256)
    """

    def __init__(
        self, level: int = 0, statistics: Iterable[str] = ("scaled_sum", "mean", "energy")
    ) -> None:
        super().__init__()
        self.level = whole_number("level", level, minimum=0)
        if isinstance(statistics, str) or not isinstance(statistics, Iterable):
            statistics = [statistics]
        self.statistics = [choice("statistics", name, STATISTICS) for name in statistics]
        if not self.statistics:
            raise HaarPoolError(
                "with one name or more", "none", "leave it out", parameter="statistics"
            )

    def reset_parameters(self) -> None:
        """Do nothing: the layer has no parameters."""

    def out_channels(self, in_channels: int, num_levels: int) -> int:
        """Return the number of columns of the output.

        Args:
            in_channels: Number of columns of x.
            num_levels: K of the chains.
        """
        energies = self.statistics.count("energy") * (num_levels - self.level - 1)
        return in_channels * (len(self.statistics) + energies)

    def forward(self, x: Tensor, data: Tensors) -> Tensor:
        """Compute one row per graph.

        Args:
            x: (N_j, d) signal.
            data: `ChainData`, a batch of them, or a dict of their tensors.
        """
        chain = chains_of(data, self.level + ("energy" in self.statistics))
        check_signal(x, chain.size(self.level))
        signal = widened(x)
        total = sum_graphs(chain, signal, self.level)
        n = chain.num_nodes(self.level).to(signal.dtype)[:, None]
        columns: list[Tensor] = []
        for name in self.statistics:
            if name == "energy":
                columns += [_sqrt(energy / n) for energy in _energies(signal, chain, self.level)]
            elif name == "mean":
                columns.append(total / n)
            else:
                columns.append(total if name == "sum" else total / n.sqrt())
        return torch.cat(columns, -1).to(x.dtype)

    def __repr__(self) -> str:
        return f"HaarReadout(level={self.level}, statistics={self.statistics})"


def _energies(x: Tensor, chain: ChainTensors, level: int) -> list[Tensor]:
    """Compute the energy of the details, (G, d), of this level and of each one above."""
    energies = []
    for j in range(level, chain.num_levels):
        coarse, rest = detail_part(x, chain, j)
        energies.append(sum_graphs(chain, rest.square(), j))
        x = coarse
    return energies


def _sqrt(energy: Tensor) -> Tensor:
    """Compute the square root, with gradient zero instead of infinity at zero."""
    return energy.clamp_min(torch.finfo(energy.dtype).tiny).sqrt()

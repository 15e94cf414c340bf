"""`HaarSumNet` and `HaarNet` with one thing changed: why do they lose on larger graphs?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, ModuleList, Sequential, SiLU

from haarpool._types import Domain
from haarpool.haar.operators import synthesis
from haarpool.nn import HaarNet, HaarPooling, HaarSumNet, PoolingOutput
from haarpool.nn.inputs import Tensors, chains_of, num_graphs, widened
from haarpool.nn.layers.state import LayerState
from haarpool.nn.networks.stages import ChainPooling, convolve
from paper.pooling.peers.registering import variant
from paper.pooling.peers.variants import roots


class ScaledPooling(HaarPooling):
    """Pool as z = (P_jᵀ (r_j^a x)) / r_{j+1}^a, with r_j² the size of a node in members below.

    Args:
        level: Level j.
        domain: "vertex".
        power: a: 1 for the mean over a cluster, -1 for the sum; 0 is `HaarPooling`.
    """

    def __init__(self, level: int, domain: Domain, power: int) -> None:
        super().__init__(level, domain)
        self.power = power

    def forward(self, x: Tensor, data: Tensors) -> PoolingOutput:
        """Pool a signal x (N_j, d)."""
        fine, coarse = roots(chains_of(data, self.level + 1), x, self.level)
        out = super().forward(x * fine**self.power, data)
        return out._replace(x=out.x / coarse**self.power)


def scaled(network: Any, power: int) -> ModuleList:
    """Return the poolings of a network with other powers."""
    levels = range(len(network.poolings))
    return ModuleList(ChainPooling(ScaledPooling(j, network.domain, power)) for j in levels)


@variant("haarsummean")
class HaarSumMean(HaarSumNet):
    """`HaarSumNet` with means over clusters."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.poolings = scaled(self, 1)


@variant("haarsumsum")
class HaarSumSum(HaarSumNet):
    """`HaarSumNet` with sums over clusters."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.poolings = scaled(self, -1)


@variant("haarsumshared")
class HaarSumShared(HaarSumNet):
    """`HaarSumNet` with the same weights on all coarse levels."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.convolutions, self.contributions = (
            ModuleList([*modules[:2], *[modules[1]] * (len(modules) - 2)])
            for modules in (self.convolutions, self.contributions)
        )


@variant("haarsumnodes")
class HaarSumNodes(HaarSumNet):
    """`HaarSumNet` whose sum is over the nodes of the input graph alone.

    Coarse layers are copied to their nodes, so that the number of coarse nodes enters nowhere.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        arch: Any = self.arch
        width = arch.max_width
        columns = width * (arch.depth + 1 + arch.levels * (arch.coarse_depth + 1))
        self.contributions = ModuleList(
            [Sequential(Linear(columns, width), SiLU(), Linear(width, self.out_channels))]
        )

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute values or scores, (B, out_channels)."""
        data, x, edge_attr = self._embed(data)
        size = num_graphs(data)
        graphs = state = LayerState.of_input(x, data, padded=padded)
        columns = []
        for level, convolutions in enumerate(self.convolutions):
            if level:
                state, edge_attr = self.poolings[level - 1](state, data), None
            state, layers = convolve(convolutions, state, edge_attr)
            for below in reversed(range(level)):
                fine, coarse = roots(chains_of(data, level), layers, below)
                chain = chains_of(data, level)
                layers = synthesis(chain, coarse * layers, below, skip=True, single=True) / fine
            columns.append(layers)
        contributions = widened(self.contributions[0](torch.cat(columns, 1)))
        total = graphs.sum_nodes(contributions, size)
        output: Tensor = self.baseline(self._sums(data, padded=padded), total)
        return output[:-1] if padded else output


@variant("haarnetmean")
class HaarNetMean(HaarNet):
    """`HaarNet` with means over clusters."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.poolings = scaled(self, 1)

"""`HaarUNet` with one thing changed: what poolings and skips compute, or what is predicted."""

from __future__ import annotations

from torch import Tensor

from haarpool.haar.chain_tensors import ChainTensors, Tree
from haarpool.haar.operators import analysis, synthesis
from haarpool.nn import HaarUNet
from paper.pooling.peers.of_graphs import OfGraphs
from paper.pooling.peers.registering import variant


@variant("haarunetmean")
class HaarUNetMean(HaarUNet):
    """`HaarUNet` with means over clusters: every node of the input graph counts the same.

        down    x_{j+1} = (P_jᵀ (r_j x_j)) / r_{j+1}
        up      x_j + (P_j (r_{j+1} W x_{j+1})) / r_j, which copies to all members

    with r_j = sqrt(number of input nodes below) for the measure "mass", as in `roots`; then
    x_{j+1} is the mean of x_0 over the input nodes below, if no convolution lies between. With the
    measure "children" it is the mean over members.
    """

    def _pool(self, chain: ChainTensors, x: Tensor, level: int) -> Tensor:
        fine, coarse = roots(chain, x, level)
        return super()._pool(chain, fine * x, level) / coarse

    def _unpool(self, chain: ChainTensors, y: Tensor, skip: Tensor, level: int) -> Tensor:
        fine, coarse = roots(chain, y, level)
        return skip + synthesis(chain, coarse * y, level, skip=True, single=True) / fine


@variant("haarunetsum")
class HaarUNetSum(HaarUNet):
    """`HaarUNet` with sums over clusters.

        down    x_{j+1} = r_{j+1} P_jᵀ (x_j / r_j)
        up      x_j + r_j P_j (W x_{j+1} / r_{j+1}), which shares out by the input nodes below

    with r_j as in `HaarUNetMean`.
    """

    def _pool(self, chain: ChainTensors, x: Tensor, level: int) -> Tensor:
        fine, coarse = roots(chain, x, level)
        return coarse * super()._pool(chain, x / fine, level)

    def _unpool(self, chain: ChainTensors, y: Tensor, skip: Tensor, level: int) -> Tensor:
        fine, coarse = roots(chain, y, level)
        return skip + fine * synthesis(chain, y / coarse, level, skip=True, single=True)


@variant("haarunetdetails")
class HaarUNetDetails(HaarUNet):
    """`HaarUNet` whose skips carry details alone: sums over clusters come from the coarse level.

    up      x_j + P_j (W x_{j+1} - P_jᵀ x_j)
    """

    def _unpool(self, chain: ChainTensors, y: Tensor, skip: Tensor, level: int) -> Tensor:
        return super()._unpool(chain, y - self._pool(chain, skip, level), skip, level)


@variant("haarunetgraph", of_nodes=False)
class HaarUNetGraph(OfGraphs, HaarUNet):
    """`HaarUNet` with an output per graph, see `OfGraphs`.

    `levels=0` is the flat network, also with `virtual_node`; random clusters are a chain.
    """


def roots(chain: ChainTensors, like: Tensor, level: int) -> tuple[Tensor, Tensor]:
    """Return (N_j, 1) r_j and (N_{j+1}, 1) r_{j+1} = P_jᵀ r_j, the square roots of measures."""
    fine = chain.trees[level][Tree.MASS].to(like.dtype).sqrt()[:, None]
    return fine, analysis(chain, fine, level, skip=True, single=True)

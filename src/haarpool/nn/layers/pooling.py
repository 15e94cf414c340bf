"""`HaarPooling`."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from haarpool._types import Domain
from haarpool._validate import choice, whole_number
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.operators import analysis, sum_members, synthesis
from haarpool.nn.inputs import Tensors, chains_of, check_signal, widened
from haarpool.nn.layers.pooling_output import PoolingOutput
from haarpool.nn.strings.registry import layer

Details = Literal["energy", "full"]


@layer("HP", kind="pooling", chain=True, static=True, options=("domain",))
class HaarPooling(torch.nn.Module):
    r"""Pool the nodes of level j into the clusters of level j+1 by the Haar wavelets of the chain.

        haar    z = Φ_jᵀ x = U_{j+1}ᵀ P_jᵀ x
        vertex  z = P_jᵀ x,    z_p = Σ_{v in p} x_v / sqrt(|p|)   (for measure="children")

    In the Haar domain, as in the paper (Definition 1 and equation 6), the rows of z are the first
    N_{j+1} Haar coefficients. In the vertex domain they are the clusters. In both domains |z|² is
    |x|² without the energy of the details that are dropped. The layer has no parameters; the chain
    comes with the data.

    **Rows in the Haar domain are not coarse nodes.** Row l is a coefficient, but the coarse
    `edge_index` refers to clusters. A convolution after pooling in the Haar domain mixes the two,
    so its output depends on the numbering of the clusters, unless one row per graph is left. In the
    vertex domain another numbering of the clusters only permutes the rows: for a given chain, the
    output of a network does not depend on numbering. The chain itself may: after renumbering the
    nodes, some graphs get other clusters with `method="spectral"` (2 to 7 of 100), most with
    `"matching"` (80 to 90 of 100, if edges have equal weights).

    Args:
        level: Level j in 0..K-1. Count the poolings of the network from 0.
        domain: `"haar"` or `"vertex"`.
        details: What to return of the N_j - N_{j+1} detail coefficients D_jᵀ x. `None`: nothing.
            `"full"`: all of them, graph by graph; `HaarUnpooling` restores x from them.
            `"energy"`: their sums of squares by cluster and column, (N_{j+1}, d), which do not
            depend on the order of members.

    Shapes:
        - **input:** x (N_j, d), one row per node of level j in all graphs, or S signals on the same
          graphs, (S, N_j, d); data, a `ChainData`, a batch of them, or a dict of their tensors
        - **output:** `PoolingOutput` with x (N_{j+1}, d), or (S, N_{j+1}, d)

    Example:
        >>> from torch_geometric.data import Data
        >>> from haarpool import Chain
        >>> from haarpool.data import AddHaarChain
        >>> path = Data(x=torch.tensor([[1.0], [3.0], [2.0]]),
        ...             edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> data = AddHaarChain(chain=lambda data: Chain.from_parents([[0, 0, 1], [0, 0]]))(path)
        >>> out = HaarPooling(level=0, domain="vertex")(data.x, data)
        >>> out.x.T, out.edge_index.tolist(), out.edge_weight
        (tensor([[2.8284, 2.0000]]), [[0, 1], [1, 0]], tensor([1., 1.]))
    """

    def __init__(self, level: int, domain: Domain = "haar", details: Details | None = None) -> None:
        super().__init__()
        self.level = whole_number("level", level, minimum=0)
        self.domain = choice("domain", domain, get_args(Domain))
        self.details = choice("details", details, (None, "energy", "full"))

    def reset_parameters(self) -> None:
        """Do nothing: the layer has no parameters."""

    def forward(self, x: Tensor, data: Tensors) -> PoolingOutput:
        """Pool a signal.

        Args:
            x: (N_j, d) signal.
            data: `ChainData`, a batch of them, or a dict of their tensors.
        """
        level, vertex = self.level, self.domain == "vertex"
        chain = chains_of(data, level + 1)
        check_signal(x, chain.size(level))
        details = None
        if self.details == "full":
            both = analysis(chain, x, level, single=True)
            z, details = both.tensor_split([chain.size(level + 1)], dim=-2)
            z = z if vertex else analysis(chain, z, level + 1)
        else:
            z = analysis(chain, x, level, skip=True, single=vertex)
        if self.details == "energy":
            rest = detail_part(widened(x), chain, level)[1]  # squares of float16 could overflow
            details = sum_members(chain, rest.square(), level)
        graph = chain.coarse_graph(level + 1, x.dtype)
        features = chain.coarse_features(level + 1, x.dtype)
        return PoolingOutput(z, *graph, details, edge_attr=features)

    def __repr__(self) -> str:
        details = f", details={self.details!r}" * (self.details is not None)
        return f"HaarPooling(level={self.level}, domain={self.domain!r}{details})"


def detail_part(x: Tensor, chain: ChainTensors, level: int) -> tuple[Tensor, Tensor]:
    """Return P_jᵀ x, and D_j D_jᵀ x = x - P_j P_jᵀ x, the part of x that P_jᵀ drops."""
    coarse = analysis(chain, x, level, skip=True, single=True)
    return coarse, x - synthesis(chain, coarse, level, skip=True, single=True)

"""HaarPooling and its way back as layers."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from haarpool._types import Domain
from haarpool.data import check_domain
from haarpool.errors import HaarPoolError
from haarpool.nn.operators import (
    Tensors,
    check_signal,
    coarse_graph,
    compress,
    details,
    expand,
    pool,
    restore,
    sum_members,
    tensors_of,
    tree_of,
    unpool,
    widened,
)
from haarpool.nn.output import PoolingOutput

Details = Literal["energy", "full"]


class HaarPooling(torch.nn.Module):
    r"""Pool the nodes of level j into the clusters of level j+1, by the Haar wavelets of the chain.

    In the Haar domain, as in the paper (Definition 1 and equation 6), the rows of the result are
    the first N_{j+1} Haar coefficients; in the vertex domain they are the clusters themselves:

        haar    z = Φ_jᵀ x = U_{j+1}ᵀ P_jᵀ x
        vertex  z = P_jᵀ x,    z_p = Σ_{v in p} x_v / sqrt(|p|)   (for measure="children")

    Both are isometries of the coarse part: they keep |x|² up to the energy of the details that are
    dropped. **Haar rows are not coarse nodes**: row l is a coefficient, but the coarse `edge_index`
    speaks of clusters. A convolution behind pooling in the Haar domain mixes the two, and numbering
    the clusters differently changes what it gives. In the vertex domain nothing changes but the
    order of rows. So a network with several poolings in the Haar domain is not invariant under
    renumbering of nodes, unless nothing but one row is left right behind each pooling that a
    convolution follows; with the vertex domain it is, as far as the chain itself is.

    There is nothing to learn and nothing to compute but sums: the chain comes with the data.

    Args:
        level: j in 0..K-1, counting the poolings of the network from 0.
        domain: "haar" or "vertex".
        details: what to keep of the N_j - N_{j+1} detail coefficients D_jᵀ x: nothing (None),
            "full", all of them, graph by graph, from which `HaarUnpooling` restores x; or "energy",
            for each cluster and column the sum of their squares, (N_{j+1}, d), which does not
            depend on the order of members.

    Shapes:
        x (N_j, d), a row per node of level j in all graphs; data a `ChainData` or a batch of them
        (or a dict of their tensors) -> `PoolingOutput` with x (N_{j+1}, d).

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
        self.level = checked_start(level)
        check_domain(domain)
        if details not in (None, "energy", "full"):
            raise HaarPoolError(
                'details None, "energy" or "full"', f"{details!r}", "choose one of the three"
            )
        self.domain, self.details = domain, details

    def reset_parameters(self) -> None:
        """Nothing to reset: no parameters."""

    def forward(self, x: Tensor, data: Tensors) -> PoolingOutput:
        """The coarse features, graph and batch vector."""
        data = tensors_of(data)
        level = self.level
        z = (compress if self.domain == "haar" else pool)(x, data, level)
        if self.details is not None:
            kept = detail_energy if self.details == "energy" else details
            return PoolingOutput(z, *coarse_graph(data, level + 1), kept(x, data, level))
        return PoolingOutput(z, *coarse_graph(data, level + 1))

    def __repr__(self) -> str:
        details = f", details={self.details!r}" * (self.details is not None)
        return f"HaarPooling(level={self.level}, domain={self.domain!r}{details})"


class HaarUnpooling(torch.nn.Module):
    """The way back from level j+1 to level j: the transpose of `HaarPooling`.

        haar    x = Φ_j z + D_j d
        vertex  x = P_j z + D_j d

    With the details d of `HaarPooling(level, domain, details="full")` this restores x exactly;
    without them it is the transpose, the signal nearest to x that the coarse part can say. Energies
    (details="energy") restore nothing; do not pass them here.

    Args:
        level: j, as in the pooling that it undoes.
        domain: the domain of that pooling.

    Shapes:
        z (N_{j+1}, c), data, details (N_j - N_{j+1}, c) or None -> (N_j, c).

    >>> HaarUnpooling(level=0)
    HaarUnpooling(level=0, domain='haar')
    """

    def __init__(self, level: int, domain: Domain = "haar") -> None:
        super().__init__()
        self.level = checked_start(level)
        check_domain(domain)
        self.domain = domain

    def reset_parameters(self) -> None:
        """Nothing to reset: no parameters."""

    def forward(self, z: Tensor, data: Tensors, details: Tensor | None = None) -> Tensor:
        """The signal on level j."""
        data = tensors_of(data)
        level = self.level
        x = (expand if self.domain == "haar" else unpool)(z, data, level)
        if details is None:
            return x
        dropped = tree_of(data, level).shape[-1] - tree_of(data, level + 1).shape[-1]
        if details.shape != (dropped, z.shape[-1]):
            raise HaarPoolError(
                f"details of shape ({dropped}, {z.shape[-1]}), all coefficients that were dropped",
                f"shape {tuple(details.shape)}",
                'pool with details="full" on the same data',
            )
        return x + restore(details, data, level)

    def __repr__(self) -> str:
        return f"HaarUnpooling(level={self.level}, domain={self.domain!r})"


def detail_energy(x: Tensor, data: Tensors, level: int) -> Tensor:
    """Σ d² over the details of each cluster, (N_j, d) -> (N_{j+1}, d).

    As the square of x - P_j P_jᵀ x, which no rounding makes negative; float32 for shorter types,
    whose squares could be too large.
    """
    check_signal(x, tree_of(data, level).shape[-1])
    x = widened(x)
    rest = x - unpool(pool(x, data, level), data, level)
    return sum_members(rest.square(), data, level)


def checked_start(level: int) -> int:
    """A level that a layer starts from; whether the chain has it shows with the data."""
    if not isinstance(level, int) or isinstance(level, bool) or level < 0:
        raise HaarPoolError("a level 0, 1, 2, ...", f"{level!r}", "count poolings from 0")
    return level

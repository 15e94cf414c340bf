"""EigenPool: the lowest Fourier modes of each cluster, worked out once like the chain.

Ma, Wang, Aggarwal, Tang, "Graph Convolutional Networks with EigenPooling", KDD 2019.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from haarpool._types import Domain
from haarpool.chains.chain import Chain
from haarpool.chains.modes import checked_modes, cluster_modes
from haarpool.data import AddHaarChain, ChainData
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import JoinedTensors
from haarpool.nn.operators import (
    Tensors,
    check_signal,
    coarse_graph,
    sum_members,
    tensors_of,
    tree_of,
    widened,
)
from haarpool.nn.output import PoolingOutput
from haarpool.nn.pooling import checked_start


@functional_transform("add_eigen_modes")
class AddEigenModes(AddHaarChain):
    """Build the chain of a graph and add it with the modes of its clusters: `Data` -> `ChainData`.

    It does what `AddHaarChain` does, and adds for each step j = 0..K-1 `haar_modes_j`, (H, N_j),
    which are `cluster_modes` in float64.

    Args:
        num_modes: H; a layer may use fewer.
        num_levels, parameters: those of `AddHaarChain`. The paper cuts by spectral clustering.
        domain: unlike there "vertex" is the default: `EigenPooling` needs no Haar bases.

    >>> edges = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> ring = Data(edge_index=edges, num_nodes=4)
    >>> transform = AddEigenModes(num_modes=2, num_levels=2, method="matching")
    >>> transform
    AddEigenModes(num_modes=2, num_levels=2, method='matching')
    >>> data = transform(ring)
    >>> data.chain_sizes, data.haar_modes_0.shape, data.haar_modes_1.shape
    ((4, 2, 1), torch.Size([2, 4]), torch.Size([2, 2]))
    """

    def __init__(
        self,
        num_modes: int = 2,
        num_levels: int | None = None,
        *,
        domain: Domain = "vertex",
        **parameters: Any,
    ) -> None:
        super().__init__(num_levels, domain=domain, **parameters)
        self.num_modes = checked_modes(num_modes)

    def add(self, data: Data, chain: Chain) -> ChainData:
        """The graph with a chain of it and its modes."""
        result = super().add(data, chain)
        for j in range(chain.num_levels):
            modes = cluster_modes(chain, j, self.num_modes)
            result[f"haar_modes_{j}"] = torch.from_numpy(modes)
        return result

    def join(self, forest: Chain, dtype: torch.dtype = torch.float32) -> JoinedTensors:
        """The same for many graphs at once."""
        result = super().join(forest, dtype)
        for j in range(forest.num_levels - 1):
            modes = torch.from_numpy(cluster_modes(forest, j, self.num_modes))
            result.tensors[f"haar_modes_{j}"] = modes
            result.lengths[f"haar_modes_{j}"] = result.lengths[f"haar_tree_{j}"]
        return result

    def _arguments(self) -> dict[str, Any]:
        return {"num_modes": self.num_modes} | super()._arguments()


class EigenPooling(torch.nn.Module):
    """Pool the nodes of level j into the clusters of level j+1, by their lowest modes.

    Ma, Wang, Aggarwal, Tang, "Graph Convolutional Networks with EigenPooling", KDD 2019:

        X_l = Θ_lᵀ X,  Θ_l[v, p] = the entry at v of the l-th eigenvector of cluster p
        X' = [X_1, ..., X_H]

    where eigenvectors are those of the Laplacian D - A of the cluster alone, by rising eigenvalue;
    a cluster with fewer than l nodes has zeros in X_l. With all modes, H the size of the largest
    cluster, nothing is lost (perfect reconstruction): X = Σ_l Θ_l X_l and |X'|² = |X|². With H = 1
    it is `HaarPooling(level, domain="vertex")` with measure="children". The signs of eigenvectors,
    and the choice among those of equal eigenvalues, are a convention: see `cluster_modes`.

    The code of the authors has the last eigenvector again, not zero, where a cluster has too few,
    and zero for a cluster of one node, which is lost; signs there depend on the numbering.

    Args:
        level: j in 0..K-1, counting the poolings of the network from 0.
        num_modes: H, at most that of `AddEigenModes`.

    Shapes:
        x (N_j, d), a row per node of level j in all graphs; data from `AddEigenModes`, or a batch
        (or a dict of the tensors) -> `PoolingOutput` with x (N_{j+1}, H·d), mode by mode.

    >>> path = Data(x=torch.tensor([[1.0], [3.0], [2.0]]),
    ...             edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> data = AddEigenModes(chain=lambda data: Chain.from_parents([[0, 0, 1], [0, 0]]))(path)
    >>> out = EigenPooling(level=0, num_modes=2)(data.x, data)
    >>> out.x, out.edge_index.tolist(), out.edge_weight
    (tensor([[ 2.8284, -1.4142],
             [ 2.0000,  0.0000]]), [[0, 1], [1, 0]], tensor([1., 1.]))
    """

    def __init__(self, level: int, num_modes: int = 2) -> None:
        super().__init__()
        self.level, self.num_modes = checked_start(level), checked_modes(num_modes)

    def reset_parameters(self) -> None:
        """Nothing to reset: no parameters."""

    def forward(self, x: Tensor, data: Tensors) -> PoolingOutput:
        """The coarse features, graph and batch vector."""
        data = tensors_of(data)
        graph = coarse_graph(data, self.level + 1)
        modes = self._modes(data)
        check_signal(x, modes.shape[1])
        work = widened(x)
        spread = (modes.T.to(work.dtype)[:, :, None] * work[:, None, :]).flatten(1)
        return PoolingOutput(sum_members(spread, data, self.level).to(x.dtype), *graph)

    def _modes(self, data: Tensors) -> Tensor:
        """(H, N_j) of the data."""
        nodes, key = tree_of(data, self.level).shape[-1], f"haar_modes_{self.level}"
        shape = tuple(data[key].shape) if key in data else (0, 0)
        if shape[0] < self.num_modes or shape[1] != nodes:
            raise HaarPoolError(
                f"data with {self.num_modes} modes for the {nodes} nodes of level {self.level}",
                f"{key} of shape {shape}" if key in data else f"no {key}",
                f"add AddEigenModes(num_modes={self.num_modes}, ...) to the transforms of the "
                "dataset, in the place of AddHaarChain",
            )
        return data[key][: self.num_modes]

    def __repr__(self) -> str:
        return f"EigenPooling(level={self.level}, num_modes={self.num_modes})"

"""EigenPool: the first eigenvectors of each cluster, computed once like the chain."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from haarpool._types import Ints
from haarpool._validate import whole_number
from haarpool.chains.chain import Chain
from haarpool.chains.modes import checked_modes, cluster_modes
from haarpool.data import AddHaarChain, ChainArguments, ChainData
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import ChainTensors
from haarpool.haar.joining import JoinedTensors
from haarpool.haar.operators import sum_members
from haarpool.nn.inputs import Tensors, chains_of, check_signal, widened
from haarpool.nn.layers.pooling_output import PoolingOutput
from haarpool.nn.strings.registry import layer


@functional_transform("add_eigen_modes")
class AddEigenModes(AddHaarChain):
    """Build the chain of a graph and add it with the modes of its clusters: `Data` -> `ChainData`.

    In addition to `AddHaarChain` it adds `haar_modes_j` for j = 0..K-1, (H, N_j) float64, computed
    by `cluster_modes`.

    Args:
        num_modes: H. A layer may use fewer modes.
        num_levels: K, see `AddHaarChain`.
        **parameters: Further parameters of `AddHaarChain`. The paper uses spectral clustering.

    Example:
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
        top: int | None = 1,
        **parameters: Unpack[ChainArguments],
    ) -> None:
        super().__init__(num_levels, top=top, **parameters)
        self.num_modes = checked_modes(num_modes)

    def _add(self, data: Data, chain: Chain) -> ChainData:
        result = super()._add(data, chain)
        for j in range(chain.num_levels):
            modes = cluster_modes(chain, j, self.num_modes)
            result[f"haar_modes_{j}"] = torch.from_numpy(modes)
        return result

    def join(
        self, forest: Chain, edges: Ints | None = None, edge_attr: NDArray[Any] | None = None
    ) -> JoinedTensors:
        """Build the tensors of many graphs at once, see `AddHaarChain.join`."""
        result = super().join(forest, edges, edge_attr)
        for j in range(forest.num_levels - 1):
            modes = torch.from_numpy(cluster_modes(forest, j, self.num_modes))
            result.tensors[f"haar_modes_{j}"] = modes
            result.lengths[f"haar_modes_{j}"] = result.lengths[f"haar_tree_{j}"]
        return result

    def _arguments(self) -> dict[str, Any]:
        return {"num_modes": self.num_modes} | super()._arguments()


@layer("EIG", kind="pooling", chain=True, static=True, limits={"num_modes": (1, 64)})
class EigenPooling(torch.nn.Module):
    """Pool the nodes of level j into the clusters of level j+1 by the first modes of the clusters.

        X_l = Θ_lᵀ X,  Θ_l[v, p] = the entry at v of the l-th eigenvector of cluster p
        X' = [X_1, ..., X_H]

    Ma, Wang, Aggarwal, Tang, "Graph Convolutional Networks with EigenPooling", KDD 2019. The
    eigenvectors are those of the Laplacian D - A of the cluster alone, by ascending eigenvalue. If
    a cluster has fewer than l nodes, its row of X_l is zero. With all modes, H the size of the
    largest cluster, nothing is lost (perfect reconstruction): X = Σ_l Θ_l X_l and |X'|² = |X|².
    With H = 1 it is `HaarPooling(level, domain="vertex")` with measure="children". The signs of
    eigenvectors, and the choice between those of equal eigenvalues, are a convention, see
    `cluster_modes`. The layer has no parameters.

    If a cluster has fewer than H nodes, the authors' code repeats the last eigenvector. For a
    cluster of one node it returns zeros, so that node is lost. Its signs depend on the numbering.

    Args:
        level: Level j in 0..K-1. Count the poolings of the network from 0.
        num_modes: H, at most that of `AddEigenModes`.

    Shapes:
        - **input:** x (N_j, d), one row per node of level j in all graphs; data, a `ChainData` from
          `AddEigenModes`, a batch of them, or a dict of their tensors
        - **output:** `PoolingOutput` with x (N_{j+1}, H·d), mode by mode

    Example:
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
        self.level = whole_number("level", level, minimum=0)
        self.num_modes = checked_modes(num_modes)

    def reset_parameters(self) -> None:
        """Do nothing: the layer has no parameters."""

    def out_channels(self, in_channels: int) -> int:
        """Return the number of columns of the output."""
        return in_channels * self.num_modes

    def transform(self, **parameters: Any) -> AddEigenModes:
        """Return the transform that adds what the layer reads, in the place of `AddHaarChain`."""
        return AddEigenModes(num_modes=self.num_modes, **parameters)

    def missing_key(self, data: Tensors) -> str | None:
        """Return what the layer reads besides a chain and the data does not have, or `None`."""
        key = f"haar_modes_{self.level}"
        has_modes = key in data and data[key].shape[0] >= self.num_modes
        return None if has_modes else f"{self.num_modes} rows {key}"

    def forward(self, x: Tensor, data: Tensors) -> PoolingOutput:
        """Pool a signal.

        Args:
            x: (N_j, d) signal.
            data: `ChainData` from `AddEigenModes`, a batch of them, or a dict of their tensors.
        """
        chain = chains_of(data, self.level + 1)
        modes = self._modes(chain)
        check_signal(x, modes.shape[1])
        signal = widened(x)
        products = (modes.T.to(signal.dtype)[:, :, None] * signal[:, None, :]).flatten(1)
        pooled = sum_members(chain, products, self.level).to(x.dtype)
        graph = chain.coarse_graph(self.level + 1, x.dtype)
        features = chain.coarse_features(self.level + 1, x.dtype)
        return PoolingOutput(pooled, *graph, edge_attr=features)

    def _modes(self, chain: ChainTensors) -> Tensor:
        """Return the first H modes of the data, (H, N_j)."""
        data, nodes, key = chain.tensors, chain.size(self.level), f"haar_modes_{self.level}"
        shape = tuple(data[key].shape) if key in data else (0, 0)
        if shape[0] < self.num_modes or shape[1] != nodes:
            raise HaarPoolError(
                f"data with {self.num_modes} modes for the {nodes} nodes of level {self.level}",
                f"{key} of shape {shape}" if key in data else f"no {key}",
                f"add AddEigenModes(num_modes={self.num_modes}, ...) to the transforms of the "
                "dataset, instead of AddHaarChain",
            )
        return data[key][: self.num_modes]

    def __repr__(self) -> str:
        return f"EigenPooling(level={self.level}, num_modes={self.num_modes})"

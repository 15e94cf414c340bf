"""LaPool: clusters around the nodes where the signal changes most."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from haarpool._validate import real_number, whole_number
from haarpool.nn.layers.dense_batch import DensePooling, hop_counts, safe_divisor, to_sparse
from haarpool.nn.layers.pooling_output import PoolingOutput
from haarpool.nn.strings.registry import layer


@layer("LAP", kind="pooling", options=("relaxed", "distance"))
class LaPool(DensePooling):
    """Pool nodes into sparse clusters around nodes that differ from their neighbours.

        s_i = ‖Σ_j A[i, j] (x_i - x_j)‖, the row norms of L X with L = D - A
        centroids V = {i : s_i > s_j for all neighbours j},  or the k nodes of largest s
        C[i, :] = sparsemax_v(β[i, v] cos(x_i, x_v) / (1 - σ))  for i not in V,  C[v, v] = 1
        X' = relu(Cᵀ X W + b),  A' = Cᵀ A C without its diagonal

    Noutahi, Beaini, Horwood, Giguère, Tossou, "Towards Interpretable Sparse Graph Representation
    Learning with Laplacian Pooling", arXiv 1905.11577, 2019. β[i, v] = 1 / (edges between i and v)
    prefers near centroids. Features should be >= 0, as after a ReLU, because 1 / d makes a negative
    cosine larger. Sparsemax divided by 1 - σ is sparsegen (Laha et al. 2018); σ = 0 is the formula
    of the paper, σ = 0.8 the default of its code, which also drops the diagonal. Clusters are in
    the order of their centroids.

    The paper leaves some cases open. If neighbours have equal s, the first one can be a centroid,
    so every component has one; a node without neighbours is a centroid. A node is assigned to
    clusters of its component; if the component has no centroid (with fixed k), to all clusters by
    cosine alone. Nodes are neighbours if there is an edge of any weight; self-loops do not change
    s. The GIN layer inside the pooling of the authors' code is left to the layers of the network.

    Args:
        in_channels: Number of columns of x.
        out_channels: Number of columns of the output; `None` for in_channels.
        num_clusters: k, the largest number of clusters per graph; `None` for one cluster for each
            node that differs from its neighbours.
        relaxed: If `True`, s_i above the weighted mean of its neighbours is enough, as in the
            authors' code, which gives more centroids.
        distance: If `False`, the graph distance is ignored: β = 1.
        sigma: σ in [0, 1). Larger values give sparser assignments.

    Shapes:
        - **input:** x (N, in_channels), edge_index (2, E), edge_weight (E,) *(optional)*,
          batch (N,) *(optional)*
        - **output:** `PoolingOutput` with x (clusters of all graphs, out_channels)

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4], [1, 0, 2, 1, 3, 2, 4, 3]])
        >>> pool = LaPool(1, 4)
        >>> pool
        LaPool(1, 4, num_clusters=None)
        >>> out = pool(torch.tensor([[1.0], [4.0], [3.0], [4.0], [1.0]]), path)
        >>> out.x.shape, out.edge_index.tolist(), out.edge_weight.tolist()
        (torch.Size([2, 4]), [[0, 1], [1, 0]], [1.0, 1.0])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int | None = None,
        num_clusters: int | None = None,
        relaxed: bool = False,
        distance: bool = True,
        sigma: float = 0.8,
    ) -> None:
        super().__init__()
        self.in_channels = whole_number("in_channels", in_channels)
        out_channels = self.in_channels if out_channels is None else out_channels
        self.out_channels = whole_number("out_channels", out_channels)
        self.num_clusters = num_clusters
        if num_clusters is not None:
            self.num_clusters = whole_number("num_clusters", num_clusters)
        self.relaxed, self.distance = relaxed, distance
        self.sigma = real_number("sigma", sigma, 0, 1, remedy="pass sigma=0 for sparsemax")
        self.update = nn.Linear(self.in_channels, self.out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weights of the linear map."""
        self.update.reset_parameters()

    def pool(self, x: Tensor, adj: Tensor, mask: Tensor) -> PoolingOutput:
        """Pool a dense batch."""
        c, is_cluster = self.assign(x, adj, mask)
        diagonal = torch.eye(c.shape[2], dtype=torch.bool, device=x.device)
        coarse = (c.mT @ adj @ c).masked_fill(diagonal, 0)
        return to_sparse(self.update(c.mT @ x).relu(), coarse, is_cluster)

    def assign(self, x: Tensor, adj: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the assignment (B, n, m), and the mask (B, m) of columns that are clusters."""
        is_centroid = self.centroids(x.detach(), adj.detach(), mask)
        num_centroids = is_centroid.sum(1)
        m = int(num_centroids.max())
        # Centroids first, in the order of nodes; graphs with fewer than m are padded.
        centroid = is_centroid.long().argsort(dim=1, descending=True, stable=True)[:, :m]
        is_cluster = torch.arange(centroid.shape[1], device=x.device) < num_centroids[:, None]
        node = torch.arange(x.shape[1], device=x.device)
        same = (node[:, None] == centroid[:, None, :]) & is_cluster[:, None, :]
        unit = x / safe_divisor(torch.linalg.vector_norm(x, dim=-1, keepdim=True))
        graph = torch.arange(len(x), device=x.device)[:, None]
        score = unit @ unit[graph, centroid].mT
        allowed = is_cluster[:, None, :].expand_as(same)
        if self.distance:
            hops = hop_counts(adj, same)
            reachable = hops.isfinite()
            isolated = ~reachable.any(-1, keepdim=True)  # no centroid in the component
            score = score / hops.clamp(min=1).masked_fill(isolated | ~reachable, 1)
            allowed = allowed & (reachable | isolated)
        c = sparsemax(score / (1 - self.sigma), allowed)
        # A centroid belongs to its cluster only.
        c = torch.where(is_centroid[..., None], same.to(x.dtype), c)
        return c * mask[..., None], is_cluster

    def centroids(self, x: Tensor, adj: Tensor, mask: Tensor) -> Tensor:
        """Return the mask of centroids, (B, n), of a dense batch."""
        degree = adj.sum(-1)
        s: Tensor = torch.linalg.vector_norm(degree[..., None] * x - adj @ x, dim=-1)
        # Rank by descending s, then by row: a strict order, so every component has a first node.
        # Padding has s = 0 and the last rows, so it has the last ranks.
        rank = s.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        if self.num_clusters is not None:
            return mask & (rank < self.num_clusters)
        neighbour: Tensor = (adj != 0) | (adj.mT != 0)
        is_centroid = ~(neighbour & (rank[:, None, :] < rank[:, :, None])).any(-1)
        if self.relaxed:
            # By more than rounding; otherwise many equal nodes would be centroids.
            is_centroid |= (adj @ s[..., None])[..., 0] < (1 - 1e-4) * degree * s
        return mask & is_centroid

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}, num_clusters={self.num_clusters}"
        relaxed = ", relaxed=True" if self.relaxed else ""
        distance = "" if self.distance else ", distance=False"
        sigma = "" if self.sigma == 0.8 else f", sigma={self.sigma}"
        return f"LaPool({sizes}{relaxed}{distance}{sigma})"


def sparsemax(z: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Project each row (last dimension) onto the simplex of the allowed entries.

    The result is max(z - τ, 0) with the τ that makes the sum one (Martins and Astudillo, "From
    Softmax to Sparsemax", ICML 2016). Rows without allowed entries are uniform.

    Args:
        z: (..., m) scores.
        allowed: (..., m) boolean; `None` for all entries.

    Example:
        >>> sparsemax(torch.tensor([1.0, 0.5, -1.0]))
        tensor([0.7500, 0.2500, 0.0000])
    """
    allowed = torch.ones_like(z, dtype=torch.bool) if allowed is None else allowed
    largest = z.detach().masked_fill(~allowed, torch.finfo(z.dtype).min).amax(-1, keepdim=True)
    # The maximum is 0 now, so τ >= -1: an entry of -2 becomes 0. Unlike -inf it has a gradient.
    z = (z - largest).masked_fill(~allowed, -2)
    descending = z.sort(dim=-1, descending=True).values
    sums = descending.cumsum(-1) - 1
    rank = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    support = (rank * descending > sums).sum(-1, keepdim=True)
    return (z - sums.gather(-1, support - 1) / support).relu()

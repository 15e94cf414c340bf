"""LaPool: clusters around the nodes where the signal changes most."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from haarpool.errors import HaarPoolError
from haarpool.nn.output import PoolingOutput
from haarpool.nn.peers.dense_batch import (
    check_at_least,
    check_width,
    hop_counts,
    nonzero,
    to_dense,
    to_sparse,
)


class LaPool(nn.Module):
    """Sparse clusters around centroids that stand out from their neighbours.

    Noutahi, Beaini, Horwood, Giguère, Tossou, "Towards Interpretable Sparse Graph Representation
    Learning with Laplacian Pooling", arXiv 1905.11577, 2019:

        s_i = ‖Σ_j A[i, j] (x_i - x_j)‖, the row norms of L X with L = D - A
        centroids V = {i : s_i > s_j for all neighbours j},  or the k nodes of largest s
        C[i, :] = sparsemax_v(β[i, v] cos(x_i, x_v) / (1 - σ))  for i not in V,  C[v, v] = 1
        X' = relu(Cᵀ X W + b),  A' = Cᵀ A C without its diagonal

    β[i, v] = 1 / (edges between i and v) lets near centroids win. Since 1 / d shrinks a negative
    cosine too, features should be >= 0, as after a ReLU. Sparsemax divided by 1 - σ is sparsegen
    (Laha et al. 2018); σ = 0 is the formula of the paper, σ = 0.8 the default of its code, which
    also drops the diagonal. Clusters stand in the order of their centroids.

    What the paper leaves open: of tied neighbours the first can be a centroid, so that every
    component has one, and a node without neighbours is one itself. A node takes part in clusters
    of its own component; where that has no centroid (fixed k), in all by cosine alone. Neighbours
    count as such whatever the weight of the edge; self-loops play no part in s. The GIN layer that
    the authors' code runs inside its pooling is left to the layers around.

    Args:
        in_channels: width of x.
        out_channels: width of the output; None: in_channels.
        num_clusters: k, at most so many in each graph; None: as many as stand out.
        relaxed: whether s_i above the weighted mean of its neighbours is enough, as in the authors'
            code; gives more centroids.
        distance: whether graph distance matters; if not, β = 1.
        sigma: in [0, 1): the larger, the sparser.

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
        check_at_least(1, out_channels=out_channels, num_clusters=num_clusters)
        if not 0 <= sigma < 1:
            raise HaarPoolError("sigma in [0, 1)", f"{sigma!r}", "pass sigma=0 for sparsemax")
        self.in_channels, self.out_channels = in_channels, out_channels or in_channels
        self.num_clusters, self.relaxed = num_clusters, relaxed
        self.distance, self.sigma = distance, sigma
        self.update = nn.Linear(self.in_channels, self.out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fresh weights for the learned map."""
        self.update.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> PoolingOutput:
        """Pool a minibatch: x (N, in_channels), edge_index (2, E), edge_weight (E,), batch (N,)."""
        check_width(x, self.in_channels)
        x, adj, mask = to_dense(x, edge_index, edge_weight, batch)
        c, kept = self.assign(x, adj, mask)
        same = torch.eye(c.shape[2], dtype=torch.bool, device=x.device)
        coarse = (c.mT @ adj @ c).masked_fill(same, 0)
        return to_sparse(self.update(c.mT @ x).relu(), coarse, kept)

    def assign(self, x: Tensor, adj: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(B, n, m) assignment of a dense batch, and (B, m) which columns are clusters."""
        chosen = self.centroids(x.detach(), adj.detach(), mask)
        number = chosen.sum(1)
        # Centroids first, in the order of nodes; graphs with fewer than m fill up with others.
        index = chosen.long().argsort(dim=1, descending=True, stable=True)[:, : int(number.max())]
        kept = torch.arange(index.shape[1], device=x.device) < number[:, None]
        own = torch.arange(x.shape[1], device=x.device)[:, None] == index[:, None, :]
        own, graph = own & kept[:, None, :], torch.arange(len(x), device=x.device)[:, None]
        unit = x / nonzero(torch.linalg.vector_norm(x, dim=-1, keepdim=True))
        score, allowed = unit @ unit[graph, index].mT, kept[:, None, :].expand_as(own)
        if self.distance:
            hops = hop_counts(adj, own)
            near = hops.isfinite()
            lost = ~near.any(-1, keepdim=True)
            score = score / hops.clamp(min=1).masked_fill(lost | ~near, 1)
            allowed = allowed & (near | lost)
        c = sparsemax(score / (1 - self.sigma), allowed)
        # A centroid stays in its own cluster, whatever resembles it.
        c = torch.where(chosen[..., None], own.to(x.dtype), c)
        return c * mask[..., None], kept

    def centroids(self, x: Tensor, adj: Tensor, mask: Tensor) -> Tensor:
        """(B, n) which nodes of a dense batch are centroids."""
        degree = adj.sum(-1)
        s: Tensor = torch.linalg.vector_norm(degree[..., None] * x - adj @ x, dim=-1)
        # Places by falling s and, of ties, by row: a strict order, so that a component has a first.
        # Padding has s = 0 and the last rows, and so the last places.
        place = s.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        if self.num_clusters is not None:
            return mask & (place < self.num_clusters)
        neighbour: Tensor = (adj != 0) | (adj.mT != 0)
        chosen = ~(neighbour & (place[:, None, :] < place[:, :, None])).any(-1)
        if self.relaxed:
            # By more than rounding, or nodes that are alike would all stand out.
            chosen |= (adj @ s[..., None])[..., 0] < (1 - 1e-4) * degree * s
        return mask & chosen

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}, num_clusters={self.num_clusters}"
        relaxed = ", relaxed=True" if self.relaxed else ""
        distance = "" if self.distance else ", distance=False"
        sigma = "" if self.sigma == 0.8 else f", sigma={self.sigma}"
        return f"LaPool({sizes}{relaxed}{distance}{sigma})"


def sparsemax(z: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Projection of each row (last dimension) onto the simplex of the allowed entries.

    Martins and Astudillo, "From Softmax to Sparsemax", ICML 2016: max(z - τ, 0) with the τ that
    makes the sum one. Rows with nothing allowed are uniform.

    >>> sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    allowed = torch.ones_like(z, dtype=torch.bool) if allowed is None else allowed
    top = z.detach().masked_fill(~allowed, torch.finfo(z.dtype).min).amax(-1, keepdim=True)
    # With a maximum of 0, τ >= -1: -2 is out, and unlike -inf has a gradient.
    z = (z - top).masked_fill(~allowed, -2)
    falling = z.sort(dim=-1, descending=True).values
    sums = falling.cumsum(-1) - 1
    rank = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
    support = (rank * falling > sums).sum(-1, keepdim=True)
    return (z - sums.gather(-1, support - 1) / support).relu()

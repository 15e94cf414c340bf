"""StructPool: clusters as labels of a conditional random field over the nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from haarpool.nn.output import PoolingOutput
from haarpool.nn.peers.dense_batch import (
    check_at_least,
    check_width,
    hop_counts,
    nonzero,
    to_dense,
    to_sparse,
)


class StructPool(nn.Module):
    """Soft clusters on which similar nodes agree, by mean-field steps in a random field.

    Hao Yuan and Shuiwang Ji, "StructPool: Structured Graph Pooling via Conditional Random
    Fields", ICLR 2020. A node pays a unary energy for its cluster, and pairs of nodes pay for
    theirs by how similar they are:

        U = GCN(X, A),  one layer being  H <- tanh(D⁻¹ (A + I) H W + b)  with D = deg(A) + I
        P[i, j] = <x_i, x_j> / Σ_k |<x_i, x_k>|  over k ≠ i of the same graph, within `hops`
        Q <- softmax(U),  then `num_iterations` times  Q <- softmax(U - P Q Λ)
        X' = Qᵀ X,  A' = Qᵀ A Q

    The compatibility Λ is learned and starts at -I: each node asks its peers to join its cluster.
    A' keeps its diagonal, as in the authors' code. Every graph gets `num_clusters` clusters, also
    one with fewer nodes, whose nodes then spread over them as in DiffPool.

    Two things differ. The authors divide by the sum of similarities, which vanishes or changes sign
    where features do; the sum of magnitudes is the same for features >= 0, always bounds P, and
    gives a node like no other no message instead of NaN. And their code keeps Λ = -I fixed; a
    learned Λ starts there and contains it.

    Args:
        in_channels: width of x.
        num_clusters: of every graph.
        num_iterations: of mean field; 0 leaves softmax(U). The authors use 5.
        hops: pairs at most so many edges apart interact; None: all pairs of a graph, as in the
            authors' code.
        hidden_channels: widths inside the GCN; the authors use (48, 48).

    >>> pool = StructPool(16, num_clusters=8, num_iterations=3)
    >>> pool
    StructPool(16, num_clusters=8, num_iterations=3)
    >>> out = pool(torch.randn(5, 16), torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]]),
    ...            batch=torch.tensor([0, 0, 0, 1, 1]))
    >>> out.x.shape, out.batch.bincount().tolist()
    (torch.Size([16, 16]), [8, 8])
    """

    def __init__(
        self,
        in_channels: int,
        num_clusters: int = 16,
        num_iterations: int = 5,
        hops: int | None = None,
        hidden_channels: tuple[int, ...] = (48, 48),
    ) -> None:
        super().__init__()
        check_at_least(1, in_channels=in_channels, num_clusters=num_clusters)
        check_at_least(0, num_iterations=num_iterations, hops=hops)
        self.in_channels, self.num_clusters = in_channels, num_clusters
        self.num_iterations, self.hops = num_iterations, hops
        self.hidden_channels = tuple(hidden_channels)
        widths = [in_channels, *hidden_channels, num_clusters]
        self.unary = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.compatibility = nn.Parameter(torch.empty(num_clusters, num_clusters))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights for the GCN, zero biases, and compatibility -I."""
        for layer in self.unary:
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        with torch.no_grad():
            self.compatibility.copy_(-torch.eye(self.num_clusters))

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
        q = self.assign(x, adj, mask)
        every = mask.new_ones(len(x), self.num_clusters)
        return to_sparse(q.mT @ x, q.mT @ adj @ q, every)

    def assign(self, x: Tensor, adj: Tensor, mask: Tensor) -> Tensor:
        """(B, n, num_clusters) assignment of a dense batch; rows of padding are zero."""
        unary, attention = self.energy(x, adj), self.attention(x, adj, mask)
        q = unary.softmax(-1)
        for _ in range(self.num_iterations):
            q = (unary - attention @ q @ self.compatibility).softmax(-1)
        return q * mask[..., None]

    def energy(self, x: Tensor, adj: Tensor) -> Tensor:
        """(B, n, num_clusters) unary energies."""
        # Magnitudes, so that a negative weight cannot make a degree vanish.
        degree = 1 + adj.abs().sum(-1, keepdim=True)
        for layer in self.unary:
            x = torch.tanh(layer((adj @ x + x) / degree))
        return x

    def attention(self, x: Tensor, adj: Tensor, mask: Tensor) -> Tensor:
        """(B, n, n) pairwise energies, zero on the diagonal and wherever there is padding."""
        pairs = mask[:, :, None] & mask[:, None, :]
        same = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
        if self.hops is not None:
            pairs = pairs & hop_counts(adj, same.expand_as(pairs), self.hops).isfinite()
        similarity = (x @ x.mT).masked_fill(~pairs | same, 0)
        return similarity / nonzero(similarity.abs().sum(-1, keepdim=True))

    def __repr__(self) -> str:
        sizes = f"num_clusters={self.num_clusters}, num_iterations={self.num_iterations}"
        hops = "" if self.hops is None else f", hops={self.hops}"
        hidden = self.hidden_channels
        widths = "" if hidden == (48, 48) else f", hidden_channels={hidden}"
        return f"StructPool({self.in_channels}, {sizes}{hops}{widths})"

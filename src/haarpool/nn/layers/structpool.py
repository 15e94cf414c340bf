"""StructPool: clusters as labels of a conditional random field over the nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from haarpool._validate import whole_number
from haarpool.nn.layers.dense_batch import DensePooling, hop_counts, safe_divisor, to_sparse
from haarpool.nn.layers.pooling_output import PoolingOutput
from haarpool.nn.strings.registry import layer


@layer(
    "STRUCT",
    kind="pooling",
    options=("num_clusters", "num_iterations", "hops"),
    limits={"num_clusters": (1, 1024), "num_iterations": (0, 1000), "hops": (0, 1_000_000)},
)
class StructPool(DensePooling):
    """Pool nodes into soft clusters by a conditional random field.

        U = GCN(X, A),  one layer being  H <- tanh(D⁻¹ (A + I) H W + b)  with D = deg(A) + I
        P[i, j] = <x_i, x_j> / Σ_k |<x_i, x_k>|  over k ≠ i of the same graph, within `hops`
        Q <- softmax(U),  then `num_iterations` times  Q <- softmax(U - P Q Λ)
        X' = Qᵀ X,  A' = Qᵀ A Q

    Hao Yuan and Shuiwang Ji, "StructPool: Structured Graph Pooling via Conditional Random
    Fields", ICLR 2020. U are the unary energies of nodes and clusters, P the pairwise energies by
    the similarity of nodes. The compatibility Λ is learned and starts at -I, so that similar nodes
    prefer the same cluster. A' keeps its diagonal, as in the authors' code. Every graph gets
    `num_clusters` clusters; the nodes of a smaller graph are distributed over them, as in DiffPool.

    There are two differences. The authors divide by the sum of similarities, which may be zero or
    negative. Here it is the sum of absolute values, which is the same for features >= 0, always
    bounds P, and gives zeros instead of NaN for a node without similar nodes. The authors' code
    keeps Λ = -I fixed.

    Args:
        in_channels: Number of columns of x.
        num_clusters: Clusters per graph.
        num_iterations: Mean-field steps; 0 leaves softmax(U). The authors use 5.
        hops: Largest number of edges between nodes that interact; `None` for all pairs of a graph,
            as in the authors' code.
        hidden_channels: Widths of the hidden layers of the GCN; the authors use (48, 48).

    Shapes:
        - **input:** x (N, in_channels), edge_index (2, E), edge_weight (E,) *(optional)*,
          batch (N,) *(optional)*
        - **output:** `PoolingOutput` with x (B · num_clusters, in_channels)

    Example:
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
        self.in_channels = whole_number("in_channels", in_channels)
        self.num_clusters = whole_number("num_clusters", num_clusters)
        self.num_iterations = whole_number("num_iterations", num_iterations, minimum=0)
        self.hops = None if hops is None else whole_number("hops", hops, minimum=0)
        hidden = (whole_number("hidden_channels", width) for width in hidden_channels)
        self.hidden_channels = tuple(hidden)
        widths = [self.in_channels, *self.hidden_channels, self.num_clusters]
        self.unary = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.compatibility = nn.Parameter(torch.empty(self.num_clusters, self.num_clusters))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the GCN to Glorot weights and zero biases, and the compatibility to -I."""
        for linear in self.unary:
            assert isinstance(linear, nn.Linear)
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        with torch.no_grad():
            self.compatibility.copy_(-torch.eye(self.num_clusters))

    def pool(self, x: Tensor, adj: Tensor, mask: Tensor) -> PoolingOutput:
        """Pool a dense batch."""
        q = self.assign(x, adj, mask)
        return to_sparse(q.mT @ x, q.mT @ adj @ q)

    def assign(self, x: Tensor, adj: Tensor, mask: Tensor) -> Tensor:
        """Return the assignment (B, n, num_clusters); rows of padding are zero."""
        unary, attention = self.energy(x, adj), self.attention(x, adj, mask)
        q = unary.softmax(-1)
        for _ in range(self.num_iterations):
            q = (unary - attention @ q @ self.compatibility).softmax(-1)
        return q * mask[..., None]

    def energy(self, x: Tensor, adj: Tensor) -> Tensor:
        """Compute the unary energies U, (B, n, num_clusters)."""
        # Absolute values, because a sum of negative and positive weights may be zero.
        degree = 1 + adj.abs().sum(-1, keepdim=True)
        for linear in self.unary:
            x = torch.tanh(linear((adj @ x + x) / degree))
        return x

    def attention(self, x: Tensor, adj: Tensor, mask: Tensor) -> Tensor:
        """Compute the pairwise energies P, (B, n, n), zero on the diagonal and for padding."""
        pairs = mask[:, :, None] & mask[:, None, :]
        same = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
        if self.hops is not None:
            pairs = pairs & hop_counts(adj, same.expand_as(pairs), self.hops).isfinite()
        similarity = (x @ x.mT).masked_fill(~pairs | same, 0)
        return similarity / safe_divisor(similarity.abs().sum(-1, keepdim=True))

    def __repr__(self) -> str:
        sizes = f"num_clusters={self.num_clusters}, num_iterations={self.num_iterations}"
        hops = "" if self.hops is None else f", hops={self.hops}"
        hidden = self.hidden_channels
        widths = "" if hidden == (48, 48) else f", hidden_channels={hidden}"
        return f"StructPool({self.in_channels}, {sizes}{hops}{widths})"

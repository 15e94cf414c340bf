"""`gcnii`: a deep flat network with initial residuals, of Chen et al. (2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor
from torch.nn import LayerNorm, ModuleList
from torch_geometric.nn import GCN2Conv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from haarpool.nn.layers.state import LayerState
from paper.pooling.peers.architecture import PeerArchitecture
from paper.pooling.peers.peer import Peer
from paper.pooling.peers.registering import peer

ALPHA, THETA = 0.1, 0.5


@peer("gcnii")
@dataclass(frozen=True)
class GCNIIArchitecture(PeerArchitecture):
    """The sizes of a `GCNII`.

    Attributes:
        depth: Number of convolutions.
    """

    depth: int = 16
    network: ClassVar[str] = "GCNII"
    home: ClassVar[str] = __name__
    limits: ClassVar[dict[str, tuple[int, int]]] = {"depth": (1, 256)}
    example: ClassVar[str] = "width=128,depth=32"


class GCNII(Peer):
    """A flat network whose layers all see the first one.

        x_0     = relu(embedding)
        x_{l+1} = relu(norm(((1 - a) A x_l + a x_0) ((1 - b_l) I + b_l W_l)))

    with A = D^(-1/2) (A + I) D^(-1/2), a = 0.1 and b_l = log(0.5 / l + 1). Layer norm is ours.
    """

    architecture = GCNIIArchitecture

    def __init__(self, *arguments: Any, depth: int = 16, **settings: Any) -> None:
        super().__init__(*arguments, depth=depth, **settings)
        width = self.embedding.out_features
        self.convolutions = ModuleList(
            GCN2Conv(width, ALPHA, THETA, layer, normalize=False) for layer in range(1, depth + 1)
        )
        self.norms = ModuleList(LayerNorm(width) for _ in range(depth))

    def layers(self, x: Tensor, graphs: LayerState, edge_attr: Tensor | None) -> Tensor:
        """Return (N, 1, width) the last layer."""
        # Once for all layers; without weights, see `edges`.
        edges = gcn_norm(graphs.edge_index, None, len(x), dtype=x.dtype)
        x = first = x[:, 0].relu()
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = norm(convolution(x, first, *edges)).relu()
        return x[:, None]

"""A pooling of your own: register it, then train it from an architecture string.

python examples/own_pooling.py
"""

import torch
from torch import Tensor
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import degree, subgraph

import haarpool as hp
from haarpool.nn import PoolingOutput, layer


@layer("HUB", kind="pooling", limits={"share": (0, 10)})
class HubPooling(torch.nn.Module):
    """Keep the nodes whose degree is a share of the mean of their graph, or more."""

    def __init__(self, in_channels: int, share: float = 1.0) -> None:
        super().__init__()
        self.share = share

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor
    ) -> PoolingOutput:
        """Return the subgraphs of these nodes."""
        size = degree(edge_index[0], len(x))
        kept = size >= self.share * global_mean_pool(size[:, None], batch)[batch, 0]
        edges, weight = subgraph(
            kept, edge_index, edge_weight, relabel_nodes=True, num_nodes=len(x)
        )
        return PoolingOutput(x[kept], edges, weight, batch[kept])


graphs = hp.load_dataset("rings")
arch = "GIN32-HUB-GIN32-SUM-FC32"
model = hp.HaarClassifier(arch=arch, pooling={"share": 0.8}, epochs=30).fit(graphs[:180])
print(f"{arch}: test accuracy {model.score(graphs[180:]):.2f} on 60 graphs (by chance 0.50)")

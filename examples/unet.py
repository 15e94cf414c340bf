"""Node classification by a graph U-Net: communities of a random graph from noisy features.

python examples/unet.py
"""

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import stochastic_blockmodel_graph

from haarpool.data import AddHaarChain
from haarpool.nn import HaarPooling, HaarUnpooling

torch.manual_seed(0)
CLASSES, DEPTH, WIDTH = 4, 2, 32


class UNet(torch.nn.Module):
    """Convolutions down to level DEPTH and up again, with skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = GCNConv(CLASSES, WIDTH), torch.nn.Linear(WIDTH, CLASSES)
        self.pools = torch.nn.ModuleList(HaarPooling(j, "vertex") for j in range(DEPTH))
        self.unpools = torch.nn.ModuleList(HaarUnpooling(j, "vertex") for j in range(DEPTH))
        self.down = torch.nn.ModuleList(GCNConv(WIDTH, WIDTH) for _ in range(DEPTH))
        self.up = torch.nn.ModuleList(GCNConv(WIDTH, WIDTH) for _ in range(DEPTH))

    def forward(self, data: Data) -> torch.Tensor:
        """Compute scores of the classes for every node, (N, CLASSES)."""
        edges, weight, skips = data.edge_index, None, []
        x = self.first(data.x, edges).relu()
        for pool, conv in zip(self.pools, self.down, strict=True):
            skips.append((x, edges, weight))
            x, edges, weight, *_ = pool(x, data)
            x = conv(x, edges, weight).relu()
        for unpool, conv in zip(reversed(self.unpools), reversed(self.up), strict=True):
            skip, edges, weight = skips.pop()
            x = conv(unpool(x, data) + skip, edges, weight).relu()
        return self.last(x)


edges = stochastic_blockmodel_graph([150] * CLASSES, torch.eye(CLASSES) * 0.05 + 0.01)
y = torch.arange(CLASSES).repeat_interleave(150)
x = torch.nn.functional.one_hot(y).float() + 3 * torch.randn(len(y), CLASSES)
data = AddHaarChain(num_levels=DEPTH, top=None)(Data(x=x, edge_index=edges, y=y))
train = torch.rand(len(y)) < 0.3
net = UNet()
optimizer = torch.optim.Adam(net.parameters(), 0.01, weight_decay=5e-3)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(data)[train], y[train]).backward()
    optimizer.step()
accuracy = (net(data).argmax(1) == y)[~train].float().mean()
alone = (x.argmax(1) == y)[~train].float().mean()
print(f"chain {data.chain_sizes}")
print(f"test accuracy {accuracy:.2f} (from the features of a node alone {alone:.2f})")

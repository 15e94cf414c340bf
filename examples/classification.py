"""Graph classification: distinguish random graphs from graphs with preferential attachment.

python examples/classification.py
"""

import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv
from torch_geometric.utils import barabasi_albert_graph, erdos_renyi_graph

from haarpool.data import AddHaarChain
from haarpool.nn import HaarPooling, HaarReadout

torch.manual_seed(0)


def sample(label: int) -> Data:
    """Sample a graph; both classes have about the same number of edges."""
    n = int(torch.randint(20, 60, (1,)))
    edges = barabasi_albert_graph(n, 2) if label else erdos_renyi_graph(n, 4 / n)
    return Data(edge_index=edges, num_nodes=n, y=torch.tensor([label]))


class Net(torch.nn.Module):
    """Convolution, pooling, convolution, statistics of the coarse level, linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.pool = GCNConv(1, 32), HaarPooling(level=0, domain="vertex")
        self.conv2, self.readout = GCNConv(32, 32), HaarReadout(level=1)
        self.lin = torch.nn.Linear(self.readout.out_channels(32, num_levels=2), 2)

    def forward(self, data: Data) -> torch.Tensor:
        """Compute scores of the two classes, (graphs, 2)."""
        x = self.conv1(data.x, data.edge_index).relu()
        out = self.pool(x, data)
        x = self.conv2(out.x, out.edge_index, out.edge_weight).relu()
        return self.lin(self.readout(x, data))


transform = T.Compose([T.Constant(), AddHaarChain(num_levels=2)])
graphs = [transform(sample(i % 2)) for i in range(400)]
train, test = DataLoader(graphs[:300], 50, shuffle=True), DataLoader(graphs[300:], 50)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for _ in range(30):
    for batch in train:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(batch), batch.y)
        loss.backward()
        optimizer.step()
net.eval()
correct = sum(int((net(batch).argmax(1) == batch.y).sum()) for batch in test)
print(f"loss {loss:.3f}, test accuracy {correct / 100:.2f} on 100 graphs (by chance 0.50)")

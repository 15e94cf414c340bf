"""Graph regression by an architecture string: predict the share of rewired edges.

python examples/regression.py
"""

import networkx as nx
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import from_networkx

from haarpool.nn import build_model

torch.manual_seed(0)


def sample(seed: int) -> Data:
    """Sample a small-world graph; the target is the share of rewired edges."""
    share = float(torch.rand(1))
    graph = nx.connected_watts_strogatz_graph(30 + seed % 20, 4, share, seed=seed)
    data = from_networkx(nx.Graph(graph.edges))
    data.y = torch.tensor([share])
    return data


model = build_model(
    "2GIN32-HP-GIN32-HP-FC32", 1, 1, task="regression", domain="vertex", dropout=0.0
)
transform = T.Compose([T.Constant(), model.transform(seed=0)])  # the chain that the model reads
graphs = [transform(sample(seed)) for seed in range(400)]
model.check(graphs[0])
train, test = DataLoader(graphs[:300], 50, shuffle=True), DataLoader(graphs[300:], 50)
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for _ in range(40):
    for batch in train:
        optimizer.zero_grad()
        loss = model.loss(model(batch), batch.y)
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    errors = torch.cat([(model(batch)[:, 0] - batch.y).abs() for batch in test])
mean = torch.cat([batch.y for batch in train]).mean()
baseline = torch.cat([(batch.y - mean).abs() for batch in test]).mean()
print(model.arch, "on chains", model.chain_parameters)
print(f"test error {errors.mean():.3f} on 100 graphs (the mean as a guess {baseline:.3f})")

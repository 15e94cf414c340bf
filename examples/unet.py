"""Classes of nodes: communities of a random graph from noisy features, by `HaarNodeClassifier`.

python examples/unet.py
"""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import stochastic_blockmodel_graph

import haarpool as hp

torch.manual_seed(0)
CLASSES = 4
edges = stochastic_blockmodel_graph([150] * CLASSES, torch.eye(CLASSES) * 0.05 + 0.01)
y = torch.arange(CLASSES).repeat_interleave(150)
x = torch.nn.functional.one_hot(y).float() + 3 * torch.randn(len(y), CLASSES)

train = torch.rand(len(y)) < 0.3
known = y.double().masked_fill(~train, torch.nan)  # NaN: the class is not known
data = Data(x=x, edge_index=edges)

model = hp.HaarNodeClassifier(arch="haarunet", width=32, epochs=60, lr=0.01)
model.fit(data, known)

accuracy = (torch.tensor(model.predict(data)) == y)[~train].float().mean()
alone = (x.argmax(1) == y)[~train].float().mean()
print(f"test accuracy {accuracy:.2f} (from the features of a node alone {alone:.2f})")

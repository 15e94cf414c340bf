"""Graphs with labels at their nodes, and signals on one graph."""

import numpy as np
import torch
from torch_geometric.data import Data

RING = 12


def ring_edges(nodes=RING):
    ends = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    return torch.cat([ends, ends.flip(0)], 1)


def heat(signals=30, nodes=RING, seed=0):
    """Signals x on a ring; y is what flows to a node from both sides, and its own value."""
    x = np.random.default_rng(seed).normal(size=(signals, nodes, 1)).astype(np.float32)
    around = np.roll(x, 1, 1) + np.roll(x, -1, 1)
    return x, np.concatenate([around, x], 2)


def signal_data(signals=30, seed=0, targets=1):
    """One `Data` with S signals."""
    x, y = map(torch.from_numpy, heat(signals, seed=seed))
    y = y[..., 0] if targets == 1 else y
    return Data(x=x, y=y, edge_index=ring_edges(), num_nodes=RING)


def graph_data(number=20, seed=0, classes=False):
    """Rings of several sizes, whose nodes have values, or classes: whether the value is above 0."""
    made = []
    for g in range(number):
        nodes = 6 + (g + seed) % 5
        x, y = (torch.from_numpy(one[0]) for one in heat(1, nodes, seed + g))
        labels = (y[:, 0] > 0).long() if classes else y[:, 0]
        made.append(Data(x=x, y=labels, edge_index=ring_edges(nodes)))
    return made


def halves(nodes=60, seed=0, masks=0):
    """A path whose two halves are the classes of its nodes."""
    rng = np.random.default_rng(seed)
    ends = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    y = (torch.arange(nodes) >= nodes // 2).long()
    x = y[:, None].float() + torch.from_numpy(rng.normal(size=(nodes, 2))).float()
    data = Data(x=x, y=y, edge_index=torch.cat([ends, ends.flip(0)], 1))
    if masks:
        parts = np.stack([rng.permutation(nodes) % 3 for _ in range(masks)], 1)
        for part, key in enumerate(("train_mask", "val_mask", "test_mask")):
            data[key] = (
                torch.from_numpy(parts == part).squeeze(1)
                if masks == 1
                else (torch.from_numpy(parts == part))
            )
    return data

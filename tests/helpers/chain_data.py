"""PyG graphs with chains."""

import numpy as np
import torch
from torch_geometric.data import Data

import haarpool as hp
from haarpool.data import AddHaarChain, ChainData
from haarpool.nn import AddEigenModes


def random_data(nodes: int, degree: float = 3.0, seed: int = 0, columns: int = 3) -> Data:
    """A random graph with weights, a label and, if the degree is small, isolated nodes."""
    rng = np.random.default_rng(seed)
    chosen = rng.random((nodes, nodes)) < degree / nodes
    upper = np.triu(chosen * rng.uniform(1, 2, (nodes, nodes)), 1)
    row, column = np.nonzero(upper + upper.T)
    return Data(
        x=torch.from_numpy(rng.standard_normal((nodes, columns))),
        edge_index=torch.from_numpy(np.stack([row, column])),
        edge_weight=torch.from_numpy((upper + upper.T)[row, column]),
        y=torch.tensor([nodes]),
    )


def carrier(chain: hp.Chain) -> ChainData:
    """The graph of a chain, with the chain and a signal."""
    whole = chain.adjacency(0, self_loops=True).tocoo()
    data = Data(
        x=torch.from_numpy(np.random.default_rng(0).standard_normal((chain.sizes[0], 2))),
        edge_index=torch.from_numpy(np.stack([whole.row, whole.col]).astype(np.int64)),
        edge_weight=torch.from_numpy(whole.data),
    )
    return ChainData.from_chain(data, chain)


def same_data(one: Data, two: Data) -> bool:
    """The same keys, and for each the same type and value."""
    first, second = one.to_dict(), two.to_dict()
    assert first.keys() == second.keys()
    for key, value in first.items():
        other = second[key]
        if isinstance(value, torch.Tensor):
            assert value.dtype == other.dtype, key
            assert torch.equal(value, other), key
        else:
            assert value == other, key
    return type(one) is type(two)


def merge_all(data: Data) -> hp.Chain:
    return hp.Chain.from_parents([np.zeros(data.num_nodes, int)])


def halves(adjacency, num_clusters, *, seed):
    """A clustering: neighbours in the numbering."""
    return np.arange(adjacency.shape[0]) * num_clusters // adjacency.shape[0]


CHAINED = AddHaarChain(num_levels=3, method="matching")
# One node, two, many; no edges; isolated nodes; fewer nodes than levels (2 < 3).
MIXED = [
    random_data(1),
    random_data(300, seed=1),
    random_data(2, 9.0),
    random_data(5, 0.0),
    random_data(30, 1.0),
    random_data(4),
]
CARRIED = [CHAINED(data) for data in MIXED]


def positioned_data(nodes: int, edges: int, seed: int = 0) -> Data:
    """A random graph of so many edges with weights, features, positions and a label."""
    rng = np.random.default_rng(seed)
    row, column = np.triu_indices(nodes, 1)
    chosen = rng.permutation(len(row))[:edges]
    row, column = np.stack([row, column])[:, np.sort(chosen)]
    weight = rng.uniform(1, 2, len(row))
    row, column = np.concatenate([row, column]), np.concatenate([column, row])
    return Data(
        x=torch.from_numpy(rng.standard_normal((nodes, 3))).float(),
        edge_index=torch.from_numpy(np.stack([row, column])),
        edge_weight=torch.from_numpy(np.tile(weight, 2)).float(),
        edge_attr=torch.from_numpy(np.repeat(weight, 2)).float()[:, None],
        pos=torch.from_numpy(rng.standard_normal((nodes, 2))).float(),
        y=torch.tensor([nodes % 2]),
    )


# All tensors that a graph can carry.
EVERYTHING = AddEigenModes(2, num_levels=2, method="matching", edge_attr="mean")
LARGE = positioned_data(30, 60, seed=3)

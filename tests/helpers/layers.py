"""For the tests of layers: chains in batches, reference bases, every layer with every option."""

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import block_diag
from torch_geometric.data import Batch, Data

import haarpool as hp
from haarpool.data import ChainData
from haarpool.nn import HaarConv, HaarPooling, HaarReadout, HaarUnpooling
from haarpool.nn.layers.readout import STATISTICS
from helpers.strategies import chains

DOMAINS = ["haar", "vertex"]
each_domain = pytest.mark.parametrize("domain", DOMAINS)
each_details = pytest.mark.parametrize("details", [None, "energy", "full"])


# ------------------------------------------------------------------ data and reference


def carrier(chain, columns=2, dtype=torch.float64) -> ChainData:
    """The graph of a chain, with the chain and a signal."""
    whole = chain.adjacency(0).tocoo()
    x = np.random.default_rng(chain.sizes[0]).standard_normal((chain.sizes[0], columns))
    data = Data(
        x=torch.from_numpy(x).to(dtype),
        edge_index=torch.from_numpy(np.stack([whole.row, whole.col]).astype(np.int64)),
        edge_weight=torch.from_numpy(whole.data).to(dtype),
    )
    return ChainData.from_chain(data, chain)


def together(many, **options):
    return Batch.from_data_list([carrier(chain, **options) for chain in many])


@st.composite
def lists_of_chains(draw, max_size=4, **options):
    """Chains of equal depth."""
    each = chains(num_levels=draw(st.integers(1, 3)), max_nodes=10, **options)
    return draw(st.lists(each, min_size=1, max_size=max_size))


def signal(many, level, columns=2, seed=0, dtype=torch.float64):
    rows = sum(chain.sizes[level] for chain in many)
    x = np.random.default_rng(seed).standard_normal((rows, columns))
    return torch.from_numpy(x).to(dtype)


def whole(matrix, many, level):
    """One matrix for all graphs, as a tensor."""
    return torch.from_numpy(block_diag(*(matrix(chain, level) for chain in many)))


def U(chain, j):
    return hp.haar_basis(chain, j).toarray()


def Phi(chain, j):
    return hp.compressive_basis(chain, j).toarray()


def D(chain, j):
    """The details of a level: those columns of U_j that are not Φ_j."""
    return U(chain, j)[:, chain.sizes[j + 1] :]


def P(chain, j):
    """Cluster sums, by their definition."""
    parent, m = chain.parents[j], chain.measures(j)
    result = np.zeros(chain.sizes[j : j + 2])
    result[np.arange(len(parent)), parent] = np.sqrt(m / np.bincount(parent, m)[parent])
    return result


def owner(chain, j):
    """(details of level j, clusters) which detail is whose: it lives on one cluster alone."""
    nodes = np.abs(D(chain, j)).argmax(0)
    return np.eye(chain.sizes[j + 1])[chain.parents[j][nodes]]


def random_graph(nodes, degree=3.0, seed=0):
    rng = np.random.default_rng(seed)
    chosen = rng.random((nodes, nodes)) < degree / nodes
    upper = np.triu(chosen * rng.uniform(0.5, 2, (nodes, nodes)), 1)
    return sparse.csr_array(upper + upper.T)


def built(sizes, seed=0, **options):
    """Chains over random graphs of these sizes."""
    options = {"num_levels": 2, "method": "matching"} | options
    graphs = [random_graph(n, seed=seed + i) for i, n in enumerate(sizes)]
    return [hp.build_chain(graph, **options) for graph in graphs]


SMALL = built([1, 7, 2, 5])
BATCH = together(SMALL)
N = BATCH.chain_sizes


# Each layer with every option as a function of one signal: (level of its rows, function). A new
# option joins the tests of gradients, determinism and synchronisation by an entry in this table.
def _pooled(layer):
    def apply(x, data):
        out = layer(x, data)
        return out.x if out.details is None else torch.cat([out.x, out.details])

    return apply


def _restored(layer):
    def apply(c, data):
        coarse = data[f"haar_tree_{layer.level + 1}"].shape[-1]
        return layer(c[:coarse], data, c[coarse:])

    return apply


CASES = {
    **{
        f"pool-{domain}-{details}-{level}": (level, HaarPooling(level, domain, details), _pooled)
        for domain in DOMAINS
        for details in (None, "energy", "full")
        for level in (0, 1)
    },
    **{
        f"unpool-{domain}-{level}": (level + 1, HaarUnpooling(level, domain), None)
        for domain in DOMAINS
        for level in (0, 1)
    },
    **{
        f"restore-{domain}-{level}": (level, HaarUnpooling(level, domain), _restored)
        for domain in DOMAINS
        for level in (0, 1)
    },
    **{f"readout-{level}": (level, HaarReadout(level, STATISTICS), None) for level in (0, 1)},
    **{f"conv-{level}": (level, HaarConv(2, 3, 2, level), None) for level in (0, 1, 2)},
}
each_case = pytest.mark.parametrize("name", CASES)


def case(name):
    """(level of the rows, the layer, a function (x, data) -> tensor)."""
    level, layer, wrap = CASES[name]
    return level, layer, layer if wrap is None else wrap(layer)

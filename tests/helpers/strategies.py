"""Random graphs, chains and signals for hypothesis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse

from haarpool import Chain

each_device = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
)


def at_most(max_examples: int) -> settings:
    """Fewer examples than the 60 of the full profile, for tests whose examples are large."""
    return settings(max_examples=max(2, max_examples * settings().max_examples // 60))


@st.composite
def graphs(draw, max_nodes: int = 24, weighted: bool | None = None) -> sparse.csr_array:
    """Symmetric weighted graphs: sparse ones, isolated nodes, self-loops, no edges, one node."""
    n = draw(st.integers(1, max_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.05, 0.15, 0.5, 1.0]))
    upper = np.triu(rng.random((n, n)) < density, k=draw(st.sampled_from([0, 1])))
    if draw(st.booleans()) if weighted is None else weighted:
        upper = upper * rng.uniform(0.1, 10, (n, n))
    return sparse.csr_array(np.triu(upper, 1).T + upper, dtype=np.float64)


@st.composite
def parent_vectors(draw, size: int, num_levels: int) -> list[np.ndarray]:
    """Steps of every kind: identity, pairs, one giant cluster, a few of uneven size."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents = []
    for _ in range(num_levels):
        clusters = draw(st.integers(1, size))
        ids = np.concatenate([np.arange(clusters), rng.integers(0, clusters, size - clusters)])
        parents.append(rng.permutation(ids))
        size = clusters
    return parents


@st.composite
def chains(
    draw,
    *,
    orders=("index", "degree"),
    measures=("children", "mass"),
    num_levels: int | None = None,
    max_nodes: int = 24,
) -> Chain:
    """Chains of both orders and measures over random graphs, one node at the top or several."""
    graph = draw(graphs(max_nodes))
    K = draw(st.integers(1, 4)) if num_levels is None else num_levels
    return Chain.from_parents(
        draw(parent_vectors(graph.shape[0], K)),
        adjacency=graph,
        order=draw(st.sampled_from(orders)),
        measure=draw(st.sampled_from(measures)),
    )


def signal(chain: Chain, level: int = 0, columns: int = 3, seed: int = 0) -> np.ndarray:
    """A random (N_level, columns) signal."""
    return np.random.default_rng(seed).standard_normal((chain.sizes[level], columns))

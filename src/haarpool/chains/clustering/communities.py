"""Communities: clusters with more weight inside than expected by chance (modularity).

Louvain and Leiden ignore self-loops, the weight inside the clusters of the previous level. With
them, the communities of one level would already be optimal on the next, and the chain would end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from haarpool._types import Ints
from haarpool.chains.adjacency import without_self_loops
from haarpool.chains.clustering.packing import packed
from haarpool.chains.clustering.registry import register
from haarpool.errors import import_extra

# Smallest relative weight: Paris multiplies two of them in float32, which ends at 1e-38.
SMALLEST = 1e-12
LEIDEN_ROUNDS = 10  # more do not raise the modularity of molecules and proteins


@register("louvain", version="1", limits={"resolution": (0, None)})
def louvain(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, resolution: float = 1.0
) -> Ints:
    """Communities by Louvain; chooses the number of clusters.

    `seed` decides the order in which nodes are visited. A larger `resolution` gives more clusters.
    """
    graph = without_self_loops(adjacency)
    if not graph.nnz:  # modularity would divide by a total weight of zero
        return np.arange(graph.shape[0])
    method = import_extra("sknetwork.clustering", "cluster").Louvain(
        resolution=resolution,
        shuffle_nodes=True,
        random_state=seed,
        return_probs=False,
        return_aggregate=False,
    )
    return np.asarray(method.fit_predict(_normalised(graph)), np.int64)


@register("leiden", version="1", limits={"resolution": (0, None)})
def leiden(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, resolution: float = 1.0
) -> Ints:
    """Connected communities by Leiden; chooses the number of clusters.

    A larger `resolution` gives more clusters. Isolated nodes are singletons.
    """
    graph = without_self_loops(adjacency)
    size = graph.shape[0]
    labels: Ints = size + np.arange(size)  # of nodes without edges, which the library does not get
    if not graph.nnz:
        return labels
    upper = sparse.triu(_normalised(graph)).tocoo()
    ends = (map(str, upper.row.tolist()), map(str, upper.col.tolist()))
    _, communities = import_extra("graspologic_native", "cluster").leiden(
        edges=list(zip(*ends, upper.data.tolist(), strict=True)),
        resolution=resolution,
        iterations=LEIDEN_ROUNDS,
        seed=seed,
    )
    for node, label in communities.items():
        labels[int(node)] = label
    return labels


@register("paris", version="1")
def paris(adjacency: sparse.csr_array, num_clusters: int, *, seed: int) -> Ints:
    """Paris: merges the closest nodes or clusters, step by step.

    Returns exactly `num_clusters`. If the graph has more components, components are joined to
    clusters of similar size. `seed` is not used.
    """
    size = adjacency.shape[0]
    count, component = csgraph.connected_components(adjacency, directed=False)
    if count >= num_clusters:
        return np.asarray(packed(np.bincount(component), num_clusters)[component])
    graph = _normalised(adjacency)
    # Add self-loops to isolated nodes: otherwise the library adds them with an integer type.
    isolated = np.flatnonzero(np.diff(graph.indptr) == 0)
    graph += sparse.csr_matrix((np.ones(len(isolated)), (isolated, isolated)), shape=graph.shape)
    tree = import_extra("sknetwork.hierarchy", "cluster").Paris(reorder=False).fit_predict(graph)
    return _first_merges(tree, size - num_clusters)


def _first_merges(tree: NDArray[np.float64], count: int) -> Ints:
    """Return labels after the `count` lowest merges of a dendrogram.

    The library's cut_straight returns more clusters than requested if heights are equal, which is
    common in molecules. Here, merges of equal height are sorted by the size of the new cluster.
    A row of the dendrogram, (N - 1, 4), is a merge: left, right, height, size.
    """
    size = len(tree) + 1
    pairs, height = tree[:, :2].astype(np.int64), tree[:, 2].copy()
    for step, pair in enumerate(pairs):  # after rounding, a merge may be below one of its parts
        for child in pair[pair >= size] - size:
            height[step] = max(height[step], height[child])
    group = np.arange(2 * size - 1)
    for step in np.lexsort((tree[:, 3], height))[:count]:
        group[pairs[step]] = size + step
    for node in range(2 * size - 2, -1, -1):  # a merge has a larger number than its parts
        group[node] = group[group[node]]
    return group[:size]


def _normalised(adjacency: sparse.csr_array) -> sparse.csr_matrix:
    """Scale weights to at most one, for float32, and convert to the type of scikit-network."""
    graph = sparse.csr_matrix(adjacency, copy=True)
    graph.data = np.maximum(graph.data / graph.data.max(), SMALLEST)
    return graph

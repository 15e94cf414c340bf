"""Communities: clusters that hold more weight than chance would put there (modularity).

Louvain and Leiden leave out self-loops, the weight inside former clusters: with them the
communities of one level are already the best ones of the next, and a chain would end there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from haarpool._types import Ints
from haarpool.chains.adjacency import without_self_loops
from haarpool.chains.clustering.extras import extra
from haarpool.chains.clustering.packing import packed
from haarpool.errors import HaarPoolError

# Paris multiplies shares of the total weight in float32, which ends at 1e-38. Louvain adds them.
SMALLEST = 1e-12
LEIDEN_ROUNDS = 10  # more do not raise the modularity of molecules and proteins


def louvain(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, resolution: float = 1.0
) -> Ints:
    """Communities by Louvain; chooses the number of clusters

    Nodes are visited in an order drawn by `seed`. A larger `resolution` gives more clusters.
    """
    _check_resolution(resolution)
    graph = without_self_loops(adjacency)
    if not graph.nnz:  # modularity divides by the total weight
        return np.arange(graph.shape[0])
    method = extra("sknetwork.clustering").Louvain(
        resolution=resolution,
        shuffle_nodes=True,
        random_state=seed,
        return_probs=False,
        return_aggregate=False,
    )
    labels: Ints = method.fit_predict(_normalised(graph)).astype(np.int64)
    return labels


def leiden(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, resolution: float = 1.0
) -> Ints:
    """Communities by Leiden, all connected; chooses the number of clusters

    A larger `resolution` gives more clusters. Isolated nodes stay alone.
    """
    _check_resolution(resolution)
    graph = without_self_loops(adjacency)
    size = graph.shape[0]
    labels: Ints = size + np.arange(size)  # for nodes without edges, which the library never sees
    if not graph.nnz:
        return labels
    upper = sparse.triu(_normalised(graph)).tocoo()
    ends = (map(str, upper.row.tolist()), map(str, upper.col.tolist()))
    _, found = extra("graspologic_native").leiden(
        edges=list(zip(*ends, upper.data.tolist(), strict=True)),
        resolution=resolution,
        iterations=LEIDEN_ROUNDS,
        seed=seed,
    )
    for node, label in found.items():
        labels[int(node)] = label
    return labels


def paris(adjacency: sparse.csr_array, num_clusters: int, *, seed: int) -> Ints:
    """Paris: merges the nodes or clusters that are closest, step by step

    Always num_clusters. Where that is less than the number of components, whole components are put
    together, evenly by size. `seed` is not needed.
    """
    size = adjacency.shape[0]
    count, component = csgraph.connected_components(adjacency, directed=False)
    if count >= num_clusters:
        whole: Ints = packed(np.bincount(component), num_clusters)[component]
        return whole
    graph = _normalised(adjacency)
    # Isolated nodes get a loop: the library adds one of its own otherwise, of an integer type.
    alone = np.flatnonzero(np.diff(graph.indptr) == 0)
    graph += sparse.csr_matrix((np.ones(len(alone)), (alone, alone)), shape=graph.shape)
    tree = extra("sknetwork.hierarchy").Paris(reorder=False).fit_predict(graph)
    return _first_merges(tree, size - num_clusters)


def _check_resolution(resolution: float) -> None:
    if not 0 < resolution < np.inf:
        raise HaarPoolError("a resolution above 0", f"{resolution!r}", "1 is plain modularity")


def _first_merges(tree: NDArray[np.float64], count: int) -> Ints:
    """Labels after the `count` lowest merges of a dendrogram (left, right, height, size).

    The library's cut_straight gives more clusters than asked where heights are equal, as they are
    in any molecule. Here equal heights are merged smallest cluster first.
    """
    size = len(tree) + 1
    pairs, height = tree[:, :2].astype(np.int64), tree[:, 2].copy()
    for step, pair in enumerate(pairs):  # rounding may put a merge below one that it needs
        for child in pair[pair >= size] - size:
            height[step] = max(height[step], height[child])
    group = np.arange(2 * size - 1)
    for step in np.lexsort((tree[:, 3], height))[:count]:
        group[pairs[step]] = size + step
    for node in range(2 * size - 2, -1, -1):  # a merge has a larger number than what it merges
        group[node] = group[group[node]]
    return group[:size]


def _normalised(adjacency: sparse.csr_array) -> sparse.csr_matrix:
    """Weights of at most one, which fit the float32 of scikit-network, in the type it asks for."""
    graph = sparse.csr_matrix(adjacency, copy=True)
    graph.data = np.maximum(graph.data / graph.data.max(), SMALLEST)
    return graph

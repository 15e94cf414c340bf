"""Clusterings of points: nodes by their features or, without features, by the graph.

Without features, k-means uses the spectral embedding, and the density methods use shortest paths:
the length of an edge is inversely proportional to its weight, the median edge has length one, and
self-loops are ignored. Clusters of the density methods do not cross components of the graph.

Density depends on the graph: an atom has two neighbours, a residue of a protein four. So by default
(min_samples=None) a node is dense if it has more neighbours than the mean. Fixed numbers resulted
in one cluster, or none, on molecules or on proteins. With features, where most points may be equal,
two near points are dense.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, spatial
from scipy.sparse import csgraph
from threadpoolctl import threadpool_limits

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import without_self_loops
from haarpool.chains.clustering.registry import register
from haarpool.chains.clustering.spectral import embedding
from haarpool.errors import HaarPoolError

MAX_NODES = 5000  # for a dense matrix, 200 MB
LONGEST = 1e100  # longest edge relative to the shortest one: sums of such lengths are finite
DIGITS = 6  # k-means squares differences, so half of the 16 digits count, less some for safety
SLACK = 1e-6  # so that rounding does not decide whether two points are near


@register("kmeans", version="1", limits={"n_init": (1, None)})
def kmeans(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    n_init: int = 10,
) -> Ints:
    """k-means on the features, or on the spectral embedding of the graph.

    Returns the best of `n_init` runs. There are at most as many clusters as different feature
    vectors.
    """
    from sklearn.cluster import KMeans  # slow to import

    points = embedding(adjacency, num_clusters) if features is None else features
    points = points / max(np.abs(points).max(initial=0), np.finfo(float).tiny)
    points = np.round(points - points.mean(axis=0), DIGITS)
    method = KMeans(
        n_clusters=min(num_clusters, len(np.unique(points, axis=0))),
        n_init=n_init,
        random_state=seed,
    )
    return np.asarray(method.fit_predict(points), np.int64)


@register("spectral-kmeans", version="1", limits={"n_init": (1, None)})
def spectral_kmeans(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, n_init: int = 10
) -> Ints:
    """Spectral clustering of scikit-learn, as the authors of the paper used it.

    Returns, up to rounding, the labels of SpectralClustering(num_clusters, affinity="precomputed",
    n_init=n_init, random_state=seed) if the eigenvectors are unique. If they are not, for example
    without edges, its solver ARPACK may restart from a vector that does not depend on the seed, and
    labels differ between runs. So this function does the same steps with a dense solver.
    Self-loops are ignored, as in the Laplacian of scikit-learn.
    """
    from sklearn.cluster import k_means  # slow to import

    _check_size(adjacency.shape[0])
    laplacian, root_degree = csgraph.laplacian(adjacency.toarray(), normed=True, return_diag=True)
    np.fill_diagonal(laplacian, 1)  # also for isolated nodes
    random = np.random.RandomState(seed)
    random.uniform(-1, 1, len(laplacian))  # as scikit-learn does for the start of ARPACK
    # If eigenvalues are equal, which is common in molecules, rounding decides the eigenvectors, and
    # rounding depends on the number of threads.
    with threadpool_limits(1), warnings.catch_warnings():
        vectors = np.linalg.eigh(laplacian)[1][:, :num_clusters] / root_degree[:, None]
        # If weights differ by many orders of magnitude, rows of nodes of large degree are nearly
        # equal; then fewer clusters than requested are fine.
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        _, labels, _ = k_means(vectors, num_clusters, random_state=random, n_init=n_init)
    return np.asarray(labels, np.int64)


@register("dbscan", version="1")
def dbscan(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    eps: float | None = None,
    min_samples: int | None = None,
) -> Ints:
    """DBSCAN: dense regions and their borders; chooses the number of clusters.

    Points within `eps` are neighbours. Its default is the median length of an edge, which is one,
    or with features the median distance to the nearest other feature vector. A point is dense if
    there are `min_samples` points within `eps`, including itself (default: see the module). `seed`
    is not used.
    """
    from sklearn.cluster import DBSCAN  # slow to import

    points, metric, near, dense = _space(adjacency, features, min_samples, eps)
    method = DBSCAN(eps=near, min_samples=dense, metric=metric)
    return _within_components(method.fit_predict(points), adjacency, features)


@register("optics", version="1")
def optics(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    min_samples: int | None = None,
    xi: float = 0.05,
) -> Ints:
    """OPTICS: valleys of the reachability plot; chooses the number of clusters.

    A point is dense if `min_samples` points are near, including itself (default: see the module);
    a cluster begins where the distance decreases by the share `xi`. `seed` is not used.
    """
    from sklearn.cluster import OPTICS  # slow to import

    points, metric, _, dense = _space(adjacency, features, min_samples)
    method = OPTICS(
        min_samples=min(dense, len(points)),
        xi=xi,
        min_cluster_size=2,  # min_samples, the default, is too large
        metric=metric,
    )
    with np.errstate(divide="ignore"):  # a decrease to distance zero, for equal points, is infinite
        labels = method.fit_predict(points)
    return _within_components(labels, adjacency, features)


@register("hdbscan", version="1", limits={"min_cluster_size": (2, None)})
def hdbscan(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    min_cluster_size: int = 2,
    min_samples: int | None = None,
) -> Ints:
    """HDBSCAN: the most stable of all DBSCAN clusters; chooses the number.

    Clusters have at least `min_cluster_size` members; with more than two, most molecules have no
    clusters. A point is dense if `min_samples` points are near, including itself (default: see the
    module). `seed` is not used.
    """
    from sklearn.cluster import HDBSCAN  # slow to import

    points, metric, _, dense = _space(adjacency, features, min_samples)
    method = HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=min(dense, len(points)),
        metric=metric,
        copy=True,
    )
    return _within_components(method.fit_predict(points), adjacency, features)


def _space(
    adjacency: sparse.csr_array,
    features: Floats | None,
    min_samples: int | None,
    eps: float | None = None,
) -> tuple[Floats, str, float, int]:
    """Return the input of a density method, with defaults in place of None.

    These are points (N, d) or distances (N, N), the metric, the distance of neighbours, and the
    number of neighbours, including itself, of a dense point.
    """
    if features is None:
        distances = _distances(adjacency)
        eps = 1 + SLACK if eps is None else eps
        if min_samples is None:
            neighbours = (distances <= eps).sum(axis=1)
            above_mean = min(int(neighbours.mean()) + 1, int(neighbours.max()))
            min_samples = max(2, above_mean)
        return distances, "precomputed", eps, min_samples
    if eps is None:
        nearest = spatial.KDTree(features).query(features, k=2)[0][:, 1]
        # Most feature vectors may be equal (types of atoms). Then only equal vectors are near.
        smallest = max(SLACK * np.abs(features).max(initial=0), np.finfo(float).tiny)
        eps = max(float(np.median(nearest)) * (1 + SLACK), smallest)
    return features, "euclidean", eps, 2 if min_samples is None else min_samples


def _distances(adjacency: sparse.csr_array) -> Floats:
    """Return the (N, N) lengths of shortest paths; the median edge has length one."""
    _check_size(adjacency.shape[0])
    lengths = without_self_loops(adjacency)
    if lengths.nnz:
        share = np.maximum(lengths.data / lengths.data.max(), 1 / LONGEST)
        lengths.data = 1 / share
        lengths.data /= np.median(lengths.data)
    distances: Floats = csgraph.shortest_path(lengths, method="D")
    distances = np.minimum(distances, distances.T)  # sums in opposite order differ by rounding
    reachable = np.isfinite(distances)
    distances[~reachable] = 2 * max(1.0, distances[reachable].max())
    return distances


def _check_size(size: int) -> None:
    if size > MAX_NODES:
        raise HaarPoolError(
            f"at most {MAX_NODES} nodes for a method with a dense matrix",
            f"{size}",
            "use {method}",
            method="matching",
        )


def _within_components(
    labels: NDArray[np.int64], adjacency: sparse.csr_array, features: Floats | None
) -> Ints:
    """Divide clusters of graph distances by components of the graph."""
    labels = labels.astype(np.int64)
    if features is not None:
        return labels
    count, component = csgraph.connected_components(adjacency, directed=False)
    return np.where(labels < 0, labels, labels * count + component)

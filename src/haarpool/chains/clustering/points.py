"""Clusterings of points: nodes by their features or, where there are none, by the graph.

k-means places nodes by the spectral embedding. The density methods take shortest paths, where an
edge is the shorter the larger its weight is, in units of the median edge; self-loops have no
length. Their clusters lie within a component of the graph.

How crowded is dense depends on the graph: an atom has two neighbours, a residue of a protein four.
So by default (min_samples=None) a node is dense if it has more neighbours than the mean node.
Fixed numbers gave one cluster of everything, or none, on molecules or on proteins. With features,
where most points may be equal, two points make a dense place.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, spatial
from scipy.sparse import csgraph

from haarpool._types import Floats, Ints
from haarpool.chains.adjacency import without_self_loops
from haarpool.chains.clustering.extras import extra
from haarpool.chains.clustering.spectral import embedding
from haarpool.errors import HaarPoolError

MAX_DISTANCES = 5000  # nodes; a number is held for any two of them, 200 MB
LONGEST = 1e100  # an edge in units of the shortest one: sums of such lengths stay finite
DIGITS = 6  # k-means squares differences, so it sees half of the 16 digits, less some for safety
SLACK = 1e-6  # rounding must not decide whether two points are near


def kmeans(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    n_init: int = 10,
) -> Ints:
    """k-means on the features, or on the spectral embedding of the graph

    The best of `n_init` starts. Nodes with equal features cannot be told apart, so there are at
    most as many clusters as there are different rows.
    """
    points = embedding(adjacency, num_clusters) if features is None else features
    points = points / max(np.abs(points).max(initial=0), np.finfo(float).tiny)
    points = np.round(points - points.mean(axis=0), DIGITS)
    method = extra("sklearn.cluster").KMeans(
        n_clusters=min(num_clusters, len(np.unique(points, axis=0))),
        n_init=n_init,
        random_state=seed,
    )
    labels: Ints = method.fit_predict(points).astype(np.int64)
    return labels


def spectral_kmeans(
    adjacency: sparse.csr_array, num_clusters: int, *, seed: int, n_init: int = 10
) -> Ints:
    """Textbook spectral clustering of scikit-learn, as the paper's authors ran it

    Up to rounding the labels of SpectralClustering(num_clusters, affinity="precomputed",
    n_init=n_init, random_state=seed) wherever the eigenvectors are unique. Where they are not,
    above all without edges, its solver ARPACK may go on from a vector that no seed sets, and
    labels change from run to run. So its steps are taken one by one here, with a dense solver.
    Self-loops do not count: the Laplacian of scikit-learn leaves them out.
    """
    _check_size(adjacency.shape[0])
    laplacian, root_degree = csgraph.laplacian(adjacency.toarray(), normed=True, return_diag=True)
    np.fill_diagonal(laplacian, 1)  # of isolated nodes too
    random = np.random.RandomState(seed)
    random.uniform(-1, 1, len(laplacian))  # scikit-learn draws the start of ARPACK first
    # Equal eigenvalues are common in molecules. Rounding then chooses the eigenvectors, and
    # rounding depends on the number of threads; threadpoolctl comes with scikit-learn.
    one_thread = extra("threadpoolctl").threadpool_limits(1)
    with one_thread, warnings.catch_warnings():
        vectors = np.linalg.eigh(laplacian)[1][:, :num_clusters] / root_degree[:, None]
        # Where weights differ by many orders, rows of nodes of large degree are all but equal;
        # fewer clusters than asked is an answer.
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        _, labels, _ = extra("sklearn.cluster").k_means(
            vectors, num_clusters, random_state=random, n_init=n_init
        )
    result: Ints = labels.astype(np.int64)
    return result


def dbscan(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    eps: float | None = None,
    min_samples: int | None = None,
) -> Ints:
    """DBSCAN: dense regions and their fringe; chooses the number of clusters

    Points within `eps` are neighbours: by default the median length of an edge, which is the unit
    of graph distances, or the median distance of a feature vector to the nearest other one. A point
    is dense if there are `min_samples` within `eps`, itself included (default: see the module).
    `seed` is not needed.
    """
    points, metric, near, dense = _space(adjacency, features, eps)
    method = extra("sklearn.cluster").DBSCAN(
        eps=near, min_samples=dense if min_samples is None else min_samples, metric=metric
    )
    return _within_components(method.fit_predict(points), adjacency, features)


def optics(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    min_samples: int | None = None,
    xi: float = 0.05,
) -> Ints:
    """OPTICS: valleys of the reachability plot; chooses the number of clusters

    `min_samples` is what makes a point dense, itself included (default: see the module); `xi` is
    the relative drop in distance at which a cluster begins. `seed` is not needed.
    """
    points, metric, _, dense = _space(adjacency, features)
    method = extra("sklearn.cluster").OPTICS(
        min_samples=min(dense if min_samples is None else min_samples, len(points)),
        xi=xi,
        min_cluster_size=2,  # by default min_samples, which forbids what dbscan would find
        metric=metric,
    )
    with np.errstate(divide="ignore"):  # a drop to distance zero, of equal points, is infinite
        labels = method.fit_predict(points)
    return _within_components(labels, adjacency, features)


def hdbscan(
    adjacency: sparse.csr_array,
    num_clusters: int,
    *,
    seed: int,
    features: Floats | None = None,
    min_cluster_size: int = 2,
    min_samples: int | None = None,
) -> Ints:
    """HDBSCAN: the most stable of all DBSCAN clusters; chooses the number

    Clusters have at least `min_cluster_size` members: more than two leave most molecules without
    any. `min_samples` is what makes a point dense, itself included (default: see the module).
    `seed` is not needed.
    """
    points, metric, _, dense = _space(adjacency, features)
    method = extra("sklearn.cluster").HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=min(dense if min_samples is None else min_samples, len(points)),
        metric=metric,
        copy=True,
    )
    return _within_components(method.fit_predict(points), adjacency, features)


def _space(
    adjacency: sparse.csr_array, features: Floats | None, eps: float | None = None
) -> tuple[Floats, str, float, int]:
    """What a density method works on: features or distances, the metric, what is near and dense."""
    if features is None:
        distances = _distances(adjacency)
        near = 1 + SLACK if eps is None else eps
        neighbours = (distances <= near).sum(axis=1)
        more = min(int(neighbours.mean()) + 1, int(neighbours.max()))
        return distances, "precomputed", near, max(2, more)
    if eps is None:
        nearest = spatial.KDTree(features).query(features, k=2)[0][:, 1]
        # Most feature vectors may be equal (kinds of atoms). Then only equal ones are near.
        least = max(SLACK * np.abs(features).max(initial=0), np.finfo(float).tiny)
        eps = max(float(np.median(nearest)) * (1 + SLACK), least)
    return features, "euclidean", eps, 2


def _distances(adjacency: sparse.csr_array) -> Floats:
    """Shortest paths between all nodes; the median edge has length one."""
    _check_size(adjacency.shape[0])
    lengths = without_self_loops(adjacency)
    if lengths.nnz:
        share = np.maximum(lengths.data / lengths.data.max(), 1 / LONGEST)
        lengths.data = 1 / share
        lengths.data /= np.median(lengths.data)
    distances: Floats = csgraph.shortest_path(lengths, method="D")
    distances = np.minimum(distances, distances.T)  # the same sum, rounded from either end
    reachable = np.isfinite(distances)
    distances[~reachable] = 2 * max(1.0, distances[reachable].max())
    return distances


def _check_size(size: int) -> None:
    if size > MAX_DISTANCES:
        raise HaarPoolError(
            f"at most {MAX_DISTANCES} nodes for this method, whose matrix is dense",
            f"{size}",
            "choose method='matching'",
        )


def _within_components(
    labels: NDArray[np.int64], adjacency: sparse.csr_array, features: Floats | None
) -> Ints:
    """Clusters of graph distances, divided where no path leads from one part to the other."""
    labels = labels.astype(np.int64)
    if features is not None:
        return labels
    count, component = csgraph.connected_components(adjacency, directed=False)
    divided: Ints = np.where(labels < 0, labels, labels * count + component)
    return divided

"""Clusterings: (adjacency, number of clusters, seed) -> cluster ids. One file per family.

Every module of this folder is imported, so a file with an `@register` adds a clustering.
"""

from haarpool._modules import import_modules
from haarpool.chains.clustering.batches import cluster
from haarpool.chains.clustering.registry import (
    ClusteringFunction,
    ClusteringMethod,
    clusterings,
    find_method,
    register,
)

__all__ = [
    "ClusteringFunction",
    "ClusteringMethod",
    "cluster",
    "clusterings",
    "find_method",
    "register",
]

import_modules(__name__)

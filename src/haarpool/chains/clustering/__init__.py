"""Clusterings: (adjacency, number of clusters, seed) -> cluster ids. One file per family.

Every module of this folder is imported, so a file with an `@register` adds a clustering.
"""

from importlib import import_module

from haarpool._modules import module_names
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

for _name in module_names(__name__):
    import_module(f"{__name__}.{_name}")

"""Clusterings: (adjacency, number of clusters, seed) -> parent vector. One registry.

A clustering is a function `f(adjacency, num_clusters, *, seed, ...)` of a checked CSR adjacency
(symmetric, weights >= 0, self-loops kept) with 1 < num_clusters < N. It returns N cluster ids;
`cluster` makes them consecutive, so ids may have gaps, and there may be fewer clusters than asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from haarpool.clustering.spectral import spectral
from haarpool.errors import HaarPoolError

Clustering = Callable[..., NDArray[Any]]

METHODS: dict[str, Clustering] = {"spectral": spectral}


def cluster(
    adjacency: sparse.csr_array, num_clusters: int, *, method: str, seed: int, **options: Any
) -> NDArray[np.int64]:
    """Cluster ids 0..M-1 without gaps, M <= num_clusters, numbered by their first member."""
    size = adjacency.shape[0]
    if num_clusters >= size:
        return np.arange(size)
    if num_clusters == 1:
        return np.zeros(size, np.int64)
    labels = METHODS[method](adjacency, num_clusters, seed=seed, **options)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[inverse]


def check_method(method: str, options: dict[str, Any]) -> None:
    """Raise unless `method` is known and takes all of `options`."""
    if method not in METHODS:
        raise HaarPoolError(
            f"a clustering method out of {sorted(METHODS)}",
            f"{method!r}",
            "choose one of these, or pass your own clusters to Chain.from_parents",
        )
    signature = inspect.signature(METHODS[method]).parameters.values()
    known = [p.name for p in signature if p.kind is p.KEYWORD_ONLY and p.name != "seed"]
    for name in options:
        if name not in known:
            raise HaarPoolError(
                f"keywords of build_chain, or options of method {method!r}: {known or 'none'}",
                f"{name}={options[name]!r}",
                "check the spelling",
            )

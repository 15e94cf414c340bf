"""Return probabilities of random walks: features that show rings and what else is near a node."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from haarpool.datasets.graphs import Graphs
from haarpool.errors import HaarPoolError

STEPS = 8  # the longest walk, so the longest ring that is seen
MAX_NODES = 4096  # of a graph; its matrix is dense


def return_probabilities(graphs: Graphs) -> NDArray[np.float32]:
    """Compute the probabilities that a random walk is back after 2, ..., `STEPS` steps.

    A walk goes along a random edge in every step; weights and self-loops do not count. With
    P = D⁻¹A, they are the diagonals of P², ..., P⁸ (Dwivedi et al., 2022).

    Returns:
        (N, STEPS - 1) probabilities; zeros for a node without neighbours.

    Example:
        >>> ring = np.array([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
        >>> return_probabilities(Graphs("triangle", np.array([0, 3]), ring))[0, :3]
        array([0.5  , 0.25 , 0.375], dtype=float32)
    """
    if (largest := int(graphs.sizes.max(initial=0))) > MAX_NODES:
        raise HaarPoolError(
            f"graphs with at most {MAX_NODES:,} nodes for {{features}}",
            f"{largest:,} in {graphs.where(int(graphs.sizes.argmax()))} of {graphs.name}",
            "choose others",
            features="walks",
        )
    result = np.zeros((int(graphs.start[-1]), STEPS - 1), np.float32)
    parts = zip(pairwise(graphs.start), pairwise(graphs.edge_start), strict=True)
    for (begin, end), (first, last) in parts:
        source, target = graphs.edges[:, first:last] - begin
        one = np.zeros((end - begin, end - begin), np.float32)
        one[source, target] = 1
        np.fill_diagonal(one, 0)
        one /= one.sum(axis=1, keepdims=True).clip(1)
        two = one @ one
        powers = [one, two, two @ one, two @ two]
        for k in range(2, STEPS + 1):
            half = min(k - 1, 4)
            # The diagonal of a product needs no product.
            result[begin:end, k - 2] = np.einsum("ij,ji->i", powers[half - 1], powers[k - half - 1])
    return result

"""Return probabilities of random walks: features that show rings and what else is near a node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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
            f"graphs with at most {MAX_NODES:,} nodes for the feature walks",
            f"{largest:,} in {graphs.where(int(graphs.sizes.argmax()))} of {graphs.name}",
            "choose other features",
        )
    size = int(graphs.start[-1])
    source, target = graphs.edges
    ones = np.ones(np.count_nonzero(source != target), np.float32)
    step = sparse.csr_array(
        (ones, graphs.edges[:, source != target]), shape=(size, size), dtype=np.float32
    )
    step.sum_duplicates()
    step.data[:] = 1
    step.data /= np.repeat(np.diff(step.indptr), np.diff(step.indptr))
    result = np.zeros((size, STEPS - 1), np.float32)
    for begin, end in zip(graphs.start[:-1], graphs.start[1:], strict=True):
        rows = slice(step.indptr[begin], step.indptr[end])
        one = np.zeros((end - begin, end - begin), np.float32)
        owner = np.repeat(np.arange(end - begin), np.diff(step.indptr[begin : end + 1]))
        one[owner, step.indices[rows] - begin] = step.data[rows]
        two = one @ one
        powers = [one, two, two @ one, two @ two]
        for k in range(2, STEPS + 1):
            half = min(k - 1, 4)
            # The diagonal of a product needs no product.
            result[begin:end, k - 2] = np.einsum("ij,ji->i", powers[half - 1], powers[k - half - 1])
    return result
